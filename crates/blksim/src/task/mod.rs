//! Tasks: the processes of jobs, and the kernel threads that submit I/O.

pub(crate) mod buffered;
pub(crate) mod direct;
pub mod job_process;
pub(crate) mod ready;
mod sync;
pub(crate) mod task_struct;
