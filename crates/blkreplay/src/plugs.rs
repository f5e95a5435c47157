//! Plugs: I/Os that a task queued before it submitted the first of them.
//!
//! A kernel thread that writes a journal, or a program whose large read becomes several, keeps its I/Os back until the
//! last is queued (`blk_start_plug` in block/blk-core.c, Linux 6.18). Neighbours merge there, and the disk has no work
//! meanwhile. Submitted one by one they would be more and smaller requests, and the first would be early.

use crate::recorded::{Action, Recorded, RecordedIo};
use crate::tasks::Task;

/// For each I/O of a task, by its place in it: whether it was in one plug with the I/O before it.
///
/// A request that leaves a plug is inserted, or issued, after others of its thread were queued; a thread that waits for
/// a tag queues nothing meanwhile.
pub fn plugged(task: &Task, recorded: &Recorded) -> Vec<bool> {
    let mut found = Vec::with_capacity(task.ios.len());
    let mut before: Option<&RecordedIo> = None;
    // When the requests of the plug had all left it, as far as is known.
    let mut until_ns = 0;
    for io in &task.ios {
        let io = &recorded.ios[*io as usize];
        let together = before.is_some_and(|before| {
            io.queued_ns < until_ns && io.tid == before.tid && is_plain(io) && is_plain(before)
        });
        until_ns = if together { until_ns.max(io.submitted_ns) } else { io.submitted_ns };
        found.push(together);
        before = Some(io);
    }
    found
}

/// Flushes, and writes with one before or after them, pass plugs by (`blk_mq_submit_bio` in block/blk-mq.c, Linux 6.18).
fn is_plain(io: &RecordedIo) -> bool {
    io.action != Action::Flush && !io.barrier
}
