//! Tasks: the processes of jobs, and the kernel threads that submit I/O. `job_process` is a process
//! of fio, `task_struct` what the kernel knows of it.

mod buffered;
pub(crate) mod buffered_call;
mod compute;
mod direct;
pub(crate) mod direct_ios;
mod io_wq;
mod issue;
pub(crate) mod job_process;
mod processor;
pub mod processors;
pub(crate) mod ready;
mod replayed;
pub(crate) mod ring;
mod run;
pub mod slots;
mod sync;
pub(crate) mod task_struct;
pub mod tasks;
