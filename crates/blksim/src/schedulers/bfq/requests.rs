//! Requests come to a queue, leave for the device, and are done.
//!
//! Kernel: `bfq_add_request`, `bfq_remove_request`,
//! `bfq_bfqq_handle_idle_busy_switch`, `bfq_completed_request` in
//! `block/bfq-iosched.c`, Linux 6.1.

use super::Bfq;
use super::budget::Reason;
use super::hierarchy::QueueId;
use super::queue::MS;
use crate::request::{RequestId, Requests};
use crate::scheduler::Context;

/// How soon a change of think time may reset the limit of injection again.
const RESET_INJECTION_NS: i64 = 100 * MS;
/// A request that is waited for may be expected to grow if it has fewer sectors.
const SMALL_SECTORS: u32 = 32;

impl Bfq {
    /// A new request.
    #[inline]
    pub(super) fn arrive(&mut self, cx: &mut Context, q: QueueId, id: RequestId, now_ns: i64) {
        let slice_idle_ns = self.settings.slice_idle_ns;
        let rotational = self.settings.rotational;
        let queue = &mut self.queues[q as usize];
        queue.note_think_time(now_ns, slice_idle_ns);
        self.update_think(q, now_ns);
        self.queue_mut(q).note_seek(&cx.requests[id], rotational);
        self.distrust_seeky(q);

        let raised = self.is_raised(q);
        let queue = &mut self.queues[q as usize];
        let request = &mut cx.requests[id];
        request.queue = q;
        request.deadline_ns =
            (now_ns as u64).saturating_add(self.settings.fifo_expire_ns[usize::from(queue.sync)]);
        let (sector, end, sync) = (request.sector, request.end(), request.flags.sync);
        let (nr_sectors, context) = (request.nr_sectors, request.context);
        if queue.sync && self.processes[context as usize].requests <= 1 {
            self.look_for_waker(q, now_ns);
            self.sample_injection(q, now_ns);
        }
        let queue = &mut self.queues[q as usize];
        if queue.sync {
            queue.note_intensity(now_ns);
        }
        queue.tree.insert(sector, id);
        queue.fifo.push_back(cx.requests, id);
        self.nr_queued += 1;
        let head = self.rate.last_sector;
        let queue = &mut self.queues[q as usize];
        let before = queue.next;
        let next = match before {
            Some(next) => self.settings.back_seek.closer(cx.requests, next, id, head),
            None => id,
        };
        queue.next = Some(next);
        queue.next_sector = Some(cx.requests[next].sector);
        if before != Some(next) {
            self.note_position(q);
        }
        let mut interactive = false;
        if self.queue(q).busy {
            if self.settings.low_latency && !raised && !sync {
                self.raise_async(q);
            }
            if before != Some(next) {
                self.next_changed(cx, q);
            }
        } else {
            interactive = self.becomes_busy(cx, q, context, now_ns);
        }
        if self.settings.low_latency && (!raised || !self.is_raised(q) || interactive) {
            self.queue_mut(q).raise.started_ns = self.hierarchy.tick_ns;
        }
        self.queue_mut(q).last_sector = end;
        if self.waiting && self.in_service == Some(q) {
            let timed_out = self.queue(q).timeout_ns <= now_ns;
            let small = self.queue(q).fifo.len() == 1 && nr_sectors < SMALL_SECTORS;
            if small && !timed_out && self.waiting_pays(q) {
                // It may grow; whoever runs the queue next ends the wait.
                return;
            }
            self.stop_waiting();
            if timed_out {
                self.expire(cx, Reason::Timeout, false, now_ns);
            }
        }
    }

    /// Does the process take long between requests?
    fn update_think(&mut self, q: QueueId, now_ns: i64) {
        let slice_idle_ns = self.settings.slice_idle_ns;
        let tick_ns = self.hierarchy.tick_ns;
        let queue = &mut self.queues[q as usize];
        if !queue.sync
            || queue.is_idle_class()
            || slice_idle_ns == 0
            || queue.split_ns + super::raise::SILENCE_NS >= tick_ns
        {
            return;
        }
        let short = !(queue.think.is_settled() && queue.think.mean() as i64 > slice_idle_ns / 2);
        let changed = std::mem::replace(&mut queue.short_think, short) != short;
        if changed
            && queue.base_service_ns == 0
            && (queue.inject_reset_ns + RESET_INJECTION_NS <= now_ns || !short)
        {
            self.reset_injection(q);
        }
    }

    /// A queue that had no requests has one. True if it looks interactive.
    fn becomes_busy(&mut self, cx: &mut Context, q: QueueId, context: u32, now_ns: i64) -> bool {
        let arrival = self.classify(q, context);
        let in_time = now_ns <= self.queue(q).last_end_ns + self.settings.slice_idle_ns * 3;
        let resumes = self.budget_for_activation(cx.requests, q, in_time);
        self.raise_on_arrival(q, arrival);
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue_mut(q);
        queue.raise.backlogged_ns = tick_ns;
        queue.raise.soft_pending = false;
        queue.service_from_backlogged = 0;
        self.add_busy(q);
        let Some(current) = self.in_service else { return arrival.interactive };
        let due = (resumes && self.coefficient(q) >= self.coefficient(current))
            || self.outranks(q, current)
            || !self.better_to_wait(current);
        if due && self.hierarchy.root_would_switch() {
            self.expire(cx, Reason::Preempted, false, now_ns);
        }
        arrival.interactive
    }

    /// A higher class, or a larger weight (of itself, or of its group if they
    /// are in different ones).
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
        self.busy[class] += 1;
        let raised = self.is_raised(q);
        let queue = self.queue_mut(q);
        queue.busy = true;
        queue.busy_class = class;
        if queue.dispatched == 0 && !raised {
            self.hierarchy.count_weight(entity);
        }
        self.nr_raised += u32::from(raised);
        self.woken_again(q);
    }

    /// A queue has no requests any more.
    pub(super) fn no_longer_busy(&mut self, q: QueueId, in_service: bool) {
        let raised = self.is_raised(q);
        let queue = &mut self.queues[q as usize];
        queue.busy = false;
        self.busy[queue.busy_class] -= 1;
        let (entity, dispatched) = (queue.entity, queue.dispatched);
        self.nr_raised -= u32::from(raised);
        self.hierarchy.deactivate(entity, in_service);
        if dispatched == 0 {
            self.hierarchy.nothing_pending(entity);
        }
    }

    /// Takes a request out of its queue's order.
    fn remove(&mut self, cx: &mut Context, q: QueueId, id: RequestId, now_ns: i64) {
        let queue = &mut self.queues[q as usize];
        if queue.next == Some(id) {
            queue.next = find_next(queue, cx.requests, self.settings.back_seek, id, now_ns);
            queue.next_sector = queue.next.map(|next| cx.requests[next].sector);
            self.next_changed(cx, q);
        }
        let queue = &mut self.queues[q as usize];
        queue.tree.remove(cx.requests[id].sector, id);
        queue.fifo.remove(cx.requests, id);
        self.nr_queued -= 1;
        if !self.queue(q).is_empty() {
            self.note_position(q);
            return;
        }
        self.forget_position(q);
        let queue = &mut self.queues[q as usize];
        queue.next = None;
        queue.next_sector = None;
        if queue.busy && self.in_service != Some(q) {
            self.no_longer_busy(q, false);
            let entity = self.queue(q).entity;
            let entity = &mut self.hierarchy.entities[entity as usize];
            entity.budget = 0;
            entity.service = 0;
        }
    }

    /// A request leaves for the device.
    pub(super) fn depart(&mut self, cx: &mut Context, q: QueueId, id: RequestId, now_ns: i64) {
        self.queue_mut(q).dispatched += 1;
        if self.rate.dispatched(&cx.requests[id], now_ns, self.in_device) {
            self.follow_rate();
        }
        if self.in_service == Some(q) {
            self.slot_last_sector = self.rate.last_sector;
        }
        self.remove(cx, q, id, now_ns);
        self.in_device += 1;
    }

    /// A request is done. True if the queue is to be run: nothing is in the
    /// device, and the queue in service is not waited for.
    pub(super) fn finish(&mut self, cx: &mut Context, id: RequestId, now_ns: i64) -> bool {
        let q = cx.requests[id].queue;
        self.measure_injection(q, id, now_ns);
        let waits = self.completed(cx, q, now_ns);
        self.hierarchy.allocated(self.queue(q).entity, false);
        self.release_if_unused(q);
        self.processes[cx.requests[id].context as usize].requests -= 1;
        !waits && self.in_device == 0 && self.nr_queued > 0
    }

    /// True if nothing is to go to the device before the next request of this queue.
    fn completed(&mut self, cx: &mut Context, q: QueueId, now_ns: i64) -> bool {
        self.watch_queueing();
        self.in_device -= 1;
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue_mut(q);
        queue.dispatched -= 1;
        let idle = queue.dispatched == 0;
        if idle && !queue.busy {
            queue.timeout_ns = tick_ns;
            let entity = queue.entity;
            self.hierarchy.nothing_pending(entity);
        }
        self.queue_mut(q).last_end_ns = now_ns;
        if self.rate.completed(now_ns) {
            self.follow_rate();
        }
        self.last_completed = (!self.queue(q).shared).then_some(q);
        let queue = self.queue(q);
        if queue.raise.soft_pending
            && idle
            && queue.is_empty()
            && self.coefficient(q) != super::raise::INTERACTIVE
        {
            self.set_soft_next(q);
        }
        if self.in_service == Some(q) {
            if self.must_wait(q) {
                if idle {
                    self.start_waiting(cx, q, now_ns);
                }
                return true;
            }
            if self.may_end_by_timeout(q, now_ns) {
                self.expire(cx, Reason::Timeout, false, now_ns);
            } else if self.queue(q).is_empty() && (idle || !self.better_to_wait(q)) {
                self.expire(cx, Reason::NoMoreRequests, false, now_ns);
            }
        }
        false
    }

    /// A front merge moved a request's start. As it only grew into the gap
    /// before it, its place among the others stays.
    pub(super) fn moved(&mut self, requests: &Requests, id: RequestId, old_sector: u64) {
        let queue = &mut self.queues[requests[id].queue as usize];
        queue.tree.remove(old_sector, id);
        queue.tree.insert(requests[id].sector, id);
        if queue.next == Some(id) {
            queue.next_sector = Some(requests[id].sector);
        }
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
            let queue = self.queue_mut(q);
            queue.next = Some(kept);
            queue.next_sector = Some(cx.requests[kept].sector);
        }
        let now_ns = cx.now_ns() as i64;
        self.remove(cx, q, gone, now_ns);
        self.hierarchy.allocated(self.queue(q).entity, false);
        self.release_if_unused(q);
        self.processes[cx.requests[gone].context as usize].requests -= 1;
    }
}

/// What follows `id`, which is about to leave: the oldest request if it has
/// expired and that was not looked at in this slot, else the closest.
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
