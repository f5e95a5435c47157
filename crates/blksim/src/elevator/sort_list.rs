//! The sort list: requests in sector order (`sort_list`).

use std::collections::BTreeSet;

use crate::block::request::RequestId;

/// Bits of a stamp that hold the request's number; the rest counts insertions.
const ID_BITS: u32 = 28;

/// The place of a request: its sector, then its stamp.
type Place = (u64, u64);

/// Requests ordered by sector, those of one sector in order of insertion, as `elv_rb_add` of
/// `block/elevator.c` (Linux 6.1) keeps them.
#[derive(Debug, Clone, Default)]
pub struct SortList {
    set: BTreeSet<Place>,
    /// The request that was inserted last. It enters the set when another comes: under a light load
    /// it is dispatched before that.
    newest: Option<Place>,
    /// Stamps by request: the number of its insertion, then its own number.
    stamps: Vec<u64>,
    insertions: u64,
}

fn id_of((_, stamp): Place) -> RequestId {
    (stamp & ((1 << ID_BITS) - 1)) as RequestId
}

impl SortList {
    #[inline]
    pub fn insert(&mut self, sector: u64, id: RequestId) {
        debug_assert!(id >> ID_BITS == 0, "request {id} is beyond the stamps");
        let index = id as usize;
        if index >= self.stamps.len() {
            self.stamps.resize(index + 1, 0);
        }
        self.insertions += 1;
        let stamp = self.insertions << ID_BITS | u64::from(id);
        self.stamps[index] = stamp;
        if let Some(before) = self.newest.replace((sector, stamp)) {
            self.set.insert(before);
        }
    }

    /// The place of a request that is here, or was until now.
    #[inline]
    fn place(&self, sector: u64, id: RequestId) -> Place {
        (sector, self.stamps.get(id as usize).copied().unwrap_or(0))
    }

    #[inline]
    pub fn remove(&mut self, sector: u64, id: RequestId) {
        let place = self.place(sector, id);
        if self.newest == Some(place) {
            self.newest = None;
            return;
        }
        let present = self.set.remove(&place);
        debug_assert!(present, "request {id} is not at sector {sector}");
    }

    /// Removes a request. Returns the one that followed it, without wrapping.
    #[inline]
    pub fn take(&mut self, sector: u64, id: RequestId) -> Option<RequestId> {
        if self.set.is_empty() {
            self.remove(sector, id);
            return None;
        }
        self.take_among_others(sector, id)
    }

    #[inline(never)]
    fn take_among_others(&mut self, sector: u64, id: RequestId) -> Option<RequestId> {
        let next = self.after(sector, id);
        self.remove(sector, id);
        next
    }

    /// The request that follows this one, without wrapping.
    #[inline]
    pub fn after(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        let place = self.place(sector, id);
        let newest = self.newest.filter(|newest| *newest > place);
        if self.set.is_empty() {
            return newest.map(id_of);
        }
        let next = self.set.range((place.0, place.1 + 1)..).next().copied();
        next.into_iter().chain(newest).min().map(id_of)
    }

    /// The first request at a sector or behind it.
    #[inline]
    pub fn from(&self, sector: u64) -> Option<RequestId> {
        let newest = self.newest.filter(|newest| newest.0 >= sector);
        let next = self.set.range((sector, 0)..).next().copied();
        next.into_iter().chain(newest).min().map(id_of)
    }

    /// The request before this one, without wrapping.
    #[inline]
    pub fn before(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        let place = self.place(sector, id);
        let newest = self.newest.filter(|newest| *newest < place);
        if self.set.is_empty() {
            return newest.map(id_of);
        }
        let last = self.set.range(..place).next_back().copied();
        last.into_iter().chain(newest).max().map(id_of)
    }

    /// The lowest request.
    #[inline]
    pub fn first(&self) -> Option<RequestId> {
        self.set.first().copied().into_iter().chain(self.newest).min().map(id_of)
    }

    /// All, in sector order.
    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        let newest = self.newest;
        let before = self.set.iter().filter(move |place| newest.is_none_or(|new| **place < new));
        let after = self.set.iter().filter(move |place| newest.is_some_and(|new| **place > new));
        before.copied().chain(newest).chain(after.copied()).map(id_of)
    }

    pub fn len(&self) -> usize {
        self.set.len() + usize::from(self.newest.is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Stream;

    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut stream = Stream::named(1, "sectors");
        let mut tree = SortList::default();
        // Sector, number of the insertion, request.
        let mut list: Vec<(u64, u64, RequestId)> = Vec::new();
        let mut free: Vec<RequestId> = (0..60).collect();
        for step in 0..20_000 {
            // Few sectors, so that some hold several requests.
            let sector = stream.below(20);
            if list.is_empty() || (!free.is_empty() && stream.below(2) == 0) {
                let id = free.swap_remove(stream.below(free.len() as u64) as usize);
                tree.insert(sector, id);
                list.push((sector, step, id));
            } else {
                let place = stream.below(list.len() as u64) as usize;
                let (sector, _, id) = list.remove(place);
                if stream.below(2) == 0 {
                    tree.remove(sector, id);
                } else {
                    assert_eq!(tree.take(sector, id), list.get(place).map(|(_, _, id)| *id));
                }
                free.push(id);
            }
            list.sort_unstable();
            for (index, (sector, _, id)) in list.iter().enumerate() {
                let after = list.get(index + 1).map(|(_, _, id)| *id);
                let before = index.checked_sub(1).map(|index| list[index].2);
                assert_eq!(tree.after(*sector, *id), after);
                assert_eq!(tree.before(*sector, *id), before);
            }
            assert!(tree.iter().eq(list.iter().map(|(_, _, id)| *id)));
            assert_eq!(tree.first(), list.first().map(|(_, _, id)| *id));
            assert_eq!((tree.len(), tree.is_empty()), (list.len(), list.is_empty()));
        }
    }
}
