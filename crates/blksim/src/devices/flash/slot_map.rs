//! The places of logical slots that were written since the start.
//!
//! The logical space is divided into groups of [`GROUP`] slots (4 MiB). A sparsely written group
//! has a sorted list, six bytes for each slot; a mostly written one becomes a plain array, four
//! bytes for each. Memory grows with the writes of a run, up to four bytes for each slot of the
//! device. Places of unwritten slots are computed.

/// Logical slots of a group.
const GROUP: usize = 1024;
/// A list longer than this takes more room than the array.
const LONGEST_LIST: usize = GROUP * 4 / 6;
/// In an array: not written.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Clone)]
enum Group {
    /// Positions within the group, ascending, and their places.
    List {
        positions: Vec<u16>,
        places: Vec<u32>,
    },
    Array(Box<[u32; GROUP]>),
}

impl Default for Group {
    fn default() -> Self {
        Self::List { positions: Vec::new(), places: Vec::new() }
    }
}

impl Group {
    #[inline(never)]
    fn get(&self, position: u16) -> Option<u32> {
        match self {
            Self::Array(places) => {
                let place = places[position as usize];
                (place != NOWHERE).then_some(place)
            }
            Self::List { positions, places } => {
                positions.binary_search(&position).ok().map(|index| places[index])
            }
        }
    }

    fn insert(&mut self, position: u16, place: u32) {
        match self {
            Self::Array(all) => all[position as usize] = place,
            Self::List { positions, places } => match positions.binary_search(&position) {
                Ok(index) => places[index] = place,
                Err(_) if positions.len() == LONGEST_LIST => {
                    let mut all = Box::new([NOWHERE; GROUP]);
                    for (&position, &place) in positions.iter().zip(places.iter()) {
                        all[position as usize] = place;
                    }
                    all[position as usize] = place;
                    *self = Self::Array(all);
                }
                Err(index) => {
                    if positions.len() == positions.capacity() {
                        // Doubling would leave a third of all memory unused.
                        let more = (positions.len() / 4).max(4);
                        positions.reserve_exact(more);
                        places.reserve_exact(more);
                    }
                    positions.insert(index, position);
                    places.insert(index, place);
                }
            },
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct SlotMap {
    groups: Vec<Group>,
}

impl SlotMap {
    #[inline]
    pub fn get(&self, slot: u32) -> Option<u32> {
        self.groups.get(slot as usize / GROUP)?.get((slot as usize % GROUP) as u16)
    }

    /// Notes that a slot lies at `place`, which must not be `u32::MAX`.
    pub fn insert(&mut self, slot: u32, place: u32) {
        debug_assert_ne!(place, NOWHERE);
        let group = slot as usize / GROUP;
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, Group::default);
        }
        self.groups[group].insert((slot as usize % GROUP) as u16, place);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::core::rng::Stream;

    #[test]
    fn it_agrees_with_a_tree_map_sparse_and_dense() {
        let mut stream = Stream::named(1, "slots");
        let mut map = SlotMap::default();
        let mut tree = BTreeMap::new();
        assert_eq!(map.get(5), None);
        for place in 0..60_000 {
            // Half of the writes go to four groups, the others all over.
            let range = if place % 2 == 0 { 4 * GROUP as u64 } else { 300 * GROUP as u64 };
            let slot = stream.below(range) as u32;
            map.insert(slot, place);
            tree.insert(slot, place);
        }
        let arrays = map.groups.iter().filter(|g| matches!(g, Group::Array(_))).count();
        assert!((4..300).contains(&arrays), "{arrays} arrays");
        for slot in 0..301 * GROUP as u32 {
            assert_eq!(map.get(slot), tree.get(&slot).copied(), "{slot}");
        }
    }
}
