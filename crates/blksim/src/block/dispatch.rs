//! Dispatch: when a queue runs, and which requests it hands to the device.
//!
//! Kernel: `block/blk-mq-sched.c` (`blk_mq_sched_dispatch_requests`) and `block/blk-mq.c`, Linux
//! 6.1. With a scheduler, inserting a single request leaves running the queue to the queue's worker
//! (kblockd); so does a completion if requests were left waiting. Flushing a plug runs the queue at
//! once. With the device full, one more request is taken from the scheduler and goes before all
//! others. A scheduler that holds its requests back is asked again after 3 ms.

use super::layer::BlockLayer;
use crate::block::request::RequestId;
use crate::core::branch::{cold_path, unlikely};
use crate::core::event::Class;
use crate::core::jiffies::{duration_jiffies, timer_ns};
use crate::devices::device::Device;
use crate::elevator::scheduler::Family;
use crate::task::ready::Ready;

/// Delay before a scheduler that held its requests back is asked again (`BLK_MQ_BUDGET_DELAY`).
const ASK_AGAIN_NS: u64 = 3_000_000;

impl BlockLayer {
    /// Gives the device as many requests as it can take.
    #[inline]
    pub(crate) fn run_queue(&mut self, disk: usize) {
        if self.disks[disk].has_waiting() {
            self.issue_waiting(disk);
        }
    }

    /// Lets the queue's worker run it.
    #[inline]
    pub(crate) fn run_queue_soon(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if !queue.has_waiting() {
            return;
        }
        queue.run_at_ns = None;
        if !std::mem::replace(&mut queue.run_pending, true) {
            self.ready.make_ready(Ready::Queue(disk as u32));
        }
    }

    /// A delayed run of the queue is due.
    pub(crate) fn run_delayed(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if queue.run_at_ns.is_some_and(|due_ns| due_ns <= self.events.now_ns()) {
            // Even if nothing waits any more: otherwise no later run could be scheduled.
            queue.run_at_ns = None;
            self.run_queue_soon(disk);
        }
    }

    /// Issues the requests that go ahead, then the scheduler's, while the device has room. On
    /// blk-mq one more is taken from the scheduler.
    #[inline(never)]
    pub(crate) fn issue_waiting(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if unlikely(!queue.ahead.is_empty()) {
            queue.restart = true;
        }
        while self.disks[disk].has_waiting() {
            let queue = &mut self.disks[disk];
            let legacy = queue.family == Family::Legacy;
            let full = queue.in_flight >= queue.view.facts.device_depth;
            if unlikely(full) && (legacy || !queue.ahead.is_empty()) {
                queue.restart = true;
                return;
            }
            let id = if let Some(id) = queue.ahead.pop_front() {
                cold_path();
                id
            } else {
                let next = queue.next_of_scheduler(&mut self.requests, &mut self.events);
                let Some(id) = next else {
                    if !legacy {
                        self.ask_again(disk);
                    }
                    return;
                };
                if unlikely(full) {
                    queue.ahead.push_back(id);
                    queue.restart = true;
                    return;
                }
                id
            };
            self.issue(disk, id);
        }
    }

    /// Hands a request to the device, ahead of those that wait for the queue's worker.
    #[inline(always)]
    pub(crate) fn issue_directly(&mut self, disk: usize, id: RequestId) {
        let queue = &self.disks[disk];
        if unlikely(queue.in_flight >= queue.view.facts.device_depth) {
            self.insert_and_run(disk, id);
        } else {
            self.requests[id].inserted_ns = self.events.now_ns();
            self.issue(disk, id);
        }
    }

    /// Puts a request into the scheduler, then runs the queue.
    #[inline(never)]
    pub(crate) fn insert_and_run(&mut self, disk: usize, id: RequestId) {
        self.disks[disk].insert(&mut self.requests, &mut self.events, id);
        self.run_queue(disk);
    }

    /// Hands a request to the device.
    #[inline(always)]
    pub(crate) fn issue(&mut self, disk: usize, id: RequestId) {
        if let Some(recorder) = &mut self.recorder {
            cold_path();
            let queue = &self.disks[disk];
            let head_sector = queue.device.head_sector();
            recorder.dispatched(id, head_sector, queue.nr_held, queue.in_flight + 1);
        }
        self.events.compute(self.steps.issue_ns);
        let queue = &mut self.disks[disk];
        if unlikely(queue.costs.is_some()) && queue.device.is_served_by_thread() {
            self.give_to_thread(disk, id);
        } else {
            queue.give_to_device(&mut self.requests[id], id, &mut self.events);
        }
        let queue = &self.disks[disk];
        if unlikely(!queue.policies.is_empty()) {
            self.tell_policies(disk, |policy, cx| policy.issued(cx, id));
        }
    }

    /// Hands a request to the thread that serves the device.
    #[inline(never)]
    fn give_to_thread(&mut self, disk: usize, id: RequestId) {
        let queue = &mut self.disks[disk];
        queue.note_issued(&mut self.requests[id], &self.events);
        queue.thread.waiting.push_back(id);
        if !std::mem::replace(&mut queue.thread.woken, true) {
            self.ready.make_ready(Ready::Device(disk as u32));
        }
    }

    /// The scheduler has requests but gave none: runs the queue again later, unless a run is
    /// pending.
    pub(crate) fn ask_again(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if queue.run_pending || queue.run_at_ns.is_some() {
            return;
        }
        let jiffy_ns = queue.view.facts.jiffy_ns;
        let delay = duration_jiffies(ASK_AGAIN_NS, jiffy_ns);
        let due_ns = timer_ns(self.events.now_ns(), delay, jiffy_ns);
        queue.run_at_ns = Some(due_ns);
        self.events.at(due_ns, Class::QueueRun, disk as u32);
    }

    /// Runs a disk's queue as its worker.
    #[inline]
    pub(crate) fn run_worker(&mut self, disk: usize) {
        self.disks[disk].run_pending = false;
        self.run_queue(disk);
    }
}
