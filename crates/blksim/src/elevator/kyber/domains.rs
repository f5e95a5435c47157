//! The queues of kyber: arrived requests, ready requests and tokens of each domain
//! (`kyber_ctx_queue`, `khd->rqs`, `domain_tokens`). Domains take turns in batches.
//!
//! Kernel: `block/kyber-iosched.c`, 6.1 (the same since 4.18).

use crate::block::per_hctx::PerHctx;
use crate::block::request::{Fifo, Merge, Request, RequestId, Requests};
use crate::block::sbitmap::{SbitmapQueue, bits_per_word};
use crate::core::branch::{cold_path, unlikely};
use crate::elevator::holding::Holding;

/// Most arrived requests that are tried for a merge, newest first.
const MERGE_SEARCH: u32 = 8;

/// The tokens of a domain, which all hardware queues share.
#[derive(Debug, Clone)]
struct Tokens {
    map: SbitmapQueue,
    max_depth: u32,
    batch: u32,
}

/// The requests of a domain in one hardware queue.
#[derive(Debug, Clone, Default)]
struct DomainQueue {
    /// It sleeps for tokens and must run when they come back.
    waits: bool,
    held: Fifo,
    /// The oldest of them are ready. The others have arrived since and are open for merges; they
    /// become ready all at once when a token is free and none is ready.
    nr_ready: u32,
}

/// The domains of one hardware queue (`struct kyber_hctx_data`).
#[derive(Debug, Clone)]
struct HctxDomains<const N: usize> {
    hctx: u32,
    all: [DomainQueue; N],
    current: usize,
    batching: u32,
}

/// `N` domains.
#[derive(Debug, Clone)]
pub struct Domains<const N: usize> {
    tokens: [Tokens; N],
    hctxs: PerHctx<HctxDomains<N>>,
    /// The hardware queues that a token has woken.
    woken: Vec<u32>,
}

impl<const N: usize> Domains<N> {
    /// The domains, from the token count and batch of each.
    pub fn new(sizes: [(u32, u32); N], nr_hctxs: u32) -> Self {
        let mut number = 0..;
        Self {
            tokens: sizes.map(|(max_depth, batch)| Tokens {
                map: SbitmapQueue::new(max_depth, bits_per_word(max_depth), u32::MAX),
                max_depth,
                batch,
            }),
            hctxs: PerHctx::new(nr_hctxs, || HctxDomains {
                hctx: number.next().unwrap_or(0),
                all: std::array::from_fn(|_| DomainQueue::default()),
                current: 0,
                batching: 0,
            }),
            woken: Vec::new(),
        }
    }

    pub fn depth(&self, domain: usize) -> u32 {
        self.tokens[domain].map.nr_tags()
    }

    pub fn is_throttled(&self, domain: usize) -> bool {
        self.depth(domain) < self.tokens[domain].max_depth
    }

    /// Sets the number of tokens, at least 1.
    pub fn resize(&mut self, domain: usize, depth: u32) {
        let tokens = &mut self.tokens[domain];
        tokens.map.resize(depth.clamp(1, tokens.max_depth));
    }

    /// The requests of a domain and its tokens.
    pub fn describe(&self, requests: &Requests, name: &'static str, domain: usize) -> Holding {
        let map = &self.tokens[domain].map;
        let queues = self.hctxs.iter().map(|hctx| &hctx.all[domain]);
        let queues = queues.filter(|queue| !queue.held.is_empty());
        let parts = queues.map(|queue| {
            Holding::new("queue")
                .fact("nr_ready", queue.nr_ready)
                .fact("waits_for_token", queue.waits)
                .requests(queue.held.iter(requests))
        });
        Holding::new("domain")
            .fact("name", name)
            .fact("tokens", map.nr_tags())
            .fact("tokens_used", map.nr_used())
            .fact("most_tokens", self.tokens[domain].max_depth)
            .fact("batch", self.tokens[domain].batch)
            .fact("in_turn", self.hctxs.iter().any(|hctx| hctx.current == domain))
            .parts(parts)
    }

    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, hctx: usize, domain: usize, id: RequestId) {
        self.hctxs[hctx].all[domain].held.push_back(requests, id);
    }

    /// A request of the domain, among the newest of the hardware queue, that `bio` touches and may
    /// join.
    pub fn touching(
        &self,
        requests: &Requests,
        hctx: usize,
        domain: usize,
        bio: RequestId,
    ) -> Option<(RequestId, Merge)> {
        let (start, end) = (requests[bio].sector, requests[bio].end());
        let DomainQueue { held, nr_ready, .. } = &self.hctxs[hctx].all[domain];
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

    /// Dispatches for a hardware queue: from its current domain until its batch ends or it lacks
    /// requests or tokens; then from the others in turn.
    #[inline]
    pub fn dispatch(&mut self, requests: &mut Requests, hctx: usize) -> Option<RequestId> {
        let queue = &mut self.hctxs[hctx];
        if queue.batching < self.tokens[queue.current].batch {
            if let Some(id) = queue.take(&mut self.tokens, requests) {
                return Some(id);
            }
        }
        queue.take_turns(&mut self.tokens, requests)
    }

    /// Returns a request's token. The hardware queues that it wakes must run; not every returned token
    /// wakes one.
    #[inline(always)]
    pub fn release(&mut self, request: &Request, domain: usize, woken: impl FnMut(usize)) {
        self.tokens[domain].map.give_back(request.queue, &mut self.woken);
        if unlikely(!self.woken.is_empty()) {
            self.wake(domain, woken);
        }
    }

    #[inline(never)]
    fn wake(&mut self, domain: usize, mut woken: impl FnMut(usize)) {
        for hctx in self.woken.drain(..) {
            self.hctxs[hctx as usize].all[domain].waits = false;
            self.tokens[domain].map.awake();
            woken(hctx as usize);
        }
    }
}

impl<const N: usize> HctxDomains<N> {
    #[inline(never)]
    fn take_turns(
        &mut self,
        tokens: &mut [Tokens; N],
        requests: &mut Requests,
    ) -> Option<RequestId> {
        self.batching = 0;
        for _ in 0..N {
            self.current = if self.current + 1 == N { 0 } else { self.current + 1 };
            if let Some(id) = self.take(tokens, requests) {
                return Some(id);
            }
        }
        None
    }

    /// The next request of the current domain, with a token.
    #[inline(always)]
    fn take(&mut self, tokens: &mut [Tokens; N], requests: &mut Requests) -> Option<RequestId> {
        let domain = &mut self.all[self.current];
        if domain.held.is_empty() {
            return None;
        }
        let tokens = &mut tokens[self.current].map;
        let Some(token) = tokens.take(None) else {
            cold_path();
            if !std::mem::replace(&mut domain.waits, true) {
                tokens.sleep(self.hctx);
            }
            return None;
        };
        if unlikely(std::mem::take(&mut domain.waits)) {
            tokens.leave(self.hctx);
        }
        if domain.nr_ready == 0 {
            domain.nr_ready = domain.held.len();
        }
        debug_assert!(domain.nr_ready <= domain.held.len(), "ready requests are among the held");
        domain.nr_ready -= 1;
        let id = domain.held.pop_front(requests)?;
        requests[id].queue = token;
        self.batching += 1;
        Some(id)
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
        domains.insert(requests, 0, domain, id);
        id
    }

    #[test]
    fn domains_take_turns_in_batches_while_they_have_tokens() {
        let mut requests = Requests::new();
        let mut domains = Domains::new([(3, 2), (1, 4)], 1);
        for sector in 0..4 {
            add(&mut domains, &mut requests, 0, sector * 100);
            add(&mut domains, &mut requests, 1, 10_000 + sector * 100);
        }
        // Two of the first, the one token of the second, the last token of the first.
        let taken: Vec<_> = std::iter::from_fn(|| domains.dispatch(&mut requests, 0)).collect();
        let sectors: Vec<_> = taken.iter().map(|&id| requests[id].sector).collect();
        assert_eq!(sectors, [0, 100, 10_000, 200]);
        let of_second = taken[2];
        let mut woken = Vec::new();
        domains.release(&requests[of_second], 1, |hctx| woken.push(hctx));
        assert_eq!(woken, [0]);
        assert_eq!(domains.dispatch(&mut requests, 0).map(|id| requests[id].sector), Some(10_100));
    }

    #[test]
    fn merges_are_looked_for_among_the_newest_that_are_not_ready() {
        let mut requests = Requests::new();
        let mut domains = Domains::new([(1, 1)], 1);
        let first = add(&mut domains, &mut requests, 0, 100);
        let bio = |requests: &mut Requests, sector| {
            requests.allocate(Request::new(Operation::Read, sector, 8, Purpose::Direct))
        };
        let (behind, before) = (bio(&mut requests, 108), bio(&mut requests, 92));
        assert_eq!(domains.touching(&requests, 0, 0, behind), Some((first, Merge::Back)));
        assert_eq!(domains.touching(&requests, 0, 0, before), Some((first, Merge::Front)));
        for sector in 10..18 {
            add(&mut domains, &mut requests, 0, sector * 1000);
        }
        assert_eq!(domains.touching(&requests, 0, 0, behind), None);
        domains.dispatch(&mut requests, 0);
        let last = bio(&mut requests, 17_008);
        assert_eq!(domains.touching(&requests, 0, 0, last), None, "all are ready now");
    }

    #[test]
    fn hardware_queues_share_tokens_and_are_woken_one_after_the_other() {
        let mut requests = Requests::new();
        let mut domains = Domains::new([(1, 1)], 2);
        for hctx in [0, 1] {
            let sector = hctx as u64 * 100;
            let id = requests.allocate(Request::new(Operation::Read, sector, 8, Purpose::Direct));
            domains.insert(&mut requests, hctx, 0, id);
        }
        let first = domains.dispatch(&mut requests, 0).unwrap();
        assert_eq!(domains.dispatch(&mut requests, 0), None, "the other's request is not its own");
        assert_eq!(domains.dispatch(&mut requests, 1), None, "there is one token");
        let mut woken = Vec::new();
        domains.release(&requests[first], 0, |hctx| woken.push(hctx));
        assert_eq!(woken, [1]);
        assert_eq!(domains.dispatch(&mut requests, 1).map(|id| requests[id].sector), Some(100));
    }
}
