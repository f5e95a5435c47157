//! An index of held requests by first and last sector, for merging (`elv_rqhash`).
//!
//! It is a hash table with two slots in each place: one for requests that end at a sector, one for
//! those that begin there. A slot holds a hash and the newest request with that hash; older ones
//! are chained through the requests. Neighbouring sectors have neighbouring places. Searching for
//! both merges and inserting a small request therefore read one or two cache lines of the table
//! and, if nothing matches, no request: with ten thousand held, each would come from main memory.

use crate::block::request::{Merge, NONE, RequestId, Requests};
use crate::core::rng::mix;

const BY_END: usize = 0;
const BY_START: usize = 1;

/// Places at first; a power of two, as all sizes are.
const FIRST_PLACES: usize = 64;

/// One slot: the hash, and the newest request that has it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    /// `NONE`: the slot is free.
    newest: RequestId,
}

const FREE: Slot = Slot { hash: 0, newest: NONE };

/// Pages of one 32 KiB follow each other.
#[inline]
fn hash_of(sector: u64) -> u32 {
    (mix(sector >> 6) as u32) << 3 | (sector >> 3) as u32 & 7
}

#[derive(Debug, Clone)]
pub struct ExtentIndex {
    /// Linear probing, for ends and starts by themselves, at most half full.
    places: Vec<[Slot; 2]>,
    used: [usize; 2],
    /// The request that was inserted last. It enters the table when another
    /// comes: under a light load it is dispatched before that.
    newest: RequestId,
}

impl Default for ExtentIndex {
    fn default() -> Self {
        Self { places: vec![[FREE; 2]; FIRST_PLACES], used: [0; 2], newest: NONE }
    }
}

impl ExtentIndex {
    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        let before = std::mem::replace(&mut self.newest, id);
        if before != NONE {
            let (start, end) = (requests[before].sector, requests[before].end());
            self.link(requests, BY_END, end, before);
            self.link(requests, BY_START, start, before);
        }
    }

    /// Must be called before the request's extent changes.
    #[inline]
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        if self.newest == id {
            self.newest = NONE;
            return;
        }
        let (start, end) = (requests[id].sector, requests[id].end());
        self.unlink(requests, BY_END, end, id);
        self.unlink(requests, BY_START, start, id);
    }

    /// The newest held request that `bio` touches and that `suits`.
    #[inline]
    pub fn find(
        &self,
        requests: &Requests,
        side: Merge,
        sector: u64,
        suits: impl Fn(RequestId) -> bool,
    ) -> Option<RequestId> {
        let half = if side == Merge::Back { BY_END } else { BY_START };
        let fits = |id: RequestId| {
            let request = &requests[id];
            let key = if side == Merge::Back { request.end() } else { request.sector };
            key == sector && suits(id)
        };
        if self.newest != NONE && fits(self.newest) {
            return Some(self.newest);
        }
        if self.used[half] == 0 {
            return None;
        }
        let mut id = self.places[self.probe(half, hash_of(sector))][half].newest;
        while id != NONE {
            if fits(id) {
                return Some(id);
            }
            id = requests[id].hashed[half].1;
        }
        None
    }

    #[inline]
    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// The place of the slot with this hash, or the free place where it would go.
    #[inline]
    fn probe(&self, half: usize, hash: u32) -> usize {
        let mut at = hash as usize & self.mask();
        loop {
            let slot = self.places[at][half];
            if slot.newest == NONE || slot.hash == hash {
                return at;
            }
            at = (at + 1) & self.mask();
        }
    }

    #[inline]
    fn link(&mut self, requests: &mut Requests, half: usize, sector: u64, id: RequestId) {
        if (self.used[half] + 1) * 2 > self.places.len() {
            self.grow();
        }
        let hash = hash_of(sector);
        let at = self.probe(half, hash);
        let older = self.places[at][half].newest;
        self.used[half] += usize::from(older == NONE);
        self.places[at][half] = Slot { hash, newest: id };
        requests[id].hashed[half] = (NONE, older);
        if older != NONE {
            requests[older].hashed[half].0 = id;
        }
    }

    #[inline]
    fn unlink(&mut self, requests: &mut Requests, half: usize, sector: u64, id: RequestId) {
        debug_assert!(
            self.holds(requests, half, sector, id),
            "request {id} is not at sector {sector} in the index"
        );
        let (newer, older) = requests[id].hashed[half];
        if older != NONE {
            requests[older].hashed[half].0 = newer;
        }
        if newer != NONE {
            requests[newer].hashed[half].1 = older;
            return;
        }
        let at = self.probe(half, hash_of(sector));
        self.places[at][half].newest = older;
        if older == NONE {
            self.used[half] -= 1;
            self.fill(half, at);
        }
    }

    /// True if the chain of a sector's hash leads to the request.
    fn holds(&self, requests: &Requests, half: usize, sector: u64, id: RequestId) -> bool {
        let mut at = self.places[self.probe(half, hash_of(sector))][half].newest;
        while at != NONE && at != id {
            at = requests[at].hashed[half].1;
        }
        at == id
    }

    /// A slot has become free: moves up the entries that it displaced, so that no search ends too
    /// early.
    #[inline]
    fn fill(&mut self, half: usize, mut hole: usize) {
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.places[at][half];
            if slot.newest == NONE {
                return;
            }
            let home = slot.hash as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole][half] = slot;
                self.places[at][half] = FREE;
                hole = at;
            }
        }
    }

    fn grow(&mut self) {
        let size = self.places.len() * 2;
        let old = std::mem::replace(&mut self.places, vec![[FREE; 2]; size]);
        for place in old {
            for (half, slot) in place.into_iter().enumerate() {
                if slot.newest != NONE {
                    let at = self.probe(half, slot.hash);
                    self.places[at][half] = slot;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose, Request};
    use crate::core::rng::Stream;

    #[test]
    fn requests_are_found_by_both_ends_until_removed() {
        let mut requests = Requests::new();
        let mut index = ExtentIndex::default();
        let ids: Vec<_> = (0..1000)
            .map(|i| requests.allocate(Request::new(Operation::Read, i * 100, 8, Purpose::Direct)))
            .collect();
        for &id in &ids {
            index.insert(&mut requests, id);
        }
        for (i, &id) in ids.iter().enumerate() {
            let sector = i as u64 * 100;
            assert_eq!(index.find(&requests, Merge::Back, sector + 8, |_| true), Some(id));
            assert_eq!(index.find(&requests, Merge::Front, sector, |_| true), Some(id));
            assert_eq!(index.find(&requests, Merge::Front, sector, |_| false), None);
        }
        for &id in &ids {
            index.remove(&mut requests, id);
        }
        assert_eq!(index.find(&requests, Merge::Back, 108, |_| true), None);
    }

    /// Random insertions and removals with few distinct positions, against a plain list.
    #[test]
    fn it_agrees_with_a_list_searched_from_its_end() {
        let mut stream = Stream::named(1, "extents");
        let mut requests = Requests::new();
        let mut index = ExtentIndex::default();
        let mut held: Vec<RequestId> = Vec::new();
        for _ in 0..20_000 {
            if held.len() < 400 && stream.below(2) == 0 {
                let sector = stream.below(300) * 8;
                let request = Request::new(Operation::Read, sector, 8, Purpose::Direct);
                let id = requests.allocate(request);
                index.insert(&mut requests, id);
                held.push(id);
            } else if !held.is_empty() {
                let id = held.remove(stream.below(held.len() as u64) as usize);
                index.remove(&mut requests, id);
                requests.release(id);
            }
            let sector = stream.below(300) * 8;
            let odd = |id: RequestId| id % 2 == 1;
            let expected =
                held.iter().rev().copied().find(|&id| requests[id].end() == sector && odd(id));
            assert_eq!(index.find(&requests, Merge::Back, sector, odd), expected);
            let expected = held.iter().rev().copied().find(|&id| requests[id].sector == sector);
            assert_eq!(index.find(&requests, Merge::Front, sector, |_| true), expected);
        }
    }
}
