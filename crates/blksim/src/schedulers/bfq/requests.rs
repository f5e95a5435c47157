//! Requests come to a queue, leave for the device, and are done.
//!
//! Kernel: `bfq_add_request`, `bfq_remove_request`,
//! `bfq_bfqq_handle_idle_busy_switch`, `bfq_completed_request` in
//! `block/bfq-iosched.c`, Linux 6.1.

use super::Bfq;
use super::budget::Reason;
use super::entity::QueueId;
use super::queue::MS;
use crate::request::{RequestId, Requests};
use crate::scheduler::Context;

/// How soon a change of think time may reset the limit of injection again.
const RESET_INJECTION_NS: i64 = 100 * MS;

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
        self.distrust_seeky(q, now_ns);

        let raised = self.is_raised(q);
        let queue = &mut self.queues[q as usize];
        let request = &mut cx.requests[id];
        request.queue = q;
        request.deadline_ns =
            (now_ns as u64).saturating_add(self.settings.fifo_expire_ns[usize::from(queue.sync)]);
        let (sector, end, sync) = (request.sector, request.end(), request.flags.sync);
        let first_of_process = self.processes[request.context as usize].requests <= 1;
        if queue.sync && first_of_process {
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
        self.hierarchy.allocated(self.queues[q as usize].entity, true);
        let head = self.rate.last_sector;
        let queue = &mut self.queues[q as usize];
        let before = queue.next;
        let next = match before {
            Some(next) => self.settings.back_seek.closer(cx.requests, next, id, head),
            None => id,
        };
        queue.next = Some(next);
        queue.next_sector = Some(cx.requests[next].sector);
        let mut interactive = false;
        if queue.busy {
            if self.settings.low_latency && !raised && !sync {
                self.raise_async(q, now_ns);
            }
            if before != Some(next) {
                self.next_changed(cx, q);
            }
        } else {
            interactive = self.becomes_busy(cx, q, now_ns);
        }
        if self.settings.low_latency && (!raised || !self.is_raised(q) || interactive) {
            self.queue_mut(q).raise.started_ns = self.settings.tick(now_ns);
        }
        self.queue_mut(q).last_sector = end;
        if self.waiting && self.in_service == Some(q) {
            self.stop_waiting();
            if self.queue(q).timeout_ns <= now_ns {
                self.expire(cx, Reason::Timeout, false, now_ns);
            }
        }
    }

    /// Does the process take long between requests?
    fn update_think(&mut self, q: QueueId, now_ns: i64) {
        let slice_idle_ns = self.settings.slice_idle_ns;
        let tick_ns = self.settings.tick(now_ns);
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
            self.reset_injection(q, now_ns);
        }
    }

    /// A queue that had no requests has one. True if it looks interactive.
    fn becomes_busy(&mut self, cx: &mut Context, q: QueueId, now_ns: i64) -> bool {
        let arrival = self.classify(q, now_ns);
        let in_time = now_ns <= self.queue(q).last_end_ns + self.settings.slice_idle_ns * 3;
        let resumes = self.budget_for_activation(cx.requests, q, in_time);
        self.raise_on_arrival(q, arrival, now_ns);
        let tick_ns = self.settings.tick(now_ns);
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
        let (entity, backshift) = (queue.entity, std::mem::take(&mut queue.may_resume));
        queue.busy = true;
        self.hierarchy.activate(entity, backshift);
        let class = self.hierarchy.entities[entity as usize].class;
        self.busy[class] += 1;
        self.queue_mut(q).busy_class = class;
        self.enlist(q);
        if self.is_raised(q) {
            self.nr_raised += 1;
        }
        if !self.queue(q).has_pending {
            self.queue_mut(q).has_pending = true;
            self.nr_pending_in_groups += u32::from(self.in_group(q));
        }
        self.count_weight(q);
    }

    /// A queue has no requests any more.
    pub(super) fn no_longer_busy(&mut self, q: QueueId, in_service: bool) {
        let raised = self.is_raised(q);
        let queue = &mut self.queues[q as usize];
        queue.busy = false;
        self.busy[queue.busy_class] -= 1;
        let (entity, dispatched) = (queue.entity, queue.dispatched);
        if raised {
            self.nr_raised -= 1;
        }
        self.unlist(q);
        if in_service {
            self.hierarchy.end_service(entity, false);
        } else {
            self.hierarchy.deactivate(entity);
        }
        if dispatched == 0 {
            self.nothing_pending(q);
        }
    }

    fn nothing_pending(&mut self, q: QueueId) {
        if std::mem::take(&mut self.queue_mut(q).has_pending) {
            self.nr_pending_in_groups -= u32::from(self.in_group(q));
            self.uncount_weight(q);
        }
    }

    /// Takes a request out of its queue's order.
    fn remove(&mut self, requests: &mut Requests, q: QueueId, id: RequestId, now_ns: i64) {
        let queue = &mut self.queues[q as usize];
        if queue.next == Some(id) {
            queue.next = find_next(queue, requests, self.settings.back_seek, id, now_ns);
            queue.next_sector = queue.next.map(|next| requests[next].sector);
        }
        queue.tree.remove(requests[id].sector, id);
        queue.fifo.remove(requests, id);
        self.nr_queued -= 1;
        if queue.is_empty() {
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
        let busy = self.queue(q).busy;
        self.remove(cx.requests, q, id, now_ns);
        if busy && self.queue(q).busy && self.in_service != Some(q) {
            self.next_changed(cx, q);
        }
        self.in_device += 1;
    }

    /// A request is done. True if the queue is to be run: nothing is in the
    /// device, and the queue in service is not waited for.
    pub(super) fn finish(&mut self, cx: &mut Context, id: RequestId, now_ns: i64) -> bool {
        let mut waits = false;
        let q = cx.requests[id].queue;
        self.measure_injection(q, id, now_ns);
        self.watch_queueing();
        self.in_device -= 1;
        self.hierarchy.allocated(self.queue(q).entity, false);
        self.processes[cx.requests[id].context as usize].requests -= 1;
        let tick_ns = self.settings.tick(now_ns);
        let queue = self.queue_mut(q);
        queue.dispatched -= 1;
        queue.last_end_ns = now_ns;
        if queue.dispatched == 0 && !queue.busy {
            queue.timeout_ns = tick_ns;
            self.nothing_pending(q);
        }
        if self.rate.completed(now_ns) {
            self.follow_rate();
        }
        self.last_completed = (!self.queue(q).shared).then_some(q);
        let queue = self.queue(q);
        if queue.raise.soft_pending && queue.dispatched == 0 && queue.is_empty() {
            self.queue_mut(q).raise.soft_pending = false;
            self.set_soft_next(q, now_ns);
        }
        if self.in_service == Some(q) {
            let queue = self.queue(q);
            let idle = queue.dispatched == 0;
            if self.must_wait(q) {
                waits = true;
                if idle {
                    self.start_waiting(cx, q, now_ns);
                }
            } else if self.may_end_by_timeout(q, now_ns) {
                self.expire(cx, Reason::Timeout, false, now_ns);
            } else if queue.is_empty() && (idle || !self.better_to_wait(q)) {
                self.expire(cx, Reason::NoMoreRequests, false, now_ns);
            }
        }
        self.release_if_unused(q);
        !waits && self.in_device == 0 && self.nr_queued > 0
    }

    /// A front merge moved a request's start.
    pub(super) fn moved(&mut self, cx: &mut Context, id: RequestId, old_sector: u64) {
        let q = cx.requests[id].queue;
        let head = self.rate.last_sector;
        let queue = &mut self.queues[q as usize];
        queue.tree.remove(old_sector, id);
        queue.tree.insert(cx.requests[id].sector, id);
        queue.next = match queue.next {
            Some(next) => Some(self.settings.back_seek.closer(cx.requests, next, id, head)),
            None => Some(id),
        };
        queue.next_sector = queue.next.map(|next| cx.requests[next].sector);
        self.next_changed(cx, q);
    }

    /// Two requests became one.
    pub(super) fn absorb(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let q = cx.requests[gone].queue;
        if q == cx.requests[kept].queue
            && cx.requests[gone].deadline_ns < cx.requests[kept].deadline_ns
        {
            // The older of the two places in the FIFO remains.
            cx.requests[kept].deadline_ns = cx.requests[gone].deadline_ns;
            let fifo = &mut self.queues[q as usize].fifo;
            fifo.remove(cx.requests, kept);
            fifo.replace(cx.requests, gone, kept);
            fifo.push_back(cx.requests, gone);
        }
        if self.queue(q).next == Some(gone) && q == cx.requests[kept].queue {
            let queue = self.queue_mut(q);
            queue.next = Some(kept);
            queue.next_sector = Some(cx.requests[kept].sector);
        }
        let now_ns = cx.now_ns() as i64;
        self.remove(cx.requests, q, gone, now_ns);
        self.hierarchy.allocated(self.queue(q).entity, false);
        self.processes[cx.requests[gone].context as usize].requests -= 1;
        self.next_changed(cx, cx.requests[kept].queue);
    }

    /// Puts a busy queue on the list of those not in service.
    pub(super) fn enlist(&mut self, q: QueueId) {
        if self.queue(q).listed {
            return;
        }
        let head = self.list;
        let queue = self.queue_mut(q);
        queue.listed = true;
        queue.list_previous = None;
        queue.list_next = head;
        if let Some(head) = head {
            self.queue_mut(head).list_previous = Some(q);
        }
        self.list = Some(q);
    }

    pub(super) fn unlist(&mut self, q: QueueId) {
        let queue = self.queue_mut(q);
        if !std::mem::take(&mut queue.listed) {
            return;
        }
        let (previous, next) = (queue.list_previous.take(), queue.list_next.take());
        match previous {
            Some(previous) => self.queue_mut(previous).list_next = next,
            None => self.list = next,
        }
        if let Some(next) = next {
            self.queue_mut(next).list_previous = previous;
        }
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
