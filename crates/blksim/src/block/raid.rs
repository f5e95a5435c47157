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
//! Parameters, beside those of the device profile: `raid`, `members`, `chunk`, and `member3.NAME` for
//! what the fourth member has instead.

use crate::block::flush_queue::FlushWaiter;
use crate::block::request::{Operation, RequestId, SECTOR_BYTES};
use crate::core::error::ProfileError;
use crate::core::params::Values;
use crate::devices::device::{Device, Facts};
use crate::devices::profile::Profile;
use crate::devices::raid::RaidLevel;

/// A bio of the array under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) bio: RequestId,
    pub(crate) parts: u32,
    /// Its writes follow once these reads are done.
    pub(crate) writes_follow: bool,
}

/// One bio for a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) member: u8,
    pub(crate) operation: Operation,
    pub(crate) sector: u64,
    pub(crate) nr_sectors: u32,
}

/// An array.
#[derive(Debug, Clone)]
pub struct Raid {
    pub(crate) level: RaidLevel,
    pub(crate) members: u64,
    pub(crate) chunk: u64,
    pub(crate) rotational: bool,
    /// Usable sectors of the array.
    pub capacity_sectors: u64,
    pub(crate) last_end: Vec<u64>,
    /// Pieces that each member has to do.
    pub(crate) pending: Vec<u32>,
    pub(crate) wholes: Vec<Whole>,
    pub(crate) free: Vec<u32>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) flushes: Vec<(FlushWaiter, u32)>,
    pub(crate) free_flushes: Vec<u32>,
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

    /// One with parity takes none, as in the kernel: what a member then reads is not defined.
    pub fn takes_discards(&self) -> bool {
        self.level != RaidLevel::Parity
    }

    /// Makes the facts of a member those of the array.
    pub fn describe(&self, facts: &mut Facts) {
        facts.capacity_bytes = self.capacity_sectors * SECTOR_BYTES;
        facts.discards &= self.takes_discards();
    }

    pub fn nr_members(&self) -> usize {
        self.members as usize
    }

    /// Works out the pieces of a bio; true if its writes must follow later.
    pub(crate) fn split(
        &mut self,
        operation: Operation,
        sector: u64,
        nr_sectors: u32,
        second: bool,
    ) -> bool {
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
        if operation.is_write() {
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

    /// The pieces of a parity write: first the reads, if it does not cover a stripe; with `second`
    /// the writes.
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

    pub(crate) fn remember(&mut self, whole: Whole) -> u32 {
        if let Some(index) = self.free.pop() {
            self.wholes[index as usize] = whole;
            return index;
        }
        self.wholes.push(whole);
        (self.wholes.len() - 1) as u32
    }
}

/// The array that a profile asks for over members like `facts`, if any.
pub fn array(profile: &Profile, facts: &Facts) -> Result<Option<Raid>, ProfileError> {
    let sectors = facts.capacity_bytes / SECTOR_BYTES;
    let fail = |field: &str, message: String| ProfileError {
        message,
        source_name: profile.source.clone(),
        field: Some(field.to_owned()),
    };
    let raid = Raid::new(&profile.raid, sectors, facts.rotational)
        .map_err(|(field, message)| fail(field, message))?;
    let nr_members = raid.as_ref().map_or(0, Raid::nr_members);
    match profile.beyond(nr_members) {
        Some(field) => Err(fail(&field, format!("the array has {nr_members} members"))),
        None => Ok(raid),
    }
}

/// Facts of a profile, if it can be built.
pub fn check(profile: &Profile) -> Result<Facts, ProfileError> {
    let mut facts = profile.build(0)?.facts().clone();
    if let Some(raid) = array(profile, &facts)? {
        raid.describe(&mut facts);
    }
    Ok(facts)
}
