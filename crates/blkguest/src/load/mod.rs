//! The load: one process per clone of a job, driven by blksim's generator.

mod aio;
mod identity;
mod job_process;
mod synchronous;
mod target;

pub use job_process::{JobProcess, Timing, collect_record, run_clone};
pub use target::Target;
