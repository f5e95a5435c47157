//! Tasks: the processes of jobs, and the kernel threads that submit I/O.

mod buffered;
pub(crate) mod buffered_call;
mod direct;
pub(crate) mod direct_ios;
mod issue;
pub(crate) mod job_process;
pub(crate) mod ready;
mod run;
mod sync;
pub(crate) mod task_struct;
pub mod tasks;
