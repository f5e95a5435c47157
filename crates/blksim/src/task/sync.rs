//! Cache flushes of the device, for fsync, fdatasync and synchronous writes.

use crate::block::request::{Operation, Purpose, Request, RequestId, Tag};
use crate::elevator::scheduler::Family;
use crate::machine::{FlushWaiter, Machine};
use crate::task::ready::Ready;
use crate::task::task_struct::TaskId;

impl Machine {
    /// Asks for a flush that begins no earlier than now. Flushes go before the
    /// scheduler's requests; those wanted while one runs share the next.
    pub(crate) fn want_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        if self.raid.is_some() {
            self.flush_array(waiter);
            return;
        }
        match waiter {
            FlushWaiter::Call(task) if self.disks[disk].family == Family::MultiQueue => {
                let id = self.requests.allocate(self.flush_request(disk, task));
                if !self.enter_flush(task, id) {
                    self.sleep_in_submission(task, id);
                }
            }
            _ => self.want_disk_flush(disk, waiter),
        }
    }

    fn flush_request(&self, disk: usize, task: TaskId) -> Request {
        let mut request = Request::new(Operation::Flush, 0, 0, Purpose::Flush);
        request.disk = self.disks[disk].view.disk;
        request.context = task;
        // Schedulers limit no flushes (`__blk_mq_alloc_requests`).
        request.tag = Tag::one_of(None);
        request.submitted_ns = self.events.now_ns();
        request
    }

    /// Takes a tag for a flush, as for any request, which it keeps until it is durable
    /// (`blk_insert_flush` of `block/blk-flush.c`, Linux 6.1). False if its task must sleep for one.
    pub(crate) fn enter_flush(&mut self, task: TaskId, id: RequestId) -> bool {
        let disk = usize::from(self.requests[id].disk);
        if !self.disks[disk].take_tag(&mut self.requests[id]) {
            self.want_tag(task, disk, id);
            return false;
        }
        self.want_disk_flush(disk, FlushWaiter::Tagged(id));
        true
    }

    pub(crate) fn want_disk_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        self.disks[disk].flushes.waiting.push(waiter);
        self.start_flush(disk);
    }

    /// Begins a flush for all that wait, unless one runs. On blk-mq a worker queues it, behind whatever
    /// is to run before (`blk_kick_flush` of `block/blk-flush.c`, Linux 6.1).
    fn start_flush(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if queue.flushes.running || queue.flushes.waiting.is_empty() {
            return;
        }
        queue.flushes.running = true;
        std::mem::swap(&mut queue.flushes.served, &mut queue.flushes.waiting);
        match queue.family {
            Family::Legacy => self.queue_flush(disk),
            Family::MultiQueue => self.make_ready(Ready::Flush(disk as u32)),
        }
    }

    pub(crate) fn queue_flush(&mut self, disk: usize) {
        let id = self.requests.allocate(self.flush_request(disk, 0));
        let queue = &mut self.disks[disk];
        match queue.family {
            Family::Legacy => queue.ahead.push_back(id),
            // Before a request that waits for the device to have room
            // (`blk_mq_sched_insert_request` of `block/blk-mq-sched.c`, Linux 6.1).
            Family::MultiQueue => queue.ahead.push_front(id),
        }
        queue.counters.flushes += 1;
        self.run_queue(disk);
    }

    /// The device has emptied its cache.
    pub(crate) fn flush_completed(&mut self, disk: usize) {
        let flushes = &mut self.disks[disk].flushes;
        flushes.running = false;
        let mut served = std::mem::take(&mut flushes.served);
        if self.disks[disk].family == Family::Legacy {
            self.start_flush(disk);
        }
        for waiter in served.drain(..) {
            let waiter = match waiter {
                FlushWaiter::Array(flush) => self.array_member_flushed(flush),
                other => Some(other),
            };
            match waiter {
                Some(FlushWaiter::Io(io)) => self.direct_done(io),
                Some(FlushWaiter::Call(task)) => self.call_is_durable(task),
                Some(FlushWaiter::Tagged(id)) => {
                    self.call_is_durable(self.requests[id].context);
                    self.give_tag_back(disk, id);
                    self.requests.release(id);
                }
                Some(FlushWaiter::Array(_)) | None => {}
            }
        }
        let flushes = &mut self.disks[disk].flushes;
        if flushes.served.capacity() == 0 {
            flushes.served = served;
        }
        if self.disks[disk].family == Family::MultiQueue {
            // What waits for the device goes before the next flush.
            self.run_queue_soon(disk);
            self.start_flush(disk);
        }
    }
}
