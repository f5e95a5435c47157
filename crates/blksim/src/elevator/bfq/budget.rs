//! Slots: the choice of the queue in service, its budget, the end of its slot and the charge for
//! it.
//!
//! A queue is charged the sectors of its requests; async ones three times, unless fairness needs
//! exact shares. A slow queue is charged for its time, as if it had been served at the full rate,
//! so that random I/O shares time and sequential I/O shares sectors.
//!
//! Kernel: `bfq_select_queue`, `bfq_bfqq_expire`, `__bfq_bfqq_recalc_budget`,
//! `bfq_bfqq_is_slow` in `block/bfq-iosched.c`, Linux 6.1.

use super::Bfq;
use super::hierarchy::QueueId;
use super::queue::{MS, Queue};
use crate::block::request::{RequestId, Requests};
use crate::elevator::scheduler::Context;

/// Budget in sectors until enough budgets have been assigned.
pub(super) const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// Value of the decaying count of assigned budgets after the eleventh.
const ENOUGH_BUDGETS: u64 = 194;
/// Factor for sectors of async requests (`bfq_async_charge_factor`).
const ASYNC_CHARGE: u64 = 3;
/// Slots shorter than this tell nothing about speed.
const SHORTEST_NS: i64 = MS;
const SHORT_NS: i64 = 20 * MS;
/// Assumed length of such a slot on a disk, whatever `slice_idle` is.
const ASSUMED_SEEK_NS: i64 = 8 * MS;

/// The reason for ending a slot (`enum bfqq_expiration`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Idling for its next request took too long.
    TooIdle,
    Timeout,
    Exhausted,
    NoMoreRequests,
    Preempted,
}

impl Bfq {
    pub(super) fn assigned_max_budget(&self) -> u64 {
        if self.budgets_assigned < ENOUGH_BUDGETS { DEFAULT_MAX_BUDGET } else { self.max_budget }
    }

    pub(super) fn min_budget(&self) -> u64 {
        self.assigned_max_budget() / 32
    }

    /// The peak rate may have changed.
    pub(super) fn follow_rate(&mut self) {
        if self.settings.max_budget == 0 {
            self.max_budget = self.rate.sectors_in(self.settings.timeout_ns).max(1);
        }
    }

    /// The charge for serving a request (`bfq_serv_to_charge`).
    #[inline]
    pub(super) fn charge_of(&self, requests: &Requests, queue: &Queue, id: RequestId) -> u64 {
        let sectors = u64::from(requests[id].nr_sectors);
        if queue.sync || queue.is_raised() || self.is_asymmetric(queue) {
            sectors
        } else {
            sectors * ASYNC_CHARGE
        }
    }

    /// True if it has a request that its budget covers.
    #[inline]
    pub(super) fn can_send(&self, requests: &Requests, queue: &Queue) -> bool {
        queue.next.is_some_and(|next| {
            let left = self.hierarchy.entities[queue.entity as usize].budget_left();
            self.charge_of(requests, queue, next) <= left
        })
    }

    /// True if its time is up, unless it was idled for and has used most of its budget.
    #[inline]
    pub(super) fn may_end_by_timeout(&self, queue: &Queue, now_ns: i64) -> bool {
        queue.timeout_ns <= now_ns
            && (!self.waiting || {
                let entity = &self.hierarchy.entities[queue.entity as usize];
                entity.budget_left() >= entity.budget / 3
            })
    }

    /// The queue whose next request goes to the device now, if one may (`bfq_select_queue`).
    #[inline]
    pub(super) fn choose(&mut self, cx: &mut Context, now_ns: i64) -> Option<QueueId> {
        if let Some(q) = self.in_service {
            let queue = self.queue(q);
            if !self.may_end_by_timeout(queue, now_ns) && self.can_send(cx.requests, queue) {
                self.stop_waiting();
                return Some(q);
            }
        }
        self.choose_again(cx, now_ns)
    }

    /// The queue in service cannot simply go on.
    fn choose_again(&mut self, cx: &mut Context, now_ns: i64) -> Option<QueueId> {
        if let Some(q) = self.in_service {
            let queue = self.queue(q);
            if self.may_end_by_timeout(queue, now_ns) && !self.must_wait(queue) {
                self.expire(cx, Reason::Timeout, false, now_ns);
            }
        }
        loop {
            let q = match self.in_service {
                Some(q) => q,
                None => self.begin_slot(now_ns)?,
            };
            let queue = self.queue(q);
            let reason = if self.can_send(cx.requests, queue) {
                self.stop_waiting();
                return Some(q);
            } else if queue.next.is_some() {
                Reason::Exhausted
            } else {
                if self.waiting || (queue.dispatched != 0 && self.better_to_wait(queue)) {
                    return self.choose_to_inject(cx, q);
                }
                Reason::NoMoreRequests
            };
            self.expire(cx, reason, false, now_ns);
        }
    }

    fn begin_slot(&mut self, now_ns: i64) -> Option<QueueId> {
        let q = self.hierarchy.select()?;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        self.prolong_soft(q);
        let queue = &self.queues[q as usize];
        let entity = &self.hierarchy.entities[queue.entity as usize];
        let longer = if queue.wr.is_soft_real_time() {
            1
        } else {
            entity.weight / entity.base_weight.max(1)
        };
        self.slot_began_ns = now_ns;
        let timeout_ns = self.settings.timeout_ns.saturating_mul(longer as i64);
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue_mut(q);
        queue.fifo_checked = false;
        queue.timeout_ns = tick_ns.saturating_add(timeout_ns);
        self.in_service = Some(q);
        self.slot_last_sector = 0;
        Some(q)
    }

    /// Charges sectors to a queue.
    #[inline(always)]
    pub(super) fn charge(&mut self, q: QueueId, sectors: u64) {
        let queue = &mut self.queues[q as usize];
        if queue.service_from_backlogged == 0 {
            queue.first_io_ns = self.hierarchy.tick_ns;
        }
        if queue.is_raised() {
            queue.wr.service += sectors;
        }
        queue.service_from_backlogged += sectors;
        self.hierarchy.serve(queue.entity, sectors);
    }

    /// Sends the next request of a queue to the device.
    #[inline]
    pub(super) fn send(&mut self, cx: &mut Context, q: QueueId, now_ns: i64) -> RequestId {
        // `choose` returns only queues that have a next request.
        let queue = self.queue(q);
        let id = queue.next.unwrap_or(crate::block::request::NONE);
        let sectors = self.charge_of(cx.requests, queue, id);
        self.charge(q, sectors);
        let own = self.in_service == Some(q);
        self.injection.sent(id, own);
        self.depart(cx, q, id, own, now_ns);
        if own {
            self.update_wr_data(q);
            if self.nr_busy() > 1 && self.queue(q).is_idle_class() {
                self.expire(cx, Reason::Exhausted, false, now_ns);
            }
        }
        id
    }

    /// Whether the slot was slow, and its length (`bfq_bfqq_is_slow`).
    fn is_slow(&self, q: QueueId, compensate: bool, now_ns: i64) -> (bool, i64) {
        let queue = self.queue(q);
        if !queue.sync {
            return (false, 0);
        }
        let until_ns = if compensate { self.waiting_since_ns } else { now_ns };
        let took_ns = until_ns - self.slot_began_ns;
        // The kernel counts microseconds here.
        let took_ns = took_ns / 1000 * 1000;
        if took_ns < SHORTEST_NS {
            let assumed_ns = if self.settings.rotational { ASSUMED_SEEK_NS } else { 2 * MS };
            return (queue.is_seeky(), assumed_ns);
        }
        if took_ns > SHORT_NS {
            let service = self.hierarchy.entities[queue.entity as usize].service;
            return (service < self.max_budget / 2, took_ns);
        }
        (queue.is_seeky(), took_ns)
    }

    fn charge_time(&mut self, q: QueueId, took_ns: i64) {
        // Independent of `timeout_sync`.
        let timeout_ns = super::timeout_ns(super::DEFAULT_TIMEOUT_NS, self.settings.jiffy_ns);
        // In whole milliseconds.
        let bounded_ms = took_ns.min(timeout_ns) / MS;
        let worth = self.max_budget * bounded_ms as u64 / (timeout_ns / MS).max(1) as u64;
        let entity = &mut self.hierarchy.entities[self.queues[q as usize].entity as usize];
        let total = worth.max(entity.service);
        entity.budget = entity.budget.max(total);
        let more = total - entity.service;
        self.charge(q, more);
    }

    /// Ends the slot of the queue in service. With `compensate` the time of idling for it does not
    /// count (`bfq_bfqq_expire`).
    pub(super) fn expire(
        &mut self,
        cx: &mut Context,
        reason: Reason,
        compensate: bool,
        now_ns: i64,
    ) {
        let Some(q) = self.in_service else { return };
        let tick_ns = self.hierarchy.tick_ns;
        let (slow, took_ns) = self.is_slow(q, compensate, now_ns);
        let id = self.queue(q).entity;
        let raised = self.is_raised(q);
        let entity = &self.hierarchy.entities[id as usize];
        let much_left = entity.budget_left() >= entity.budget / 3;
        if !raised && (slow || (reason == Reason::Timeout && much_left)) {
            self.charge_time(q, took_ns);
        }
        if self.settings.low_latency {
            let queue = self.queue_mut(q);
            if !raised {
                queue.wr.started_ns = tick_ns;
            }
            if queue.is_empty() {
                if queue.dispatched == 0 {
                    self.set_soft_next(q);
                } else {
                    queue.wr.soft_pending = true;
                }
            }
        }
        self.injection = super::inject::Injection::default();
        self.set_budget(cx.requests, q, reason);
        self.leave_service(cx.requests, q, reason);
        let queue = &mut self.queues[q as usize];
        if !queue.busy && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            // The rest of its budget counts if it comes back in time.
            queue.may_resume = true;
        } else {
            self.hierarchy.entities[id as usize].service = 0;
        }
        self.hierarchy.reset_service_above(id);
    }

    /// Takes the queue out of service. It goes back among the others if it has requests or is owed
    /// idling.
    pub(super) fn leave_service(&mut self, requests: &Requests, q: QueueId, reason: Reason) {
        let queue = self.queue_mut(q);
        if queue.shared && queue.is_seeky() {
            queue.split_wanted = true;
        }
        let id = queue.entity;
        let empty = queue.is_empty();
        if empty && !(reason == Reason::Preempted && self.waiting_is_owed(self.queue(q))) {
            if self.queue(q).dispatched == 0 {
                self.queue_mut(q).timeout_ns = self.hierarchy.tick_ns;
            }
            self.no_longer_busy(q, true);
        } else {
            self.hierarchy.requeue(id, true, true);
            if !empty {
                self.note_position(requests, q);
            }
        }
        self.stop_waiting();
        self.in_service = None;
        self.hierarchy.end_service(id);
    }

    /// Computes the next budget from the end of this slot (`__bfq_bfqq_recalc_budget`).
    fn set_budget(&mut self, requests: &Requests, q: QueueId, reason: Reason) {
        let least = self.min_budget();
        let most = self.max_budget;
        let queue = &self.queues[q as usize];
        let entity = &self.hierarchy.entities[queue.entity as usize];
        let old = queue.max_budget;
        let mut budget = if !queue.sync {
            most
        } else if queue.is_raised() {
            2 * least
        } else {
            match reason {
                Reason::TooIdle if queue.dispatched > 0 => (old * 2).min(most),
                Reason::TooIdle if old > 5 * least => old - 4 * least,
                Reason::TooIdle => least,
                Reason::Timeout => (old * 2).min(most),
                Reason::Exhausted => (old * 4).min(most),
                Reason::NoMoreRequests => entity.service.max(least),
                Reason::Preempted => return,
            }
        };
        if self.budgets_assigned >= ENOUGH_BUDGETS && self.settings.max_budget == 0 {
            budget = budget.min(most);
        }
        let next = queue.next.map_or(0, |id| self.charge_of(requests, queue, id));
        let queue = &mut self.queues[q as usize];
        queue.max_budget = budget;
        if queue.next.is_some() {
            self.hierarchy.entities[queue.entity as usize].budget = budget.max(next);
        }
    }

    /// Sets the budget of a queue that gets its first request. Returns true if it continues with
    /// the rest of its last budget.
    pub(super) fn budget_for_activation(
        &mut self,
        requests: &Requests,
        q: QueueId,
        in_time: bool,
    ) -> bool {
        let queue = &self.queues[q as usize];
        let (id, max_budget) = (queue.entity as usize, queue.max_budget);
        let left = self.hierarchy.entities[id].budget_left();
        if queue.may_resume && in_time && left > 0 {
            let entity = &mut self.hierarchy.entities[id];
            entity.budget = left.min(max_budget);
            entity.service = 0;
            return true;
        }
        let next = queue.next.map_or(0, |next| self.charge_of(requests, queue, next));
        self.queue_mut(q).may_resume = false;
        let entity = &mut self.hierarchy.entities[id];
        entity.service = 0;
        entity.budget = max_budget.max(next);
        false
    }

    /// The next request of a queue has changed or grown.
    #[inline]
    pub(super) fn next_changed(&mut self, requests: &Requests, q: QueueId) {
        if self.in_service != Some(q) {
            self.fit_budget(requests, q);
        }
    }

    /// Raises the budget of a queue that is not in service to cover its next request
    /// (`bfq_updated_next_req`).
    fn fit_budget(&mut self, requests: &Requests, q: QueueId) {
        let queue = self.queue(q);
        let Some(next) = queue.next else { return };
        let (id, max_budget) = (queue.entity, queue.max_budget);
        let charge = self.charge_of(requests, queue, next);
        let entity = &mut self.hierarchy.entities[id as usize];
        let budget = max_budget.max(charge).max(entity.service);
        if entity.budget != budget {
            entity.budget = budget;
            self.hierarchy.requeue(id, false, false);
        }
    }
}
