//! The state of a simulation at one moment, as JSON for the page.
//!
//! ```json
//! {"now_ns": 0, "device": {…}, "holding": {…}, "held": […], "held_count": 0, "in_device": […], …}
//! ```
//!
//! Long lists are cut to [`MOST_REQUESTS`]; their true lengths are beside them.

use blksim::block::request::{Operation, PriorityClass};
use blksim::devices::device::UnitTimes;
use blksim::elevator::holding::{Fact, Holding};
use blksim::live::LiveSimulation;
use blksim::live::device::Arm;
use blksim::live::view::{DiskView, RequestView, View};
use serde_json::{Map, Value, json};

/// Requests of a list that the page gets: more than it can draw.
pub const MOST_REQUESTS: usize = 320;

/// The state of a simulation of one disk.
pub fn of(simulation: &LiveSimulation, kind: &str, capacity_sectors: u64) -> Value {
    let View { now_ns, disks, jobs, .. } = simulation.view();
    let disk = &disks[0];
    let arm = simulation.arm();
    let many = |list: &[RequestView]| -> Value {
        list.iter().take(MOST_REQUESTS).map(|one| request(one, arm.as_ref())).collect()
    };
    json!({
        "now_ns": now_ns,
        "scheduler": disk.scheduler,
        "device": device(disk, arm.as_ref(), kind, capacity_sectors),
        "holding": holding(&disk.holding),
        "held": many(&disk.held),
        "held_count": disk.held.len(),
        "ahead": disk.ahead.len(),
        "in_device": many(&disk.in_flight),
        "in_device_count": disk.in_flight.len(),
        "nr_requests": disk.nr_requests,
        "tags_used": disk.tags_used,
        "waiting_for_tag": disk.waiting_for_tag,
        "frozen": disk.frozen,
        "requests": disk.counters.requests,
        "merges": disk.counters.merges,
        "jobs": jobs.iter().map(|job| json!({"in_flight": job.in_flight, "ended": job.ended})).collect::<Value>(),
    })
}

fn unit(times: &UnitTimes) -> Value {
    json!({"reads_end_ns": times.reads_end_ns, "work_end_ns": times.work_end_ns})
}

fn device(disk: &DiskView, arm: Option<&Arm>, kind: &str, capacity_sectors: u64) -> Value {
    let mut device = json!({
        "kind": kind,
        "capacity_sectors": capacity_sectors,
        "head_sector": disk.head_sector,
        "units": disk.units.iter().map(unit).collect::<Value>(),
        "busy_ns": disk.busy_ns,
    });
    if let Some(arm) = arm {
        let motion = arm.motion;
        device["cylinders"] = arm.cylinders().into();
        device["revolution_ns"] = arm.revolution_ns().into();
        device["motion"] = json!({
            "from": motion.from_cylinder,
            "to": motion.to_cylinder,
            "end": motion.end_cylinder,
            "start_ns": motion.start_ns,
            "arrive_ns": motion.arrive_ns,
            "transfer_ns": motion.transfer_ns,
            "done_ns": motion.done_ns,
            "command": motion.command,
        });
    }
    device
}

fn request(request: &RequestView, arm: Option<&Arm>) -> Value {
    let mut entry = json!({
        "id": request.id,
        "operation": match request.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
        },
        "sector": request.sector,
        "sectors": request.nr_sectors,
        "sync": request.sync,
        "job": request.job,
        "task": request.task,
        "group": request.group,
        "class": match request.priority.class {
            PriorityClass::RealTime => "rt",
            PriorityClass::BestEffort => "be",
            PriorityClass::Idle => "idle",
        },
        "level": request.priority.level,
        "submitted_ns": request.submitted_ns,
        "dispatched_ns": request.dispatched_ns,
    });
    if let Some(arm) = arm {
        let place = arm.place(request.sector);
        entry["cylinder"] = place.cylinder.into();
        entry["angle_ns"] = place.angle_ns.into();
    }
    entry
}

fn holding(part: &Holding) -> Value {
    let fact = |(name, value): &(&'static str, Fact)| {
        let value = match *value {
            Fact::Number(number) => number.into(),
            Fact::Signed(number) => number.into(),
            Fact::Real(number) => number.into(),
            Fact::Flag(flag) => flag.into(),
            Fact::Word(word) => word.into(),
        };
        ((*name).to_owned(), value)
    };
    json!({
        "kind": part.kind,
        "facts": part.facts.iter().map(fact).collect::<Map<String, Value>>(),
        "requests": part.requests,
        "parts": part.parts.iter().map(holding).collect::<Value>(),
    })
}
