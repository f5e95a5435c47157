//! One I/O at a time: psync and similar engines, and all buffered I/O.

use blksim::workload::generator::{Step, Transfer};

use super::contexts::Pause;
use super::job_process::Worker;
use crate::clock;
use crate::failure::Failure;

/// Makes one call, at `start_ns`; returns the time after it.
///
/// `delay_ns` is the time without a processor so far, before and after.
pub fn call(
    worker: &mut Worker,
    transfer: Transfer,
    start_ns: u64,
    delay_ns: &mut u64,
) -> Result<u64, Failure> {
    let Transfer { direction, offset, bytes, .. } = transfer;
    worker.asked(direction, offset, bytes, start_ns);
    let (replayed, manner) = worker.submitted();
    worker.target.transfer(direction, offset, bytes, manner)?;
    let now_ns = worker.moment_after(start_ns);
    let told_ns = worker.without_delay(now_ns, delay_ns);
    worker.replayed(replayed, told_ns);
    worker.finished(direction, bytes, start_ns, now_ns);
    Ok(now_ns)
}

/// Runs until the generator is exhausted, or its next I/O is another context's.
pub fn work(worker: &mut Worker, mut now_ns: u64) -> Result<Pause, Failure> {
    let buffered = !worker.job.direct && !worker.job.mode.trims;
    // Looking for it takes a microsecond, so that is done once for each I/O.
    let mut delay_ns = worker.run_delay_ns();
    loop {
        if let Some(context) = worker.other_context(now_ns) {
            return Ok(Pause::HandedOn(context));
        }
        match worker.next(now_ns) {
            Step::Transfer(transfer) => {
                if buffered {
                    // An infinitely fast processor would serve a cached file in no time at all.
                    let cost_ns = worker.timing.cost_ns(transfer.bytes);
                    if cost_ns > 0 {
                        clock::sleep_until(now_ns + cost_ns);
                    }
                }
                now_ns = call(worker, transfer, now_ns, &mut delay_ns)?;
            }
            Step::Sync => now_ns = worker.sync(now_ns)?,
            Step::Wait { until_ns } => {
                clock::sleep_until(until_ns);
                delay_ns = worker.run_delay_ns();
                now_ns = clock::now_ns();
            }
            Step::AwaitSignal(signal) => {
                worker.await_signal(signal);
                delay_ns = worker.run_delay_ns();
                now_ns = clock::now_ns();
            }
            // Nothing is in flight between two calls.
            Step::AwaitCompletion => {}
            Step::Finished => return Ok(Pause::Ended(now_ns)),
        }
    }
}
