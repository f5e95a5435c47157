//! `kyber` with the percentile heuristic.
//!
//! Policy: latencies of each domain go into eight buckets of a quarter of its target. Every 100 ms,
//! the device counts as congested if some domain's 90th percentile of the time in the device is
//! above its target. Then each domain's tokens are scaled by its own 99th percentile of the total
//! time, which cuts domains well below their target and widens those above it. Without congestion
//! only the latter happens. On a disk, reads miss 2 ms all the time, so writes are squeezed to a
//! few tokens.
//!
//! Kernel: `block/kyber-iosched.c`, Linux 6.1 (since 4.20).
//!
//! Simplified: see the parent module. The heuristic's times are exact, not in ticks.
//!
//! Parameters: `read_lat_nsec`, `write_lat_nsec`.
//!
//! References: the kernel's `Documentation/block/kyber-iosched.rst`; commit
//! 6e25cb01ea20 ("kyber: implement improved heuristics").

use super::domains::Domains;
use super::{Depths, NR_DOMAINS, TUNABLES};
use crate::block::request::{Operation, Request, RequestId};
use crate::core::branch::{likely, unlikely};
use crate::core::jiffies::timer_ns;
use crate::elevator::scheduler::{Context, Family, Info};

const READ: usize = 0;
const WRITE: usize = 1;
/// Flushes bypass the scheduler, so the kernel's fourth domain is always empty.
const DISCARD: usize = 2;
/// Domains with a target, whose depths are adjusted.
///
/// Simplified: the kernel adjusts discards too, with a target of five seconds.
const NR_ADJUSTED: usize = DISCARD;

/// Buckets up to the target, and buckets in all.
const BUCKETS_TO_TARGET: u64 = 4;
const NR_BUCKETS: usize = 8;
/// Samples that suffice for a percentile before [`SAMPLES_NS`] have passed.
const ENOUGH_SAMPLES: u32 = 500;
const SAMPLES_NS: u64 = 1_000_000_000;
/// Time from a completion to the next adjustment.
const PERIOD_NS: u64 = 100_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Buckets([u32; NR_BUCKETS]);

impl Buckets {
    #[inline]
    fn add(&mut self, latency_ns: u64, target_ns: u64) {
        let width_ns = (target_ns / BUCKETS_TO_TARGET).max(1);
        // A division takes longer than all the rest, and most latencies are far below the target.
        let bucket = if likely(latency_ns <= width_ns) { 0 } else { (latency_ns - 1) / width_ns };
        self.0[bucket.min(NR_BUCKETS as u64 - 1) as usize] += 1;
    }

    fn samples(&self) -> u32 {
        self.0.iter().sum()
    }

    /// The bucket of a percentile.
    fn percentile(&self, percentage: u32) -> usize {
        let mut left = (self.samples() * percentage).div_ceil(100);
        for (bucket, &count) in self.0.iter().enumerate() {
            if count >= left {
                return bucket;
            }
            left -= count;
        }
        NR_BUCKETS - 1
    }
}

/// The latencies of one domain.
#[derive(Debug, Clone, Copy, Default)]
struct Latencies {
    /// From allocation to completion, and the time in the device.
    total: Buckets,
    device: Buckets,
    /// Time at which few samples suffice.
    timeout_ns: Option<u64>,
    /// The last unused 99th percentile.
    remembered: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Percentiles {
    targets_ns: [u64; NR_ADJUSTED],
    latencies: [Latencies; NR_ADJUSTED],
    /// The time at which the running timer ends.
    timer_ns: Option<u64>,
}

impl Depths for Percentiles {
    const INFO: Info = Info {
        name: "kyber",
        kernel_versions: "since 4.20 with percentiles; follows 6.1",
        summary: "limits requests in the device so that reads and writes meet latency targets",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: false,
        indexed: false,
        per_hctx: true,
        tunables: TUNABLES,
    };
    const SIZES: [(u32, u32); NR_DOMAINS] = [(256, 16), (128, 8), (64, 1)];
    const NAMES: [&str; NR_DOMAINS] = ["read", "write", "discard"];

    fn new(targets_ns: [u64; NR_ADJUSTED]) -> Self {
        Self { targets_ns, latencies: Default::default(), timer_ns: None }
    }

    fn retarget(&mut self, targets_ns: [u64; 2]) {
        self.targets_ns = targets_ns;
    }

    #[inline]
    fn domain_of(request: &Request) -> usize {
        match request.operation {
            Operation::Read => READ,
            Operation::Write => WRITE,
            Operation::Discard | Operation::Flush => DISCARD,
        }
    }

    #[inline]
    fn completed(&mut self, cx: &mut Context, id: RequestId, domain: usize) {
        if domain >= NR_ADJUSTED {
            return;
        }
        let now_ns = cx.now_ns();
        let request = &cx.requests[id];
        let target_ns = self.targets_ns[domain];
        let latencies = &mut self.latencies[domain];
        latencies.total.add(now_ns - request.inserted_ns, target_ns);
        latencies.device.add(now_ns - request.dispatched_ns, target_ns);
        if unlikely(self.timer_ns.is_none()) {
            self.set_timer(cx);
        }
    }

    fn timer(&mut self, cx: &mut Context, domains: &mut Domains<NR_DOMAINS>) {
        if self.timer_ns.is_some_and(|timer_ns| timer_ns <= cx.now_ns()) {
            self.timer_ns = None;
            self.adjust(domains, cx.now_ns());
        }
    }
}

impl Percentiles {
    #[cold]
    fn set_timer(&mut self, cx: &mut Context) {
        let jiffy_ns = cx.queue.facts.jiffy_ns;
        let timer_ns = timer_ns(cx.now_ns(), PERIOD_NS / jiffy_ns, jiffy_ns);
        self.timer_ns = Some(timer_ns);
        cx.timer_at(timer_ns);
    }

    fn adjust(&mut self, domains: &mut Domains<NR_DOMAINS>, now_ns: u64) {
        let mut congested = false;
        for latencies in &mut self.latencies {
            let p90 = percentile(&mut latencies.device, &mut latencies.timeout_ns, 90, now_ns);
            congested |= p90.is_some_and(|bucket| bucket as u64 >= BUCKETS_TO_TARGET);
        }
        for domain in 0..NR_ADJUSTED {
            let latencies = &mut self.latencies[domain];
            let mut p99 = percentile(&mut latencies.total, &mut latencies.timeout_ns, 99, now_ns);
            if !congested {
                latencies.remembered = p99.or(latencies.remembered);
            } else if p99.is_none() {
                p99 = latencies.remembered.take();
            }
            let Some(bucket) = p99 else { continue };
            if congested || bucket as u64 >= BUCKETS_TO_TARGET {
                let depth = u64::from(domains.depth(domain));
                let scaled = depth * (bucket as u64 + 1) / BUCKETS_TO_TARGET;
                domains.resize(domain, scaled as u32);
            }
        }
    }
}

/// The bucket of a percentile once there are enough samples, which are then dropped. Both latencies
/// of a domain share the timeout after which few samples suffice, as in the kernel: after one has
/// used it, the other waits again.
fn percentile(
    buckets: &mut Buckets,
    timeout_ns: &mut Option<u64>,
    percentage: u32,
    now_ns: u64,
) -> Option<usize> {
    let samples = buckets.samples();
    if samples == 0 {
        return None;
    }
    let until_ns = *timeout_ns.get_or_insert(now_ns + SAMPLES_NS);
    if samples < ENOUGH_SAMPLES && now_ns < until_ns {
        return None;
    }
    *timeout_ns = None;
    let bucket = buckets.percentile(percentage);
    *buckets = Buckets::default();
    Some(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET_NS: u64 = 1000;

    fn filled(latencies: &[(u64, u32)]) -> Buckets {
        let mut buckets = Buckets::default();
        for &(latency_ns, count) in latencies {
            for _ in 0..count {
                buckets.add(latency_ns, TARGET_NS);
            }
        }
        buckets
    }

    #[test]
    fn buckets_are_quarters_of_the_target() {
        for (latency_ns, bucket) in
            [(0, 0), (1, 0), (250, 0), (251, 1), (1000, 3), (1001, 4), (1751, 7), (u64::MAX, 7)]
        {
            let buckets = filled(&[(latency_ns, 1)]);
            assert_eq!(buckets.percentile(99), bucket, "{latency_ns}");
        }
        let mixed = filled(&[(100, 90), (1500, 10)]);
        assert_eq!((mixed.percentile(90), mixed.percentile(91)), (0, 5));
    }

    fn kyber(reads: &[(u64, u32)], writes: &[(u64, u32)]) -> (Percentiles, Domains<NR_DOMAINS>) {
        let mut depths = Percentiles::new([TARGET_NS; 2]);
        for (latencies, samples) in depths.latencies.iter_mut().zip([reads, writes]) {
            latencies.total = filled(samples);
            latencies.device = filled(samples);
        }
        (depths, Domains::new(Percentiles::SIZES, 1))
    }

    #[test]
    fn a_domain_well_below_its_target_is_cut_when_another_misses_its_own() {
        let (mut depths, mut domains) = kyber(&[(1600, 600)], &[(100, 600)]);
        domains.resize(READ, 100);
        depths.adjust(&mut domains, 0);
        // Bucket 6: seven quarters; bucket 0: one quarter.
        assert_eq!(domains.depth(READ), 175);
        assert_eq!(domains.depth(WRITE), 32);
        let (mut depths, mut domains) = kyber(&[(900, 600)], &[(100, 600)]);
        depths.adjust(&mut domains, 0);
        assert_eq!(domains.depth(WRITE), 128, "without congestion nothing is cut");
    }

    #[test]
    fn few_samples_wait_a_second_and_an_unused_percentile_is_remembered_once() {
        let (mut few, mut domains) = kyber(&[(1600, 600)], &[(100, 600)]);
        few.latencies[READ] = Latencies::default();
        few.adjust(&mut domains, 0);
        assert_eq!(few.latencies[WRITE].remembered, Some(0));
        few.latencies[READ].device = filled(&[(1600, 499)]);
        few.adjust(&mut domains, 100);
        assert_eq!(domains.depth(WRITE), 128);
        few.adjust(&mut domains, 100 + SAMPLES_NS);
        assert_eq!(domains.depth(WRITE), 32, "the remembered percentile was used");
        assert_eq!(few.latencies[WRITE].remembered, None);
    }
}
