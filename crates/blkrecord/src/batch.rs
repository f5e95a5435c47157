//! I/Os and task events on their way from a reader to its user.

use crate::io::Io;
use crate::task_event::TaskEvent;

/// Some thousand I/Os: large enough to amortise a call, small enough for a processor's cache.
pub const BATCH_IOS: usize = 8192;

/// The result of one call of a reader.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In the order in which they completed, or in the order of the trace if it has no completions.
    pub ios: Vec<Io>,
    pub tasks: Vec<TaskEvent>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.ios.clear();
        self.tasks.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ios.is_empty() && self.tasks.is_empty()
    }
}
