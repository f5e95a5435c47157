//! The answer, in the simulator's format.

use std::sync::atomic::Ordering::SeqCst;

use blksim::block::request::SECTOR_BYTES;
use blksim::core::params::Values;
use blksim::core::record::JobRecord;
use blksim::machine_parameters::MACHINE;
use blksim::simulate::DiskFigures;
use blksim_json::{device_in_force, job_samples, settings, tell_members, warnings};
use serde_json::{Value, json};

use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::{kernel_release, read_line};
use crate::queue::InForce;
use crate::request::{Driver, Load, Request};
use crate::shared_memory::{DeviceStats, SharedMemory};

/// Counters of `/sys/block/*/stat` (`Documentation/block/stat.rst`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    pub merges: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
    pub busy_ms: u64,
}

impl Counters {
    /// Reads the kernel's counters.
    pub fn read(disk: &Disk) -> Result<Self, Failure> {
        let text = read_line(&format!("/sys/block/{}/stat", disk.name))
            .map_err(|error| Failure::kernel("reading the disk's counters", error))?;
        Ok(Self::parse(&text))
    }

    /// Reads the counters of each disk.
    pub fn read_all(disks: &[Disk]) -> Result<Vec<Self>, Failure> {
        disks.iter().map(Self::read).collect()
    }

    fn parse(text: &str) -> Self {
        let fields: Vec<u64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or(0);
        Self {
            requests: field(0) + field(4),
            merges: field(1) + field(5),
            read_bytes: field(2) * SECTOR_BYTES,
            written_bytes: field(6) * SECTOR_BYTES,
            flushes: field(15),
            busy_ms: field(9),
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            merges: self.merges.saturating_sub(earlier.merges),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
        }
    }
}

/// The machine around the queue, as requested.
pub fn machine(request: &Request) -> Result<Values, Failure> {
    let mut values = Values::defaults(MACHINE);
    for (name, text) in &request.setup.machine {
        values.set(name, text).map_err(|error| {
            Failure::of(
                blksim::core::error::ErrorKind::OutOfRange,
                name,
                format!("machine: {}", error.message),
            )
        })?;
    }
    Ok(values)
}

/// The results of a run.
#[derive(Debug)]
pub struct Findings {
    pub in_force: InForce,
    pub cgroups: Value,
    /// The scheduler tag at which the first search started, if known.
    pub first_tag: Option<u32>,
    /// Memory shared by free pages and the page cache, if known.
    pub memory_bytes: Option<u64>,
    pub machine: Values,
    pub records: Vec<JobRecord>,
    /// fio's exit code, if fio made the load; negative for a signal.
    pub fio_exit_code: Option<i32>,
    /// Per disk.
    pub before: Vec<Counters>,
    pub after: Vec<Counters>,
}

/// The answer of a successful run.
pub fn answer(request: &Request, shared: SharedMemory, findings: Findings) -> Value {
    let Findings { in_force, cgroups, first_tag, memory_bytes, machine, records, .. } = findings;
    let Findings { fio_exit_code, before, after, .. } = findings;
    let mut machine = settings(&machine);
    machine["memory"] = json!(memory_bytes);
    let start_ns = shared.start_ns.load(SeqCst);
    let simulated_ns = shared.end_ns.load(SeqCst).saturating_sub(start_ns);
    let served = request.options.driver != Driver::NullBlk;
    let disks: Vec<DiskFigures> = after
        .iter()
        .zip(before)
        .zip(&shared.stats)
        .map(|((after, before), stats)| {
            disk_stats(after.since(before), served.then_some(stats), simulated_ns)
        })
        .collect();
    let sum = |figure: fn(&DiskFigures) -> u64| disks.iter().map(figure).sum::<u64>();
    let peak = served.then(|| disks.iter().map(|disk| disk.peak_in_flight).max());
    let mut facts = request.facts.clone();
    facts.capacity_bytes = request.capacity_bytes;
    let mut answer = json!({
        "scheduler": in_force.scheduler,
        "tunables": in_force.tunables,
        "queue": in_force.queue,
        "cgroups": cgroups,
        "device": device_in_force(&request.setup.profile, &facts),
        "jobs": job_samples(&records),
        "fio": fio_exit_code.map(|code| json!({"exit_code": code})),
        "warnings": warnings(&request.setup.jobs),
        "engine": {
            "name": "uml",
            "version": env!("CARGO_PKG_VERSION"),
            "kernel": kernel_release(),
            "seed": request.setup.seed,
            "arrangement": request.setup.arrangement.map(|arrangement| arrangement.seed),
            "driver": request.options.driver.name(),
            "generator": if request.options.generator == Load::Fio { "fio" } else { "blkguest" },
            "machine": machine,
            "first_tag": first_tag,
            // Measured by the guest's own clock.
            "start_ns": start_ns,
            "requests": sum(|disk| disk.requests),
            "merges": sum(|disk| disk.merges),
            "flushes": sum(|disk| disk.flushes),
            "simulated_ns": simulated_ns,
            // For an array, the members' mean.
            "device_busy_ns": sum(|disk| disk.busy_ns) / disks.len() as u64,
            "peak_in_flight": peak,
        },
    });
    tell_members(&mut answer["engine"], &disks);
    answer
}

/// A disk's I/O: from its server's counters, or else from the kernel's.
fn disk_stats(counted: Counters, server: Option<&DeviceStats>, simulated_ns: u64) -> DiskFigures {
    let (requests, flushes, busy_ns, peak_in_flight) = match server {
        Some(stats) => (
            stats.reads.load(SeqCst) + stats.writes.load(SeqCst),
            stats.flushes.load(SeqCst),
            stats.busy_ns.load(SeqCst),
            stats.peak_in_flight.load(SeqCst),
        ),
        None => (counted.requests, counted.flushes, counted.busy_ms * 1_000_000, 0),
    };
    let busy_ns = busy_ns.min(simulated_ns);
    DiskFigures { requests, merges: counted.merges, flushes, busy_ns, peak_in_flight }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_taken_by_position() {
        let text = "  10 2 80 5 20 3 160 6 0 7 11 0 0 0 0 4 9";
        let counters = Counters::parse(text);
        assert_eq!(
            counters,
            Counters {
                requests: 30,
                merges: 5,
                read_bytes: 80 * 512,
                written_bytes: 160 * 512,
                flushes: 4,
                busy_ms: 7,
            }
        );
        assert_eq!(counters.since(counters), Counters::default());
        // Kernels before 5.5 do not count flushes.
        assert_eq!(Counters::parse("10 2 80 5 20 3 160 6 0 7 11").flushes, 0);
    }
}
