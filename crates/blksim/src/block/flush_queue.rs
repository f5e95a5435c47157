//! The waiters for flushes of a disk's cache (`struct blk_flush_queue`).

use super::request::{RequestId, TaskId};

/// A waiter for a cache flush.
#[derive(Debug, Clone, Copy)]
pub enum FlushWaiter {
    /// A synchronous direct write, by the index of its I/O.
    Io(u32),
    /// A task in fsync or a synchronous buffered write.
    Call(TaskId),
    /// The same on blk-mq, by its request, which holds a tag.
    Tagged(RequestId),
    /// An array, by the index of its flush.
    Array(u32),
}

/// Cache flushes, waiting or running. One runs at a time; callers that come meanwhile wait for the
/// next.
#[derive(Debug, Clone, Default)]
pub struct FlushQueue {
    pub running: bool,
    pub served: Vec<FlushWaiter>,
    pub waiting: Vec<FlushWaiter>,
}
