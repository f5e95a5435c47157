//! Direct I/O and trims: transfers become bios, and their completions complete the transfer.

use crate::block::flush_queue::FlushWaiter;
use crate::block::plug::PlugFlush;
use crate::block::request::{
    Flags, Hint, MAX_DISCARD_SECTORS, NONE, Operation, Priority, Purpose, Request, RequestId,
    SECTOR_BYTES,
};
use crate::core::branch::unlikely;
use crate::core::record::Direction;
use crate::machine::Machine;
use crate::task::direct_ios::{IN_ONE_PIECE, Io, NOT_REPLAYED};
use crate::workload::generator::Transfer;
use crate::workload::own_priority::OwnPriority;

impl Machine {
    /// Issues a direct transfer of a process, whose latency counts from `start_ns`. Returns false
    /// if the process sleeps.
    #[inline(always)]
    pub(crate) fn issue_direct(
        &mut self,
        index: u32,
        transfer: Transfer,
        plugged: bool,
        start_ns: u64,
    ) -> bool {
        let nr_sectors = transfer.bytes / SECTOR_BYTES as u32;
        if unlikely(
            transfer.direction != Direction::Read || nr_sectors > self.block.unplugged_sectors,
        ) {
            self.issue_within_plug(index, transfer, plugged, start_ns, NOT_REPLAYED);
            return !self.tasks.sleeps(index);
        }
        let bio = self.direct_bio(index, Operation::Read, transfer, start_ns);
        let id = self.block.requests.allocate(bio);
        self.submit(index, id)
    }

    /// A bio of a process's direct transfer.
    #[inline(always)]
    pub(super) fn direct_bio(
        &self,
        index: u32,
        operation: Operation,
        transfer: Transfer,
        start_ns: u64,
    ) -> Request {
        let process = &self.tasks.processes[index as usize];
        let sector = transfer.offset / SECTOR_BYTES;
        let nr_sectors = transfer.bytes / SECTOR_BYTES as u32;
        let mut bio = Request::new(operation, sector, nr_sectors, Purpose::Direct);
        bio.priority = match transfer.priority {
            None => process.priority,
            Some(OwnPriority { class, level }) => Priority::resolve(Some(class), Some(level), None),
        };
        let hint = if operation == Operation::Write { Hint::Idle } else { Hint::Plain };
        bio.flags = Flags { sync: true, hint };
        bio.context = index;
        bio.group = process.group;
        bio.issued_ns = start_ns;
        bio
    }

    /// Issues a direct transfer that needs a plug of its own: a write, a trim, or one of several
    /// bios.
    #[inline(never)]
    pub(super) fn issue_within_plug(
        &mut self,
        index: u32,
        transfer: Transfer,
        plugged: bool,
        start_ns: u64,
        replayed: u32,
    ) {
        let Transfer { direction, offset, bytes, .. } = transfer;
        let operation = match direction {
            Direction::Write => Operation::Write,
            Direction::Trim => Operation::Discard,
            Direction::Read | Direction::Sync => Operation::Read,
        };
        let is_write = operation.is_write();
        if is_write && !self.mm.cache.is_empty() {
            self.mm.cache.invalidate(offset, u64::from(bytes));
        }
        let mut bio = self.direct_bio(index, operation, transfer, start_ns);
        if replayed != NOT_REPLAYED {
            bio.context = self.context_of_replayed(index, replayed);
        }
        let mut left = bio.nr_sectors;
        let max_sectors = match operation {
            Operation::Discard => MAX_DISCARD_SECTORS,
            _ => self.block.disks[0].max_sectors,
        };
        // In 6.1 a write to a block device has its own plug, and waiting for one unplugs it. Several bios always
        // have one (`__blkdev_direct_IO` of `block/fops.c`).
        let own_plug = !plugged && self.block.plugs(operation, left);
        if own_plug {
            self.plug(index);
        }
        if left > max_sectors || (is_write && self.is_durable(index, replayed)) {
            let parts = left.div_ceil(max_sectors);
            let io = Io { process: index, direction, bytes, parts, start_ns, replayed };
            bio.owner = self.tasks.ios.allocate(io);
        } else if replayed != NOT_REPLAYED {
            bio.owner = IN_ONE_PIECE | replayed;
        }
        while left > 0 {
            bio.nr_sectors = left.min(max_sectors);
            let id = self.block.requests.allocate(bio.clone());
            self.submit(index, id);
            bio.sector += u64::from(bio.nr_sectors);
            left -= bio.nr_sectors;
        }
        if own_plug {
            let asynchronous = self.tasks.processes[index as usize].asynchronous;
            let waited_for = match operation {
                // It waits within its plug (`blkdev_issue_discard`).
                Operation::Discard => true,
                Operation::Write => !asynchronous && !self.block.writes_as_reads,
                _ => false,
            };
            self.end_plug(index, if waited_for { PlugFlush::ForSleep } else { PlugFlush::AtEnd });
        }
    }

    /// A bio of a direct transfer is done; usually it is a read in one piece.
    #[inline(always)]
    pub(crate) fn direct_part_done(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        if unlikely(request.owner != NONE || request.is_write()) {
            self.direct_part_of_several_or_write_done(id);
            return;
        }
        let (process, start_ns) = (request.context, request.issued_ns);
        let bytes = request.own_sectors * SECTOR_BYTES as u32;
        self.block.requests.release(id);
        self.direct_complete(process, (Direction::Read, bytes, start_ns));
    }

    #[inline(never)]
    fn direct_part_of_several_or_write_done(&mut self, id: RequestId) {
        let request = &self.block.requests[id];
        let operation = request.operation;
        let owner = request.owner;
        if owner != NONE && owner & IN_ONE_PIECE != 0 {
            self.replayed_piece_done(id);
            return;
        }
        let io = if owner == NONE {
            Io {
                process: request.context,
                direction: match operation {
                    Operation::Discard => Direction::Trim,
                    _ => Direction::Write,
                },
                bytes: request.own_sectors * SECTOR_BYTES as u32,
                parts: 0,
                start_ns: request.issued_ns,
                replayed: NOT_REPLAYED,
            }
        } else {
            let io = &mut self.tasks.ios.slots[owner as usize];
            io.parts -= 1;
            *io
        };
        self.block.requests.release(id);
        if io.parts > 0 {
            return;
        }
        if operation == Operation::Write
            && (self.tasks.processes[io.process as usize].sync
                || self.is_durable(io.process, io.replayed))
            && self.block.disks[0].volatile_cache
        {
            let index = if owner == NONE { self.tasks.ios.allocate(io) } else { owner };
            self.want_flush(0, FlushWaiter::Io(index));
            return;
        }
        if owner != NONE {
            self.tasks.ios.free.push(owner);
        }
        self.io_complete(io);
    }

    /// A direct transfer is complete and, if requested, durable.
    #[inline]
    pub(crate) fn direct_done(&mut self, io_index: u32) {
        self.tasks.ios.free.push(io_index);
        let io = self.tasks.ios.slots[io_index as usize];
        self.io_complete(io);
    }

    /// A direct transfer with a state of its own is complete.
    #[inline]
    fn io_complete(&mut self, io: Io) {
        if io.replayed != NOT_REPLAYED {
            self.replayed_complete(io.process, io.replayed);
        }
        self.direct_complete(io.process, (io.direction, io.bytes, io.start_ns));
    }

    /// Tells a process that a direct transfer is complete.
    #[inline]
    pub(super) fn direct_complete(&mut self, process: u32, transfer: (Direction, u32, u64)) {
        self.tasks.processes[process as usize].done.push(transfer);
        self.wake_process(process);
    }
}
