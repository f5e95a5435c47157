//! The I/Os of jobs without a device: each completes at once, so only the jobs' own order counts.

use super::generator::{Generator, Step, Transfer};
use super::job::Job;
use super::layout::lay_out;
use crate::core::error::SimulationError;

/// The first I/Os of every clone of every job, at most `most` of each, with offsets on the
/// device. Clones of a flow go alone.
pub fn transfers(
    jobs: &[Job],
    capacity: u64,
    seed: u64,
    most: usize,
) -> Result<Vec<Vec<Vec<Transfer>>>, SimulationError> {
    let layout = lay_out(jobs, capacity, None)?;
    let mut all = Vec::new();
    for (job, regions) in jobs.iter().zip(&layout.regions) {
        let mut clones = Vec::new();
        for (index, files) in regions.iter().enumerate() {
            let generator = Generator::new(job, index as u32, files, seed);
            clones.push(transfers_of(generator, most));
        }
        all.push(clones);
    }
    Ok(all)
}

fn transfers_of(mut generator: Generator, most: usize) -> Vec<Transfer> {
    let mut now_ns = 0;
    let mut found = Vec::new();
    generator.start(now_ns);
    while found.len() < most {
        match generator.next(now_ns) {
            Step::Transfer(transfer) => {
                generator.completed(now_ns, now_ns);
                if let Some(cursor) = generator.replay() {
                    let index = cursor.submitted();
                    cursor.completed(index, now_ns);
                }
                found.push(transfer);
            }
            Step::Sync | Step::AwaitCompletion => {}
            Step::Wait { until_ns } => now_ns = now_ns.max(until_ns),
            Step::AwaitSignal(_) | Step::Finished => break,
        }
    }
    found
}
