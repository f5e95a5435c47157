//! The kernel's clock of ticks, and the timers that it drives.
//!
//! Kernel: `kernel/time/timer.c`, Linux 6.1. A tick is a jiffy. Timers far ahead have coarser
//! steps, and none fires early.

/// Length of a jiffy for a tick frequency.
pub fn jiffy_ns(hz: u64) -> u64 {
    1_000_000_000 / hz
}

/// Jiffies that went by.
#[inline]
pub fn jiffies(now_ns: u64, jiffy_ns: u64) -> u64 {
    now_ns / jiffy_ns
}

/// A duration in jiffies, rounded up as the kernel's `msecs_to_jiffies`.
pub fn duration_jiffies(duration_ns: u64, jiffy_ns: u64) -> u64 {
    duration_ns.div_ceil(jiffy_ns)
}

/// Each level of the wheel has 64 buckets, of which the next level's first 8 are a part.
const LEVEL_BITS: u32 = 3;
const BUCKETS: u64 = 64;
const LAST_LEVEL: u32 = 8;

/// The time at which a timer fires that is set now, `delay` jiffies ahead.
pub fn timer_ns(now_ns: u64, delay: u64, jiffy_ns: u64) -> u64 {
    let mut level = 0;
    while level < LAST_LEVEL && delay >= (BUCKETS - 1) << (level * LEVEL_BITS) {
        level += 1;
    }
    let expires = jiffies(now_ns, jiffy_ns).saturating_add(delay);
    let shift = level * LEVEL_BITS;
    (((expires >> shift) + 1) << shift).saturating_mul(jiffy_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 10_000_000;

    #[test]
    fn a_timer_rings_at_a_tick_and_never_early() {
        // One jiffy ahead, set within a jiffy: not before a whole one has passed.
        assert_eq!(timer_ns(25_000_000, 1, TICK_NS), 40_000_000);
        assert_eq!(timer_ns(0, 0, TICK_NS), TICK_NS);
        // From 63 jiffies on, timers ring at every eighth tick.
        assert_eq!(timer_ns(0, 62, TICK_NS), 63 * TICK_NS);
        assert_eq!(timer_ns(0, 63, TICK_NS), 64 * TICK_NS);
        assert_eq!(timer_ns(0, 64, TICK_NS), 72 * TICK_NS);
    }

    #[test]
    fn durations_are_rounded_up() {
        assert_eq!(duration_jiffies(3_000_000, TICK_NS), 1);
        assert_eq!(duration_jiffies(500_000_000, TICK_NS), 50);
    }
}
