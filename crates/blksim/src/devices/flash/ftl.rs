//! The flash translation layer: the physical slots of logical ones, the place of the next write,
//! and garbage collection.
//!
//! A slot is 4 KiB. Writes fill superblocks (one erase block of every die) in
//! order. When free superblocks run short, the one with the fewest valid slots
//! is emptied, in step with the writes that come in, and erased.
//!
//! The state before the start is analytic. Under random overwriting, greedy
//! collection leaves blocks whose valid share falls geometrically with age:
//! v(a) = u^a, a from 0 (new) to 1 (next victim), where the victim's share u
//! follows from the spare space by (u - 1) / ln u = logical / physical
//! (Desnoyers, "Analytic models of SSD write performance", 2014). Write
//! amplification is then 1 / (1 - u).

use super::slot_map::SlotMap;
use crate::core::divisor::Divisor;
use crate::core::rng::{Permutation, Stream};

/// In the map: the slot was discarded.
const DISCARDED: u32 = u32::MAX - 1;

/// Superblocks that garbage collection keeps free.
pub const RESERVE: usize = 3;
/// Superblocks that it has beyond its capacity at least.
pub const LEAST_BEYOND: usize = RESERVE + 2;

/// The contents of the drive before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Empty: all blocks are erased.
    Fresh,
    /// Every slot was written once, in order.
    Sequential,
    /// Every slot was overwritten at random until the steady state.
    Random,
}

/// Sizes, in slots.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub logical: u64,
    pub superblock: u64,
    /// Slots of one program operation on one die.
    pub unit: u64,
    pub dies: u64,
    /// Additional physical space in thousandths of the logical.
    pub spare_permille: u64,
    /// Logical slots, from the first on, that were written before the start.
    pub filled: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// Being filled.
    Open,
    Closed,
    /// Being emptied.
    Victim,
}

#[derive(Debug, Clone)]
struct Superblock {
    valid: u64,
    state: Use,
    /// Logical slots that were written here since the start, by position;
    /// `None` while the contents are those from before the start.
    contents: Option<Vec<u32>>,
}

/// The place of the next slots.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    superblock: usize,
    slot: u64,
}

/// A superblock being emptied.
#[derive(Debug, Clone, Copy)]
struct Collection {
    victim: usize,
    /// Next position of its contents, or in the analytic order.
    position: u64,
    /// Slots to move for each host slot, in 1024ths.
    rate: u64,
}

/// A program operation of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    pub die: u32,
    /// Pages to read first, for moved data.
    pub moved_slots: u64,
}

#[derive(Debug, Clone)]
pub struct Ftl {
    shape: Shape,
    by_unit: Divisor,
    by_dies: Divisor,
    by_superblock: Divisor,
    superblocks: Vec<Superblock>,
    /// Analytic order: superblock i has ranks `first_rank[i]..first_rank[i + 1]`.
    first_rank: Vec<u64>,
    order: Option<Permutation>,
    condition: Condition,
    map: SlotMap,
    host: Option<Cursor>,
    moved: Option<Cursor>,
    free: Vec<usize>,
    collection: Option<Collection>,
    /// Slots that collection must still move for the host's writes, in 1024ths.
    owed: u64,
    /// Superblocks erased since the last call.
    erased: u64,
}

/// Valid share of the next victim under greedy collection: solves (u - 1) / ln u = `utilisation`.
fn victim_share(utilisation: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..100 {
        let u = f64::midpoint(low, high);
        if (u - 1.0) / libm::log(u) < utilisation {
            low = u;
        } else {
            high = u;
        }
    }
    f64::midpoint(low, high)
}

impl Ftl {
    /// The layer of a drive in a given condition. Fails if the drive has too
    /// few superblocks to collect garbage.
    pub fn new(shape: Shape, condition: Condition, seed: u64) -> Result<Self, String> {
        let physical = shape.logical + shape.logical * shape.spare_permille / 1000;
        let count = physical.div_ceil(shape.superblock) as usize;
        let needed = shape.logical.div_ceil(shape.superblock) as usize;
        if needed < 4 {
            return Err(format!(
                "the capacity is less than four superblocks of {} MiB (dies x erase_block)",
                (shape.superblock * 4096) >> 20
            ));
        }
        let count = count.max(needed + LEAST_BEYOND);
        let divisor = |slots: u64| {
            Divisor::new(slots).ok_or_else(|| format!("{slots} slots or dies are too many"))
        };
        let first_rank = match condition {
            Condition::Fresh => vec![0; count + 1],
            Condition::Sequential => {
                (0..=count as u64).map(|i| (i * shape.superblock).min(shape.filled)).collect()
            }
            Condition::Random => random_ranks(&shape, count),
        };
        let superblocks: Vec<_> = first_rank
            .windows(2)
            .map(|pair| Superblock {
                valid: pair[1] - pair[0],
                state: if pair[0] == pair[1] { Use::Free } else { Use::Closed },
                contents: None,
            })
            .collect();
        let free = (0..count).rev().filter(|&i| superblocks[i].state == Use::Free).collect();
        let order = (condition == Condition::Random).then(|| {
            Permutation::new(shape.filled, &mut Stream::named(seed, "device/flash/order"))
        });
        Ok(Self {
            shape,
            by_unit: divisor(shape.unit)?,
            by_dies: divisor(shape.dies)?,
            by_superblock: divisor(shape.superblock)?,
            superblocks,
            first_rank,
            order,
            condition,
            map: SlotMap::default(),
            host: None,
            moved: None,
            free,
            collection: None,
            owed: 0,
            erased: 0,
        })
    }

    /// Physical slot of a logical one; `None` if it was never written.
    #[inline]
    pub fn find(&self, logical: u32) -> Option<u32> {
        if let Some(physical) = self.map.get(logical) {
            return (physical != DISCARDED).then_some(physical);
        }
        match self.condition {
            Condition::Fresh => None,
            _ if u64::from(logical) >= self.shape.filled => None,
            Condition::Sequential => Some(logical),
            Condition::Random => Some(self.find_by_rank(logical)),
        }
    }

    /// The place to which random writes before the start have moved a slot.
    #[inline(never)]
    fn find_by_rank(&self, logical: u32) -> u32 {
        let rank = match &self.order {
            Some(order) => order.apply(u64::from(logical)),
            None => u64::from(logical),
        };
        let index = self.first_rank.partition_point(|first| *first <= rank) - 1;
        let slot = rank - self.first_rank[index];
        (index as u64 * self.shape.superblock + slot) as u32
    }

    /// Number of the program unit that a physical slot belongs to.
    #[inline]
    pub fn unit(&self, physical: u32) -> u32 {
        self.by_unit.divide(physical).0
    }

    /// The die of a unit, and the number of units before it on that die.
    #[inline]
    pub fn die_and_turn(&self, unit: u32) -> (u32, u32) {
        let (turn, die) = self.by_dies.divide(unit);
        (die, turn)
    }

    #[inline]
    fn superblock(&self, physical: u32) -> usize {
        self.by_superblock.divide(physical).0 as usize
    }

    /// Superblocks erased since the last call.
    pub fn take_erased(&mut self) -> u64 {
        std::mem::take(&mut self.erased)
    }

    /// Forgets what a slot holds: garbage collection need not move it.
    pub fn discard(&mut self, logical: u32) {
        if let Some(physical) = self.find(logical) {
            let superblock = self.superblock(physical);
            self.superblocks[superblock].valid -= 1;
            self.map.insert(logical, DISCARDED);
        }
    }

    /// Writes a program unit of host data (padding fewer slots).
    pub fn write(&mut self, logical: &[u32], programs: &mut Vec<Program>) {
        let die = self.place(logical, true);
        programs.push(Program { die, moved_slots: 0 });
    }

    /// Puts slots at the host's or the collector's cursor. Returns the die.
    fn place(&mut self, logical: &[u32], host: bool) -> u32 {
        let cursor = if host { self.host } else { self.moved };
        let mut cursor = match cursor {
            Some(cursor) if cursor.slot < self.shape.superblock => cursor,
            old => {
                if let Some(old) = old {
                    self.superblocks[old.superblock].state = Use::Closed;
                }
                Cursor { superblock: self.open(host), slot: 0 }
            }
        };
        let base = cursor.superblock as u64 * self.shape.superblock;
        let (die, _) = self.die_and_turn(self.unit((base + cursor.slot) as u32));
        for &slot in logical {
            if let Some(old) = self.find(slot) {
                let old = self.superblock(old);
                self.superblocks[old].valid -= 1;
            }
            let physical = (base + cursor.slot) as u32;
            self.map.insert(slot, physical);
            let superblock = &mut self.superblocks[cursor.superblock];
            superblock.valid += 1;
            if let Some(contents) = &mut superblock.contents {
                contents.push(slot);
            }
            cursor.slot += 1;
        }
        // A unit that is not full is padded: its other slots hold nothing.
        let padding = cursor.slot.next_multiple_of(self.shape.unit) - cursor.slot;
        if let Some(contents) = &mut self.superblocks[cursor.superblock].contents {
            contents.extend((0..padding).map(|_| u32::MAX));
        }
        cursor.slot += padding;
        if host {
            self.host = Some(cursor);
        } else {
            self.moved = Some(cursor);
        }
        die
    }

    /// Opens a free superblock. The host leaves the last one to collection, which needs at most one
    /// to gain one.
    fn open(&mut self, host: bool) -> usize {
        while host && self.free.len() < 2 && self.empty_one() {}
        let index = self.free.pop().unwrap_or_default();
        debug_assert_eq!(self.superblocks[index].state, Use::Free);
        self.superblocks[index].state = Use::Open;
        self.superblocks[index].valid = 0;
        // The full capacity at once: growing would briefly take twice as much.
        self.superblocks[index].contents = Some(Vec::with_capacity(self.shape.superblock as usize));
        index
    }

    /// Chooses the next superblock to empty.
    fn start_collection(&mut self) -> bool {
        let closed = self.superblocks.iter().enumerate().filter(|(_, s)| s.state == Use::Closed);
        let Some((victim, _)) = closed.min_by_key(|(_, s)| s.valid) else { return false };
        let valid = self.superblocks[victim].valid;
        if valid >= self.shape.superblock {
            return false;
        }
        self.superblocks[victim].state = Use::Victim;
        let gained = self.shape.superblock - valid;
        // A little faster than break-even, so that the reserve recovers.
        let rate = (valid * 1024 * 9 / 8).div_ceil(gained) + 64;
        self.collection = Some(Collection { victim, position: 0, rate });
        true
    }

    /// True if collection is under way, or begins because the reserve is short.
    fn collecting(&mut self) -> bool {
        self.collection.is_some() || (self.free.len() < RESERVE && self.start_collection())
    }

    /// Moves the slots owed for so many slots of host data, if free superblocks are short.
    pub fn collect(&mut self, host_slots: u64, programs: &mut Vec<Program>) {
        if !self.collecting() {
            self.owed = 0;
            return;
        }
        self.owed += host_slots * self.collection.map_or(0, |c| c.rate);
        while self.owed >= self.shape.unit * 1024 && self.collecting() {
            self.owed -= self.shape.unit * 1024;
            programs.extend(self.move_unit());
        }
    }

    /// Empties a victim at once. Returns false if there is none.
    fn empty_one(&mut self) -> bool {
        if self.collection.is_none() && !self.start_collection() {
            return false;
        }
        while self.collection.is_some() {
            self.move_unit();
        }
        true
    }

    /// Moves one unit of valid slots of the victim; erases it once empty.
    fn move_unit(&mut self) -> Option<Program> {
        let mut collection = self.collection.take()?;
        let mut slots = Vec::with_capacity(self.shape.unit as usize);
        while (slots.len() as u64) < self.shape.unit {
            match self.next_valid(&mut collection) {
                Some(slot) => slots.push(slot),
                None => break,
            }
        }
        let exhausted = (slots.len() as u64) < self.shape.unit;
        let program = (!slots.is_empty())
            .then(|| Program { die: self.place(&slots, false), moved_slots: slots.len() as u64 });
        if exhausted {
            let victim = &mut self.superblocks[collection.victim];
            debug_assert_eq!(victim.valid, 0, "a victim is erased with valid data");
            victim.state = Use::Free;
            victim.contents = Some(Vec::new());
            self.free.insert(0, collection.victim);
            self.erased += 1;
        } else {
            self.collection = Some(collection);
        }
        program
    }

    /// The next logical slot that the victim still contains.
    fn next_valid(&self, collection: &mut Collection) -> Option<u32> {
        let victim = collection.victim;
        let base = victim as u64 * self.shape.superblock;
        if let Some(contents) = &self.superblocks[victim].contents {
            while let Some(&slot) = contents.get(collection.position as usize) {
                let physical = base + collection.position;
                collection.position += 1;
                if slot != u32::MAX && self.map.get(slot).map(u64::from) == Some(physical) {
                    return Some(slot);
                }
            }
            return None;
        }
        // Contents from before the start that were not overwritten since.
        while self.first_rank[victim] + collection.position < self.first_rank[victim + 1] {
            let rank = self.first_rank[victim] + collection.position;
            collection.position += 1;
            let slot = match &self.order {
                Some(order) => order.invert(rank) as u32,
                None => rank as u32,
            };
            if self.map.get(slot).is_none() {
                return Some(slot);
            }
        }
        None
    }
}

/// Ranks of each superblock in the steady state of random overwriting.
fn random_ranks(shape: &Shape, count: usize) -> Vec<u64> {
    let used = count - RESERVE;
    let utilisation = shape.filled as f64 / (used as u64 * shape.superblock) as f64;
    let u = victim_share(utilisation.min(0.999_999));
    let share = |i: usize| libm::pow(u, (i as f64 + 0.5) / used as f64);
    let total: f64 = (0..used).map(share).sum();
    let mut ranks = Vec::with_capacity(count + 1);
    let (mut sum, mut last) = (0.0, 0);
    ranks.push(0);
    for i in 0..used {
        sum += share(i);
        // Rounding must not put more into a superblock than fits.
        let target = (sum / total * shape.filled as f64) as u64;
        last = target.min(last + shape.superblock).min(shape.filled);
        ranks.push(last);
    }
    // The remainder of rounding goes where there is room, oldest first.
    let mut left = shape.filled - last;
    for i in (0..used).rev() {
        let room = shape.superblock - (ranks[i + 1] - ranks[i]);
        let extra = room.min(left);
        for rank in &mut ranks[i + 1..] {
            *rank += extra;
        }
        left -= extra;
        if left == 0 {
            break;
        }
    }
    ranks.resize(count + 1, shape.filled);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        logical: 60_000,
        superblock: 1024,
        unit: 8,
        dies: 4,
        spare_permille: 120,
        filled: 60_000,
    };

    /// Overwrites at random. Returns the programs of the host and of collection.
    fn overwrite(ftl: &mut Ftl, units: u64) -> (u64, u64) {
        let filled = ftl.shape.filled;
        let mut stream = Stream::named(1, "overwrite");
        let (mut host, mut moved) = (0, 0);
        let mut programs = Vec::new();
        for _ in 0..units {
            let slots: Vec<u32> = (0..8).map(|_| stream.below(filled) as u32).collect();
            ftl.write(&slots, &mut programs);
            ftl.collect(8, &mut programs);
            for program in programs.drain(..) {
                if program.moved_slots == 0 { host += 1 } else { moved += 1 }
            }
        }
        (host, moved)
    }

    fn check(ftl: &Ftl) {
        let mut seen = std::collections::BTreeSet::new();
        let mut valid = vec![0; ftl.superblocks.len()];
        for logical in 0..60_000 {
            if let Some(physical) = ftl.find(logical) {
                assert!(seen.insert(physical), "two slots at {physical}");
                valid[(u64::from(physical) / ftl.shape.superblock) as usize] += 1;
            }
        }
        for (superblock, valid) in ftl.superblocks.iter().zip(valid) {
            assert_eq!(superblock.valid, valid);
        }
    }

    #[test]
    fn nothing_is_lost_or_doubled_in_any_condition() {
        for condition in [Condition::Fresh, Condition::Sequential, Condition::Random] {
            let mut ftl = Ftl::new(SHAPE, condition, 1).unwrap();
            check(&ftl);
            overwrite(&mut ftl, 40_000);
            check(&ftl);
        }
    }

    #[test]
    fn the_analytic_state_is_the_steady_state() {
        let amplification = |ftl: &mut Ftl, units| {
            let (host, moved) = overwrite(ftl, units);
            (host + moved) as f64 / host as f64
        };
        let mut aged = Ftl::new(SHAPE, Condition::Sequential, 1).unwrap();
        amplification(&mut aged, 60_000);
        let steady = amplification(&mut aged, 20_000);
        let mut analytic = Ftl::new(SHAPE, Condition::Random, 1).unwrap();
        let at_once = amplification(&mut analytic, 20_000);
        assert!((at_once / steady - 1.0).abs() < 0.1, "{at_once} against {steady}");
    }

    #[test]
    fn a_drive_that_is_half_full_moves_less_and_holds_nothing_beyond() {
        let half = Shape { filled: 30_000, ..SHAPE };
        for condition in [Condition::Sequential, Condition::Random] {
            let mut ftl = Ftl::new(half, condition, 1).unwrap();
            assert!(ftl.find(29_999).is_some() && ftl.find(30_000).is_none());
            check(&ftl);
            overwrite(&mut ftl, 20_000);
            check(&ftl);
        }
        let moved =
            |shape| overwrite(&mut Ftl::new(shape, Condition::Random, 1).unwrap(), 20_000).1;
        assert!(moved(half) * 3 < moved(SHAPE), "{} of {}", moved(half), moved(SHAPE));
    }

    #[test]
    fn the_victims_share_solves_its_equation() {
        for utilisation in [0.5, 0.8, 0.93, 0.99] {
            let u = victim_share(utilisation);
            assert!(((u - 1.0) / libm::log(u) - utilisation).abs() < 1e-6);
        }
    }
}
