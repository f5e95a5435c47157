//! `kyber-4.12`: kyber with its first heuristic, which grades mean latencies.
//!
//! Policy: domains are reads, sync writes (including direct writes) and the rest (writeback). When
//! a read or sync write takes longer than its target, mean latencies are watched for 10 ms, later
//! for 100 ms at a time, and graded: at most half the target, within it, above it, or at least
//! twice. If reads are good and sync writes bad, or the other way round, the good side loses an
//! eighth to a half of its tokens and the bad side gains one or two. The rest is cut when both
//! suffer and grows again when they do not.
//!
//! Kernel: `block/kyber-iosched.c`, Linux 4.12 to 4.19; the heuristic is the
//! same in all, the queues follow 4.18 and 4.19.
//!
//! Simplified: see the parent module.
//!
//! Parameters: `read_lat_nsec`, `write_lat_nsec`.
//!
//! References: kernel commit 00e043936e9a ("blk-mq: introduce Kyber multiqueue
//! I/O scheduler").

use super::domains::Domains;
use super::{Depths, NR_DOMAINS, TUNABLES};
use crate::block::request::{Operation, Request, RequestId};
use crate::elevator::scheduler::{Context, Family, Info};

const READ: usize = 0;
const SYNC_WRITE: usize = 1;
const OTHER: usize = 2;

/// Length of the first watch, after one latency was too long, and of the next, while a domain is
/// throttled or misses its target.
const FIRST_WATCH_NS: u64 = 10_000_000;
const WATCH_NS: u64 = 100_000_000;

/// The grade of a mean latency against its target, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    Great,
    Good,
    Bad,
    Awful,
}

impl Grade {
    fn is_good(self) -> bool {
        self <= Self::Good
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    samples: u64,
    sum_ns: u64,
}

impl Mean {
    fn grade(self, target_ns: u64) -> Option<Grade> {
        let mean_ns = self.sum_ns.checked_div(self.samples)?;
        Some(if mean_ns >= target_ns.saturating_mul(2) {
            Grade::Awful
        } else if mean_ns > target_ns {
            Grade::Bad
        } else if mean_ns <= target_ns / 2 {
            Grade::Great
        } else {
            Grade::Good
        })
    }
}

#[derive(Debug, Clone)]
pub struct Grades {
    targets_ns: [u64; 2],
    means: [Mean; NR_DOMAINS],
    /// End of the watch, if there is one.
    watch_until_ns: Option<u64>,
}

impl Depths for Grades {
    const INFO: Info = Info {
        name: "kyber-4.12",
        kernel_versions: "4.12 to 4.19 (there called kyber); follows 4.16",
        summary: "the first kyber: compares mean latencies of reads and sync writes",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: false,
        indexed: false,
        per_hctx: true,
        tunables: TUNABLES,
    };
    const SIZES: [(u32, u32); NR_DOMAINS] = [(256, 16), (128, 8), (64, 8)];
    const NAMES: [&str; NR_DOMAINS] = ["read", "sync write", "other"];

    fn new(targets_ns: [u64; 2]) -> Self {
        Self { targets_ns, means: Default::default(), watch_until_ns: None }
    }

    fn retarget(&mut self, targets_ns: [u64; 2]) {
        self.targets_ns = targets_ns;
    }

    #[inline]
    fn domain_of(request: &Request) -> usize {
        match request.operation {
            Operation::Read => READ,
            Operation::Write if request.flags.sync => SYNC_WRITE,
            _ => OTHER,
        }
    }

    #[inline]
    fn completed(&mut self, cx: &mut Context, id: RequestId, domain: usize) {
        let latency_ns = cx.now_ns() - cx.requests[id].dispatched_ns;
        if self.watch_until_ns.is_some() {
            self.means[domain].samples += 1;
            self.means[domain].sum_ns += latency_ns;
        } else if domain != OTHER && latency_ns > self.targets_ns[domain] {
            self.watch(cx, FIRST_WATCH_NS);
        }
    }

    fn timer(&mut self, cx: &mut Context, domains: &mut Domains<NR_DOMAINS>) {
        if self.watch_until_ns.is_some_and(|until_ns| until_ns <= cx.now_ns()) {
            self.watch_until_ns = None;
            if self.adjust(domains) {
                self.watch(cx, WATCH_NS);
            }
        }
    }
}

impl Grades {
    fn watch(&mut self, cx: &mut Context, for_ns: u64) {
        let until_ns = cx.now_ns() + for_ns;
        self.watch_until_ns = Some(until_ns);
        cx.timer_at(until_ns);
    }

    /// Adjusts depths by the grades. Returns true if the watch continues.
    fn adjust(&mut self, domains: &mut Domains<NR_DOMAINS>) -> bool {
        let means = std::mem::take(&mut self.means);
        let reads = means[READ].grade(self.targets_ns[READ]);
        let writes = means[SYNC_WRITE].grade(self.targets_ns[SYNC_WRITE]);
        for (domain, own, other) in [(READ, reads, writes), (SYNC_WRITE, writes, reads)] {
            if let Some(own) = own {
                domains.resize(domain, weighed(domains.depth(domain), own, other));
            }
        }
        let depth = domains.depth(OTHER);
        let worse = reads.max(writes);
        domains.resize(
            OTHER,
            match worse {
                None => depth + 2,
                Some(_) if means[OTHER].samples == 0 => depth,
                // While either does well, the rest is not cut.
                Some(_) => rest(depth, better(reads, writes)),
            },
        );
        worse.is_some_and(|worse| !worse.is_good()) || domains.is_throttled(OTHER)
    }
}

/// New depth of reads or sync writes, from their own grade and the other's.
fn weighed(depth: u32, own: Grade, other: Option<Grade>) -> u32 {
    let Some(other) = other else {
        // Nothing to weigh against: tokens come back one by one.
        return depth + 1;
    };
    match (own, other) {
        (Grade::Good, Grade::Awful) | (Grade::Great, Grade::Bad) => depth - (depth / 4).max(1),
        (Grade::Good, Grade::Bad) => depth - (depth / 8).max(1),
        (Grade::Great, Grade::Awful) => depth / 2,
        (Grade::Awful, Grade::Great) => depth + 2,
        (Grade::Bad | Grade::Awful, Grade::Great | Grade::Good) => depth + 1,
        _ => depth,
    }
}

fn better(a: Option<Grade>, b: Option<Grade>) -> Grade {
    match (a, b) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b).unwrap_or(Grade::Great),
    }
}

/// New depth of the rest, from its grade.
fn rest(depth: u32, grade: Grade) -> u32 {
    match grade {
        Grade::Great => depth + 2,
        Grade::Good => depth + 1,
        Grade::Bad => depth - (depth / 4).max(1),
        Grade::Awful => depth / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_graded_against_the_target() {
        let grade = |sum_ns| Mean { samples: 2, sum_ns }.grade(1000);
        assert_eq!(grade(1000), Some(Grade::Great));
        assert_eq!(grade(2000), Some(Grade::Good));
        assert_eq!(grade(2002), Some(Grade::Bad));
        assert_eq!(grade(4000), Some(Grade::Awful));
        assert_eq!(Mean::default().grade(1000), None);
    }

    #[test]
    fn the_good_side_gives_to_the_bad_side() {
        assert_eq!(weighed(128, Grade::Good, Some(Grade::Bad)), 112);
        assert_eq!(weighed(128, Grade::Good, Some(Grade::Awful)), 96);
        assert_eq!(weighed(128, Grade::Great, Some(Grade::Awful)), 64);
        assert_eq!(weighed(128, Grade::Awful, Some(Grade::Great)), 130);
        assert_eq!(weighed(128, Grade::Bad, Some(Grade::Awful)), 128);
        assert_eq!(weighed(128, Grade::Great, Some(Grade::Good)), 128);
        assert_eq!(weighed(128, Grade::Good, None), 129);
    }

    #[test]
    fn the_rest_is_cut_only_if_neither_side_does_well() {
        assert_eq!(rest(64, better(Some(Grade::Great), Some(Grade::Awful))), 66);
        assert_eq!(rest(64, better(Some(Grade::Bad), Some(Grade::Awful))), 48);
        assert_eq!(rest(64, better(None, Some(Grade::Awful))), 32);
    }
}
