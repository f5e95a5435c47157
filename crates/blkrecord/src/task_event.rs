//! Forks and exits: they order the I/Os of different tasks.

use crate::io::Moment;

/// A task begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    pub at: Moment,
    pub kind: TaskEventKind,
    /// The task that begins or ends.
    pub tid: u32,
    /// The task that forked it; for an exit the task itself.
    pub parent: u32,
    /// The command of `tid`, in the record's names.
    pub command: u32,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskEventKind {
    Fork = 0,
    Exit = 1,
}
