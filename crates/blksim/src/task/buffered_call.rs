//! A buffered read, write or fsync under way.

use crate::core::record::Direction;

/// The stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    Reading,
    Writing,
    /// fsync: tags the dirty pages of the range.
    Tagging,
    /// fsync: writes the tagged pages.
    WritingOut,
    /// fsync: waits for pages under writeback.
    Waiting,
    /// fsync: waits for the device's cache.
    Device,
    /// The call is complete.
    Done,
}

/// A call that a task is in.
#[derive(Debug, Clone, Copy)]
pub struct BufferedCall {
    pub(crate) stage: CallStage,
    /// The direction that it is recorded as.
    pub(crate) direction: Direction,
    /// The next page, and the one after the last.
    pub(crate) page: u64,
    pub(crate) end: u64,
    /// Bytes of the device that it covers.
    pub(crate) start_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) started_ns: u64,
    /// Processor time that it owes.
    pub(crate) cost_ns: u64,
    /// fsync: it has looked up all pages.
    pub(crate) looked_through: bool,
}
