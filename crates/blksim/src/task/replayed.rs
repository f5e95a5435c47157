//! Recorded I/Os: each has an index, by which its completion lets others go on.

use crate::block::flush_queue::FlushWaiter;
use crate::block::request::{Operation, RequestId, SECTOR_BYTES};
use crate::core::branch::likely;
use crate::core::record::Direction;
use crate::machine::Machine;
use crate::task::direct_ios::{IN_ONE_PIECE, Io, NOT_REPLAYED};
use crate::task::job_process::IssueStage;
use crate::workload::generator::{Step, Transfer};

impl Machine {
    /// Issues the next I/O of a process that replays, and all that are in one plug with it. Returns the step that came
    /// instead, if one did.
    #[inline(never)]
    pub(super) fn fill_replayed(&mut self, index: u32) -> Option<Step> {
        let now_ns = self.block.events.now_ns();
        loop {
            let process = &mut self.tasks.processes[index as usize];
            let transfer = match process.generator.replay_step(now_ns) {
                Step::Transfer(transfer) => transfer,
                step => {
                    if matches!(step, Step::Finished) {
                        self.issue_plugged(index);
                    }
                    return Some(step);
                }
            };
            process.in_flight += 1;
            let has_room = process.in_flight < process.depth;
            let gathers = has_room
                && process.generator.replay().is_some_and(|cursor| cursor.next_is_plugged());
            if likely(!gathers && process.plugged.is_empty()) {
                self.compute_issue(index, 1);
                self.issue_replayed(index, transfer, now_ns, false);
                return None;
            }
            process.plugged.push((transfer, now_ns));
            if !gathers {
                self.issue_plugged(index);
                return None;
            }
        }
    }

    /// Issues the recorded I/Os of a plug that have been queued.
    #[cold]
    fn issue_plugged(&mut self, index: u32) {
        let mut plugged = std::mem::take(&mut self.tasks.processes[index as usize].plugged);
        if plugged.is_empty() {
            return;
        }
        self.compute_issue(index, plugged.len() as u32);
        self.plug(index);
        for (transfer, start_ns) in plugged.drain(..) {
            self.issue_replayed(index, transfer, start_ns, true);
        }
        self.unplug(index);
        self.tasks.processes[index as usize].plugged = plugged;
    }

    /// Issues an I/O of a process that replays: as any direct transfer, or a flush of the device's cache.
    fn issue_replayed(&mut self, index: u32, transfer: Transfer, start_ns: u64, plugged: bool) {
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
        // As for other loads, a read in one piece usually has no plug.
        let sectors = bytes / SECTOR_BYTES as u32;
        if direction == Direction::Read && sectors <= self.block.unplugged_sectors {
            let mut bio = self.direct_bio(index, Operation::Read, transfer, start_ns);
            bio.owner = IN_ONE_PIECE | replayed;
            bio.context = self.context_of_replayed(index, replayed);
            let id = self.block.requests.allocate(bio);
            self.submit(index, id);
        } else {
            self.issue_within_plug(index, transfer, plugged, start_ns, replayed);
        }
    }

    /// The I/O context of a recorded I/O.
    #[inline]
    pub(super) fn context_of_replayed(&mut self, process: u32, replayed: u32) -> u32 {
        let generator = &mut self.tasks.processes[process as usize].generator;
        let number = generator.replay().map_or(0, |cursor| cursor.io(replayed).context);
        self.tasks.context_of(process, number)
    }

    /// A recorded write is complete only once it is durable.
    pub(super) fn is_durable(&mut self, process: u32, replayed: u32) -> bool {
        let generator = &mut self.tasks.processes[process as usize].generator;
        replayed != NOT_REPLAYED
            && generator.replay().is_some_and(|cursor| cursor.io(replayed).durable)
    }

    /// A recorded I/O is complete: its task, or one that waits for it, may continue.
    #[inline]
    pub(super) fn replayed_complete(&mut self, process: u32, replayed: u32) {
        let now_ns = self.block.events.now_ns();
        let Some(cursor) = self.tasks.processes[process as usize].generator.replay() else {
            return;
        };
        for place in cursor.completed(replayed, now_ns) {
            self.wake_for_signal(process, place);
        }
    }

    /// A recorded I/O in one piece is done.
    pub(super) fn replayed_piece_done(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        let (process, start_ns) = (self.tasks.task_of_context(request.context), request.issued_ns);
        let replayed = request.owner & !IN_ONE_PIECE;
        let bytes = request.own_sectors * SECTOR_BYTES as u32;
        let direction = if request.is_write() { Direction::Write } else { Direction::Read };
        self.block.requests.release(id);
        self.replayed_complete(process, replayed);
        self.direct_complete(process, (direction, bytes, start_ns));
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
