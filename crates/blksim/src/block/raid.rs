//! RAID 0, 1, 10 and 5 over member disks, each with its own queue, scheduler
//! and policies.
//!
//! A bio for the array becomes bios for its members, split at chunks; it is
//! done when they are. Levels follow the defaults of `drivers/md` in Linux 6.1:
//!
//! * 0: chunks go round the members.
//! * 1: writes go to all members; a read goes to the member that read just
//!   before it, else to the one whose last position is closest (rotational),
//!   or which has least to do.
//! * 10: pairs of members as of level 1, chunks go round the pairs ("near 2").
//! * 5: left-symmetric parity. A write that covers a stripe writes data and
//!   parity; another first reads what it replaces and the parity.
//!
//! Simplified: no stripe cache, so neighbouring small writes to a level 5 are
//! not gathered, and two writes to one stripe do not wait for each other;
//! always read-modify-write, never reconstruct-write; no bitmap, no
//! superblock, no failed members.
//!
//! Parameters, beside those of the device profile: `raid`, `members`, `chunk`.

use crate::block::request::{Operation, Request, RequestId};
use crate::core::params::{Param, Unit, Values};
use crate::machine::{FlushWaiter, Machine};
use crate::task::task_struct::TaskId;

/// What makes an array of a device profile.
pub const RAID: &[Param] = &[
    Param::choice("raid", &["none", "0", "1", "10", "5"], 0, "level of an array of such disks"),
    Param::new("members", Unit::Count, 4, (2, 32), "disks of the array"),
    Param::new("chunk", Unit::Bytes, 512 << 10, (4096, 1 << 30), "chunk of the array"),
];

/// What the members of an array hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaidLevel {
    Stripes,
    Mirrors,
    StripedMirrors,
    Parity,
}

impl RaidLevel {
    /// The level that values of [`RAID`] ask for; `None` for a single disk.
    pub fn of(values: &Values) -> Option<Self> {
        match values.word("raid") {
            "0" => Some(Self::Stripes),
            "1" => Some(Self::Mirrors),
            "10" => Some(Self::StripedMirrors),
            "5" => Some(Self::Parity),
            _ => None,
        }
    }
}

/// A bio of the array under way.
#[derive(Debug, Clone, Copy)]
struct Whole {
    bio: RequestId,
    parts: u32,
    /// Its writes follow once these reads are done.
    writes_follow: bool,
}

/// One bio for a member.
#[derive(Debug, Clone, Copy)]
struct Piece {
    member: u8,
    operation: Operation,
    sector: u64,
    nr_sectors: u32,
}

/// An array.
#[derive(Debug)]
pub struct Raid {
    level: RaidLevel,
    members: u64,
    chunk: u64,
    rotational: bool,
    /// Usable sectors of the array.
    pub capacity_sectors: u64,
    last_end: Vec<u64>,
    /// Pieces that each member has to do.
    pending: Vec<u32>,
    wholes: Vec<Whole>,
    free: Vec<u32>,
    pieces: Vec<Piece>,
    flushes: Vec<(FlushWaiter, u32)>,
    free_flushes: Vec<u32>,
}

impl Raid {
    /// The array that the values ask for; `None` for a single disk. The error
    /// names the parameter that is wrong.
    pub fn new(
        values: &Values,
        member_sectors: u64,
        rotational: bool,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let (members, chunk) = (values.get("members"), values.get("chunk") / 512);
        let Some(level) = RaidLevel::of(values) else { return Ok(None) };
        let (least, data) = match level {
            RaidLevel::Stripes => (2, members),
            RaidLevel::Mirrors => (2, 1),
            RaidLevel::StripedMirrors => (4, members / 2),
            RaidLevel::Parity => (3, members - 1),
        };
        if members < least || (level == RaidLevel::StripedMirrors && members % 2 == 1) {
            let odd = if level == RaidLevel::StripedMirrors { ", an even number" } else { "" };
            let message = format!("members = {members}: this level needs at least {least}{odd}");
            return Err(("members", message));
        }
        if !chunk.is_power_of_two() {
            return Err(("chunk", "chunk must be a power of two".to_owned()));
        }
        let usable = member_sectors / chunk * chunk;
        if usable == 0 {
            return Err(("chunk", "chunk exceeds the size of a member".to_owned()));
        }
        Ok(Some(Self {
            level,
            members,
            chunk,
            rotational,
            capacity_sectors: usable * data,
            last_end: vec![0; members as usize],
            pending: vec![0; members as usize],
            wholes: Vec::new(),
            free: Vec::new(),
            pieces: Vec::new(),
            flushes: Vec::new(),
            free_flushes: Vec::new(),
        }))
    }

    pub fn nr_members(&self) -> usize {
        self.members as usize
    }

    /// Works out the pieces of a bio; true if its writes must follow later.
    fn split(&mut self, operation: Operation, sector: u64, nr_sectors: u32, second: bool) -> bool {
        self.pieces.clear();
        let end = sector + u64::from(nr_sectors);
        if self.level == RaidLevel::Mirrors {
            self.mirror(operation, 0..self.members, sector, nr_sectors);
            return false;
        }
        if self.level == RaidLevel::Parity && operation == Operation::Write {
            return self.split_parity_write(sector, end, second);
        }
        let mut at = sector;
        while at < end {
            let length = (self.chunk - at % self.chunk).min(end - at) as u32;
            let (number, offset) = (at / self.chunk, at % self.chunk);
            match self.level {
                RaidLevel::StripedMirrors => {
                    let pairs = self.members / 2;
                    let first = number % pairs * 2;
                    let place = number / pairs * self.chunk + offset;
                    self.mirror(operation, first..first + 2, place, length);
                }
                RaidLevel::Parity => {
                    let (member, place) = self.parity_place(number);
                    self.piece(member, operation, place + offset, length);
                }
                _ => {
                    let place = number / self.members * self.chunk + offset;
                    self.piece(number % self.members, operation, place, length);
                }
            }
            at += u64::from(length);
        }
        false
    }

    fn piece(&mut self, member: u64, operation: Operation, sector: u64, nr_sectors: u32) {
        self.pieces.push(Piece { member: member as u8, operation, sector, nr_sectors });
    }

    fn mirror(
        &mut self,
        operation: Operation,
        members: std::ops::Range<u64>,
        sector: u64,
        nr_sectors: u32,
    ) {
        if operation == Operation::Write {
            for member in members {
                self.piece(member, operation, sector, nr_sectors);
            }
            return;
        }
        let follows = members.clone().find(|member| self.last_end[*member as usize] == sector);
        let distance = |member: &u64| {
            let member = *member as usize;
            let pending = u64::from(self.pending[member]);
            let away = self.last_end[member].abs_diff(sector);
            if self.rotational { (away, pending) } else { (pending, away) }
        };
        if let Some(member) = follows.or_else(|| members.min_by_key(distance)) {
            self.piece(member, operation, sector, nr_sectors);
        }
    }

    /// Member that holds the parity of a stripe.
    fn parity_member(&self, stripe: u64) -> u64 {
        self.members - 1 - stripe % self.members
    }

    /// Member and first sector of a data chunk.
    fn parity_place(&self, number: u64) -> (u64, u64) {
        let data = self.members - 1;
        let (stripe, index) = (number / data, number % data);
        let member = (self.parity_member(stripe) + 1 + index) % self.members;
        (member, stripe * self.chunk)
    }

    /// First the reads, if a stripe is not covered; `second`: the writes.
    fn split_parity_write(&mut self, sector: u64, end: u64, second: bool) -> bool {
        let width = self.chunk * (self.members - 1);
        let stripes = |raid: &mut Self, operation: Operation, partial_only: bool| {
            let mut at = sector;
            while at < end {
                let stripe = at / width;
                let stop = ((stripe + 1) * width).min(end);
                if !partial_only || stop - at < width {
                    raid.stripe_pieces(operation, stripe, at, stop);
                }
                at = stop;
            }
        };
        if !second {
            stripes(self, Operation::Read, true);
            if !self.pieces.is_empty() {
                return true;
            }
        }
        stripes(self, Operation::Write, false);
        false
    }

    /// Data and parity of a stripe that `at..stop` touches.
    fn stripe_pieces(&mut self, operation: Operation, stripe: u64, at: u64, stop: u64) {
        let (mut low, mut high) = (self.chunk, 0);
        let mut from = at;
        while from < stop {
            let offset = from % self.chunk;
            let length = (self.chunk - offset).min(stop - from);
            let (member, place) = self.parity_place(from / self.chunk);
            self.piece(member, operation, place + offset, length as u32);
            low = low.min(offset);
            high = high.max(offset + length);
            from += length;
        }
        let parity = self.parity_member(stripe);
        self.piece(parity, operation, stripe * self.chunk + low, (high - low) as u32);
    }

    fn remember(&mut self, whole: Whole) -> u32 {
        if let Some(index) = self.free.pop() {
            self.wholes[index as usize] = whole;
            return index;
        }
        self.wholes.push(whole);
        (self.wholes.len() - 1) as u32
    }
}

impl Machine {
    /// Puts an array over the disks.
    pub fn set_array(&mut self, raid: Raid) {
        self.capacity_sectors = raid.capacity_sectors;
        self.raid = Some(raid);
    }

    /// Submits a bio of the array as bios of its members.
    pub(crate) fn submit_to_array(&mut self, task: TaskId, bio: RequestId) {
        let request = &self.requests[bio];
        let (operation, sector, nr_sectors) =
            (request.operation, request.sector, request.nr_sectors);
        let Some(raid) = &mut self.raid else { return };
        let writes_follow = raid.split(operation, sector, nr_sectors, false);
        let whole = raid.remember(Whole { bio, parts: 0, writes_follow });
        self.submit_pieces(task, whole);
    }

    fn submit_pieces(&mut self, task: TaskId, whole: u32) {
        let Some(raid) = &mut self.raid else { return };
        let pieces = std::mem::take(&mut raid.pieces);
        let bio = raid.wholes[whole as usize].bio;
        raid.wholes[whole as usize].parts = pieces.len() as u32;
        for piece in &pieces {
            let member = piece.member as usize;
            if let Some(raid) = &mut self.raid {
                raid.pending[member] += 1;
                raid.last_end[member] = piece.sector + u64::from(piece.nr_sectors);
            }
            let original = &self.requests[bio];
            let mut part =
                Request::new(piece.operation, piece.sector, piece.nr_sectors, original.purpose);
            part.flags = original.flags;
            if piece.operation == Operation::Read {
                part.flags.idle = false;
                part.flags.sync = true;
            }
            part.priority = original.priority;
            part.context = original.context;
            part.group = original.group;
            part.disk = piece.member;
            part.array_part = whole;
            let id = self.requests.allocate(part);
            self.submit_to_disk(task, usize::from(piece.member), id);
        }
        if let Some(raid) = &mut self.raid {
            if raid.pieces.capacity() == 0 {
                raid.pieces = pieces;
            }
        }
    }

    /// A member is done with its part of a bio.
    pub(crate) fn array_part_done(&mut self, part: RequestId) {
        let (whole, member) = (self.requests[part].array_part, self.requests[part].disk as usize);
        self.requests.release(part);
        let Some(raid) = &mut self.raid else { return };
        raid.pending[member] -= 1;
        let entry = &mut raid.wholes[whole as usize];
        entry.parts -= 1;
        if entry.parts > 0 {
            return;
        }
        let bio = entry.bio;
        if std::mem::take(&mut entry.writes_follow) {
            let request = &self.requests[bio];
            raid.split(request.operation, request.sector, request.nr_sectors, true);
            self.submit_pieces(self.worker, whole);
            return;
        }
        raid.free.push(whole);
        self.part_done(bio);
    }

    /// Asks every member for a flush.
    pub(crate) fn flush_array(&mut self, waiter: FlushWaiter) {
        let members = self.disks.count();
        let Some(raid) = &mut self.raid else { return };
        let entry = (waiter, members as u32);
        let index = if let Some(index) = raid.free_flushes.pop() {
            raid.flushes[index as usize] = entry;
            index
        } else {
            raid.flushes.push(entry);
            (raid.flushes.len() - 1) as u32
        };
        for disk in 0..members {
            self.want_disk_flush(disk, FlushWaiter::Array(index));
        }
    }

    /// A member has been flushed; who waits, once all are?
    pub(crate) fn array_member_flushed(&mut self, index: u32) -> Option<FlushWaiter> {
        let raid = self.raid.as_mut()?;
        let (waiter, left) = &mut raid.flushes[index as usize];
        *left -= 1;
        if *left > 0 {
            return None;
        }
        raid.free_flushes.push(index);
        Some(*waiter)
    }
}
