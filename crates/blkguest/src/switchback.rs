//! A switchback: a process that switches schedulers beneath the load.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use blksim::switchback::{SlotOutcome, Switchback};
use blksim::task::slots::SlotRecord;
use blksim_json::slots as answered;
use serde_json::{Value, json};

use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::RUN;
use crate::queue;
use crate::request::Request;
use crate::shared_memory::SharedMemory;

/// Gives each scheduler its turns, and leaves what was in force for [`answer`].
pub fn take_turns(
    request: &Request,
    turns: &Switchback,
    disks: &[Disk],
    shared: SharedMemory,
) -> Result<(), Failure> {
    SharedMemory::await_value(&shared.open_phases, 1);
    let start_ns = shared.start_ns.load(SeqCst);
    let mut setup = request.setup.clone();
    let mut done = Vec::new();
    for slot in &turns.slots {
        let begin_ns = start_ns + slot.times.start_ns;
        clock::sleep_until(begin_ns);
        setup.scheduler.clone_from(&slot.scheduler);
        setup.tunables.clone_from(&slot.tunables);
        for disk in disks {
            queue::set_anew(disk, &setup)?;
        }
        let switch_ns = clock::now_ns() - begin_ns;
        let in_force = queue::read_all(disks)?;
        done.push(json!({
            "switch_ns": switch_ns,
            "scheduler": in_force.scheduler,
            "tunables": in_force.tunables,
            "queue": in_force.queue,
        }));
    }
    fs::write(path(), Value::from(done).to_string())
        .map_err(|error| Failure::kernel("leaving the switches", error))?;
    shared.turns_taken.store(1, SeqCst);
    shared.notify();
    Ok(())
}

/// The slots for the answer: those of the simulator, with the settings in force in each.
pub fn answer(slots: &[SlotRecord]) -> Result<Value, Failure> {
    let text = fs::read_to_string(path())
        .map_err(|error| Failure::kernel("reading the switches", error))?;
    let broken =
        || Failure::Internal { message: "the record of the switches is broken".to_owned() };
    let switches: Vec<Value> = serde_json::from_str(&text).map_err(|_| broken())?;
    let outcomes = slots
        .iter()
        .zip(&switches)
        .map(|(record, switch)| {
            let switch_ns = switch["switch_ns"].as_u64()?;
            Some(SlotOutcome { switch_ns, record: record.clone() })
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(broken)?;
    let mut value = answered(&outcomes);
    for (slot, switch) in value.as_array_mut().into_iter().flatten().zip(&switches) {
        for name in ["scheduler", "tunables", "queue"] {
            slot[name] = switch[name].clone();
        }
    }
    Ok(value)
}

fn path() -> String {
    format!("{RUN}/switches")
}
