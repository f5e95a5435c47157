//! The constants of a request queue that schedulers and I/O controllers may read
//! (of the kernel's `struct request_queue` and `struct queue_limits`).

use crate::block::kernel_version::Behaviours;
use crate::block::per_hctx::{Hctx, HctxNumber};
use crate::core::branch::{likely, unlikely};

/// The constants of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueFacts {
    pub rotational: bool,
    /// Commands that the device takes at once.
    pub device_depth: u32,
    /// Depth that the driver reports to the kernel (`blk_queue_depth`); a driver may hide the
    /// device's.
    pub reported_depth: u32,
    pub nr_requests: u32,
    /// `nr_requests` before anybody changed it.
    pub initial_requests: u32,
    /// Tags in a word of the sbitmap.
    pub bits_per_word: u32,
    /// Length of the kernel's tick.
    pub jiffy_ns: u64,
    /// Computing takes no time at all, as in a guest in virtual time.
    pub zero_cpu_time: bool,
    /// Hardware queues that the machine uses. More than one only where several processors take time.
    pub nr_hctxs: u32,
    /// They have the tags of one (`BLK_MQ_F_TAG_HCTX_SHARED`).
    pub shares_tags: bool,
    /// The release that the kernel is.
    pub behaviours: Behaviours,
}

impl QueueFacts {
    /// There is one hardware queue.
    #[inline(always)]
    pub fn has_one_hctx(&self) -> bool {
        likely(self.nr_hctxs == 1)
    }

    /// The hardware queue of a processor.
    #[inline(always)]
    pub fn hctx_of(&self, cpu: u16) -> usize {
        if self.has_one_hctx() { 0 } else { self.hctx_of_several(cpu) }
    }

    #[cold]
    fn hctx_of_several(&self, cpu: u16) -> usize {
        HctxNumber::of(cpu, self.nr_hctxs).number()
    }

    /// The hardware queue that has the tags of this one.
    #[inline(always)]
    pub fn tags_of(&self, hctx: usize) -> usize {
        if unlikely(self.shares_tags) { 0 } else { hctx }
    }
}

#[cfg(test)]
impl QueueFacts {
    /// A queue that most tests would have.
    pub const TYPICAL: Self = Self {
        rotational: false,
        device_depth: 32,
        reported_depth: 32,
        nr_requests: 64,
        initial_requests: 64,
        bits_per_word: 16,
        jiffy_ns: 10_000_000,
        zero_cpu_time: false,
        nr_hctxs: 1,
        shares_tags: false,
        behaviours: Behaviours::V6_1,
    };
}

/// A depth that was a share of so many requests, as the same share of others.
pub(crate) fn in_proportion(depth: u32, before: u32, nr_requests: u32) -> u32 {
    let share = u64::from(depth) * u64::from(nr_requests) / u64::from(before.max(1));
    share.clamp(1, u64::from(u32::MAX)) as u32
}
