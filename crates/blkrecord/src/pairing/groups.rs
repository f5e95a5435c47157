//! Bios that are under way, grouped into requests, found by their first and by their last sector.

use rustc_hash::FxHashMap;

use crate::io::{Io, Moment, UNKNOWN_IOPRIO};

pub const NONE: u32 = u32::MAX;
/// I/Os that begin at the same sector at a time. A trace without completions could have any number, and
/// each is looked at.
const MOST_AT_ONE_SECTOR: usize = 512;

/// A bio and the next one of its request.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    pub io: Io,
    pub next: u32,
}

/// A request: a list of bios, adjacent and in the order of their sectors.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub first: u32,
    pub last: u32,
    pub bytes: u64,
    pub inserted: Moment,
    pub issued: Moment,
    pub ioprio: u16,
}

/// Groups at one sector: mostly one.
#[derive(Debug)]
enum Place {
    One(u32),
    Many(Vec<u32>),
}

type Key = (u32, u64);

/// All bios under way.
#[derive(Debug, Default)]
pub struct Groups {
    bios: Slab<Bio>,
    requests: Slab<Group>,
    by_start: FxHashMap<Key, Place>,
    by_end: FxHashMap<Key, Place>,
}

impl Groups {
    /// Bios under way.
    pub fn len(&self) -> usize {
        self.bios.used
    }

    pub fn group(&self, index: u32) -> &Group {
        self.requests.get(index)
    }

    pub fn group_mut(&mut self, index: u32) -> &mut Group {
        self.requests.get_mut(index)
    }

    pub fn bio(&self, index: u32) -> &Bio {
        self.bios.get(index)
    }

    pub fn first_io(&self, group: u32) -> &Io {
        self.first_io_of(self.group(group))
    }

    pub fn first_io_of(&self, group: &Group) -> &Io {
        &self.bios.get(group.first).io
    }

    /// A new group of one bio. The oldest at its sector gives way if there are too many.
    pub fn add(&mut self, io: Io) {
        let key = (io.device, io.sector);
        if let Some(Place::Many(all)) = self.by_start.get(&key)
            && all.len() >= MOST_AT_ONE_SECTOR
        {
            let oldest = all[0];
            self.remove(oldest);
        }
        let bio = self.bios.add(Bio { io, next: NONE });
        let group = self.requests.add(Group {
            first: bio,
            last: bio,
            bytes: io.bytes,
            inserted: io.inserted,
            issued: io.issued,
            ioprio: UNKNOWN_IOPRIO,
        });
        self.link(group);
    }

    /// Drops a group and its bios.
    pub fn remove(&mut self, index: u32) {
        self.unlink(index);
        let mut bio = self.group(index).first;
        while bio != NONE {
            let next = self.bio(bio).next;
            self.free_bio(bio);
            bio = next;
        }
        self.free_group(index);
    }

    /// The newest group at a sector that fits.
    #[inline]
    pub fn newest(&self, device: u32, sector: u64, fits: impl Fn(&Group) -> bool) -> Option<u32> {
        match self.by_start.get(&(device, sector))? {
            Place::One(index) => fits(self.group(*index)).then_some(*index),
            Place::Many(all) => all.iter().rev().copied().find(|index| fits(self.group(*index))),
        }
    }

    /// The best group at a sector, the oldest of those that are equally good; `None` does not fit.
    #[inline]
    pub fn oldest(
        &self,
        device: u32,
        sector: u64,
        quality: impl Fn(&Group) -> Option<u8>,
    ) -> Option<u32> {
        match self.by_start.get(&(device, sector))? {
            Place::One(index) => quality(self.group(*index)).map(|_| *index),
            Place::Many(all) => {
                let mut best: Option<(u8, u32)> = None;
                for index in all {
                    if let Some(quality) = quality(self.group(*index))
                        && best.is_none_or(|(so_far, _)| quality > so_far)
                    {
                        best = Some((quality, *index));
                    }
                }
                best.map(|(_, index)| index)
            }
        }
    }

    /// The newest group, other than `guest`, that ends before a sector and was not issued yet.
    pub fn ending_at(&self, device: u32, sector: u64, guest: u32) -> Option<u32> {
        let fits = |index: u32| index != guest && !self.group(index).issued.is_known();
        match self.by_end.get(&(device, sector))? {
            Place::One(index) => fits(*index).then_some(*index),
            Place::Many(all) => all.iter().rev().copied().find(|index| fits(*index)),
        }
    }

    /// Notes the merge in all of a group's bios that were not merged before.
    pub fn mark_merged(&mut self, index: u32, at: Moment) {
        let mut bio = self.group(index).first;
        while bio != NONE {
            let entry = self.bios.get_mut(bio);
            if !entry.io.merged.is_known() {
                entry.io.merged = at;
            }
            bio = entry.next;
        }
    }

    /// Puts all of `guest`'s bios behind those of `host`.
    pub fn append(&mut self, host: u32, guest: u32) {
        self.unlink(guest);
        self.unlink(host);
        let tail = *self.group(guest);
        let last = self.group(host).last;
        self.bios.get_mut(last).next = tail.first;
        let joined = self.group_mut(host);
        joined.last = tail.last;
        joined.bytes = joined.bytes.saturating_add(tail.bytes);
        self.free_group(guest);
        self.link(host);
    }

    /// Puts all of `guest`'s bios before those of `host`, which stays the request.
    pub fn prepend(&mut self, host: u32, guest: u32) {
        self.unlink(guest);
        self.unlink(host);
        let head = *self.group(guest);
        let first = self.group(host).first;
        self.bios.get_mut(head.last).next = first;
        let joined = self.group_mut(host);
        joined.first = head.first;
        joined.bytes = joined.bytes.saturating_add(head.bytes);
        self.free_group(guest);
        self.link(host);
    }

    /// Takes a group off both maps, before it changes.
    pub fn unlink(&mut self, index: u32) {
        let (start, end) = self.keys(index);
        take_out(&mut self.by_start, start, index);
        take_out(&mut self.by_end, end, index);
    }

    /// Puts a group of which the front has completed back, beginning at `first`.
    pub fn relink(&mut self, index: u32, first: u32) {
        let mut bytes: u64 = 0;
        let mut bio = first;
        while bio != NONE {
            bytes = bytes.saturating_add(self.bio(bio).io.bytes);
            bio = self.bio(bio).next;
        }
        let group = self.group_mut(index);
        group.first = first;
        group.bytes = bytes;
        self.link(index);
    }

    pub fn free_bio(&mut self, index: u32) {
        self.bios.free(index);
    }

    pub fn free_group(&mut self, index: u32) {
        self.requests.free(index);
    }

    /// Removes everything; gives the I/Os with what is known of their requests.
    pub fn drain(&mut self, mut give: impl FnMut(Io)) {
        for place in self.by_start.values() {
            let all = match place {
                Place::One(index) => std::slice::from_ref(index),
                Place::Many(all) => all,
            };
            for index in all {
                let group = self.requests.get(*index);
                let mut bio = group.first;
                while bio != NONE {
                    let entry = self.bios.get(bio);
                    give(Io { inserted: group.inserted, issued: group.issued, ..entry.io });
                    bio = entry.next;
                }
            }
        }
        *self = Self::default();
    }

    fn link(&mut self, index: u32) {
        let (start, end) = self.keys(index);
        put_in(&mut self.by_start, start, index);
        put_in(&mut self.by_end, end, index);
    }

    fn keys(&self, index: u32) -> (Key, Key) {
        let group = self.group(index);
        let (first, last) = (&self.bio(group.first).io, &self.bio(group.last).io);
        ((first.device, first.sector), (first.device, last.end_sector()))
    }
}

fn put_in(map: &mut FxHashMap<Key, Place>, key: Key, index: u32) {
    map.entry(key)
        .and_modify(|place| match place {
            Place::One(other) => *place = Place::Many(vec![*other, index]),
            Place::Many(all) => all.push(index),
        })
        .or_insert(Place::One(index));
}

fn take_out(map: &mut FxHashMap<Key, Place>, key: Key, index: u32) {
    match map.get_mut(&key) {
        Some(Place::One(other)) if *other == index => {
            map.remove(&key);
        }
        Some(Place::Many(all)) => {
            all.retain(|other| *other != index);
            if let [only] = all[..] {
                map.insert(key, Place::One(only));
            }
        }
        _ => {}
    }
}

/// Numbered entries whose numbers are used again.
#[derive(Debug)]
struct Slab<T> {
    entries: Vec<T>,
    unused: Vec<u32>,
    used: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), unused: Vec::new(), used: 0 }
    }
}

impl<T> Slab<T> {
    fn add(&mut self, entry: T) -> u32 {
        self.used += 1;
        if let Some(index) = self.unused.pop() {
            self.entries[index as usize] = entry;
            return index;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    fn free(&mut self, index: u32) {
        self.used -= 1;
        self.unused.push(index);
    }

    fn get(&self, index: u32) -> &T {
        &self.entries[index as usize]
    }

    fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index as usize]
    }
}
