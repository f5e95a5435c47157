//! Cache flushes of the device, for fsync, fdatasync and synchronous writes.

use crate::block::flush_queue::FlushWaiter;
use crate::block::per_hctx::HctxNumber;
use crate::block::request::{RequestId, TaskId};
use crate::elevator::scheduler::Family;
use crate::machine::Machine;

impl Machine {
    /// Asks for a flush that begins no earlier than now. Flushes go before the scheduler's
    /// requests; those wanted while one runs share the next.
    pub(crate) fn want_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        if self.block.raid.is_some() {
            self.flush_array(waiter);
            return;
        }
        match waiter {
            FlushWaiter::Call(task) if self.block.disks[disk].family == Family::MultiQueue => {
                let id = self.block.requests.allocate(self.block.flush_request(disk, task));
                if !self.enter_flush(task, id) {
                    self.sleep_in_submission(task, id);
                }
            }
            _ => self.block.want_disk_flush(disk, waiter),
        }
    }

    /// Takes a tag for a flush, as for any request; the flush keeps it until it is durable
    /// (`blk_insert_flush` of `block/blk-flush.c`, Linux 6.1). Returns false if its task must sleep
    /// for one.
    pub(crate) fn enter_flush(&mut self, task: TaskId, id: RequestId) -> bool {
        let disk = usize::from(self.block.requests[id].disk);
        let queue = &mut self.block.disks[disk];
        let hctx = HctxNumber(queue.hctx_of(&self.block.requests[id]));
        let now_ns = self.block.events.now_ns();
        if !queue.take_tag(hctx, &mut self.block.requests[id], now_ns) {
            self.want_tag(task, disk, id);
            return false;
        }
        self.block.want_disk_flush(disk, FlushWaiter::Tagged(id));
        true
    }

    /// The device has emptied its cache.
    pub(crate) fn flush_completed(&mut self, disk: usize) {
        let flushes = &mut self.block.disks[disk].flushes;
        flushes.running = false;
        let mut served = std::mem::take(&mut flushes.served);
        if self.block.disks[disk].family == Family::Legacy {
            self.block.start_flush(disk);
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
                    self.call_is_durable(self.block.requests[id].context);
                    self.block.give_tag_back(disk, id);
                    self.block.requests.release(id);
                }
                Some(FlushWaiter::Array(_)) | None => {}
            }
        }
        let flushes = &mut self.block.disks[disk].flushes;
        if flushes.served.capacity() == 0 {
            flushes.served = served;
        }
        if self.block.disks[disk].family == Family::MultiQueue {
            // Requests that wait for the device go before the next flush.
            self.block.run_queue_soon(disk, self.block.local_hctx(disk));
            self.block.start_flush(disk);
        }
    }
}
