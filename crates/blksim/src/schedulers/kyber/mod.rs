//! `kyber` and `kyber-4.12`: each kind of request has a number of tokens, and
//! a request needs one to go to the device. Kinds that meet their latency
//! target while another misses its own get fewer tokens.
//!
//! Kernel: `block/kyber-iosched.c`, since 4.12. Its first heuristic compared
//! mean latencies ([`graded`], until 4.19); 4.20 replaced it by percentiles
//! ([`percentile`]). Both are kept, under two names, because no tunable of the
//! kernel switches between them. The queues below both are in [`domains`].
//!
//! Simplified: one hardware queue and one processor; no discards, which no
//! workload issues (so that domain is left out), and flushes pass by the
//! scheduler as they do in the kernel.

mod domains;
mod graded;
mod percentile;

pub use graded::Kyber412;
pub use percentile::Kyber;

use crate::params::{Param, Unit};

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

/// Share of the tags that async requests may use, in percent.
const ASYNC_PERCENT: u32 = 75;

/// Tags for async requests: 75 % of each word of the tag map. The words are
/// small enough that there are at least four, if there are four tags.
fn async_tags(nr_requests: u32) -> u32 {
    let mut shift = 6;
    if nr_requests >= 4 {
        while (4 << shift) > nr_requests {
            shift -= 1;
        }
    }
    let word = 1_u32 << shift;
    let share = (word * ASYNC_PERCENT / 100).max(1);
    nr_requests / word * share + (nr_requests % word).min(share)
}

#[cfg(test)]
mod tests {
    use super::async_tags;

    #[test]
    fn async_requests_get_three_quarters_of_each_word() {
        assert_eq!(async_tags(256), 192);
        assert_eq!(async_tags(64), 48);
        // Words of 8 (7 of them and 6 bits over).
        assert_eq!(async_tags(62), 7 * 6 + 6);
        // Words of one bit: nothing to withhold.
        assert_eq!(async_tags(4), 4);
        assert_eq!(async_tags(1), 1);
    }
}
