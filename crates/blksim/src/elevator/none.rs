//! `none`: no elevator; requests go to the device in order of arrival.
//!
//! Kernel: blk-mq without a scheduler, as in 6.1 (`blk_mq_ctx` and `hctx->dispatch`). A request has
//! a tag of the device before it comes here, so the list is empty unless flushes have filled the
//! device.
//!
//! Simplified: one software queue for all processors of a hardware queue.

use crate::block::per_hctx::PerHctx;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Fifo, RequestId};
use crate::core::params::Values;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

#[derive(Debug, Clone)]
pub struct NoScheduler {
    queues: PerHctx<Fifo>,
}

impl Scheduler for NoScheduler {
    const INFO: Info = Info {
        name: "none",
        kernel_versions: "since 3.13; follows 6.1",
        summary: "no scheduler: the device gets requests in order of arrival",
        family: Family::MultiQueue,
        bypass: true,
        disables_wbt: false,
        indexed: false,
        per_hctx: true,
        tunables: &[],
    };

    fn new(_tunables: &Values, queue: QueueFacts) -> Self {
        Self { queues: PerHctx::new(queue.nr_hctxs, Fifo::default) }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        self.queues[cx.queue.hctx].push_back(cx.requests, id);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        self.queues[cx.queue.hctx].pop_front(cx.requests)
    }
}
