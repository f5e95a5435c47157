//! The load: clones of jobs, each a process, that do what blksim's generator says.

mod aio;
mod clone;
mod identity;
mod synchronous;
mod target;

pub use clone::{Clone, Timing, collect_record, run_clone};
pub use target::Target;
