//! A heap, for many events.

use super::NONE;

/// Keys from here on are later than every event; free places contain them.
const NEVER: u128 = (u64::MAX as u128 - 3) << 64;

/// Four keys with the same parent, in one cache line. Their upper halves differ except for events
/// of one class at one moment, so most comparisons take half the instructions.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Siblings {
    upper: [u64; 4],
    lower: [u64; 4],
}

impl Siblings {
    /// Free places differ in their upper halves too.
    const FREE: Self =
        Self { upper: [u64::MAX - 3, u64::MAX - 2, u64::MAX - 1, u64::MAX], lower: [0; 4] };

    #[inline]
    fn get(&self, number: usize) -> u128 {
        u128::from(self.upper[number]) << 64 | u128::from(self.lower[number])
    }

    #[inline]
    fn set(&mut self, number: usize, key: u128) {
        self.upper[number] = (key >> 64) as u64;
        self.lower[number] = key as u64;
    }

    /// The least upper half.
    #[inline]
    fn least_upper(&self) -> u64 {
        let [a, b, c, d] = self.upper;
        a.min(b).min(c.min(d))
    }

    /// Number of the least key.
    #[inline]
    fn least(&self) -> usize {
        let [a, b, c, d] = self.upper;
        let (left, left_number) = if b < a { (b, 1) } else { (a, 0) };
        let (right, right_number) = if d < c { (d, 3) } else { (c, 2) };
        if a == b || c == d || left == right {
            return self.least_of_alike();
        }
        if right < left { right_number } else { left_number }
    }

    /// The same if upper halves are equal.
    #[cold]
    fn least_of_alike(&self) -> usize {
        (1..4).fold(0, |least, other| if self.get(other) < self.get(least) { other } else { least })
    }

    fn keys(self) -> [u128; 4] {
        std::array::from_fn(|number| self.get(number))
    }
}

/// The place of the root. Place p is number p % 4 of the siblings p / 4; its children are the
/// siblings p - 2.
const ROOT: usize = 3;

/// A heap of packed keys with four children a node.
///
/// Most events cause one other. So the root stays empty after its key was taken, and the next key
/// sinks from there: one walk down instead of one down and one up.
#[derive(Debug, Clone)]
pub(super) struct Heap {
    /// The heap from [`ROOT`] on; beyond its end all places are free.
    siblings: Vec<Siblings>,
    /// Place behind the last key; [`ROOT`] if there is none.
    end: usize,
    /// The root was taken and not yet replaced.
    hollow: bool,
}

impl Default for Heap {
    fn default() -> Self {
        Self { siblings: vec![Siblings::FREE], end: ROOT, hollow: false }
    }
}

impl Heap {
    pub fn len(&self) -> usize {
        self.end - ROOT - usize::from(self.hollow)
    }

    /// Enters a key.
    #[inline(never)]
    pub fn enter(&mut self, key: u128) {
        if std::mem::take(&mut self.hollow) {
            self.sift_down(key);
        } else {
            self.push(key);
        }
    }

    /// Upper half of the first key, [`u64::MAX`] or a little less if there is none.
    #[inline(never)]
    pub fn first_upper(&self) -> u64 {
        if self.hollow {
            self.siblings.get(ROOT - 2).map_or(u64::MAX, Siblings::least_upper)
        } else {
            self.siblings[0].upper[ROOT]
        }
    }

    /// The first key; [`NONE`] if there is none.
    pub fn first_key(&self) -> u128 {
        let first = if self.hollow {
            self.siblings.get(ROOT - 2).map_or(NONE, |children| children.get(children.least()))
        } else {
            self.siblings[0].get(ROOT)
        };
        if first < NEVER { first } else { NONE }
    }

    /// Takes the first key; [`NONE`] if there is none.
    #[inline(never)]
    pub fn take(&mut self) -> u128 {
        if std::mem::take(&mut self.hollow) {
            self.fill_root();
        }
        let first = self.siblings[0].get(ROOT);
        self.hollow = first < NEVER;
        if self.hollow { first } else { NONE }
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = u128> + '_ {
        let first = ROOT + usize::from(self.hollow);
        self.siblings
            .iter()
            .flat_map(|siblings| siblings.keys())
            .skip(first)
            .filter(|key| *key < NEVER)
    }

    /// Appends a key and lets it rise.
    fn push(&mut self, key: u128) {
        let mut place = self.end;
        self.end += 1;
        if place / 4 == self.siblings.len() {
            self.siblings.push(Siblings::FREE);
        }
        while place > ROOT {
            let parent = place / 4 + 2;
            let above = self.siblings[parent / 4].get(parent % 4);
            if above <= key {
                break;
            }
            self.siblings[place / 4].set(place % 4, above);
            place = parent;
        }
        self.siblings[place / 4].set(place % 4, key);
    }

    /// Fills the root, whose event was taken, with the last key.
    fn fill_root(&mut self) {
        self.end -= 1;
        let (siblings, number) = (&mut self.siblings[self.end / 4], self.end % 4);
        let last = siblings.get(number);
        siblings.upper[number] = Siblings::FREE.upper[number];
        if self.end > ROOT {
            self.sift_down(last);
        }
    }

    /// Puts a key into the root and lets it sink.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let heap = self.siblings.as_mut_slice();
        let mut place = ROOT;
        while let Some(children) = heap.get(place - 2) {
            let number = children.least();
            let least = children.get(number);
            if least >= key {
                break;
            }
            heap[place / 4].set(place % 4, least);
            place = 4 * (place - 2) + number;
        }
        heap[place / 4].set(place % 4, key);
    }
}
