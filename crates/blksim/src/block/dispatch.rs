//! Dispatch: when a queue runs, and which requests it hands to the device.
//!
//! Kernel: `block/blk-mq-sched.c` (`blk_mq_sched_dispatch_requests`) and `block/blk-mq.c`, Linux
//! 6.1. With a scheduler, inserting a single request leaves running the queue to the queue's worker
//! (kblockd); so does a completion if requests were left waiting. Flushing a plug runs the queue at
//! once. With the device full, one more request is taken from the scheduler and goes before all
//! others. A scheduler that holds its requests back is asked again after 3 ms.

use super::hw_queue::HwQueueId;
use super::layer::BlockLayer;
use super::per_hctx::{Hctx, HctxNumber, OnlyHctx};
use crate::block::request::{PAGE_BYTES, RequestId, SECTOR_BYTES};
use crate::core::branch::{cold_path, unlikely};
use crate::core::event::Class;
use crate::core::jiffies::{duration_jiffies, timer_ns};
use crate::devices::device::Device;
use crate::elevator::scheduler::Family;
use crate::task::ready::Ready;

/// Delay before a scheduler that held its requests back is asked again (`BLK_MQ_BUDGET_DELAY`).
const ASK_AGAIN_NS: u64 = 3_000_000;

impl BlockLayer {
    /// The hardware queue of the processor that computes.
    #[inline]
    pub(crate) fn local_hctx(&self, disk: usize) -> usize {
        self.disks[disk].view.facts.hctx_of(self.cpu)
    }

    /// Gives the device as many requests as it can take through a hardware queue.
    #[inline]
    pub(crate) fn run_queue(&mut self, disk: usize, hctx: usize) {
        if self.disks[disk].view.facts.has_one_hctx() {
            self.run_queue_of(disk, OnlyHctx);
        } else {
            self.run_queue_of(disk, HctxNumber(hctx));
        }
    }

    #[inline]
    pub(crate) fn run_queue_of(&mut self, disk: usize, hctx: impl Hctx) {
        if self.disks[disk].has_waiting(hctx) {
            self.issue_waiting(disk, hctx);
        }
    }

    /// Lets a hardware queue's worker run it.
    #[inline]
    pub(crate) fn run_queue_soon(&mut self, disk: usize, hctx: usize) {
        if self.disks[disk].view.facts.has_one_hctx() {
            self.run_soon(disk, OnlyHctx);
        } else {
            self.run_soon(disk, HctxNumber(hctx));
        }
    }

    #[inline]
    pub(crate) fn run_soon(&mut self, disk: usize, hctx: impl Hctx) {
        let queue = &mut self.disks[disk];
        if !queue.has_waiting(hctx) {
            return;
        }
        let hw_queue = queue.hctxs.of_mut(hctx);
        hw_queue.run_at_ns = None;
        if !std::mem::replace(&mut hw_queue.run_pending, true) {
            self.ready.make_ready(Ready::Queue(HwQueueId::new(disk, hctx.number()).0));
        }
    }

    /// Lets the workers of those hardware queues run that share tags and wait for one, after a request
    /// has given one back (`blk_mq_mark_tag_wait`).
    #[cold]
    pub(crate) fn restart_sharing(&mut self, disk: usize) {
        for hctx in 0..self.disks[disk].hctxs.count() {
            if std::mem::take(&mut self.disks[disk].hctxs[hctx].restart) {
                self.run_queue_soon(disk, hctx);
            }
        }
    }

    /// Lets the workers of the hardware queues run for which the scheduler asked, or that of this
    /// processor's if it did not say which (`blk_mq_run_hw_queues` and `blk_mq_get_sq_hctx`).
    pub(crate) fn run_kicked(&mut self, disk: usize) {
        let view = &mut self.disks[disk].view;
        if view.kicked_hctxs.is_empty() {
            self.run_queue_soon(disk, self.local_hctx(disk));
            return;
        }
        let mut kicked = std::mem::take(&mut view.kicked_hctxs);
        for hctx in kicked.drain(..) {
            self.run_queue_soon(disk, hctx);
        }
        self.disks[disk].view.kicked_hctxs = kicked;
    }

    /// A delayed run of a hardware queue is due.
    pub(crate) fn run_delayed(&mut self, id: HwQueueId) {
        let hw_queue = &mut self.disks[id.disk()].hctxs[id.hctx()];
        if hw_queue.run_at_ns.is_some_and(|due_ns| due_ns <= self.events.now_ns()) {
            // Even if nothing waits any more: otherwise no later run could be scheduled.
            hw_queue.run_at_ns = None;
            self.run_queue_soon(id.disk(), id.hctx());
        }
    }

    /// Issues the requests that go ahead, then the scheduler's, while the device has room. One more
    /// is taken from the scheduler (`blk_mq_dispatch_rq_list`; on the legacy path `scsi_request_fn` of
    /// `drivers/scsi/scsi_lib.c`, Linux 4.19).
    #[inline(never)]
    pub(crate) fn issue_waiting<H: Hctx>(&mut self, disk: usize, hctx: H) {
        let hw_queue = self.disks[disk].hctxs.of_mut(hctx);
        if unlikely(!hw_queue.ahead.is_empty()) {
            hw_queue.restart = true;
        }
        while self.disks[disk].has_waiting(hctx) {
            let queue = &mut self.disks[disk];
            let legacy = queue.family == Family::Legacy;
            let full = queue.is_full(hctx);
            let hw_queue = queue.hctxs.of_mut(hctx);
            if unlikely(full) && !hw_queue.ahead.is_empty() {
                hw_queue.restart = true;
                return;
            }
            let (id, own) = if let Some(id) = hw_queue.ahead.pop_front() {
                cold_path();
                (id, hctx)
            } else {
                let next = queue.next_of_scheduler(hctx, &mut self.requests, &mut self.events);
                let Some(id) = next else {
                    if !legacy {
                        self.ask_again(disk, hctx.number());
                    }
                    return;
                };
                // The scheduler may hand out a request of another hardware queue.
                let own = H::of(self.requests[id].cpu, queue.view.facts.nr_hctxs);
                if unlikely(if H::SEVERAL { queue.is_full(own) } else { full }) {
                    let hw_queue = queue.hctxs.of_mut(own);
                    hw_queue.ahead.push_back(id);
                    hw_queue.restart = true;
                    return;
                }
                (id, own)
            };
            self.issue(disk, own, id);
        }
    }

    /// Hands a request to the device, ahead of those that wait for the queue's worker.
    #[inline(always)]
    pub(crate) fn issue_directly(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        let queue = &self.disks[disk];
        if unlikely(queue.is_full(hctx)) {
            self.insert_and_run(disk, hctx, id);
        } else {
            self.requests[id].inserted_ns = self.events.now_ns();
            self.issue(disk, hctx, id);
        }
    }

    /// Puts a request into the scheduler, then runs the queue.
    #[inline(never)]
    pub(crate) fn insert_and_run(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        self.disks[disk].insert(hctx, &mut self.requests, &mut self.events, id);
        self.run_queue_of(disk, hctx);
    }

    /// Hands a request to the device.
    #[inline(always)]
    pub(crate) fn issue(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        if let Some(recorder) = &mut self.recorder {
            cold_path();
            let queue = &self.disks[disk];
            let head_sector = queue.device.head_sector();
            recorder.dispatched(id, head_sector, queue.nr_held, queue.in_flight() + 1);
        }
        let queue = &mut self.disks[disk];
        if unlikely(queue.costs.is_some()) {
            self.issue_computing(disk, hctx, id);
        } else {
            queue.give_to_device(hctx, &mut self.requests[id], id, &mut self.events);
        }
        let queue = &self.disks[disk];
        if unlikely(!queue.policies.is_empty()) {
            self.tell_policies(disk, |policy, cx| policy.issued(cx, id));
        }
    }

    /// The same where it takes time: the driver works under the lock of the hardware queue.
    #[inline(never)]
    fn issue_computing(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        let queue = &mut self.disks[disk];
        // A driver without a queue needs no lock.
        let issue_ns = if queue.bio_based { 0 } else { self.steps.issue_ns };
        if self.map_page_ns > 0 && !queue.bio_based {
            let bytes = u64::from(self.requests[id].nr_sectors) * SECTOR_BYTES;
            self.events.compute(bytes.saturating_sub(1) / PAGE_BYTES * self.map_page_ns);
        }
        if let Some(handover_ns) = queue.lock_handover_ns {
            let lock = &mut queue.hctxs.of_mut(hctx).driver_lock;
            self.events.compute_locked(lock, issue_ns, handover_ns);
        } else {
            self.events.compute(issue_ns);
        }
        if queue.device.is_served_by_thread() {
            self.give_to_thread(disk, hctx, id);
        } else if queue.bio_based {
            self.copy(disk, hctx, id);
        } else {
            queue.give_to_device(hctx, &mut self.requests[id], id, &mut self.events);
        }
    }

    /// The submitting task copies a bio itself. It is complete at once, as soon as nothing else is in
    /// the midst of it.
    fn copy(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        let queue = &mut self.disks[disk];
        queue.note_issued(hctx, &mut self.requests[id], &self.events);
        let bytes = u64::from(self.requests[id].nr_sectors) * SECTOR_BYTES;
        // Every command takes time.
        let work_ns = (bytes.div_ceil(PAGE_BYTES) * self.steps.copy_page_ns).max(1);
        self.events.compute(work_ns);
        queue.device.worked(work_ns);
        self.copied.push(id);
    }

    /// Hands a request to the thread that serves the device.
    #[inline(never)]
    fn give_to_thread(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        let queue = &mut self.disks[disk];
        queue.note_issued(hctx, &mut self.requests[id], &self.events);
        queue.thread.waiting.push_back(id);
        if !std::mem::replace(&mut queue.thread.woken, true) {
            self.ready.make_ready(Ready::Device(disk as u32));
        }
    }

    /// The scheduler has requests but gave none: runs the queue again later, unless a run is
    /// pending.
    pub(crate) fn ask_again(&mut self, disk: usize, hctx: usize) {
        let queue = &mut self.disks[disk];
        let jiffy_ns = queue.view.facts.jiffy_ns;
        let hw_queue = &mut queue.hctxs[hctx];
        if hw_queue.run_pending || hw_queue.run_at_ns.is_some() {
            return;
        }
        let delay = duration_jiffies(ASK_AGAIN_NS, jiffy_ns);
        let due_ns = timer_ns(self.events.now_ns(), delay, jiffy_ns);
        hw_queue.run_at_ns = Some(due_ns);
        self.events.at(due_ns, Class::QueueRun, HwQueueId::new(disk, hctx).0);
    }

    /// A task that slept for a tag tries again in its I/O context, after its hardware queue has run, as before every
    /// attempt but the first. Returns the queue if it is still that for whose tag the task slept; one
    /// that has moved passes its waking on (`blk_mq_get_tag` of `block/blk-mq-tag.c`, Linux 6.1).
    pub(crate) fn try_again(&mut self, context: u32, slept_for: HwQueueId) -> Option<HwQueueId> {
        let disk = slept_for.disk();
        let hctx = self.local_hctx(disk);
        let queue = &mut self.disks[disk];
        let mut stays = true;
        if queue.family == Family::Legacy {
            queue.lists.awake(context, queue.view.facts, self.events.now_ns());
        } else {
            stays = queue.view.facts.tags_of(hctx) == slept_for.hctx();
            let tags = &mut queue.hctxs[slept_for.hctx()].tags;
            if stays {
                tags.try_again();
            } else {
                tags.awake();
                tags.pass_on(&mut self.woken);
                self.wake_submissions();
            }
            self.run_queue(disk, hctx);
        }
        stays.then_some(slept_for)
    }

    /// Runs a hardware queue as its worker.
    #[inline]
    pub(crate) fn run_worker(&mut self, id: HwQueueId) {
        self.disks[id.disk()].hctxs[id.hctx()].run_pending = false;
        self.run_queue(id.disk(), id.hctx());
    }
}
