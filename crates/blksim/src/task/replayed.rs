//! Recorded I/Os: each has an index, by which its completion lets others go on.

use crate::block::flush_queue::FlushWaiter;
use crate::block::request::SECTOR_BYTES;
use crate::core::record::Direction;
use crate::machine::Machine;
use crate::task::direct_ios::{Io, NOT_REPLAYED};
use crate::task::job_process::IssueStage;
use crate::workload::generator::Transfer;

impl Machine {
    /// Issues an I/O of a process that replays: as any direct transfer, or a flush of the device's cache.
    #[inline(never)]
    pub(super) fn issue_replayed(&mut self, index: u32, transfer: Transfer, start_ns: u64) {
        let Some(cursor) = self.tasks.processes[index as usize].generator.replay() else { return };
        let replayed = cursor.submitted();
        let Transfer { direction, bytes, .. } = transfer;
        if direction == Direction::Sync {
            let io = Io { process: index, direction, bytes, parts: 0, start_ns, replayed };
            let io = self.tasks.ios.allocate(io);
            // Without a cache, the kernel completes the bio at once (`submit_bio_noacct`).
            if self.block.disks[0].volatile_cache {
                self.want_flush(0, FlushWaiter::Io(io));
            } else {
                self.direct_done(io);
            }
            return;
        }
        // As for other loads, a read in one piece has no plug.
        let sectors = bytes / SECTOR_BYTES as u32;
        let unplugged = direction == Direction::Read && sectors <= self.block.disks[0].max_sectors;
        self.issue_within_plug(index, transfer, unplugged, start_ns, replayed);
    }

    /// A write is complete once it is durable.
    pub(super) fn is_durable(&mut self, io: &Io) -> bool {
        let generator = &mut self.tasks.processes[io.process as usize].generator;
        io.replayed != NOT_REPLAYED
            && generator.replay().is_some_and(|cursor| cursor.io(io.replayed).durable)
    }

    /// A recorded I/O is complete: its task, or one that waits for it, may go on.
    pub(super) fn replayed_complete(&mut self, process: u32, replayed: u32) {
        let now_ns = self.block.events.now_ns();
        let Some(cursor) = self.tasks.processes[process as usize].generator.replay() else {
            return;
        };
        for place in cursor.completed(replayed, now_ns) {
            self.wake_for_signal(process, place);
        }
    }

    /// Wakes the process that waits for a signal, if it has begun.
    #[cold]
    fn wake_for_signal(&mut self, setter: u32, place: usize) {
        let Some(cursor) = self.tasks.processes[setter as usize].generator.replay() else { return };
        let waiter = self.tasks.waiters_of_signals[cursor.signal_set(place) as usize];
        if matches!(self.tasks.processes[waiter as usize].stage, IssueStage::Issuing) {
            self.wake_process(waiter);
        }
    }
}
