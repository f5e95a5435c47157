//! `noop`: one first-in-first-out list, with merging.
//!
//! Kernel: `block/noop-iosched.c`, 2.6 to 4.20; follows 4.19. Back merges are
//! found by extent; there is no lookup for front merges.
//!
//! The kernel keeps a dispatch list behind the scheduler in ascending order, which has one request at
//! most: the queue is run only for that.

use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Fifo, RequestId};
use crate::core::params::Values;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

#[derive(Debug, Clone, Default)]
pub struct Noop {
    queue: Fifo,
}

impl Scheduler for Noop {
    const INFO: Info = Info {
        name: "noop",
        kernel_versions: "2.6.0 to 4.20; follows 4.19",
        summary: "first in, first out, with merging of adjacent requests",
        family: Family::Legacy,
        bypass: false,
        disables_wbt: false,
        indexed: true,
        per_hctx: false,
        tunables: &[],
    };

    fn new(_tunables: &Values, _queue: QueueFacts) -> Self {
        Self::default()
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        self.queue.push_back(cx.requests, id);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        self.queue.pop_front(cx.requests)
    }

    fn requests_merged(&mut self, cx: &mut Context, _kept: RequestId, gone: RequestId) {
        self.queue.remove(cx.requests, gone);
    }
}
