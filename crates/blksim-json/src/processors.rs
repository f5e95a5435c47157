//! The part of a request about processors.

use std::collections::BTreeMap;

use blksim::core::error::{Error, ErrorKind, SimulationError};
use blksim::core::params::unknown;
use blksim::core::processor_table::{ProcessorTable, SchedulerCosts, StepCosts};
use serde::Deserialize;

/// Largest cost of a step, a second: a larger one is a mistake in the unit.
const MOST_NS: u64 = 1_000_000_000;
const MOST_CPUS: u32 = 1024;

/// The cost table, as received.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorsRequest {
    cpus: u32,
    #[serde(default)]
    slice_ns: u64,
    #[serde(default)]
    steps: Steps,
    #[serde(default)]
    schedulers: BTreeMap<String, Scheduler>,
}

macro_rules! costs {
    ($name:ident => $target:ident { $($field:ident,)* }) => {
        #[derive(Debug, Default, Clone, Copy, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[allow(clippy::struct_field_names, reason = "fields have their units, as everywhere")]
        struct $name {
            $($field: u64,)*
        }

        impl $name {
            fn checked(self, of: &str) -> Result<$target, SimulationError> {
                $(within(of, stringify!($field), self.$field)?;)*
                Ok($target { $($field: self.$field,)* })
            }
        }
    };
}

costs!(Steps => StepCosts {
    prepare_ns,
    system_call_ns,
    submit_ns,
    issue_ns,
    interrupt_ns,
    end_ns,
    wake_ns,
    context_switch_ns,
    idle_exit_ns,
    collect_ns,
    thread_command_ns,
    copy_page_ns,
    lock_handover_ns,
});

costs!(Scheduler => SchedulerCosts {
    insert_ns,
    dispatch_ns,
    complete_ns,
    merge_ns,
    per_doubling_ns,
    locked_percent,
});

impl ProcessorsRequest {
    /// The table, checked.
    pub fn table(self) -> Result<ProcessorTable, Error> {
        if !(1..=MOST_CPUS).contains(&self.cpus) {
            let message = format!("cpus must be 1 to {MOST_CPUS}, not {}", self.cpus);
            return Err(SimulationError::of(ErrorKind::OutOfRange, "cpus", message).into());
        }
        within("processors", "slice_ns", self.slice_ns)?;
        let mut schedulers = Vec::new();
        for (name, costs) in self.schedulers {
            if blksim::elevator::info(&name).is_none() {
                let known = blksim::elevator::ALL.iter().map(|info| info.name);
                let message =
                    format!("the cost table's scheduler {name}: {}", unknown(&name, known));
                let kind = ErrorKind::UnknownScheduler;
                return Err(SimulationError::of(kind, "schedulers", message).into());
            }
            if costs.locked_percent > 100 {
                let message = format!("{name}: locked_percent must be 0 to 100");
                let field = "locked_percent";
                return Err(SimulationError::of(ErrorKind::OutOfRange, field, message).into());
            }
            schedulers.push((name.clone(), costs.checked(&name)?));
        }
        Ok(ProcessorTable {
            cpus: self.cpus,
            slice_ns: self.slice_ns,
            steps: self.steps.checked("steps")?,
            schedulers,
        })
    }
}

fn within(of: &str, field: &str, value_ns: u64) -> Result<(), SimulationError> {
    if value_ns <= MOST_NS {
        return Ok(());
    }
    let message = format!("{of}: {field} = {value_ns} is more than a second");
    Err(SimulationError::of(ErrorKind::OutOfRange, field, message))
}
