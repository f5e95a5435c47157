//! The part of a request about processors.

use std::collections::BTreeMap;

use blksim::core::error::{Error, ErrorKind, SimulationError};
use blksim::core::params::unknown;
use blksim::core::processor_table::{ProcessorTable, SchedulerCosts, StepCosts};
use serde::Deserialize;

/// Largest cost of a step, a second: a larger one is a mistake in the unit.
const MOST_NS: u64 = 1_000_000_000;
const MOST_CPUS: u32 = 1024;

/// Figures by name.
type Figures = BTreeMap<String, u64>;

/// The cost table, as received.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorsRequest {
    cpus: u32,
    #[serde(default)]
    slice_ns: u64,
    #[serde(default)]
    punt_ns: u64,
    #[serde(default)]
    map_page_ns: u64,
    #[serde(default)]
    steps: Figures,
    #[serde(default)]
    schedulers: BTreeMap<String, Figures>,
}

impl ProcessorsRequest {
    /// The table, checked.
    pub fn table(self) -> Result<ProcessorTable, Error> {
        if !(1..=MOST_CPUS).contains(&self.cpus) {
            let message = format!("cpus must be 1 to {MOST_CPUS}, not {}", self.cpus);
            return Err(SimulationError::of(ErrorKind::OutOfRange, "cpus", message).into());
        }
        within("processors", "slice_ns", self.slice_ns)?;
        within("processors", "punt_ns", self.punt_ns)?;
        within("processors", "map_page_ns", self.map_page_ns)?;
        let mut schedulers = Vec::new();
        for (name, costs) in self.schedulers {
            if blksim::elevator::info(&name).is_none() {
                let known = blksim::elevator::all().into_iter().map(|info| info.name);
                let message =
                    format!("the cost table's scheduler {name}: {}", unknown(&name, known));
                let kind = ErrorKind::UnknownScheduler;
                return Err(SimulationError::of(kind, "schedulers", message).into());
            }
            let mut checked = SchedulerCosts::default();
            fill(&name, costs, SchedulerCosts::NAMES, |field, figure| checked.set(field, figure))?;
            if checked.locked_percent > 100 {
                let message = format!("{name}: locked_percent must be 0 to 100");
                let field = "locked_percent";
                return Err(SimulationError::of(ErrorKind::OutOfRange, field, message).into());
            }
            schedulers.push((name, checked));
        }
        let mut steps = StepCosts::default();
        fill("steps", self.steps, StepCosts::NAMES, |field, figure| steps.set(field, figure))?;
        let Self { cpus, slice_ns, punt_ns, map_page_ns, .. } = self;
        Ok(ProcessorTable { cpus, slice_ns, punt_ns, map_page_ns, steps, schedulers })
    }
}

/// Sets figures by name.
fn fill(
    of: &str,
    figures: Figures,
    names: &[&'static str],
    mut set: impl FnMut(&str, u64) -> bool,
) -> Result<(), SimulationError> {
    for (name, figure) in figures {
        within(of, &name, figure)?;
        if !set(&name, figure) {
            let message = format!("{of}: {}", unknown(&name, names.iter().copied()));
            return Err(SimulationError::of(ErrorKind::Request, "processors", message));
        }
    }
    Ok(())
}

fn within(of: &str, field: &str, value_ns: u64) -> Result<(), SimulationError> {
    if value_ns <= MOST_NS {
        return Ok(());
    }
    let message = format!("{of}: {field} = {value_ns} is more than a second");
    Err(SimulationError::of(ErrorKind::OutOfRange, field, message))
}
