//! The constants of a request queue that schedulers and I/O controllers may read
//! (of the kernel's `struct request_queue` and `struct queue_limits`).

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
    };
}
