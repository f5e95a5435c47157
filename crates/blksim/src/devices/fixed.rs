//! `fixed`: every command takes the same time; `depth` of them at once.
//!
//! The null device: nothing depends on position, so it shows a scheduler's own
//! behaviour and has closed-form results (depth / latency commands a second).

use crate::device::{Command, Device, Facts, Outbox};
use crate::error::ProfileError;
use crate::params::{Param, Unit, Values};
use crate::rng::Stream;

pub const SUMMARY: &str = "constant latency at a given depth, with optional jitter";

pub const PARAMETERS: &[Param] = &[
    Param::new("latency", Unit::Nanoseconds, 100_000, (1, 1_000_000_000_000), "time of a command"),
    Param::new("depth", Unit::Count, 32, (1, 65_536), "commands served at once"),
    Param::new(
        "jitter",
        Unit::Nanoseconds,
        0,
        (0, 1_000_000_000_000),
        "seeded uniform addition of up to this much",
    ),
    Param::flag("rotational", 0, "what the device tells the host of itself"),
    Param::new("capacity", Unit::Bytes, 64 << 30, (1 << 20, 1 << 56), "size"),
    Param::new("hw_queues", Unit::Count, 1, (1, 65_536), "hardware queues"),
];

#[derive(Debug)]
pub struct Fixed {
    facts: Facts,
    latency_ns: u64,
    jitter_ns: u64,
    stream: Stream,
    busy_until_ns: u64,
    busy_ns: u64,
}

impl Fixed {
    #[expect(clippy::unnecessary_wraps, reason = "all devices are built alike")]
    pub fn new(values: &Values, _source: &str, seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            facts: Facts {
                capacity_bytes: values.get("capacity") / 512 * 512,
                rotational: values.flag("rotational"),
                queue_depth: values.get("depth") as u32,
                nr_hw_queues: values.get("hw_queues") as u32,
                volatile_cache: false,
                max_hw_sectors_kb: 32_767,
            },
            latency_ns: values.get("latency"),
            jitter_ns: values.get("jitter"),
            stream: Stream::named(seed, "device/fixed"),
            busy_until_ns: 0,
            busy_ns: 0,
        })
    }
}

impl Device for Fixed {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        let jitter_ns = if self.jitter_ns > 0 { self.stream.below(self.jitter_ns + 1) } else { 0 };
        let now_ns = outbox.now_ns();
        let done_ns = now_ns.saturating_add(self.latency_ns + jitter_ns);
        let idle_until_ns = self.busy_until_ns.max(now_ns);
        self.busy_ns += done_ns.saturating_sub(idle_until_ns);
        self.busy_until_ns = self.busy_until_ns.max(done_ns);
        outbox.complete_at(done_ns, command.id);
    }

    fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}
