//! Direct transfers under way (`struct blkdev_dio`).

use crate::core::record::Direction;

/// A direct transfer under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Io {
    pub(crate) process: u32,
    pub(crate) direction: Direction,
    pub(crate) bytes: u32,
    /// Bios that are not done.
    pub(crate) parts: u32,
    pub(crate) start_ns: u64,
    /// Its index among the I/Os that its process replays; `NOT_REPLAYED` for most.
    pub(crate) replayed: u32,
}

/// The index of an I/O that is not replayed.
pub(crate) const NOT_REPLAYED: u32 = u32::MAX;
/// The owner of a bio that is a recorded I/O in one piece: this bit, and its index.
pub(crate) const IN_ONE_PIECE: u32 = 1 << 31;

/// Direct transfers that need a state beside their request: those of several bios, and those that
/// wait for a flush.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectIos {
    pub(crate) slots: Vec<Io>,
    pub(crate) free: Vec<u32>,
}

impl DirectIos {
    #[inline]
    pub(crate) fn allocate(&mut self, io: Io) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = io;
            return index;
        }
        self.slots.push(io);
        (self.slots.len() - 1) as u32
    }
}
