//! Bios of an array: submission to its members and completion (`drivers/md`, Linux 6.1).

use super::flush_queue::FlushWaiter;
use super::raid::{Raid, Whole};
use super::request::{Hint, Operation, Request, RequestId, TaskId};
use crate::machine::Machine;

impl Machine {
    /// Puts an array over the disks.
    pub fn set_array(&mut self, raid: Raid) {
        self.block.capacity_sectors = raid.capacity_sectors;
        self.block.raid = Some(raid);
    }

    /// Submits a bio of the array as bios of its members.
    pub(crate) fn submit_to_array(&mut self, task: TaskId, bio: RequestId) {
        let request = &self.block.requests[bio];
        let (operation, sector, nr_sectors) =
            (request.operation, request.sector, request.nr_sectors);
        let Some(raid) = &mut self.block.raid else { return };
        let writes_follow = raid.split(operation, sector, nr_sectors, false);
        let whole = raid.remember(Whole { bio, parts: 0, writes_follow });
        self.submit_pieces(task, whole);
    }

    fn submit_pieces(&mut self, task: TaskId, whole: u32) {
        let Some(raid) = &mut self.block.raid else { return };
        let pieces = std::mem::take(&mut raid.pieces);
        let bio = raid.wholes[whole as usize].bio;
        raid.wholes[whole as usize].parts = pieces.len() as u32;
        for piece in &pieces {
            let member = piece.member as usize;
            if let Some(raid) = &mut self.block.raid {
                raid.pending[member] += 1;
                raid.last_end[member] = piece.sector + u64::from(piece.nr_sectors);
            }
            let original = &self.block.requests[bio];
            let mut part =
                Request::new(piece.operation, piece.sector, piece.nr_sectors, original.purpose);
            part.flags = original.flags;
            if piece.operation == Operation::Read {
                if part.flags.hint == Hint::Idle {
                    part.flags.hint = Hint::Plain;
                }
                part.flags.sync = true;
            }
            part.priority = original.priority;
            part.context = original.context;
            part.group = original.group;
            part.disk = piece.member;
            part.array_part = whole;
            let id = self.block.requests.allocate(part);
            self.submit_to_disk(task, usize::from(piece.member), id);
        }
        if let Some(raid) = &mut self.block.raid {
            if raid.pieces.capacity() == 0 {
                raid.pieces = pieces;
            }
        }
    }

    /// A member is done with its part of a bio.
    pub(crate) fn array_part_done(&mut self, part: RequestId) {
        let (whole, member) =
            (self.block.requests[part].array_part, self.block.requests[part].disk as usize);
        self.block.requests.release(part);
        let Some(raid) = &mut self.block.raid else { return };
        raid.pending[member] -= 1;
        let entry = &mut raid.wholes[whole as usize];
        entry.parts -= 1;
        if entry.parts > 0 {
            return;
        }
        let bio = entry.bio;
        if std::mem::take(&mut entry.writes_follow) {
            let request = &self.block.requests[bio];
            raid.split(request.operation, request.sector, request.nr_sectors, true);
            self.submit_pieces(self.tasks.worker, whole);
            return;
        }
        raid.free.push(whole);
        self.part_done(bio);
    }

    /// Asks every member for a flush.
    pub(crate) fn flush_array(&mut self, waiter: FlushWaiter) {
        let members = self.block.disks.count();
        let Some(raid) = &mut self.block.raid else { return };
        let entry = (waiter, members as u32);
        let index = if let Some(index) = raid.free_flushes.pop() {
            raid.flushes[index as usize] = entry;
            index
        } else {
            raid.flushes.push(entry);
            (raid.flushes.len() - 1) as u32
        };
        for disk in 0..members {
            self.block.want_disk_flush(disk, FlushWaiter::Array(index));
        }
    }

    /// Notes that a member was flushed. Returns the waiter once all members are.
    pub(crate) fn array_member_flushed(&mut self, index: u32) -> Option<FlushWaiter> {
        let raid = self.block.raid.as_mut()?;
        let (waiter, left) = &mut raid.flushes[index as usize];
        *left -= 1;
        if *left > 0 {
            return None;
        }
        raid.free_flushes.push(index);
        Some(*waiter)
    }
}
