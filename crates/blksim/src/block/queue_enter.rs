//! The gate before a queue whose scheduler is switched (`blk_queue_enter` of `block/blk-core.c`,
//! Linux 6.1): it counts who is inside, and while the queue is frozen all others sleep before it.

use crate::block::request::{Operation, RequestId};
use crate::rqos::policy::{Admission, Placement, Policy, PolicyContext};

/// The gate of a disk. Only disks that switch have one.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueEnter {
    /// Bios whose submitters sleep, in order (`q->mq_freeze_wq`).
    sleepers: Vec<RequestId>,
}

impl QueueEnter {
    /// A bio or request is done or has joined another.
    fn exit(cx: &mut PolicyContext) {
        debug_assert!(cx.usage.entered > 0, "more leave a queue than have entered it");
        cx.usage.entered -= 1;
        if cx.usage.frozen && cx.usage.entered == 0 {
            // The switch waits for this, behind all that happens at this moment.
            cx.timer_at(cx.now_ns());
        }
    }
}

impl Policy for QueueEnter {
    fn name(&self) -> &'static str {
        "queue-enter"
    }

    fn placement(&self) -> Placement {
        Placement::Above
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        if cx.usage.frozen {
            self.sleepers.push(bio);
            return Admission::Sleep;
        }
        cx.usage.entered += 1;
        Admission::Pass
    }

    fn merged(&mut self, cx: &mut PolicyContext, _bio: RequestId, _request: RequestId) {
        Self::exit(cx);
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        // A cache flush does not pass here.
        if cx.requests[request].operation != Operation::Flush {
            Self::exit(cx);
        }
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        if !cx.usage.frozen {
            for bio in self.sleepers.drain(..) {
                cx.usage.entered += 1;
                cx.released.push(bio);
            }
        }
    }
}
