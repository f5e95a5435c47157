//! `kyber` and `kyber-4.12`: each domain (kind of request) has a number of tokens, and a request
//! needs one to go to the device. A domain that meets its latency target while another misses its
//! own gets fewer tokens.
//!
//! Kernel: `block/kyber-iosched.c`, since 4.12. Its first heuristic compared mean latencies
//! ([`graded`], until 4.19); 4.20 replaced it by percentiles ([`percentile`]). Both exist here
//! under names of their own, because no tunable of the kernel switches between them. They share the
//! queues in [`domains`].
//!
//! Simplified: one software queue for all processors of a hardware queue; flushes bypass the scheduler, as in the kernel.

mod domains;
mod graded;
mod percentile;

use crate::block::queue_facts::{QueueFacts, in_proportion};
use crate::block::request::{Merge, Operation, Request, RequestId, Requests};
use crate::core::params::{Param, Unit, Values};
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Info, Scheduler};
use domains::Domains;

/// The scheduler of Linux 4.20 and later.
pub type Kyber = Heuristic<percentile::Percentiles>;
/// The first one.
pub type Kyber412 = Heuristic<graded::Grades>;

/// Reads, writes of some kind, and the rest.
const NR_DOMAINS: usize = 3;

const READ_LAT: Param = Param::new(
    "read_lat_nsec",
    Unit::Nanoseconds,
    2_000_000,
    (0, u64::MAX),
    "latency that reads should not exceed",
);
const WRITE_LAT: Param = Param::new(
    "write_lat_nsec",
    Unit::Nanoseconds,
    10_000_000,
    (0, u64::MAX),
    "latency that writes should not exceed",
);

const TUNABLES: &[Param] = &[READ_LAT, WRITE_LAT];

/// Share of each word of the sbitmap that async requests may use, in percent
/// (`KYBER_ASYNC_PERCENT`).
const ASYNC_PERCENT: u32 = 75;

/// The heuristic that adjusts the depths (numbers of tokens) of the domains. Everything else is
/// shared.
pub trait Depths: std::fmt::Debug + Clone {
    const INFO: Info;
    /// Most tokens of each domain, and requests of a batch.
    const SIZES: [(u32, u32); NR_DOMAINS];
    /// The names of the domains.
    const NAMES: [&str; NR_DOMAINS];

    /// From the latency targets of the first two domains.
    fn new(targets_ns: [u64; 2]) -> Self;

    /// Sets other targets.
    fn retarget(&mut self, targets_ns: [u64; 2]);

    fn domain_of(request: &Request) -> usize;

    /// A request of a domain is done.
    fn completed(&mut self, cx: &mut Context, id: RequestId, domain: usize);

    /// A timer of the heuristic is due.
    fn timer(&mut self, cx: &mut Context, domains: &mut Domains<NR_DOMAINS>);
}

/// A kyber with one of the two heuristics.
#[derive(Debug, Clone)]
pub struct Heuristic<D> {
    domains: Domains<NR_DOMAINS>,
    depths: D,
    async_depth: u32,
    queue: QueueFacts,
}

fn targets_ns(tunables: &Values) -> [u64; 2] {
    [tunables.get_ns("read_lat_nsec"), tunables.get_ns("write_lat_nsec")]
}

/// Kernels without an `async_depth` of the queue tell schedulers of a new `nr_requests` just before it is set:
/// they see `known_requests`.
fn async_depth(queue: &QueueFacts, known_requests: u32) -> u32 {
    if queue.behaviours.async_depth_of_queue {
        let initial = queue.initial_requests * ASYNC_PERCENT / 100;
        return in_proportion(initial, queue.initial_requests, queue.nr_requests);
    }
    // A part of the whole map since 6.12, before of each word.
    let of_map = queue.behaviours.shallow_depth_of_map;
    let tags = if of_map { known_requests } else { queue.bits_per_word };
    (tags * ASYNC_PERCENT / 100).max(1)
}

impl<D: Depths> Scheduler for Heuristic<D> {
    const INFO: Info = D::INFO;

    fn new(tunables: &Values, queue: QueueFacts) -> Self {
        Self {
            domains: Domains::new(D::SIZES, queue.nr_hctxs),
            depths: D::new(targets_ns(tunables)),
            async_depth: async_depth(&queue, queue.initial_requests),
            queue,
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let domain = D::domain_of(&cx.requests[id]);
        self.domains.insert(cx.requests, cx.queue.hctx, domain, id);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        self.domains.dispatch(cx.requests, cx.queue.hctx)
    }

    #[inline]
    fn merge_candidate(&self, requests: &Requests, bio: RequestId) -> Option<(RequestId, Merge)> {
        let hctx = self.queue.hctx_of(requests[bio].cpu);
        self.domains.touching(requests, hctx, D::domain_of(&requests[bio]), bio)
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        let request = &cx.requests[id];
        let domain = D::domain_of(request);
        self.domains.release(request, domain, |hctx| cx.queue.kick_hctx(hctx));
        self.depths.completed(cx, id, domain);
    }

    fn timer(&mut self, cx: &mut Context) {
        self.depths.timer(cx, &mut self.domains);
    }

    #[inline]
    fn limit_depth(&self, bio: &Request) -> Option<u32> {
        // Later kernels limit synchronous writes too (`kyber_limit_depth`).
        let writes = self.queue.behaviours.async_depth_of_queue && bio.operation != Operation::Read;
        (!bio.flags.sync || writes).then_some(self.async_depth)
    }

    fn min_shallow_depth(&self) -> u32 {
        self.async_depth
    }

    fn retune(&mut self, _cx: &mut Context, tunables: &Values, _name: &str) {
        self.depths.retarget(targets_ns(tunables));
    }

    fn depth_updated(&mut self, cx: &mut Context, before: QueueFacts) {
        self.queue = cx.queue.facts;
        self.async_depth = async_depth(&self.queue, before.nr_requests);
    }

    fn describe(&self, requests: &Requests) -> Option<Holding> {
        let domain = |domain: usize| self.domains.describe(requests, D::NAMES[domain], domain);
        let scheduler = Holding::new("kyber").fact("async_depth", self.async_depth);
        Some(scheduler.parts((0..NR_DOMAINS).map(domain)))
    }
}
