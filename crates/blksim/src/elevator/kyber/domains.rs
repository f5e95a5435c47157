//! The queues of kyber: arrived requests, ready requests and tokens of each domain
//! (`kyber_ctx_queue`, `khd->rqs`, `domain_tokens`). Domains take turns in batches.
//!
//! Kernel: `block/kyber-iosched.c`, 6.1 (the same since 4.18).

use crate::block::request::{Fifo, Merge, Request, RequestId, Requests};
use crate::block::sbitmap::{SbitmapQueue, bits_per_word};
use crate::core::branch::{cold_path, likely, unlikely};

/// Most arrived requests that are tried for a merge, newest first.
const MERGE_SEARCH: u32 = 8;

/// The only sleeper for tokens: the hctx, of which there is one.
const THE_QUEUE: u32 = 0;

#[derive(Debug)]
struct Domain {
    tokens: SbitmapQueue,
    max_depth: u32,
    /// The queue sleeps for tokens and must run when they come back.
    waits: bool,
    batch: u32,
    held: Fifo,
    /// The oldest of them are ready. The others have arrived since and are open for merges; they
    /// become ready all at once when a token is free and none is ready.
    nr_ready: u32,
}

/// `N` domains.
#[derive(Debug)]
pub struct Domains<const N: usize> {
    all: [Domain; N],
    current: usize,
    batching: u32,
    /// The sleepers that a token has woken: the queue, if any.
    woken: Vec<u32>,
}

impl<const N: usize> Domains<N> {
    /// The domains, from the token count and batch of each.
    pub fn new(sizes: [(u32, u32); N]) -> Self {
        Self {
            all: sizes.map(|(max_depth, batch)| Domain {
                tokens: SbitmapQueue::new(max_depth, bits_per_word(max_depth), u32::MAX),
                max_depth,
                waits: false,
                batch,
                held: Fifo::default(),
                nr_ready: 0,
            }),
            current: 0,
            batching: 0,
            woken: Vec::new(),
        }
    }

    pub fn depth(&self, domain: usize) -> u32 {
        self.all[domain].tokens.nr_tags()
    }

    pub fn is_throttled(&self, domain: usize) -> bool {
        self.depth(domain) < self.all[domain].max_depth
    }

    /// Sets the number of tokens, at least 1.
    pub fn resize(&mut self, domain: usize, depth: u32) {
        let domain = &mut self.all[domain];
        domain.tokens.resize(depth.clamp(1, domain.max_depth));
    }

    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, domain: usize, id: RequestId) {
        self.all[domain].held.push_back(requests, id);
    }

    /// A request of the domain, among the newest, that `bio` touches and may join.
    pub fn touching(
        &self,
        requests: &Requests,
        domain: usize,
        bio: RequestId,
    ) -> Option<(RequestId, Merge)> {
        let (start, end) = (requests[bio].sector, requests[bio].end());
        let Domain { held, nr_ready, .. } = &self.all[domain];
        let mut candidate = held.tail();
        for _ in 0..(held.len() - nr_ready).min(MERGE_SEARCH) {
            let id = candidate?;
            let request = &requests[id];
            if !request.progress.no_merge() {
                if request.end() == start {
                    return Some((id, Merge::Back));
                }
                if request.sector == end {
                    return Some((id, Merge::Front));
                }
            }
            candidate = Some(request.previous);
        }
        None
    }

    /// Dispatches from the current domain until its batch ends or it lacks requests or tokens; then
    /// from the others in turn.
    #[inline]
    pub fn dispatch(&mut self, requests: &mut Requests) -> Option<RequestId> {
        if self.batching < self.all[self.current].batch {
            if let Some(id) = self.take(requests) {
                return Some(id);
            }
        }
        self.take_turns(requests)
    }

    #[inline(never)]
    fn take_turns(&mut self, requests: &mut Requests) -> Option<RequestId> {
        self.batching = 0;
        for _ in 0..N {
            self.current = if self.current + 1 == N { 0 } else { self.current + 1 };
            if let Some(id) = self.take(requests) {
                return Some(id);
            }
        }
        None
    }

    /// The next request of the current domain, with a token.
    #[inline(always)]
    fn take(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let domain = &mut self.all[self.current];
        if domain.held.is_empty() {
            return None;
        }
        let Some(token) = domain.tokens.take(None) else {
            cold_path();
            if !std::mem::replace(&mut domain.waits, true) {
                domain.tokens.sleep(THE_QUEUE);
            }
            return None;
        };
        if unlikely(std::mem::take(&mut domain.waits)) {
            domain.tokens.leave(THE_QUEUE);
        }
        if domain.nr_ready == 0 {
            domain.nr_ready = domain.held.len();
        }
        domain.nr_ready -= 1;
        let id = domain.held.pop_front(requests)?;
        requests[id].queue = token;
        self.batching += 1;
        Some(id)
    }

    /// Returns a request's token. The result is true if the queue slept for it and must run; not
    /// every returned token wakes it.
    #[inline(always)]
    pub fn release(&mut self, request: &Request, domain: usize) -> bool {
        let domain = &mut self.all[domain];
        domain.tokens.give_back(request.queue, &mut self.woken);
        if likely(self.woken.pop().is_none()) {
            return false;
        }
        domain.waits = false;
        domain.tokens.awake();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose};

    fn add<const N: usize>(
        domains: &mut Domains<N>,
        requests: &mut Requests,
        domain: usize,
        sector: u64,
    ) -> RequestId {
        let id = requests.allocate(Request::new(Operation::Read, sector, 8, Purpose::Direct));
        domains.insert(requests, domain, id);
        id
    }

    #[test]
    fn domains_take_turns_in_batches_while_they_have_tokens() {
        let mut requests = Requests::new();
        let mut domains = Domains::new([(3, 2), (1, 4)]);
        for sector in 0..4 {
            add(&mut domains, &mut requests, 0, sector * 100);
            add(&mut domains, &mut requests, 1, 10_000 + sector * 100);
        }
        // Two of the first, the one token of the second, the last token of the first.
        let taken: Vec<_> = std::iter::from_fn(|| domains.dispatch(&mut requests)).collect();
        let sectors: Vec<_> = taken.iter().map(|&id| requests[id].sector).collect();
        assert_eq!(sectors, [0, 100, 10_000, 200]);
        let of_second = taken[2];
        assert!(domains.release(&requests[of_second], 1));
        assert_eq!(domains.dispatch(&mut requests).map(|id| requests[id].sector), Some(10_100));
    }

    #[test]
    fn merges_are_looked_for_among_the_newest_that_are_not_ready() {
        let mut requests = Requests::new();
        let mut domains = Domains::new([(1, 1)]);
        let first = add(&mut domains, &mut requests, 0, 100);
        let bio = |requests: &mut Requests, sector| {
            requests.allocate(Request::new(Operation::Read, sector, 8, Purpose::Direct))
        };
        let (behind, before) = (bio(&mut requests, 108), bio(&mut requests, 92));
        assert_eq!(domains.touching(&requests, 0, behind), Some((first, Merge::Back)));
        assert_eq!(domains.touching(&requests, 0, before), Some((first, Merge::Front)));
        for sector in 10..18 {
            add(&mut domains, &mut requests, 0, sector * 1000);
        }
        assert_eq!(domains.touching(&requests, 0, behind), None);
        domains.dispatch(&mut requests);
        let last = bio(&mut requests, 17_008);
        assert_eq!(domains.touching(&requests, 0, last), None, "all are ready now");
    }
}
