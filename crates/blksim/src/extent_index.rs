//! Finds held requests by where they end or begin, for merging.
//!
//! Two hash tables with chains through the requests themselves, as the
//! kernel's elevator hash: constant time, no allocation in a steady state.

use crate::request::{NONE, RequestId, Requests};
use crate::rng::mix;
use crate::scheduler::Merge;

const BY_END: usize = 0;
const BY_START: usize = 1;

#[derive(Debug)]
pub struct ExtentIndex {
    /// Heads of chains: by end, by start.
    buckets: [Vec<RequestId>; 2],
    len: usize,
}

impl Default for ExtentIndex {
    fn default() -> Self {
        Self { buckets: [vec![NONE; 64], vec![NONE; 64]], len: 0 }
    }
}

impl ExtentIndex {
    #[inline]
    fn bucket(&self, sector: u64) -> usize {
        mix(sector) as usize & (self.buckets[0].len() - 1)
    }

    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        if self.len >= self.buckets[0].len() * 2 {
            self.grow(requests);
        }
        self.len += 1;
        let (start, end) = (requests[id].sector, requests[id].end());
        self.link(requests, BY_END, end, id);
        self.link(requests, BY_START, start, id);
    }

    /// Must be called before the request's extent changes.
    #[inline]
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        self.len -= 1;
        let (start, end) = (requests[id].sector, requests[id].end());
        self.unlink(requests, BY_END, end, id);
        self.unlink(requests, BY_START, start, id);
    }

    /// A held request that `bio` could join by its position, and that `suits`.
    #[inline]
    pub fn find(
        &self,
        requests: &Requests,
        side: Merge,
        sector: u64,
        suits: impl Fn(RequestId) -> bool,
    ) -> Option<RequestId> {
        if self.len == 0 {
            return None;
        }
        let table = if side == Merge::Back { BY_END } else { BY_START };
        let mut id = self.buckets[table][self.bucket(sector)];
        while id != NONE {
            let request = &requests[id];
            let key = if side == Merge::Back { request.end() } else { request.sector };
            if key == sector && suits(id) {
                return Some(id);
            }
            id = request.hashed[table].1;
        }
        None
    }

    #[inline]
    fn link(&mut self, requests: &mut Requests, table: usize, sector: u64, id: RequestId) {
        let bucket = self.bucket(sector);
        let head = self.buckets[table][bucket];
        requests[id].hashed[table] = (NONE, head);
        if head != NONE {
            requests[head].hashed[table].0 = id;
        }
        self.buckets[table][bucket] = id;
    }

    #[inline]
    fn unlink(&mut self, requests: &mut Requests, table: usize, sector: u64, id: RequestId) {
        let (previous, next) = requests[id].hashed[table];
        if previous == NONE {
            let bucket = self.bucket(sector);
            self.buckets[table][bucket] = next;
        } else {
            requests[previous].hashed[table].1 = next;
        }
        if next != NONE {
            requests[next].hashed[table].0 = previous;
        }
    }

    fn grow(&mut self, requests: &mut Requests) {
        let size = self.buckets[0].len() * 2;
        for table in [BY_END, BY_START] {
            let old = std::mem::replace(&mut self.buckets[table], vec![NONE; size]);
            // Chains are rebuilt from their tails, so that their order stays.
            for head in old {
                let mut chain = Vec::new();
                let mut id = head;
                while id != NONE {
                    chain.push(id);
                    id = requests[id].hashed[table].1;
                }
                for id in chain.into_iter().rev() {
                    let request = &requests[id];
                    let key = if table == BY_END { request.end() } else { request.sector };
                    let bucket = mix(key) as usize & (size - 1);
                    let first = self.buckets[table][bucket];
                    requests[id].hashed[table] = (NONE, first);
                    if first != NONE {
                        requests[first].hashed[table].0 = id;
                    }
                    self.buckets[table][bucket] = id;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Operation, Purpose, Request};

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
}
