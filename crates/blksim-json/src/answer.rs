//! Answers of the simulator, and of the guest program, which uses the same format.

use blksim::block::cgroup::GivenGroups;
use blksim::core::record::{Direction, Histogram, JobRecord};
use blksim::devices::Profile;
use blksim::devices::device::Facts;
use blksim::simulate::{Checked, DiskFigures, Outcome, Setup};
use blksim::switchback::SlotOutcome;
use blksim::task::slots::SlotRecord;
use blksim::workload::JobFile;
use serde_json::{Map, Value, json};

use crate::catalogue::{device, remark, values};

/// The answer to a check.
pub fn checked(setup: &Setup, checked: &Checked) -> Value {
    json!({
        "device": device(&setup.profile, &checked.facts),
        "array": values(&setup.profile.raid),
        "queue": values(&checked.queue),
        "tunables": values(&checked.tunables),
        "machine": values(&checked.machine),
    })
}

/// The answer to a request.
pub fn outcome(setup: &Setup, outcome: &Outcome) -> Value {
    let mut answer = json!({
        "scheduler": outcome.scheduler.name,
        "tunables": values(&outcome.tunables),
        "queue": values(&outcome.queue),
        "cgroups": groups(&setup.cgroups),
        "device": device_in_force(&setup.profile, &outcome.facts),
        "jobs": job_samples(&outcome.jobs),
        "warnings": warnings(&setup.jobs),
        "engine": {
            "name": "blksim",
            "version": env!("CARGO_PKG_VERSION"),
            "seed": setup.seed,
            "arrangement": setup.arrangement.map(|arrangement| arrangement.seed),
            "machine": values(&outcome.machine),
            "events": outcome.events,
            "requests": outcome.requests,
            "merges": outcome.merges,
            "flushes": outcome.flushes,
            "simulated_ns": outcome.simulated_ns,
            "device_busy_ns": outcome.device_busy_ns,
            "peak_tags": outcome.peak_tags,
            "peak_in_flight": outcome.peak_in_flight,
        },
    });
    tell_members(&mut answer["engine"], &outcome.disks);
    if let Some(processors) = &outcome.processors {
        answer["engine"]["processors"] = json!({
            "busy_ns": processors.busy_ns,
            "scheduler_ns": processors.scheduler_ns,
        });
    }
    answer
}

/// The slots of a switchback that have ended, for the answer's `slots`.
pub fn slots(slots: &[SlotOutcome]) -> Value {
    let slot = |slot: &SlotOutcome| {
        json!({
            "switch_ns": slot.switch_ns,
            "ios": slot.record.ios,
            "jobs": job_samples(&slot.record.jobs),
        })
    };
    slots.iter().map(slot).collect()
}

/// The phases between planned changes, for the answer's `phases`.
pub fn phases(phases: &[SlotRecord]) -> Value {
    let phase = |phase: &SlotRecord| {
        json!({
            "from_ns": phase.times.start_ns,
            "to_ns": phase.times.end_ns,
            "ios": phase.ios,
            "jobs": job_samples(&phase.jobs),
        })
    };
    phases.iter().map(phase).collect()
}

/// Adds the counters of each member of an array; does nothing for a single disk.
pub fn tell_members(engine: &mut Value, disks: &[DiskFigures]) {
    if disks.len() < 2 {
        return;
    }
    let figures = |disk: &DiskFigures| {
        json!({
            "requests": disk.requests,
            "merges": disk.merges,
            "flushes": disk.flushes,
            "device_busy_ns": disk.busy_ns,
            "peak_in_flight": disk.peak_in_flight,
        })
    };
    engine["members"] = disks.iter().map(figures).collect();
}

/// A device with all its parameters.
pub fn device_in_force(profile: &Profile, facts: &Facts) -> Value {
    let mut shown = device(profile, facts);
    shown["parameters"] = values(&profile.values);
    shown["array"] = values(&profile.raid);
    shown
}

/// Settings of the control groups, as given.
fn groups(given: &GivenGroups) -> Value {
    let attributes = |given: &[(String, String)]| -> Map<String, Value> {
        given.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
    };
    let groups = given.iter().map(|(name, given)| (name.clone(), attributes(given).into()));
    Value::Object(groups.collect())
}

/// Options of a job file that are accepted and have no effect.
pub fn warnings(jobs: &JobFile) -> Value {
    jobs.warnings.iter().map(remark).collect()
}

/// The jobs' results.
pub fn job_samples(records: &[JobRecord]) -> Value {
    records.iter().map(job_sample).collect()
}

fn job_sample(record: &JobRecord) -> Value {
    let directions: Vec<Value> = Direction::ALL
        .iter()
        .filter(|d| record.direction(**d).ios() > 0)
        .map(|d| {
            let direction = record.direction(*d);
            json!({
                "direction": d.name(),
                "ios": direction.ios(),
                "bytes": direction.bytes,
                "runtime_ns": record.runtime_ns,
                "latency": histogram(&direction.latency),
            })
        })
        .collect();
    json!({
        "name": record.name,
        "clones": record.clones,
        "runtime_ns": record.runtime_ns,
        "directions": directions,
        "cpu_user_ns": record.cpu.map(|cpu| cpu.user_ns),
        "cpu_system_ns": record.cpu.map(|cpu| cpu.system_ns),
        "context_switches": null,
    })
}

fn histogram(histogram: &Histogram) -> Value {
    let bins: Map<String, Value> =
        histogram.bins().map(|(ns, count)| (ns.to_string(), count.into())).collect();
    json!({
        "count": histogram.count(),
        "sum_ns": histogram.sum_ns(),
        "min_ns": histogram.min_ns(),
        "max_ns": histogram.max_ns(),
        "bins": bins,
    })
}
