//! Queue attributes, as sysfs names them, and the host that the queue is in.

use crate::core::error::{ErrorKind, SimulationError};
use crate::core::params::{Param, ParamError, Problem, Unit, Values, unknown};
use crate::devices::device::Facts;
use crate::elevator::scheduler::Family;

/// The most requests of a queue: more than any kernel takes, so that long
/// queues can be studied.
const MAX_REQUESTS: u64 = 1 << 20;

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
    Param::new("read_ahead_kb", Unit::Kibibytes, 128, (0, 1 << 20), "largest readahead window"),
    Param::new("max_sectors_kb", Unit::Kibibytes, 1280, (4, 32_767), "largest request"),
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
const NEUTRAL: &[&str] = &["rq_affinity", "add_random", "iostats"];

/// The simulated machine around the queue.
pub const MACHINE: &[Param] = &[
    Param::new(
        "hz",
        Unit::Count,
        100,
        (24, 1200),
        "ticks of the kernel's clock a second (CONFIG_HZ), on which its coarse timers run",
    ),
    Param::flag(
        "instant",
        0,
        "computing takes no time at all, as in a guest in virtual time, instead of hardly any; copying is \
         paid for before a buffered call",
    ),
    Param::flag(
        "bare",
        0,
        "all files are one to the kernel, the device itself, as where there is no file system: reading \
         begins in its midst, and fsync is for all of it",
    ),
    Param::flag(
        "untold_depth",
        0,
        "the driver does not tell the kernel how many commands the device takes, as only SCSI's do; writeback \
         throttling and io.cost go by the queue's first nr_requests",
    ),
    Param::new(
        "first_tag",
        Unit::Count,
        0,
        (0, MAX_REQUESTS - 1),
        "tag of a queue at which the first search for a free one begins; a kernel draws it by lot",
    ),
    Param::new(
        "memory",
        Unit::Bytes,
        4 << 30,
        (64 << 20, 1 << 44),
        "memory that free pages and the page cache share",
    ),
    Param::new(
        "copy_bandwidth",
        Unit::BytesPerSecond,
        10 << 30,
        (1 << 20, 1 << 44),
        "speed of copying between the page cache and a program",
    ),
    Param::new(
        "system_call",
        Unit::Nanoseconds,
        400,
        (1, 1_000_000),
        "processor time of a buffered read or write beside the copying",
    ),
    Param::new(
        "dirty_background_ratio",
        Unit::Percent,
        10,
        (0, 100),
        "dirty share at which the flusher starts",
    ),
    Param::new("dirty_ratio", Unit::Percent, 20, (1, 100), "dirty share that is never exceeded"),
    Param::new(
        "dirty_expire_centisecs",
        Unit::Centiseconds,
        3000,
        (1, 360_000),
        "age at which dirty data is written",
    ),
    Param::new(
        "dirty_writeback_centisecs",
        Unit::Centiseconds,
        500,
        (1, 360_000),
        "period of the flusher",
    ),
];

/// Requests that a queue holds by default.
pub fn default_nr_requests(facts: &Facts, family: Family, scheduler: &str) -> u64 {
    match family {
        Family::Legacy => 128,
        Family::MultiQueue if scheduler == "none" => u64::from(facts.queue_depth),
        Family::MultiQueue => 2 * u64::from(facts.queue_depth.min(128)),
    }
}

/// Writeback throttling is on by default for blk-mq, but bfq turns it off; the
/// legacy path has it off, as kernels were configured.
fn default_wbt_lat_usec(facts: &Facts, family: Family, scheduler: &str) -> u64 {
    match family {
        Family::Legacy => 0,
        Family::MultiQueue if scheduler == "bfq" => 0,
        Family::MultiQueue if facts.rotational => 75_000,
        Family::MultiQueue => 2_000,
    }
}

/// Effective attributes of a queue.
pub fn queue_values(
    given: &[(String, String)],
    facts: &Facts,
    family: Family,
    scheduler: &str,
) -> Result<Values, SimulationError> {
    let mut values = Values::defaults(QUEUE);
    values.put("nr_requests", default_nr_requests(facts, family, scheduler));
    values.put("wbt_lat_usec", default_wbt_lat_usec(facts, family, scheduler));
    values.put("max_sectors_kb", u64::from(facts.max_hw_sectors_kb.min(1280)));
    for (name, text) in given {
        if NEUTRAL.contains(&name.as_str()) {
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
    let (low, high) = match family {
        Family::Legacy => (4, MAX_REQUESTS),
        Family::MultiQueue if scheduler == "none" => (1, u64::from(facts.queue_depth)),
        Family::MultiQueue => (1, MAX_REQUESTS),
    };
    if nr_requests < low || nr_requests > high {
        let message = format!(
            "nr_requests = {nr_requests}: must lie between {low} and {high} under {scheduler}"
        );
        return out_of_range("nr_requests", message);
    }
    Ok(values)
}

fn attribute_error(error: ParamError, name: &str) -> SimulationError {
    if error.problem == Problem::Unknown {
        let names = QUEUE.iter().map(|p| p.name).chain(NEUTRAL.iter().copied());
        let message = format!("queue attribute {name}: {}", unknown(name, names));
        return SimulationError::of(ErrorKind::UnknownQueueAttribute, name, message);
    }
    SimulationError::of(ErrorKind::OutOfRange, name, error.message)
}
