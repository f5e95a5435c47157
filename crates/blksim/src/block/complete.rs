//! What follows when the device is done with a command.

use crate::block::request::{NONE, Purpose, RequestId};
use crate::core::branch::{cold_path, likely, unlikely};
use crate::devices::device::{Device, Outbox};
use crate::elevator::scheduler::Family;
use crate::machine::Machine;

impl Machine {
    /// The device has completed a request.
    #[inline]
    pub(crate) fn complete(&mut self, id: RequestId) {
        let request = &self.requests[id];
        let (disk, purpose, is_write) =
            (request.disk as usize, request.purpose, request.is_write());
        let sectors = u64::from(request.nr_sectors);
        let (tag, merged) = (request.tag, request.chain);
        let queue = &mut self.disks[disk];
        if let Some(recorder) = &mut self.recorder {
            cold_path();
            let now_ns = self.events.now_ns();
            recorder.completed(&self.requests, id, now_ns, queue.device.head_sector());
        }
        queue.device.completed(id, &mut Outbox::new(&mut self.events, queue.view.disk));
        queue.in_flight -= 1;
        if unlikely(purpose == Purpose::Flush) {
            self.requests.release(id);
            self.flush_of_device_done(disk);
            return;
        }
        let counters = &mut queue.counters;
        let moved =
            if is_write { &mut counters.sectors_written } else { &mut counters.sectors_read };
        *moved += sectors;
        let family = queue.family;
        // Without a scheduler there is nobody to tell.
        let kicked = !queue.direct
            && queue.schedule(&mut self.requests, &mut self.events, |s, cx| s.complete(cx, id)).1;
        if unlikely(!queue.policies.is_empty()) {
            self.tell_policies(disk, |policy, cx| policy.completed(cx, id));
        }
        let legacy = family == Family::Legacy;
        if legacy {
            // The queue is run before any task learns of this completion, as
            // the interrupt does; what became free goes to a sleeper first.
            self.give_tag_back(disk, id);
            self.run_queue(disk);
        }
        self.part_done(id);
        if unlikely(merged != NONE) {
            self.merged_done(merged);
        }
        if legacy {
            return;
        }
        if kicked {
            self.run_queue_soon(disk);
        }
        let queue = &mut self.disks[disk];
        if let Some(tag) = tag.number() {
            queue.tags.give_back(tag, &mut self.woken);
        }
        let restart = std::mem::take(&mut queue.restart);
        self.wake_submissions();
        if restart {
            self.run_queue_soon(disk);
        }
    }

    #[cold]
    fn flush_of_device_done(&mut self, disk: usize) {
        self.flush_completed(disk);
        if self.disks[disk].family == Family::Legacy {
            self.run_queue(disk);
        }
    }

    /// What was merged into a request is done with it.
    #[inline(never)]
    fn merged_done(&mut self, mut part: RequestId) {
        while part != NONE {
            let next = self.requests[part].chain;
            self.part_done(part);
            part = next;
        }
    }

    /// One of the bios of a completed request.
    #[inline(always)]
    pub(crate) fn part_done(&mut self, id: RequestId) {
        let request = &self.requests[id];
        if unlikely(request.array_part != NONE) {
            self.array_part_done(id);
        } else if likely(request.purpose == Purpose::Direct) {
            self.direct_part_done(id);
        } else {
            self.pages_done(id);
        }
    }

    /// A bio of the page cache is done, or a flush.
    #[inline(never)]
    fn pages_done(&mut self, id: RequestId) {
        let request = &self.requests[id];
        let (purpose, first_sector, nr_sectors) =
            (request.purpose, request.first_sector, request.own_sectors);
        self.requests.release(id);
        match purpose {
            Purpose::PageRead => self.pages_read(first_sector, nr_sectors),
            Purpose::Writeback => self.pages_written(first_sector, nr_sectors),
            Purpose::Flush | Purpose::Direct => {}
        }
    }

    /// The device asked to be called now.
    pub(crate) fn wake_device(&mut self, subject: u32) {
        let (disk, number) = Outbox::split_wake(subject);
        let queue = &mut self.disks[disk as usize];
        queue.device.wake(number, &mut Outbox::new(&mut self.events, disk));
    }
}
