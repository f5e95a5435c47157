//! The overseer: shows the watchdog outside that I/O is being done, and ends a guest whose first process waits for
//! ever.
//!
//! A scheduler that never gives a request back lets the next change of schedulers wait without end, and with
//! it the process that would report so. Guest time passes in a moment when everybody waits, so the overseer
//! tells that long before the watchdog does, at the same time under the same seed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use super::plan::Plan;
use super::{LAST_LOOK_NS, kernel_log};
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts;
use crate::process;
use crate::progress::PROGRESS;
use crate::shared_memory::SharedMemory;

/// Interval between two looks.
const LOOK_NS: u64 = 1_000_000_000;
/// Time after the first process should have reported that somebody waits for ever.
const MARGIN_NS: u64 = 60_000_000_000;

/// Starts the overseer.
pub fn oversee(plan: &Plan, disk: &Disk, shared: SharedMemory, end_ns: u64) -> Result<(), Failure> {
    let limit_ns = end_ns + plan.bound_ns + LAST_LOOK_NS + MARGIN_NS;
    process::spawn("the overseer", shared, || {
        let file = File::create(PROGRESS)
            .map_err(|error| Failure::kernel("creating the report of progress", error))?;
        let mut seen = None;
        loop {
            let now_ns = clock::now_ns();
            // The disk is gone at the end of the torture, and then nothing is done any more.
            let served = fs::read_to_string(format!("/sys/block/{}/stat", disk.name)).ok();
            if served.is_some() && served != seen {
                // A report that cannot be written must not end the torture.
                let _ = file.write_all_at(format!("{now_ns:>20}\n").as_bytes(), 0);
                seen = served;
            }
            if now_ns > limit_ns {
                let answer = waiting(plan, shared, limit_ns - end_ns).answer();
                crate::write_answer(&answer, Path::new(crate::ANSWER));
                mounts::power_off()
            }
            clock::sleep_until(now_ns + LOOK_NS);
        }
    })?;
    Ok(())
}

/// The mistake of a torture whose first process does not go on.
fn waiting(plan: &Plan, shared: SharedMemory, waited_ns: u64) -> Failure {
    if let Some(complaint) = kernel_log::complaint() {
        return Failure::mistake("complaint", complaint);
    }
    let left = plan.nr_processes() - shared.clones_ended.load(SeqCst);
    let seconds = waited_ns / 1_000_000_000;
    if left == 0 {
        let message = format!(
            "nobody has I/O in flight, and {seconds} s after the last I/O was due the scheduler still cannot \
             be changed: a request is in use"
        );
        return Failure::mistake("leak", message);
    }
    let message = format!(
        "{left} of {} processes have not ended {seconds} s after their last I/O was due, and nothing is being done",
        plan.nr_processes()
    );
    Failure::mistake("stuck", message)
}
