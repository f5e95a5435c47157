//! A buffered read, write or fsync under way.

use crate::core::record::Direction;

/// What a call is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    Reading,
    Writing,
    /// fsync: notes what is dirty in the range.
    Tagging,
    /// fsync: writes that.
    WritingOut,
    /// fsync: waits for pages under writeback.
    Waiting,
    /// fsync: waits for the device's cache.
    Device,
    /// Nothing is left to wait for.
    Done,
}

/// A call that a task is in.
#[derive(Debug, Clone, Copy)]
pub struct BufferedCall {
    pub(crate) stage: CallStage,
    /// What it is recorded as.
    pub(crate) direction: Direction,
    /// The next page, and the one after the last.
    pub(crate) page: u64,
    pub(crate) end: u64,
    /// Bytes of the device that it covers.
    pub(crate) start_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) started_ns: u64,
    /// Processor time that was used and has not passed yet.
    pub(crate) cost_ns: u64,
    /// In fsync: no more pages are to be looked up.
    pub(crate) looked_through: bool,
}
