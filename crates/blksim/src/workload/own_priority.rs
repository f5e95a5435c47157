//! The priority of an I/O that does not have that of its process.

/// A priority as ioprio numbers it: 1 real time, 2 best effort, 3 idle; 0 is the best level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnPriority {
    pub class: u8,
    pub level: u8,
}
