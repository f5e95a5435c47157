//! Injection: requests of other queues that go to the device while it idles for the queue in
//! service, if they will not delay it noticeably.
//!
//! First come the process's own async requests, then its *waker* (the queue that completes shortly
//! before this one gets a request), then a queue that it has woken, then any, up to a limit of
//! requests in the device. The limit follows from the extra service time of the queue's first
//! request with injection.
//!
//! Kernel: `bfq_choose_bfqq_for_injection`, `bfq_update_inject_limit`,
//! `bfq_check_waker` in `block/bfq-iosched.c`, Linux 6.1.

use super::Bfq;
use super::hierarchy::{Owner, QueueId};
use super::queue::{LARGE_SECTORS, MS, Queue};
use super::red_black::NIL;
use crate::block::request::RequestId;
use crate::elevator::scheduler::Context;

const SAMPLE_EVERY_NS: i64 = 10 * MS;
const RESET_AFTER_NS: i64 = 1000 * MS;
/// A waker completes at most this long before, this many times.
const WOKEN_WITHIN_NS: i64 = 4 * MS;
const WAKER_DETECTIONS: u32 = 3;

/// The measurement of injection's effect on a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Injection {
    /// The request whose total service time is measured.
    waited_for: Option<RequestId>,
    /// The next request sent is the one to measure.
    arm: bool,
    injected: bool,
    since_ns: i64,
}

impl Injection {
    /// A request goes to the device, of the queue in service or another.
    #[inline]
    pub fn sent(&mut self, id: RequestId, own: bool) {
        if own && std::mem::take(&mut self.arm) {
            self.waited_for = Some(id);
        }
    }

    /// Forgets the effect of injection on a queue, and the measurement under way, whichever queue it
    /// is of (`bfq_reset_inject_limit`).
    pub fn reset(&mut self, queue: &mut Queue, tick_ns: i64) {
        self.waited_for = None;
        queue.base_service_ns = 0;
        queue.inject_limit = u32::from(!queue.short_think);
        queue.inject_reset_ns = tick_ns;
    }
}

impl Bfq {
    fn can_inject(&self, cx: &Context, q: QueueId) -> bool {
        let queue = self.queue(q);
        queue.busy && self.can_send(cx.requests, queue)
    }

    /// The queue whose request may go while the device idles for `q`.
    pub(super) fn choose_to_inject(&mut self, cx: &Context, q: QueueId) -> Option<QueueId> {
        let queue = self.queue(q);
        if let Some(own) = self.async_queue_of(q) {
            let next = self.queue(own).next;
            if next.is_some_and(|next| Some(cx.requests[next].context) == queue.context)
                && self.can_inject(cx, own)
            {
                return Some(own);
            }
        }
        for other in [queue.waker, queue.woken.first().copied()].into_iter().flatten() {
            if self.can_inject(cx, other) {
                return Some(other);
            }
        }
        let alone = queue.is_raised() && self.nr_raised <= 1 && queue.short_think;
        if self.waiting_pays(queue) || alone {
            return None;
        }
        self.choose_any(cx, q)
    }

    fn choose_any(&mut self, cx: &Context, q: QueueId) -> Option<QueueId> {
        let queue = self.queue(q);
        let from_all = !queue.is_raised() || !queue.short_think;
        let mut limit = queue.inject_limit;
        if limit == 0 && queue.base_service_ns == 0 && self.waiting && self.waited_many_jiffies() {
            limit = 1;
        }
        if self.in_device >= limit {
            return None;
        }
        let mut candidate = self.hierarchy.list;
        while candidate != NIL {
            let entity = &self.hierarchy.entities[candidate as usize];
            candidate = entity.list_next;
            let Owner::Queue(other) = entity.owner else { continue };
            if (from_all || self.is_raised(other)) && self.can_inject(cx, other) {
                let next = self.queue(other).next.map_or(0, |next| cx.requests[next].nr_sectors);
                limit = if next >= LARGE_SECTORS && !self.settings.rotational {
                    limit.min(1)
                } else {
                    self.queue(q).inject_limit
                };
                if self.in_device < limit {
                    self.injection.injected = true;
                    return Some(other);
                }
            }
        }
        None
    }

    /// The kernel means to allow one request after idling for `slice_idle`, but takes its
    /// nanoseconds for jiffies, so that it hardly ever happens.
    fn waited_many_jiffies(&self) -> bool {
        let jiffies = self.settings.slice_idle_ns;
        let since_ns = self.settings.tick(self.waiting_since_ns);
        since_ns.saturating_add(jiffies.saturating_mul(self.settings.jiffy_ns))
            <= self.hierarchy.tick_ns
    }

    /// A request arrived on a sync queue of a process that had none.
    pub(super) fn sample_injection(&mut self, q: QueueId, now_ns: i64) {
        let queue = &mut self.queues[q as usize];
        if queue.inject_reset_ns + RESET_AFTER_NS <= now_ns {
            self.injection.reset(queue, self.hierarchy.tick_ns);
        }
        let comparable = self.in_device == 0
            || (queue.base_service_ns > 0 && self.injection.injected && self.in_device > 0);
        if self.in_service == Some(q)
            && comparable
            && queue.inject_reset_ns + self.settings.jiffies(SAMPLE_EVERY_NS) <= now_ns
        {
            self.injection.since_ns = now_ns;
            self.injection.arm = true;
            if self.in_device == 0 {
                self.injection.injected = false;
            }
        }
    }

    /// A request is done, and still counted as in the device.
    #[inline]
    pub(super) fn measure_injection(&mut self, q: QueueId, id: RequestId, now_ns: i64) {
        if self.injection.waited_for == Some(id) {
            self.update_inject_limit(q, now_ns);
        }
    }

    fn update_inject_limit(&mut self, q: QueueId, now_ns: i64) {
        let injected = self.injection.injected;
        let took_ns = now_ns - self.injection.since_ns;
        let (in_device, most) = (self.in_device, self.max_in_device);
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue_mut(q);
        let old = queue.inject_limit;
        if queue.base_service_ns > 0 && injected {
            let tolerable = took_ns < queue.base_service_ns * 3 / 2;
            if !tolerable && old > 0 {
                queue.inject_limit -= 1;
                queue.inject_reset_ns = tick_ns;
            } else if tolerable && old <= most {
                queue.inject_limit += 1;
            }
        }
        if (queue.base_service_ns == 0 && in_device == 1) || took_ns < queue.base_service_ns {
            if queue.base_service_ns == 0 {
                queue.inject_limit = old.max(1);
            }
            queue.base_service_ns = took_ns;
        } else if !injected && in_device == 1 {
            queue.base_service_ns = took_ns;
        }
        self.injection.waited_for = None;
        self.injection.injected = false;
    }

    /// A process without requests gets one: checks whether another's completion woke it
    /// (`bfq_check_waker`).
    pub(super) fn look_for_waker(&mut self, q: QueueId, now_ns: i64) {
        let Some(last) = self.last_completed else { return };
        let forget_ns = 128 * self.settings.slice_idle_ns;
        if last == q
            || self.queue(q).short_think
            || now_ns - self.rate.last_completion_ns >= WOKEN_WITHIN_NS
        {
            return;
        }
        let queue = self.queue_mut(q);
        if queue.tentative_waker == Some(last) && now_ns <= queue.waker_since_ns + forget_ns {
            queue.nr_waker_detections += 1;
        } else {
            queue.tentative_waker = Some(last);
            queue.nr_waker_detections = 1;
            queue.waker_since_ns = now_ns;
        }
        if queue.nr_waker_detections == WAKER_DETECTIONS {
            self.set_waker(q, last);
        }
    }

    pub(super) fn set_waker(&mut self, q: QueueId, waker: QueueId) {
        self.forget_waker(q);
        let queue = self.queue_mut(q);
        queue.waker = Some(waker);
        queue.tentative_waker = None;
        self.queue_mut(waker).woken.insert(0, q);
    }

    pub(super) fn forget_waker(&mut self, q: QueueId) {
        if let Some(waker) = self.queue_mut(q).waker.take() {
            self.queue_mut(waker).woken.retain(|other| *other != q);
        }
    }

    /// A queue with new requests goes before the others that its waker woke.
    pub(super) fn woken_again(&mut self, q: QueueId, waker: QueueId) {
        let woken = &mut self.queue_mut(waker).woken;
        if let Some(place) = woken.iter().position(|other| *other == q) {
            woken[..=place].rotate_right(1);
        }
    }
}
