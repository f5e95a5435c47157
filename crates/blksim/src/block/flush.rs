//! Cache flushes (`block/blk-flush.c`, Linux 6.1): one runs at a time, and all callers that come
//! meanwhile share the next.

use super::flush_queue::FlushWaiter;
use super::layer::BlockLayer;
use super::request::{Operation, Purpose, Request, Tag, TaskId};
use crate::elevator::scheduler::Family;
use crate::task::ready::Ready;

impl BlockLayer {
    pub(crate) fn flush_request(&self, disk: usize, task: TaskId) -> Request {
        let mut request = Request::new(Operation::Flush, 0, 0, Purpose::CacheFlush);
        request.disk = self.disks[disk].view.disk;
        request.context = task;
        request.cpu = self.cpu;
        // Schedulers do not limit flushes (`__blk_mq_alloc_requests`).
        request.tag = Tag::one_of(None);
        request.submitted_ns = self.events.now_ns();
        request
    }

    pub(crate) fn want_disk_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        self.disks[disk].flushes.waiting.push(waiter);
        self.start_flush(disk);
    }

    /// Begins a flush for all waiters, unless one runs. On blk-mq a worker queues it, behind
    /// everything that is ready to run (`blk_kick_flush` of `block/blk-flush.c`, Linux 6.1).
    pub(crate) fn start_flush(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if queue.flushes.running || queue.flushes.waiting.is_empty() {
            return;
        }
        queue.flushes.running = true;
        std::mem::swap(&mut queue.flushes.served, &mut queue.flushes.waiting);
        match queue.family {
            Family::Legacy => self.queue_flush(disk),
            Family::MultiQueue => self.ready.make_ready(Ready::CacheFlush(disk as u32)),
        }
    }

    pub(crate) fn queue_flush(&mut self, disk: usize) {
        let id = self.requests.allocate(self.flush_request(disk, 0));
        let hctx = self.local_hctx(disk);
        let queue = &mut self.disks[disk];
        let ahead = &mut queue.hctxs[hctx].ahead;
        match queue.family {
            Family::Legacy => ahead.push_back(id),
            // Before a request that waits for the device to have room
            // (`blk_mq_sched_insert_request` of `block/blk-mq-sched.c`, Linux 6.1).
            Family::MultiQueue => ahead.push_front(id),
        }
        queue.counters.flushes += 1;
        self.run_queue(disk, hctx);
    }
}
