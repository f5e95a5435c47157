//! Use of a request queue, counted while its scheduler may be switched (`q->q_usage_counter` and
//! `q->mq_freeze_depth`).

/// Use of a queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueUsage {
    /// Bios that come sleep before they enter (`blk_mq_freeze_queue`).
    pub frozen: bool,
    /// Requests and bios that have entered and are not done.
    pub entered: u32,
}
