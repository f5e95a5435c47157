//! Preemption: the effect of an arriving request on the active queue.

use super::Cfq;
use super::group::Workload;
use super::queue::QueueId;
use super::settings::CLOSE_SECTORS;
use crate::block::request::{Request, RequestId};
use crate::elevator::scheduler::Context;

/// A request larger than this ends idling at once: one page.
const PAGE_SECTORS: u32 = 8;

impl<const TREES: bool> Cfq<TREES> {
    /// A request was inserted: it may be the one that the disk idles for, or preempt the active
    /// queue (`cfq_rq_enqueued`).
    #[inline]
    pub(super) fn consider(&mut self, cx: &mut Context, id: QueueId, request: RequestId) {
        let request = &cx.requests[request];
        let Some(active) = self.active else { return };
        if active == id {
            if self.queues[id].awaited {
                if request.nr_sectors > PAGE_SECTORS || self.busy_queues > 1 {
                    self.timer.cancel();
                    self.queues[id].awaited = false;
                    cx.kick();
                } else {
                    // Requests that it can be merged with may follow.
                    self.queues[id].must_dispatch = true;
                }
            }
        } else if self.preempts(active, id, request, cx.now_ns()) {
            self.preempt(active, id, cx.now_ns());
            cx.kick();
        }
    }

    fn preempts(&self, active: QueueId, id: QueueId, request: &Request, now_ns: u64) -> bool {
        let (old, new) = (&self.queues[active], &self.queues[id]);
        if !TREES && old.slice_is_used(now_ns) {
            return true;
        }
        if new.is_idle_class() {
            return false;
        }
        if old.is_idle_class() {
            return true;
        }
        if TREES && old.is_real_time() && !new.is_real_time() {
            return false;
        }
        if request.flags.sync && !old.sync && !(TREES && old.must_dispatch) {
            return true;
        }
        if TREES {
            if !self.groups.is_within(old.group, new.group) {
                return false;
            }
            if old.slice_is_used(now_ns) {
                return true;
            }
        }
        if new.is_real_time() && !old.is_real_time() {
            return true;
        }
        if TREES {
            // Random readers share their turn: none idles for itself.
            if self.serving_workload == Workload::SyncNoIdle
                && Self::workload_of(new) == Workload::SyncNoIdle
                && old.is_empty()
            {
                return true;
            }
            if old.is_empty() && !self.deserves_idling(active) {
                return true;
            }
        }
        // While the disk waits, a request as near as the awaited one will do.
        let near = if TREES { CLOSE_SECTORS } else { old.expected_seek() };
        self.active_task.is_some() && old.awaited && request.sector.abs_diff(self.head) <= near
    }

    /// Preempts the active queue, which keeps the rest of its slice; the other queue goes to the
    /// front.
    fn preempt(&mut self, active: QueueId, id: QueueId, now_ns: u64) {
        let kind = Self::workload_of(&self.queues[active]);
        self.expire(active, now_ns, true);
        let queue = &self.queues[id];
        if TREES && kind != Self::workload_of(queue) {
            let group = queue.group;
            self.groups[group].saved = None;
        }
        self.enter_tree(id, now_ns, true);
        let queue = &mut self.queues[id];
        queue.slice_end_ns = 0;
        queue.slice_is_new = true;
    }
}
