//! The clock of all events: `CLOCK_MONOTONIC`.

/// Nanoseconds of a clock of the system.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since boot, without sleep.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}
