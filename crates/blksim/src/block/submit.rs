//! Submission: a bio's way from its task to the scheduler or device (`submit_bio` to
//! `blk_mq_submit_bio` of `block/blk-mq.c`, Linux 6.1): policies, merging, tag, plug, scheduler.

use crate::block::hw_queue::HwQueueId;
use crate::block::per_hctx::{Hctx, HctxNumber, OnlyHctx};
use crate::block::plug::PlugFlush;
use crate::block::request::{Operation, RequestId};
use crate::core::branch::unlikely;
use crate::elevator::scheduler::Family;
use crate::machine::Machine;
use crate::task::task_struct::Role;

use crate::block::request::TaskId;

impl Machine {
    /// Submits a bio for a task. Returns false if the task must sleep; bios that it submits
    /// afterwards queue up behind.
    #[inline(always)]
    pub(crate) fn submit(&mut self, task: TaskId, id: RequestId) -> bool {
        if unlikely(self.block.raid.is_some()) {
            self.block.requests[id].submitted_ns = self.block.events.now_ns();
            self.submit_to_array(task, id);
            !self.tasks[task].blocked
        } else {
            self.submit_to_disk(task, 0, id)
        }
    }

    /// Submits a bio for the request's disk. Returns false if the task must sleep.
    #[inline(always)]
    pub(crate) fn submit_to_disk(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        let request = &mut self.block.requests[id];
        request.submitted_ns = self.block.events.now_ns();
        request.cpu = self.block.cpu;
        let submitter = &mut self.tasks[task];
        if unlikely(submitter.blocked) {
            submitter.pending.push_back(&mut self.block.requests, id);
            return false;
        }
        self.block.events.compute(self.block.steps.submit_ns);
        let entered = if self.block.disks[disk].view.facts.has_one_hctx() {
            self.enter::<OnlyHctx>(task, disk, id, true)
        } else {
            self.enter_one_of_several(task, disk, id, true)
        };
        if unlikely(!entered) {
            self.sleep_in_submission(task, id);
        }
        entered
    }

    #[cold]
    pub(crate) fn sleep_in_submission(&mut self, task: TaskId, id: RequestId) {
        let sleeper = &mut self.tasks[task];
        sleeper.blocked = true;
        sleeper.pending.push_front(&mut self.block.requests, id);
        let role = sleeper.role;
        self.flush_plug(task, PlugFlush::ForSleep);
        if let Role::IoWorker(process) = role {
            self.io_worker_sleeps(process);
        }
    }

    /// Lets a task go on with its pending bios.
    pub(crate) fn resume(&mut self, task: TaskId) {
        self.tasks[task].blocked = false;
        let mut slept_for = self.tasks[task].waits_for_tag.take();
        if let Some(queue) = slept_for {
            // A task sleeps, and the batch that it may take then is its I/O context's.
            let head = self.tasks[task].pending.head().map(|id| self.block.requests[id].context);
            let own = head.filter(|context| self.tasks.task_of_context(*context) == task);
            slept_for = self.block.try_again(own.unwrap_or(task), queue);
        }
        while let Some(id) = self.tasks[task].pending.pop_front(&mut self.block.requests) {
            self.block.requests[id].cpu = self.block.cpu;
            let entered = if self.block.requests[id].operation == Operation::Flush {
                self.enter_flush(task, id)
            } else {
                let disk = self.block.requests[id].disk as usize;
                self.enter_again(task, disk, id)
            };
            if !entered {
                self.sleep_in_submission(task, id);
                return;
            }
            if let Some(queue) = slept_for.take() {
                self.block.disks[queue.disk()].hctxs[queue.hctx()].tags.tried();
            }
        }
        self.release_page(task);
        if let Some(why) = self.tasks[task].unplug_after.take() {
            self.end_plug(task, why);
        } else if !self.tasks[task].plugging {
            self.flush_plug(task, PlugFlush::AtEnd);
        }
        // As after any submission.
        if task < self.tasks.flusher && self.tasks[task].call.is_none() && !self.goes_on(task) {
            return;
        }
        self.unblocked(task);
    }

    #[cold]
    fn enter_again(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        if self.block.disks[disk].view.facts.has_one_hctx() {
            self.enter::<OnlyHctx>(task, disk, id, false)
        } else {
            self.enter_one_of_several(task, disk, id, false)
        }
    }

    #[cold]
    fn enter_one_of_several(
        &mut self,
        task: TaskId,
        disk: usize,
        id: RequestId,
        fresh: bool,
    ) -> bool {
        self.enter::<HctxNumber>(task, disk, id, fresh)
    }

    /// Takes a bio as far as possible. Returns false if its submitter must sleep. Without policies,
    /// a fresh bio is known to come for the first time.
    #[inline(always)]
    fn enter<H: Hctx>(&mut self, task: TaskId, disk: usize, id: RequestId, fresh: bool) -> bool {
        if unlikely(!self.block.disks[disk].policies.is_empty()) {
            if let Some(go_on) = self.block.ask_policies(self.tasks[task].plug, disk, id) {
                return go_on;
            }
        } else if (fresh || !self.block.requests[id].progress.merge_tried())
            && unlikely(self.block.try_merge(self.tasks[task].plug, disk, id))
        {
            return true;
        }
        let (queue, request) = (&mut self.block.disks[disk], &mut self.block.requests[id]);
        let hctx = H::of(request.cpu, queue.view.facts.nr_hctxs);
        if unlikely(!queue.take_tag(hctx, request, self.block.events.now_ns())) {
            if self.punt(task, disk, id) {
                return true;
            }
            self.want_tag(task, disk, id);
            return false;
        }
        if unlikely(self.tasks[task].plugging) && !self.block.disks[disk].bio_based {
            self.block.add_to_plug(&mut self.tasks[task].plug, disk, id);
        } else {
            self.block.enqueue(disk, hctx, id);
        }
        true
    }

    /// Puts a task to sleep until its request may have a tag.
    #[cold]
    pub(crate) fn want_tag(&mut self, task: TaskId, disk: usize, id: RequestId) {
        let hctx = self.block.disks[disk].hctx_of(&self.block.requests[id]);
        if self.block.disks[disk].family == Family::MultiQueue {
            self.block.run_queue(disk, hctx);
        }
        self.block.requests[id].progress.set_merge_tried();
        let queue = &mut self.block.disks[disk];
        queue.sleep_for_tag(task, &self.block.requests[id]);
        let hctx = queue.view.facts.tags_of(hctx);
        self.tasks[task].waits_for_tag = Some(HwQueueId::new(disk, hctx));
    }

    /// Submits the bios that policies released.
    pub(crate) fn pass_on_released(&mut self) {
        let plugs = self
            .block
            .disks
            .iter()
            .any(|disk| disk.policies.iter().any(|policy| policy.plugs_what_it_releases()));
        if plugs {
            self.plug(self.tasks.worker);
        }
        // In the order of release; bios released meanwhile go last.
        let mut next = 0;
        while let Some(&id) = self.block.released.get(next) {
            next += 1;
            self.block.requests[id].progress.pass();
            if let Some(task) = self.tasks.sleeper_of(id, self.block.requests[id].context) {
                self.resume(task);
            } else {
                let disk = self.block.requests[id].disk as usize;
                self.submit_to_disk(self.tasks.worker, disk, id);
            }
        }
        self.block.released.clear();
        if plugs {
            self.unplug(self.tasks.worker);
        }
    }

    /// Starts a task's plug.
    pub(crate) fn plug(&mut self, task: TaskId) {
        self.tasks[task].plugging = true;
    }

    /// Ends a task's plug and flushes it.
    pub(crate) fn unplug(&mut self, task: TaskId) {
        self.end_plug(task, PlugFlush::AtEnd);
    }

    /// Ends a task's plug for a reason.
    pub(crate) fn end_plug(&mut self, task: TaskId, why: PlugFlush) {
        let task_state = &mut self.tasks[task];
        if task_state.blocked {
            // Its plug stays open for the bios that it has yet to submit.
            task_state.unplug_after = Some(why);
            return;
        }
        task_state.plugging = false;
        self.flush_plug(task, why);
    }

    /// Hands a task's collected requests to the scheduler.
    pub(crate) fn flush_plug(&mut self, task: TaskId, why: PlugFlush) {
        let plug = std::mem::take(&mut self.tasks[task].plug);
        self.block.flush_plug(plug, why);
    }
}
