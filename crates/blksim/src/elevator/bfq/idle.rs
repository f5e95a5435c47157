//! Waiting: when the queue in service has nothing for the moment, is it better
//! to leave the device without work, or with less, than to serve another?
//!
//! Either because a sequential reader's next request pays for the wait, or
//! because a queue that is cut off as soon as it pauses would not get its
//! share.
//!
//! Kernel: `bfq_better_to_idle`, `bfq_asymmetric_scenario`,
//! `bfq_arm_slice_timer`, `bfq_update_hw_tag` in `block/bfq-iosched.c`,
//! Linux 6.1.

use super::Bfq;
use super::budget::Reason;
use super::hierarchy::QueueId;
use super::queue::{MS, Queue};
use crate::elevator::scheduler::Context;

/// A seeky queue is waited for so long, and a raised one at least so long.
const SEEKY_WAIT_NS: i64 = 2 * MS;
const RAISED_WAIT_NS: i64 = 20 * MS;

/// More commands than this in the device, and it queues; found in so many samples.
const QUEUEING_DEPTH: u32 = 3;
const QUEUEING_SAMPLES: u32 = 32;

impl Bfq {
    /// The device may reorder; assumed until it is known.
    fn queues_commands(&self) -> bool {
        self.queueing.unwrap_or(true)
    }

    /// Waiting costs no throughput, or gains some.
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

    /// Equal treatment of requests would not give everyone his share.
    #[inline]
    pub(super) fn is_asymmetric(&self, queue: &Queue) -> bool {
        let classes = self.busy.iter().filter(|count| **count > 0).count();
        classes > 1 || self.hierarchy.is_varied(queue.entity)
    }

    /// Without waiting the queue would not get what it is due.
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

    /// The queue in service has nothing left, in the device either: wait.
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

    /// Finds out whether the device queues commands.
    #[inline]
    pub(super) fn watch_queueing(&mut self) {
        self.max_in_device = self.max_in_device.max(self.in_device);
        self.fast = !self.settings.rotational && self.queues_commands();
        if self.queueing == Some(true) || self.in_device + self.nr_queued <= QUEUEING_DEPTH {
            return;
        }
        if let Some(q) = self.in_service {
            // A queue that is waited for may keep the device from being full.
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
