//! Workloads in fio's language: from a job file to a stream of I/Os.

mod arithmetic;
pub mod arrangement;
pub mod command_priority;
mod extents;
pub mod file_size_range;
pub mod file_sizes;
mod file_turns;
pub mod flow;
mod fractions;
mod free_blocks;
pub mod generator;
mod interpret;
pub mod job;
mod latency_search;
pub mod layout;
mod offsets;
pub mod options;
pub mod order;
pub mod own_priority;
mod parser;
pub mod replay;
mod setting;
mod strides;
mod transfers;
mod values;
mod verification;

pub use extents::covers_device;
pub use job::{Job, JobFile};
pub use parser::parse;
pub use transfers::transfers;
