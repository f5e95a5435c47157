//! The constants of a request queue that schedulers and I/O controllers may read
//! (of the kernel's `struct request_queue` and `struct queue_limits`).

/// What a scheduler may know of its queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueFacts {
    pub rotational: bool,
    /// Commands that the device takes at once.
    pub device_depth: u32,
    /// What the kernel takes for that where it plans ahead: the driver may not tell.
    pub reported_depth: u32,
    pub nr_requests: u32,
    /// The same before anybody changed it.
    pub initial_requests: u32,
    /// Tags of a word of the map of tags.
    pub bits_per_word: u32,
    /// Length of the kernel's tick.
    pub jiffy_ns: u64,
    /// Computing takes no time at all, instead of hardly any.
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
