//! Cache flushes of the device, for fsync, fdatasync and synchronous writes.

use super::{FlushWaiter, Machine};
use crate::request::{Operation, Purpose, Request};

impl Machine {
    /// Asks for a flush that begins no earlier than now. Flushes go before the
    /// scheduler's requests; those wanted while one runs share the next.
    pub(super) fn want_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        if self.raid.is_some() {
            self.flush_array(waiter);
        } else {
            self.want_disk_flush(disk, waiter);
        }
    }

    pub(super) fn want_disk_flush(&mut self, disk: usize, waiter: FlushWaiter) {
        self.disks[disk].flushes.waiting.push(waiter);
        self.start_flush(disk);
        self.run_queue(disk);
    }

    fn start_flush(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        if queue.flushes.running || queue.flushes.waiting.is_empty() {
            return;
        }
        queue.flushes.running = true;
        std::mem::swap(&mut queue.flushes.served, &mut queue.flushes.waiting);
        let mut request = Request::new(Operation::Flush, 0, 0, Purpose::Flush);
        request.disk = queue.view.disk;
        request.submitted_ns = self.agenda.now_ns();
        let id = self.requests.allocate(request);
        queue.ahead.push_back(id);
        queue.counters.flushes += 1;
    }

    /// The device has emptied its cache.
    pub(super) fn flush_completed(&mut self, disk: usize) {
        let flushes = &mut self.disks[disk].flushes;
        flushes.running = false;
        let mut served = std::mem::take(&mut flushes.served);
        self.start_flush(disk);
        for waiter in served.drain(..) {
            let waiter = match waiter {
                FlushWaiter::Array(flush) => self.array_member_flushed(flush),
                other => Some(other),
            };
            match waiter {
                Some(FlushWaiter::Io(io)) => self.direct_done(io),
                Some(FlushWaiter::Call(task)) => self.call_is_durable(task),
                Some(FlushWaiter::Array(_)) | None => {}
            }
        }
        let flushes = &mut self.disks[disk].flushes;
        if flushes.served.capacity() == 0 {
            flushes.served = served;
        }
    }
}
