//! Processor time in virtual time: the kernel's instrument `processor-time` moves the clock by what a
//! cost table says, at the steps of an I/O where the simulator does.

use std::fs;
use std::io::ErrorKind;

use blksim::core::processor_table::ProcessorTable;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::mounts::read_line;
use crate::scheduling;

/// Parameters of the instrument (`arch/um/kernel/processor_time.c`).
const PARAMETERS: &str = "/sys/module/processor_time/parameters";
/// Steps that guests do not have: they have neither loop devices nor several processors.
const NOT_IN_GUESTS: [&str; 3] = ["thread_command_ns", "ipi_ns", "lock_handover_ns"];

/// From now on, and until the guest ends, the steps of an I/O take processor time. The calling process's do
/// not: it only waits for the load.
pub fn begin(table: &ProcessorTable) -> Result<(), Failure> {
    for (name, cost_ns) in table.steps.named() {
        if !NOT_IN_GUESTS.contains(&name) {
            set(name, &cost_ns.to_string())?;
        }
    }
    for (name, costs) in &table.schedulers {
        let figures: Vec<String> = costs
            .named()
            .into_iter()
            .filter(|(field, _)| *field != "locked_percent")
            .map(|(_, figure)| figure.to_string())
            .collect();
        set("scheduler", &format!("{name} {}", figures.join(" ")))?;
    }
    scheduling::go_first_alone();
    set("enabled", "1")
}

/// The processor time so far, and how often tasks were woken and switched to.
pub fn figures() -> Result<Value, Failure> {
    Ok(json!({
        "busy_ns": [busy_ns()?],
        "wakes": read("nr_wakes")?,
        "switches": read("nr_switches")?,
    }))
}

/// The processor time so far.
pub fn busy_ns() -> Result<u64, Failure> {
    read("busy_ns")
}

fn read(name: &str) -> Result<u64, Failure> {
    let text = read_line(&format!("{PARAMETERS}/{name}"))
        .map_err(|error| Failure::kernel(format!("reading {name}"), error))?;
    text.parse().map_err(|_| Failure::kernel(format!("reading {name}"), "it is no number"))
}

fn set(name: &str, value: &str) -> Result<(), Failure> {
    fs::write(format!("{PARAMETERS}/{name}"), value).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Unsupported {
            field: "processors".to_owned(),
            message: "this kernel was built without the instrument processor-time, so computing takes no \
                      time in it: build it anew, or leave out the cost table"
                .to_owned(),
        },
        _ => Failure::kernel(format!("setting {name} of the cost table"), error),
    })
}
