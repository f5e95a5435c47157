//! Idling: keeping the device free for the queue in service when it has no request.
//!
//! Either a sequential reader's next request pays for it, or a queue that lost its slot at every
//! pause would not get its share.
//!
//! Kernel: `bfq_better_to_idle`, `bfq_asymmetric_scenario`,
//! `bfq_arm_slice_timer`, `bfq_update_hw_tag` in `block/bfq-iosched.c`,
//! Linux 6.1.

use super::Bfq;
use super::budget::Reason;
use super::hierarchy::QueueId;
use super::queue::{MS, Queue};
use crate::elevator::scheduler::Context;

/// Idling for a seeky queue, and the least for a raised one.
const SEEKY_WAIT_NS: i64 = 2 * MS;
const RAISED_WAIT_NS: i64 = 20 * MS;

/// The device queues commands if it holds more than this in a sample; number of samples.
const QUEUEING_DEPTH: u32 = 3;
const QUEUEING_SAMPLES: u32 = 32;

impl Bfq {
    /// Assumed until it is known: the device may reorder.
    fn queues_commands(&self) -> bool {
        self.queueing.unwrap_or(true)
    }

    /// True if idling costs no throughput, or gains some (`idling_boosts_thr_without_issues`).
    #[inline(always)]
    pub(super) fn waiting_pays(&self, queue: &Queue) -> bool {
        if queue.is_abandoned() {
            return false;
        }
        let rotational = self.settings.rotational;
        let seeks_alone = rotational && !self.queues_commands();
        let steady = !queue.is_seeky() && queue.io_bound && queue.short_think;
        (seeks_alone || ((rotational || !self.queues_commands()) && steady)) && self.nr_raised == 0
    }

    /// True if equal treatment of requests would not give queues their shares
    /// (`bfq_asymmetric_scenario`).
    #[inline]
    pub(super) fn is_asymmetric(&self, queue: &Queue) -> bool {
        let classes = self.busy.iter().filter(|count| **count > 0).count();
        classes > 1 || self.hierarchy.is_varied(queue.entity)
    }

    /// True if the queue would lose its share without idling
    /// (`idling_needed_for_service_guarantees`).
    #[inline(always)]
    pub(super) fn waiting_is_owed(&self, queue: &Queue) -> bool {
        if queue.is_abandoned() {
            return false;
        }
        let nr_busy = self.nr_busy();
        let raised = queue.is_raised()
            && (self.nr_raised < nr_busy || self.in_device >= queue.dispatched + 4);
        nr_busy == 1 || raised || self.is_asymmetric(queue)
    }

    pub(super) fn better_to_wait(&self, queue: &Queue) -> bool {
        if queue.is_abandoned() {
            return false;
        }
        if self.settings.strict {
            return true;
        }
        if self.settings.slice_idle_ns == 0 || !queue.sync || queue.is_idle_class() {
            return false;
        }
        self.waiting_is_owed(queue) || self.waiting_pays(queue)
    }

    #[inline]
    pub(super) fn must_wait(&self, queue: &Queue) -> bool {
        queue.is_empty() && self.better_to_wait(queue)
    }

    /// The queue in service has no requests, in the device either: idles (`bfq_arm_slice_timer`).
    pub(super) fn start_waiting(&mut self, cx: &mut Context, q: QueueId, now_ns: i64) {
        let mut wait_ns = self.settings.slice_idle_ns;
        let queue = self.queue(q);
        if queue.is_raised() {
            wait_ns = wait_ns.max(RAISED_WAIT_NS);
        } else if queue.is_seeky() && !self.is_asymmetric(queue) {
            wait_ns = wait_ns.min(SEEKY_WAIT_NS);
        }
        self.waiting = true;
        self.waiting_since_ns = now_ns;
        self.idle_timer.set(cx, (now_ns + wait_ns) as u64);
    }

    #[inline]
    pub(super) fn stop_waiting(&mut self) {
        if self.waiting {
            self.waiting = false;
            self.idle_timer.cancel();
        }
    }

    pub(super) fn waited_long_enough(&mut self, cx: &mut Context, now_ns: i64) {
        let Some(q) = self.in_service else { return };
        if !std::mem::take(&mut self.waiting) {
            return;
        }
        if self.queue(q).timeout_ns <= now_ns {
            self.expire(cx, Reason::Timeout, true, now_ns);
        } else if self.queue(q).is_empty() {
            self.expire(cx, Reason::TooIdle, true, now_ns);
        }
    }

    /// Samples whether the device queues commands (`bfq_update_hw_tag`).
    #[inline]
    pub(super) fn watch_queueing(&mut self) {
        self.max_in_device = self.max_in_device.max(self.in_device);
        self.fast = !self.settings.rotational && self.queues_commands();
        if self.queueing == Some(true) || self.in_device + self.nr_queued <= QUEUEING_DEPTH {
            return;
        }
        if let Some(q) = self.in_service {
            // Idling for a queue may keep the device from filling.
            let queue = self.queue(q);
            if queue.short_think
                && queue.dispatched + queue.fifo.len() < QUEUEING_DEPTH
                && self.in_device < QUEUEING_DEPTH
            {
                return;
            }
        }
        self.queueing_samples += 1;
        if self.queueing_samples > QUEUEING_SAMPLES {
            self.queueing = Some(self.max_in_device > QUEUEING_DEPTH);
            self.max_in_device = 0;
            self.queueing_samples = 0;
        }
    }
}
