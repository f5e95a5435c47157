//! Who waits for a flush of a disk's cache (`struct blk_flush_queue`).

use super::request::{RequestId, TaskId};

/// Who waits for a cache flush of the device.
#[derive(Debug, Clone, Copy)]
pub enum FlushWaiter {
    /// A synchronous direct write, by its I/O.
    Io(u32),
    /// A task in fsync or a synchronous buffered write.
    Call(TaskId),
    /// The same by its request, which has a tag (blk-mq).
    Tagged(RequestId),
    /// An array, by its flush.
    Array(u32),
}

/// Cache flushes that are wanted or under way: one at a time, and a caller
/// that comes while one runs waits for the next.
#[derive(Debug, Default)]
pub struct FlushQueue {
    pub running: bool,
    pub served: Vec<FlushWaiter>,
    pub waiting: Vec<FlushWaiter>,
}
