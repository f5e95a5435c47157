//! Progress reports for the watchdog outside the guest.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;

use crate::answer::Counters;
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::process;
use crate::shared_memory::{DeviceStats, SharedMemory};

pub const PROGRESS: &str = "/progress";
/// Interval between two looks at the counters, in guest time.
const PERIOD_NS: u64 = 1_000_000_000;

/// Starts a process that writes the guest's time and the disks' I/O counts whenever a count has
/// changed. Time alone proves nothing: it passes quickly while every process waits in vain.
pub fn report(disks: &[Disk], shared: SharedMemory) -> Result<(), Failure> {
    process::spawn("the reporter of progress", shared, || {
        let file = File::create(PROGRESS)
            .map_err(|error| Failure::kernel("creating the report of progress", error))?;
        let mut reported = None;
        loop {
            let served = |one: &DeviceStats| one.reads.load(SeqCst) + one.writes.load(SeqCst);
            let served: u64 = shared.stats.iter().map(served).sum();
            let counted: u64 = Counters::read_all(disks)?.iter().map(|one| one.requests).sum();
            let ios = served.max(counted);
            let now_ns = clock::now_ns();
            if reported != Some(ios) {
                // A report that cannot be written must not end the run.
                let _ = file.write_all_at(format!("{now_ns:>20} {ios:>20}\n").as_bytes(), 0);
                reported = Some(ios);
            }
            clock::sleep_until(now_ns + PERIOD_NS);
        }
    })?;
    Ok(())
}
