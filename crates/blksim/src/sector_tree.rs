//! Requests in sector order.

use std::collections::BTreeSet;

use crate::request::RequestId;

/// A set of requests ordered by (sector, id).
#[derive(Debug, Default)]
pub struct SectorTree {
    set: BTreeSet<(u64, RequestId)>,
    /// What was inserted last. It enters the set when another comes: under a
    /// light load it is dispatched before that.
    newest: Option<(u64, RequestId)>,
}

impl SectorTree {
    #[inline]
    pub fn insert(&mut self, sector: u64, id: RequestId) {
        if let Some(before) = self.newest.replace((sector, id)) {
            self.set.insert(before);
        }
    }

    #[inline]
    pub fn remove(&mut self, sector: u64, id: RequestId) {
        if self.newest == Some((sector, id)) {
            self.newest = None;
            return;
        }
        let present = self.set.remove(&(sector, id));
        debug_assert!(present, "request {id} is not at sector {sector}");
    }

    /// Removes a request; the one that followed it, if any: no wrapping.
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

    /// The request that follows this one, if any: no wrapping.
    #[inline]
    pub fn after(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        let newest = self.newest.filter(|newest| *newest > (sector, id));
        if self.set.is_empty() {
            return newest.map(|(_, id)| id);
        }
        let next = self.set.range((sector, id + 1)..).next().copied();
        next.into_iter().chain(newest).min().map(|(_, id)| id)
    }

    /// The request before this one, if any: no wrapping.
    #[inline]
    pub fn before(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        let newest = self.newest.filter(|newest| *newest < (sector, id));
        if self.set.is_empty() {
            return newest.map(|(_, id)| id);
        }
        let last = self.set.range(..(sector, id)).next_back().copied();
        last.into_iter().chain(newest).max().map(|(_, id)| id)
    }

    /// The lowest request.
    #[inline]
    pub fn first(&self) -> Option<RequestId> {
        self.set.first().copied().into_iter().chain(self.newest).min().map(|(_, id)| id)
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
    use crate::rng::Stream;

    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut stream = Stream::named(1, "sectors");
        let mut tree = SectorTree::default();
        let mut list: Vec<(u64, RequestId)> = Vec::new();
        for id in 0..20_000 {
            // Few sectors, so that some hold several requests.
            let sector = stream.below(200);
            if list.is_empty() || (list.len() < 60 && stream.below(2) == 0) {
                tree.insert(sector, id);
                list.push((sector, id));
            } else {
                let place = stream.below(list.len() as u64) as usize;
                let (sector, id) = list.remove(place);
                if stream.below(2) == 0 {
                    tree.remove(sector, id);
                } else {
                    assert_eq!(tree.take(sector, id), list.get(place).map(|(_, id)| *id));
                }
            }
            list.sort_unstable();
            let place = (sector, stream.below(20_000) as RequestId);
            let after = list.iter().find(|entry| **entry > place);
            let before = list.iter().rfind(|entry| **entry < place);
            assert_eq!(tree.after(place.0, place.1), after.map(|(_, id)| *id));
            assert_eq!(tree.before(place.0, place.1), before.map(|(_, id)| *id));
            assert_eq!(tree.first(), list.first().map(|(_, id)| *id));
            assert_eq!((tree.len(), tree.is_empty()), (list.len(), list.is_empty()));
        }
    }
}
