//! Sources of I/Os.

use blkrecord::batch::Batch;
use blkrecord::names::Names;

use crate::error::CaptureError;

/// Counts of a source so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    pub events: u64,
    /// Events that the kernel dropped.
    pub lost: u64,
    /// Completions without a queued I/O.
    pub unmatched: u64,
    pub incomplete: u64,
}

/// A running capture.
pub trait Source: Send {
    /// `bpf` or `tracefs`.
    fn name(&self) -> &'static str;

    /// Facts that its records lack, for people.
    fn missing(&self) -> Vec<String>;

    /// Takes what the kernel has; appends the I/Os that have completed and the task events.
    fn poll(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError>;

    /// Stops the capture, takes the rest, and removes everything from the kernel.
    fn stop(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError>;

    fn counts(&self) -> SourceCounts;
}
