//! Workloads in fio's language: from a job file to a stream of I/Os.

pub mod arrangement;
pub mod generator;
mod interpret;
pub mod job;
pub mod layout;
mod offsets;
pub mod options;
mod parser;

pub use job::{Job, JobFile};
pub use parser::parse;
