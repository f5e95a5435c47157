//! Torture: does a scheduler complete every request once, with the right data, in bounded time, whatever is
//! done to it meanwhile?
//!
//! Workers read and write a disk of the kernel's `null_blk` that keeps its contents, and check every block
//! that they read. Meanwhile schedulers, depths and tunables change at random, tasks exit with I/O in flight,
//! control groups vanish, and the driver hands requests back or lets them time out. One seed decides
//! everything, so a failure happens again under its seed.

mod async_io;
mod contents;
mod disk;
mod disturbance;
mod excuse;
mod idleness;
mod kept_file;
mod kernel_log;
mod leaks;
mod overseer;
mod plan;
mod worker;

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock;
use crate::failure::Failure;
use crate::mounts::RUN;
use crate::process;
use crate::shared_memory::SharedMemory;

use plan::{Load, Plan};

/// The request of a torture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Torture {
    pub seed: u64,
    /// The scheduler that is tortured.
    pub scheduler: String,
    pub load: Load,
    /// How long workers begin I/Os.
    pub duration_ns: u64,
    /// Longest time for which anything may wait.
    pub bound_ns: u64,
    /// Longest time for which the scheduler may leave an idle disk without the requests that it holds.
    pub idle_bound_ns: u64,
    /// Requests that the driver lets time out fail, and nobody knows whether they were done.
    pub timeouts: bool,
}

/// Time between the last preparation and the first I/O.
const START_MARGIN_NS: u64 = 100_000_000;
/// Time for workers to read all that they wrote.
const LAST_LOOK_NS: u64 = 60_000_000_000;
/// Where workers leave their counts.
const COUNTS: [&str; 5] = ["reads", "writes", "syncs", "failed", "digest"];

/// Runs a torture.
///
/// # Errors
///
/// [`Failure::Mistake`] for a mistake of the kernel; other failures are of the set-up.
pub fn run(torture: &Torture) -> Result<Value, Failure> {
    let plan = Plan::draw(torture);
    let shared = SharedMemory::new(&[plan.nr_processes()], &[plan.nr_processes()], &[], 0, 0)?;
    let outcome = run_on(torture, &plan, shared);
    // The first failure is the cause; this process's own is its consequence.
    let answer = match (shared.failure(), outcome) {
        (None, Ok(answer)) => return Ok(answer),
        (None, Err(failure)) => failure.answer(),
        (Some(text), _) => serde_json::from_str(&text)
            .unwrap_or_else(|_| Failure::Internal { message: text }.answer()),
    };
    // A process that dies or waits is often the consequence of what the kernel has said.
    match kernel_log::complaint() {
        Some(complaint) => Err(Failure::mistake("complaint", complaint)),
        None => Ok(answer),
    }
}

fn run_on(torture: &Torture, plan: &Plan, shared: SharedMemory) -> Result<Value, Failure> {
    let disk = disk::start(plan)?;
    disturbance::select(&disk, &torture.scheduler)?;
    if plan.load != Load::Mixed {
        disturbance::deepen(&disk)?;
    }
    let groups = worker::groups()?;
    let start_ns = clock::now_ns() + START_MARGIN_NS;
    shared.start_ns.store(start_ns, SeqCst);
    let end_ns = start_ns + plan.duration_ns;
    let excuse = excuse::Excuse(shared.page());
    overseer::oversee(plan, &disk, shared, end_ns)?;
    idleness::watch(torture, plan, &disk, excuse, shared, end_ns)?;
    for number in 0..plan.workers {
        process::spawn("a worker", shared, || {
            worker::work(&worker::Place {
                torture,
                plan,
                disk: &disk,
                groups,
                number,
                start_ns,
                end_ns,
            })?;
            ended(shared);
            Ok(())
        })?;
    }
    process::spawn("the disturbance", shared, || {
        disturbance::disturb(torture, plan, &disk, excuse, (start_ns, end_ns))?;
        ended(shared);
        Ok(())
    })?;
    shared.wait_for(&shared.clones_ended, plan.nr_processes(), || {
        process::look(shared)?;
        if let Some(complaint) = kernel_log::complaint() {
            return Err(Failure::mistake("complaint", complaint));
        }
        if clock::now_ns() > end_ns + plan.bound_ns + LAST_LOOK_NS {
            let left = plan.nr_processes() - shared.clones_ended.load(SeqCst);
            let seconds = (plan.bound_ns + LAST_LOOK_NS) / 1_000_000_000;
            let message = format!(
                "{left} of {} processes have not ended {seconds} s after their last I/O was due; in flight: {}",
                plan.nr_processes(),
                leaks::in_flight(&disk)
            );
            return Err(Failure::mistake("stuck", message));
        }
        Ok(())
    })?;
    disturbance::select(&disk, &torture.scheduler)?;
    leaks::check(&disk)?;
    let syncs = total("syncs", plan)?;
    if plan.cache_mib > 0 && syncs > 0 && disk::flushes(&disk::counters(&disk)) == Some(0) {
        let message = format!("{syncs} syncs were reported, and no flush has reached the disk");
        return Err(Failure::mistake("unflushed", message));
    }
    disturbance::select(&disk, "none")?;
    leaks::check(&disk)?;
    disk::end()?;
    if let Some(complaint) = kernel_log::complaint() {
        return Err(Failure::mistake("complaint", complaint));
    }
    let mut counts = json!({
        "switches": read_count("switches")?,
        idleness::LONGEST_IDLE: read_count(idleness::LONGEST_IDLE)?,
    });
    for name in COUNTS {
        counts[name] = total(name, plan)?.into();
    }
    Ok(
        json!({"torture": {"plan": plan, "counts": counts, "release": crate::mounts::kernel_release()}}),
    )
}

/// The sum of a count over all workers.
fn total(name: &str, plan: &Plan) -> Result<u64, Failure> {
    let mut each = (0..plan.workers).map(|number| read_count(&format!("{name}-{number}")));
    each.try_fold(0_u64, |total, count| Ok(total.wrapping_add(count?)))
}

fn ended(shared: SharedMemory) {
    shared.clones_ended.fetch_add(1, SeqCst);
    shared.notify();
}

fn leave_count(name: &str, count: u64) -> Result<(), Failure> {
    fs::write(format!("{RUN}/{name}"), count.to_string())
        .map_err(|error| Failure::kernel("leaving a count", error))
}

fn read_count(name: &str) -> Result<u64, Failure> {
    let text = fs::read_to_string(format!("{RUN}/{name}"))
        .map_err(|error| Failure::kernel("reading a count", error))?;
    text.parse().map_err(|error| Failure::kernel("reading a count", error))
}
