//! Recordings of the block layer as workloads.
//!
//! ```text
//! RecordReader ──▶ Recorded ──▶ tasks ──▶ addresses ──▶ dependencies ──▶ TaskPlan ──▶ job file
//!  (blkrecord)     one device    who       where          after what      (blksim)
//! ```
//!
//! | Module | Contents |
//! |---|---|
//! | [`options`] | choices: device, pace, places |
//! | [`splits`] | I/Os as they were before the kernel split them |
//! | [`recorded`] | the I/Os of one device in the order of queueing |
//! | [`tasks`] | their tasks: threads from fork to exit, in one control group |
//! | [`worker_pools`] | kernel workers that are one task |
//! | [`addresses`] | places on the recorded disk to places in a file |
//! | [`completions`] | the order of completions within a task |
//! | [`followed`] | which completion each I/O of a pool follows |
//! | [`dependencies`] | dependencies between tasks: forks, exits, barriers |
//! | [`plugs`] | I/Os that are submitted together |
//! | [`plans`] | all of this as plans |
//! | [`job_file`] | plans as a job file |
//!
//! The crate reads a recording and has no other effect. What a plan means, and how it is carried out, is in
//! `blksim::workload::replay`.

pub mod addresses;
pub mod completions;
pub mod dependencies;
pub mod error;
pub mod followed;
pub mod job_file;
pub mod options;
pub mod plans;
pub mod plugs;
pub mod recorded;
pub mod splits;
pub mod tasks;
pub mod worker_pools;

use blkrecord::interrupt::Interrupt;
use blkrecord::readers::RecordReader;

pub use error::ReplayError;
pub use options::{Kind, Options, ScaleTo};

/// A recording as a workload.
#[derive(Debug)]
pub struct Workload {
    /// A job file with a section for each kind of task.
    pub job_file: String,
    pub summary: job_file::Summary,
}

/// Bytes that are kept of each I/O at most, as a plan and its text too.
pub const KEPT_BYTES: u64 = 512;

/// Makes a workload out of a recording, which is read to its end.
pub fn workload(
    reader: &mut dyn RecordReader,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Workload, ReplayError> {
    let recorded = recorded::Recorded::read(reader, options)?;
    interrupt.check()?;
    let tasks = tasks::Tasks::of(&recorded);
    let addresses = addresses::Addresses::of(&recorded.ios, options.scale_to)?;
    interrupt.check()?;
    let plans = plans::Plans::new(&recorded, &tasks, &addresses, options);
    interrupt.check()?;
    Ok(job_file::write(&recorded, &tasks, &addresses, &plans, options))
}
