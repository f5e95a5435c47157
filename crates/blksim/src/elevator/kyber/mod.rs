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

use crate::core::params::{Param, Unit};

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

/// Share of each word of the tag map that async requests may use, in
/// hundredths of a percent.
const ASYNC_PERCENT: u32 = 75;
