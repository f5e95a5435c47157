//! One I/O at a time: psync and similar engines, and all buffered I/O.

use blksim::workload::generator::{Step, Transfer};

use super::job_process::Worker;
use crate::clock;
use crate::failure::Failure;

/// Runs until the generator is exhausted; returns the end time.
pub fn work(worker: &mut Worker, mut now_ns: u64) -> Result<u64, Failure> {
    let buffered = !worker.job.direct && !worker.job.mode.trims;
    // Looking for it takes a microsecond, so that is done once for each I/O.
    let mut delay_ns = worker.run_delay_ns();
    loop {
        match worker.next(now_ns) {
            Step::Transfer(Transfer { direction, offset, bytes, .. }) => {
                let start_ns = now_ns;
                if buffered {
                    // An infinitely fast processor would serve a cached file in no time at all.
                    let cost_ns = worker.timing.cost_ns(bytes);
                    if cost_ns > 0 {
                        clock::sleep_until(start_ns + cost_ns);
                    }
                }
                worker.asked(direction, offset, bytes, start_ns);
                let (replayed, durable) = worker.submitted();
                worker.target.transfer(direction, offset, bytes, durable)?;
                now_ns = worker.moment_after(now_ns);
                let delay_before_ns = delay_ns;
                delay_ns = worker.run_delay_ns();
                worker.replayed(replayed, now_ns.saturating_sub(delay_ns.saturating_sub(delay_before_ns)));
                worker.finished(direction, bytes, start_ns, now_ns);
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
            Step::Finished => return Ok(now_ns),
        }
    }
}
