//! One event of the block layer, as blktrace and the kernel's tracepoints report it.

use crate::io::{Flags, Operation, UNKNOWN_IOPRIO, UNKNOWN_PROCESSOR, UNKNOWN_TASK};
use crate::names::UNKNOWN_NAME;

/// The kind of an event: blktrace's letter, and the tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Q, `block_bio_queue`
    Queue,
    /// M, `block_bio_backmerge` and `block_rq_merge`: appended to the request that ends at this sector.
    BackMerge,
    /// F, `block_bio_frontmerge`: put before the request that begins at its end.
    FrontMerge,
    /// I, `block_rq_insert`
    Insert,
    /// D, `block_rq_issue`
    Issue,
    /// R, `block_rq_requeue`
    Requeue,
    /// C, `block_rq_complete`
    Complete,
    /// X, `block_split`
    Split,
}

/// An event that concerns an I/O.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Nanoseconds since the start of the record.
    pub at_ns: u64,
    pub action: Action,
    pub operation: Operation,
    pub flags: Flags,
    pub ioprio: u16,
    pub error: u16,
    pub device: u32,
    pub sector: u64,
    pub bytes: u64,
    /// For a split: the sector at which the second part begins.
    pub split_at: u64,
    pub tgid: u32,
    pub tid: u32,
    pub command: u32,
    pub cgroup: u32,
    /// On which it happened.
    pub processor: u16,
}

impl Event {
    /// An event of an unknown task.
    pub fn new(at_ns: u64, action: Action, operation: Operation) -> Self {
        Self {
            at_ns,
            action,
            operation,
            flags: Flags::default(),
            ioprio: UNKNOWN_IOPRIO,
            error: 0,
            device: 0,
            sector: 0,
            bytes: 0,
            split_at: 0,
            tgid: UNKNOWN_TASK,
            tid: UNKNOWN_TASK,
            command: UNKNOWN_NAME,
            cgroup: UNKNOWN_NAME,
            processor: UNKNOWN_PROCESSOR,
        }
    }
}
