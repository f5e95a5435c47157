//! A sorted array, for few events.

use crate::core::branch::unlikely;

/// Most keys that are moved to the front of the array. With more, finding a key's place takes
/// longer than in a heap.
pub(super) const MOST: usize = 128;
pub(super) const PLACES: usize = 2 * MOST;

/// Places for keys that go before those that were moved.
const ROOM_BEFORE: usize = MOST / 4;

/// Packed keys in order. The place of a new key is searched from the end of the half that it
/// belongs to.
#[derive(Debug, Clone)]
pub(super) struct SortedArray {
    /// The keys from `head` to before `end`. Both move on until there is no room at the end.
    keys: [u128; PLACES],
    head: usize,
    end: usize,
}

impl Default for SortedArray {
    fn default() -> Self {
        Self { keys: [0; PLACES], head: 0, end: 0 }
    }
}

impl SortedArray {
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.head
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.end < PLACES
    }

    /// Makes room by moving all keys to the front. Returns false if there are too many.
    pub fn make_room(&mut self) -> bool {
        let few = self.len() < MOST;
        if few {
            self.keys.copy_within(self.head..self.end, 0);
            self.end -= std::mem::take(&mut self.head);
        }
        few
    }

    /// Keeps only so many of the first keys, with room before and behind them.
    pub fn keep(&mut self, nr: usize) {
        self.keys.copy_within(self.head..self.head + nr, ROOM_BEFORE);
        (self.head, self.end) = (ROOM_BEFORE, ROOM_BEFORE + nr);
    }

    /// Makes room before and behind the keys of an empty array.
    pub fn open(&mut self) {
        (self.head, self.end) = (ROOM_BEFORE, ROOM_BEFORE);
    }

    /// Enters a key. There must be room.
    #[inline]
    pub fn enter(&mut self, key: u128) {
        let middle = self.keys[usize::midpoint(self.head, self.end)];
        if self.head > 0 && upper(key) < upper(middle) {
            self.enter_from_head(key);
        } else {
            self.enter_from_end(key);
        }
    }

    /// Enters a key by moving those before it towards the front.
    #[inline(never)]
    fn enter_from_head(&mut self, key: u128) {
        self.head -= 1;
        let line = &mut self.keys[self.head..self.end];
        let mut place = 0;
        while place + 1 < line.len() && line[place + 1] < key {
            line[place] = line[place + 1];
            place += 1;
        }
        line[place] = key;
        debug_assert!(is_sorted_around(line, place));
    }

    /// Enters a key by moving those after it towards the end.
    #[inline]
    fn enter_from_end(&mut self, key: u128) {
        let line = &mut self.keys[self.head..=self.end];
        self.end += 1;
        let mut place = line.len() - 1;
        // The upper halves usually decide the order, for half the instructions.
        for before in (0..place).rev() {
            if upper(line[before]) <= upper(key) {
                if unlikely(upper(line[before]) == upper(key)) {
                    place = settle(&mut line[..=place], key);
                }
                break;
            }
            line[before + 1] = line[before];
            place = before;
        }
        line[place] = key;
        debug_assert!(is_sorted_around(line, place));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head >= self.end
    }

    /// The first key. The array must not be empty.
    #[inline]
    pub fn first_key(&self) -> u128 {
        self.keys[self.head]
    }

    /// Upper half of the first key. The array must not be empty.
    #[inline]
    pub fn first_upper(&self) -> u64 {
        upper(self.keys[self.head])
    }

    /// Takes the first key. The array must not be empty.
    #[inline]
    pub fn take(&mut self) -> u128 {
        self.head += 1;
        self.keys[self.head - 1]
    }

    /// All keys, in order.
    pub fn keys(&self) -> &[u128] {
        &self.keys[self.head..self.end]
    }
}

/// True if a key lies between its neighbours.
fn is_sorted_around(keys: &[u128], place: usize) -> bool {
    keys[place.saturating_sub(1)..(place + 2).min(keys.len())].is_sorted()
}

fn upper(key: u128) -> u64 {
    (key >> 64) as u64
}

/// Makes room for a key among others with the same upper half; the last place is free. Returns its
/// place.
#[inline(never)]
fn settle(line: &mut [u128], key: u128) -> usize {
    let last = line.len() - 1;
    let place = line[..last].partition_point(|other| *other < key);
    line.copy_within(place..last, place + 1);
    place
}
