//! Requests within a queue: arrival, dispatch and completion.
//!
//! Kernel: `bfq_add_request`, `bfq_remove_request`, `bfq_bfqq_handle_idle_busy_switch`,
//! `bfq_completed_request` in `block/bfq-iosched.c`, Linux 6.1.

use super::budget::Reason;
use super::hierarchy::QueueId;
use super::queue::MS;
use super::{Bfq, Settings};
use crate::block::request::{RequestId, Requests};
use crate::elevator::scheduler::Context;

/// Least time between two resets of the injection limit by a change of think time.
const RESET_INJECTION_NS: i64 = 100 * MS;
/// An awaited request with fewer sectors may be expected to grow.
const SMALL_SECTORS: u32 = 32;

impl Bfq {
    /// A new request.
    #[inline]
    pub(super) fn arrive(&mut self, cx: &mut Context, q: QueueId, id: RequestId, now_ns: i64) {
        let Settings { slice_idle_ns, rotational, low_latency, .. } = self.settings;
        let tick_ns = self.hierarchy.tick_ns;
        let request = &mut cx.requests[id];
        let (nr_sectors, end, sync) = (request.nr_sectors, request.end(), request.flags.sync);
        let (sector, context) = (request.sector, request.context);

        let queue = &mut self.queues[q as usize];
        queue.note_think_time(now_ns, slice_idle_ns);
        if queue.think_time_turned(slice_idle_ns, tick_ns)
            && queue.base_service_ns == 0
            && (queue.inject_reset_ns + RESET_INJECTION_NS <= now_ns || !queue.short_think)
        {
            self.injection.reset(queue, tick_ns);
        }
        queue.note_seek(request, rotational);
        if queue.sync {
            queue.note_intensity(now_ns);
        }
        let expire_ns = self.settings.fifo_expire_ns[usize::from(queue.sync)];
        request.queue = q;
        request.deadline_ns = (now_ns as u64).saturating_add(expire_ns);

        let had_none = queue.sync && self.processes[context as usize].requests <= 1;
        if queue.is_raised() && queue.wr.is_soft_real_time() && queue.is_totally_seeky() {
            self.end_soft(q);
        }
        if had_none {
            self.look_for_waker(q, now_ns);
            self.sample_injection(q, now_ns);
        }

        let queue = &mut self.queues[q as usize];
        let (raised, busy) = (queue.is_raised(), queue.busy);
        queue.tree.insert(sector, id);
        queue.fifo.push_back(cx.requests, id);
        self.nr_queued += 1;
        let before = queue.next;
        let next = match before {
            Some(next) => {
                self.settings.back_seek.closer(cx.requests, next, id, self.rate.last_sector)
            }
            None => id,
        };
        let changed = before != Some(next);
        if changed {
            queue.next = Some(next);
            self.note_position(cx.requests, q);
        }
        let mut interactive = false;
        if busy {
            if low_latency && !raised && !sync {
                self.raise_async(q);
            }
            if changed {
                self.next_changed(cx.requests, q);
            }
        } else {
            interactive = self.becomes_busy(cx, q, context, now_ns);
        }

        let queue = &mut self.queues[q as usize];
        if low_latency && (!raised || !queue.is_raised() || interactive) {
            queue.wr.started_ns = tick_ns;
        }
        queue.last_sector = end;
        if self.waiting && self.in_service == Some(q) {
            let queue = self.queue(q);
            let timed_out = queue.timeout_ns <= now_ns;
            let small = queue.fifo.len() == 1 && nr_sectors < SMALL_SECTORS;
            if small && !timed_out && self.waiting_pays(queue) {
                // It may grow; the next run of the queue ends the wait.
                return;
            }
            self.stop_waiting();
            if timed_out {
                self.expire(cx, Reason::Timeout, false, now_ns);
            }
        }
    }

    /// A queue without requests gets one. Returns true if it looks interactive.
    fn becomes_busy(&mut self, cx: &mut Context, q: QueueId, context: u32, now_ns: i64) -> bool {
        let arrival = self.classify(q, context);
        let in_time = now_ns <= self.queue(q).last_end_ns + self.settings.slice_idle_ns * 3;
        let resumes = self.budget_for_activation(cx.requests, q, in_time);
        self.raise_on_arrival(q, arrival);
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue_mut(q);
        queue.wr.backlogged_ns = tick_ns;
        queue.wr.soft_pending = false;
        queue.service_from_backlogged = 0;
        self.add_busy(q);
        let Some(current) = self.in_service else { return arrival.interactive };
        let due = (resumes && self.wr_coeff(q) >= self.wr_coeff(current))
            || self.outranks(q, current)
            || !self.better_to_wait(self.queue(current));
        if due && self.hierarchy.root_would_switch() {
            self.expire(cx, Reason::Preempted, false, now_ns);
        }
        arrival.interactive
    }

    /// True if its class is higher, or its weight larger (of its group, if the groups differ).
    fn outranks(&self, q: QueueId, current: QueueId) -> bool {
        let (a, b) = (self.queue(q), self.queue(current));
        if a.priority.class < b.priority.class {
            return true;
        }
        let entities = &self.hierarchy.entities;
        let weight = |entity, same| {
            let above = if same { None } else { self.hierarchy.above(entity) };
            entities[above.unwrap_or(entity) as usize].weight
        };
        let same = a.group == b.group;
        weight(a.entity, same) > weight(b.entity, same)
    }

    fn add_busy(&mut self, q: QueueId) {
        let queue = &mut self.queues[q as usize];
        let (entity, in_time) = (queue.entity, std::mem::take(&mut queue.may_resume));
        self.hierarchy.activate(entity, in_time);
        let class = self.hierarchy.entities[entity as usize].class;
        self.busy[class as usize] += 1;
        let queue = &mut self.queues[q as usize];
        queue.busy = true;
        queue.busy_class = class;
        let raised = queue.is_raised();
        if queue.dispatched == 0 {
            self.hierarchy.something_pending(entity);
            if !raised {
                self.hierarchy.count_weight(entity);
            }
        }
        self.nr_raised += u32::from(raised);
        if let Some(waker) = queue.waker {
            self.woken_again(q, waker);
        }
    }

    /// A queue has no more requests.
    pub(super) fn no_longer_busy(&mut self, q: QueueId, in_service: bool) {
        let queue = &mut self.queues[q as usize];
        queue.busy = false;
        self.busy[queue.busy_class as usize] -= 1;
        self.nr_raised -= u32::from(queue.is_raised());
        self.hierarchy.deactivate(queue.entity, in_service);
        if queue.dispatched == 0 {
            self.hierarchy.nothing_pending(queue.entity);
        }
    }

    /// Takes a request out of its queue's order.
    #[inline(always)]
    fn remove(
        &mut self,
        cx: &mut Context,
        q: QueueId,
        id: RequestId,
        in_service: bool,
        now_ns: i64,
    ) {
        let queue = &mut self.queues[q as usize];
        let was_next = queue.next == Some(id);
        let last = queue.fifo.len() == 1;
        if was_next && !last {
            queue.next = find_next(queue, cx.requests, self.settings.back_seek, id, now_ns);
        }
        queue.tree.remove(cx.requests[id].sector, id);
        queue.fifo.remove(cx.requests, id);
        self.nr_queued -= 1;
        if !last {
            if was_next {
                self.next_changed(cx.requests, q);
            }
            self.note_position(cx.requests, q);
            return;
        }
        // The search for the next request would set this first, and find none.
        queue.fifo_checked = true;
        queue.next = None;
        let (busy, entity) = (queue.busy, queue.entity);
        self.forget_position(q);
        if busy && !in_service {
            self.no_longer_busy(q, false);
            let entity = &mut self.hierarchy.entities[entity as usize];
            entity.budget = 0;
            entity.service = 0;
        }
    }

    /// A request goes to the device, of the queue in service or another.
    #[inline(always)]
    pub(super) fn depart(
        &mut self,
        cx: &mut Context,
        q: QueueId,
        id: RequestId,
        own: bool,
        now_ns: i64,
    ) {
        if self.rate.dispatched(&cx.requests[id], now_ns, self.in_device) {
            self.follow_rate();
        }
        if own {
            self.slot_last_sector = self.rate.last_sector;
        }
        self.queue_mut(q).dispatched += 1;
        self.remove(cx, q, id, own, now_ns);
        self.in_device += 1;
    }

    /// A request is done. Returns true if the queue must run: the device is empty and does not idle
    /// for the queue in service.
    #[inline]
    pub(super) fn finish(&mut self, cx: &mut Context, id: RequestId, now_ns: i64) -> bool {
        let request = &cx.requests[id];
        let (q, context) = (request.queue, request.context);
        self.measure_injection(q, id, now_ns);
        let waits = self.completed(cx, q, now_ns);
        self.give_back(q, context);
        !waits && self.in_device == 0 && self.nr_queued > 0
    }

    /// A request gives its tag back.
    #[inline]
    fn give_back(&mut self, q: QueueId, context: u32) {
        self.hierarchy.allocated(self.queues[q as usize].entity, false);
        self.release_if_unused(q);
        self.processes[context as usize].requests -= 1;
    }

    /// True if the device must idle for this queue's next request.
    #[inline]
    fn completed(&mut self, cx: &mut Context, q: QueueId, now_ns: i64) -> bool {
        self.watch_queueing();
        self.in_device -= 1;
        if self.rate.completed(now_ns) {
            self.follow_rate();
        }
        let queue = &mut self.queues[q as usize];
        queue.dispatched -= 1;
        queue.last_end_ns = now_ns;
        let idle = queue.dispatched == 0;
        if idle && !queue.busy {
            queue.timeout_ns = self.hierarchy.tick_ns;
            self.hierarchy.nothing_pending(queue.entity);
        }
        self.last_completed = (!queue.shared).then_some(q);
        if queue.wr.soft_pending
            && idle
            && queue.is_empty()
            && queue.wr_coeff != super::weight_raising::INTERACTIVE
        {
            self.set_soft_next(q);
        }
        if self.in_service == Some(q) {
            let queue = self.queue(q);
            if self.must_wait(queue) {
                if idle {
                    self.start_waiting(cx, q, now_ns);
                }
                return true;
            }
            if self.may_end_by_timeout(queue, now_ns) {
                self.expire(cx, Reason::Timeout, false, now_ns);
            } else if queue.is_empty() {
                // Waiting does not pay either, or the queue would be waiting.
                self.expire(cx, Reason::NoMoreRequests, false, now_ns);
            }
        }
        false
    }

    /// A front merge moved a request's start. It grew only into the gap before it, so its place
    /// stays.
    pub(super) fn moved(&mut self, requests: &Requests, id: RequestId, old_sector: u64) {
        let queue = &mut self.queues[requests[id].queue as usize];
        queue.tree.remove(old_sector, id);
        queue.tree.insert(requests[id].sector, id);
    }

    /// Two requests became one.
    pub(super) fn absorb(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let q = cx.requests[gone].queue;
        let same = q == cx.requests[kept].queue;
        if same && cx.requests[gone].deadline_ns < cx.requests[kept].deadline_ns {
            // The older of the two places in the FIFO remains.
            cx.requests[kept].deadline_ns = cx.requests[gone].deadline_ns;
            let fifo = &mut self.queues[q as usize].fifo;
            fifo.remove(cx.requests, kept);
            fifo.replace(cx.requests, gone, kept);
            fifo.push_back(cx.requests, gone);
        }
        if same && self.queue(q).next == Some(gone) {
            self.queue_mut(q).next = Some(kept);
        }
        let now_ns = cx.now_ns() as i64;
        self.remove(cx, q, gone, self.in_service == Some(q), now_ns);
        self.give_back(q, cx.requests[gone].context);
    }
}

/// The request after `id`, which is about to leave: the oldest one if it has expired and was not
/// checked in this slot, else the closest (`bfq_find_next_rq`).
fn find_next(
    queue: &mut super::queue::Queue,
    requests: &Requests,
    back_seek: super::BackSeek,
    id: RequestId,
    now_ns: i64,
) -> Option<RequestId> {
    if !std::mem::replace(&mut queue.fifo_checked, true) {
        if let Some(oldest) = queue.fifo.head() {
            if oldest != id && requests[oldest].deadline_ns <= now_ns as u64 {
                return Some(oldest);
            }
        }
    }
    back_seek.following(requests, &queue.tree, id, requests[id].sector)
}
