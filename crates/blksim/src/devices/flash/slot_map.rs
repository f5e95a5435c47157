//! Where logical slots lie that were written since the start: a hash table
//! from `u32` to `u32` with open addressing.
//!
//! Slots that were not written are found by arithmetic, so that memory grows
//! with what a run writes and not with the device. The table is only looked
//! up, never walked: its order cannot influence anything.

const EMPTY: u32 = u32::MAX;

#[derive(Debug, Default)]
pub struct SlotMap {
    entries: Vec<(u32, u32)>,
    len: usize,
}

impl SlotMap {
    #[inline]
    fn bucket(&self, key: u32) -> usize {
        let hash = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.entries.len() - 1)
    }

    #[inline]
    pub fn get(&self, key: u32) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut index = self.bucket(key);
        loop {
            match self.entries[index] {
                (EMPTY, _) => return None,
                (found, value) if found == key => return Some(value),
                _ => index = (index + 1) & (self.entries.len() - 1),
            }
        }
    }

    pub fn insert(&mut self, key: u32, value: u32) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        let mut index = self.bucket(key);
        while self.entries[index].0 != EMPTY && self.entries[index].0 != key {
            index = (index + 1) & (self.entries.len() - 1);
        }
        self.len += usize::from(self.entries[index].0 == EMPTY);
        self.entries[index] = (key, value);
    }

    fn grow(&mut self) {
        let size = (self.entries.len() * 2).max(1024);
        let old = std::mem::replace(&mut self.entries, vec![(EMPTY, 0); size]);
        self.len = 0;
        for (key, value) in old.into_iter().filter(|(key, _)| *key != EMPTY) {
            self.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_was_put_in_last() {
        let mut map = SlotMap::default();
        assert_eq!(map.get(5), None);
        for key in 0..100_000 {
            map.insert(key * 7, key);
        }
        map.insert(14, 99);
        assert_eq!((map.get(14), map.get(7 * 5000), map.get(3)), (Some(99), Some(5000), None));
    }
}
