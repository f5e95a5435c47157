//! Queue attributes under their sysfs names (`block/blk-sysfs.c`).

use crate::block::kernel_version::Behaviours;
use crate::core::error::{ErrorKind, SimulationError};
use crate::core::params::{Param, ParamError, Problem, Unit, Values, unknown};
use crate::devices::device::Facts;
use crate::elevator::scheduler::{Family, Info};

/// The most requests of a queue: more than any kernel takes, so that long
/// queues can be studied.
pub const MAX_REQUESTS: u64 = 1 << 20;

/// `VM_READAHEAD_PAGES`.
const READ_AHEAD_KB: u64 = 128;
/// Largest request by default, if the device takes it (`BLK_DEF_MAX_SECTORS`, and
/// `BLK_DEF_MAX_SECTORS_CAP` of `block/blk.h` in Linux 7.3).
const LARGEST_REQUEST_KB: u64 = 1280;
const LARGEST_REQUEST_KB_7_3: u64 = 4096;

/// Attributes of `/sys/block/*/queue` that the simulator honours. Where the
/// default depends on the device or scheduler, the table's 0 stands for that.
pub const QUEUE: &[Param] = &[
    Param::new(
        "nr_requests",
        Unit::Count,
        0,
        (1, MAX_REQUESTS),
        "requests that the queue may hold",
    ),
    Param::new(
        "read_ahead_kb",
        Unit::Kibibytes,
        READ_AHEAD_KB,
        (0, 1 << 20),
        "largest readahead window",
    ),
    Param::new(
        "max_sectors_kb",
        Unit::Kibibytes,
        LARGEST_REQUEST_KB,
        (4, 32_767),
        "largest request",
    ),
    Param::new(
        "nomerges",
        Unit::Count,
        0,
        (0, 2),
        "0: all merges; 1: only the simple ones; 2: none",
    ),
    Param::new(
        "wbt_lat_usec",
        Unit::Microseconds,
        0,
        (0, 100_000_000),
        "read latency that buffered writes must not spoil; 0: off",
    ),
];

/// Attributes that exist on a host but cannot change a simulated result.
const NEUTRAL: &[&str] = &["add_random", "iostats"];

/// The processor that completes a request. It matters only on a machine with several, so it is not
/// among the effective attributes.
pub const RQ_AFFINITY: Param = Param::new(
    "rq_affinity",
    Unit::Count,
    1,
    (0, 2),
    "with several processors: 0 or 1: the one that the device interrupts completes a request; 2: the one that \
     submitted it",
);

/// The effective `rq_affinity`, by its number.
pub fn rq_affinity(given: &[(String, String)]) -> Result<u64, SimulationError> {
    let mut values = Values::defaults(&[RQ_AFFINITY]);
    for (name, text) in given.iter().filter(|(name, _)| name == RQ_AFFINITY.name) {
        values.set(name, text).map_err(|error| attribute_error(error, name))?;
    }
    Ok(values.get(RQ_AFFINITY.name))
}

/// Requests that a queue holds by default (`blk_mq_init_sched`, and `BLKDEV_MAX_RQ` before).
pub fn default_nr_requests(facts: &Facts, info: &Info) -> u64 {
    match info.family {
        Family::Legacy => 128,
        Family::MultiQueue if info.bypass => u64::from(facts.queue_depth),
        Family::MultiQueue => nr_scheduler_tags(facts),
    }
}

/// Tags of a blk-mq scheduler by default: `BLKDEV_DEFAULT_RQ`, or twice a smaller depth.
pub fn nr_scheduler_tags(facts: &Facts) -> u64 {
    2 * u64::from(facts.queue_depth.min(128))
}

/// Writeback throttling is on by default for blk-mq unless the scheduler turns it off; the
/// legacy path has it off, as kernels were configured.
fn default_wbt_lat_usec(facts: &Facts, info: &Info) -> u64 {
    match info.family {
        Family::Legacy => 0,
        Family::MultiQueue if info.disables_wbt || facts.bio_based => 0,
        Family::MultiQueue if facts.rotational => 75_000,
        Family::MultiQueue => 2_000,
    }
}

/// The largest request by default.
fn default_max_sectors_kb(facts: &Facts, behaviours: Behaviours) -> u64 {
    let cap_kb =
        if behaviours.requests_of_4_mib { LARGEST_REQUEST_KB_7_3 } else { LARGEST_REQUEST_KB };
    u64::from(facts.max_hw_sectors_kb).min(cap_kb)
}

/// The readahead window by default. It follows the device's largest request, not one that is set later: a
/// change of limits never makes it smaller (`blk_apply_bdi_limits`).
fn default_read_ahead_kb(facts: &Facts, behaviours: Behaviours) -> u64 {
    if behaviours.rotational_reads_far_ahead && facts.rotational {
        READ_AHEAD_KB.max(2 * default_max_sectors_kb(facts, behaviours))
    } else {
        READ_AHEAD_KB
    }
}

/// Effective attributes of a queue.
pub fn queue_values(
    given: &[(String, String)],
    facts: &Facts,
    info: &Info,
    behaviours: Behaviours,
) -> Result<Values, SimulationError> {
    let mut values = Values::defaults(QUEUE);
    values.put("nr_requests", default_nr_requests(facts, info));
    values.put("wbt_lat_usec", default_wbt_lat_usec(facts, info));
    values.put("max_sectors_kb", default_max_sectors_kb(facts, behaviours));
    values.put("read_ahead_kb", default_read_ahead_kb(facts, behaviours));
    for (name, text) in given {
        if NEUTRAL.contains(&name.as_str()) || name == RQ_AFFINITY.name {
            continue;
        }
        values.set(name, text).map_err(|error| attribute_error(error, name))?;
    }
    let out_of_range = |name: &str, message: String| {
        Err(SimulationError::of(ErrorKind::OutOfRange, name, message))
    };
    let max_kb = u64::from(facts.max_hw_sectors_kb);
    if values.get("max_sectors_kb") > max_kb {
        return out_of_range(
            "max_sectors_kb",
            format!("max_sectors_kb must not exceed the device's {max_kb} KiB"),
        );
    }
    let nr_requests = values.get("nr_requests");
    let (low, high) = match info.family {
        Family::Legacy => (4, MAX_REQUESTS),
        Family::MultiQueue if info.bypass => (1, u64::from(facts.queue_depth)),
        Family::MultiQueue => (1, MAX_REQUESTS),
    };
    if nr_requests < low || nr_requests > high {
        let message = format!(
            "nr_requests = {nr_requests}: must lie between {low} and {high} under {}",
            info.name
        );
        return out_of_range("nr_requests", message);
    }
    Ok(values)
}

fn attribute_error(error: ParamError, name: &str) -> SimulationError {
    if error.problem == Problem::Unknown {
        let more = NEUTRAL.iter().copied().chain([RQ_AFFINITY.name]);
        let names = QUEUE.iter().map(|p| p.name).chain(more);
        let message = format!("queue attribute {name}: {}", unknown(name, names));
        return SimulationError::of(ErrorKind::UnknownQueueAttribute, name, message);
    }
    SimulationError::of(ErrorKind::OutOfRange, name, error.message)
}
