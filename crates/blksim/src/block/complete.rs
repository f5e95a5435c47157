//! Completion: from the end of a command to the task that waits for it (`blk_mq_end_request`).

use crate::block::per_hctx::{Hctx, HctxNumber, OnlyHctx};
use crate::block::request::{NONE, Operation, Purpose, RequestId};
use crate::block::request_stage::RequestStage;
use crate::core::branch::{cold_path, likely, unlikely};
use crate::core::event::Class;
use crate::devices::device::{Device, Outbox};
use crate::elevator::scheduler::Family;
use crate::machine::Machine;

impl Machine {
    /// A command of the device is over.
    pub(crate) fn tell_device(&mut self, id: RequestId) {
        let queue = &mut self.block.disks[self.block.requests[id].disk as usize];
        queue.device.completed(id, &mut Outbox::new(&mut self.block.events, queue.view.disk));
    }

    /// The kernel learns that the device has completed a request. Where processors take time, the device
    /// itself was told before ([`Self::tell_device`]).
    #[inline]
    pub(crate) fn complete(&mut self, id: RequestId) {
        let disk = usize::from(self.block.requests[id].disk);
        if self.block.disks[disk].view.facts.has_one_hctx() {
            self.complete_on::<OnlyHctx>(id);
        } else {
            self.complete_on_several(id);
        }
    }

    #[cold]
    fn complete_on_several(&mut self, id: RequestId) {
        self.complete_on::<HctxNumber>(id);
    }

    #[inline(always)]
    fn complete_on<H: Hctx>(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        let (disk, purpose, operation) =
            (request.disk as usize, request.purpose, request.operation);
        let sectors = u64::from(request.nr_sectors);
        let (tag, merged) = (request.tag, request.chain);
        let queue = &mut self.block.disks[disk];
        let hctx = H::of(request.cpu, queue.view.facts.nr_hctxs);
        if let Some(recorder) = &mut self.block.recorder {
            cold_path();
            let now_ns = self.block.events.now_ns();
            recorder.completed(&self.block.requests, id, now_ns, queue.device.head_sector());
        }
        if likely(self.processors.is_none()) {
            queue.device.completed(id, &mut Outbox::new(&mut self.block.events, queue.view.disk));
        }
        debug_assert!(
            queue.hctxs.of(hctx).in_flight > 0,
            "a device completes more commands than it got"
        );
        self.block.requests.step(id, &[RequestStage::InFlight], RequestStage::Completed);
        debug_assert!(
            self.block.requests[id].dispatched_ns < self.block.events.now_ns(),
            "a command took no time"
        );
        queue.hctxs.of_mut(hctx).in_flight -= 1;
        if unlikely(purpose == Purpose::CacheFlush) {
            self.block.requests.release(id);
            self.flush_of_device_done(disk);
            return;
        }
        let counters = &mut queue.counters;
        let moved = match operation {
            Operation::Read | Operation::Flush => &mut counters.sectors_read,
            Operation::Write => &mut counters.sectors_written,
            Operation::Discard => &mut counters.sectors_discarded,
        };
        *moved += sectors;
        let family = queue.family;
        // Only a scheduler needs to know.
        let kicked = !queue.direct && {
            queue.compute_hook(hctx.number(), &mut self.block.events, |costs| costs.complete_ns);
            let (requests, events) = (&mut self.block.requests, &mut self.block.events);
            queue.schedule(hctx.number(), requests, events, |s, cx| s.complete(cx, id)).1
        };
        self.block.events.compute(self.block.steps.end_ns);
        if unlikely(!queue.policies.is_empty()) {
            self.block.tell_policies(disk, |policy, cx| policy.completed(cx, id));
        }
        let legacy = family == Family::Legacy;
        if legacy {
            let block = &mut self.block;
            block.disks[disk].give_tag_back(&mut block.requests, id, &mut block.woken);
        }
        self.part_done(id);
        if unlikely(merged != NONE) {
            self.merged_done(merged);
        }
        if legacy {
            // The tasks whose bios are done are woken before the one that may have the request
            // (`blk_end_request_all`); the queue is run before any of them (`scsi_end_request`).
            self.block.wake_submissions();
            self.block.run_queue_of(disk, hctx);
            return;
        }
        if kicked {
            self.block.run_kicked(disk);
        }
        let queue = &mut self.block.disks[disk];
        if let Some(tag) = tag.number() {
            let tags_of = if H::SEVERAL { queue.view.facts.tags_of(hctx.number()) } else { 0 };
            queue.hctxs[tags_of].tags.give_back(tag, &mut self.block.woken);
        }
        let restart = std::mem::take(&mut queue.hctxs.of_mut(hctx).restart);
        let shares_tags = H::SEVERAL && queue.view.facts.shares_tags;
        self.block.wake_submissions();
        if restart {
            self.block.run_soon(disk, hctx);
        }
        if unlikely(shares_tags) {
            self.block.restart_sharing(disk);
        }
    }

    #[cold]
    fn flush_of_device_done(&mut self, disk: usize) {
        self.flush_completed(disk);
        if self.block.disks[disk].view.facts.shares_tags {
            self.block.restart_sharing(disk);
        }
        if self.block.disks[disk].usage.frozen {
            self.block.events.at(self.block.events.now_ns(), Class::PolicyTimer, disk as u32);
        }
        if self.block.disks[disk].family == Family::Legacy {
            self.block.run_queue(disk, 0);
        }
    }

    /// Completes the bios that were merged into a request.
    #[inline(never)]
    fn merged_done(&mut self, mut part: RequestId) {
        while part != NONE {
            let next = self.block.requests[part].chain;
            self.part_done(part);
            part = next;
        }
    }

    /// Completes one bio of a request.
    #[inline(always)]
    pub(crate) fn part_done(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        if unlikely(request.array_part != NONE) {
            self.array_part_done(id);
        } else if likely(request.purpose == Purpose::Direct) {
            self.direct_part_done(id);
        } else {
            self.pages_done(id);
        }
    }

    /// A bio of the page cache or a flush is done.
    #[inline(never)]
    fn pages_done(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        let (purpose, first_sector, nr_sectors) =
            (request.purpose, request.first_sector, request.own_sectors);
        self.block.requests.release(id);
        match purpose {
            Purpose::PageRead => self.pages_read(first_sector, nr_sectors),
            Purpose::Writeback => self.pages_written(first_sector, nr_sectors),
            Purpose::CacheFlush | Purpose::Direct => {}
        }
    }
}
