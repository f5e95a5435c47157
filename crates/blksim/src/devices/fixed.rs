//! `fixed`: every command takes the same time, up to `depth` of them at once.
//!
//! The null device: time does not depend on position, so it shows a scheduler's own behaviour and
//! has closed-form results (depth / latency commands a second).
//!
//! With `stall`, the whole device stops for that long at random times whose mean distance is
//! `stall_every`, as a virtual disk does whose host is busy elsewhere. Commands under way continue
//! afterwards.

use std::collections::VecDeque;

use crate::core::branch::unlikely;
use crate::core::error::ProfileError;
use crate::core::params::{Param, Unit, Values};
use crate::core::rng::Stream;
use crate::devices::device::{Command, Device, Facts, Outbox};

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
    Param::new(
        "stall",
        Unit::Nanoseconds,
        0,
        (0, 1_000_000_000_000),
        "time for which the device stops now and then; 0: never",
    ),
    Param::new(
        "stall_every",
        Unit::Nanoseconds,
        1_000_000_000,
        (1000, 1_000_000_000_000),
        "mean time from the end of a stall to the next one, exponentially distributed",
    ),
    Param::flag("rotational", 0, "what the device tells the host of itself"),
    Param::new("capacity", Unit::Bytes, 64 << 30, (1 << 20, 1 << 56), "size"),
    Param::new(
        "hw_queues",
        Unit::Count,
        1,
        (1, 65_536),
        "hardware queues, of which a machine uses at most one for each processor",
    ),
    Param::flag("shared_tags", 0, "all hardware queues have the tags of one"),
];

#[derive(Debug, Clone)]
pub struct Fixed {
    facts: Facts,
    latency_ns: u64,
    jitter_ns: u64,
    stream: Stream,
    stalls: Option<Stalls>,
    busy_until_ns: u64,
    busy_ns: u64,
    nr_served: u32,
    /// Commands beyond the depth, which several hardware queues may bring.
    waiting: VecDeque<u32>,
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
                shares_tags: values.flag("shared_tags"),
                bio_based: false,
                volatile_cache: false,
                discards: true,
                max_hw_sectors_kb: 32_767,
            },
            latency_ns: values.get("latency"),
            jitter_ns: values.get("jitter"),
            stream: Stream::named(seed, "device/fixed"),
            stalls: Stalls::new(values.get("stall"), values.get("stall_every"), seed),
            busy_until_ns: 0,
            busy_ns: 0,
            nr_served: 0,
            waiting: VecDeque::new(),
        })
    }

    #[inline]
    fn serve(&mut self, id: u32, outbox: &mut Outbox) {
        let jitter_ns = if self.jitter_ns > 0 { self.stream.below(self.jitter_ns + 1) } else { 0 };
        let now_ns = outbox.now_ns();
        let work_ns = self.latency_ns + jitter_ns;
        let done_ns = match &mut self.stalls {
            None => now_ns.saturating_add(work_ns),
            Some(stalls) => stalls.done_ns(now_ns, work_ns),
        };
        let idle_until_ns = self.busy_until_ns.max(now_ns);
        self.busy_ns += done_ns.saturating_sub(idle_until_ns);
        self.busy_until_ns = self.busy_until_ns.max(done_ns);
        outbox.complete_at(done_ns, id);
    }
}

impl Device for Fixed {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        if unlikely(self.nr_served >= self.facts.queue_depth) {
            self.waiting.push_back(command.id);
            return;
        }
        self.nr_served += 1;
        self.serve(command.id, outbox);
    }

    #[inline]
    fn completed(&mut self, _id: u32, outbox: &mut Outbox) {
        match self.waiting.pop_front() {
            None => self.nr_served -= 1,
            Some(id) => self.serve(id, outbox),
        }
    }

    fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}

/// The stalls of the device.
#[derive(Debug, Clone)]
struct Stalls {
    length_ns: u64,
    every_ns: u64,
    stream: Stream,
    /// Starts of the stalls that may still affect a command, in order; never empty.
    starts_ns: VecDeque<u64>,
}

impl Stalls {
    /// `None` for a device that never stalls.
    fn new(length_ns: u64, every_ns: u64, seed: u64) -> Option<Self> {
        if length_ns == 0 {
            return None;
        }
        let mut stalls = Self {
            length_ns,
            every_ns,
            stream: Stream::named(seed, "device/fixed/stalls"),
            starts_ns: VecDeque::with_capacity(4),
        };
        stalls.draw_after(0);
        Some(stalls)
    }

    fn draw_after(&mut self, end_ns: u64) {
        let gap_ns = (self.stream.exponential() * self.every_ns as f64) as u64;
        self.starts_ns.push_back(end_ns.saturating_add(gap_ns));
    }

    /// Completion time of a command that arrives now and takes so long without stalls.
    fn done_ns(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        // Commands arrive in order of time, so a stall that is over now is over for all.
        while self.starts_ns[0].saturating_add(self.length_ns) <= now_ns {
            if self.starts_ns.len() == 1 {
                self.draw_after(self.starts_ns[0].saturating_add(self.length_ns));
            }
            self.starts_ns.pop_front();
        }
        let mut done_ns = now_ns.saturating_add(work_ns);
        let mut index = 0;
        while self.starts_ns[index] < done_ns {
            let end_ns = self.starts_ns[index].saturating_add(self.length_ns);
            done_ns = done_ns.saturating_add(end_ns - self.starts_ns[index].max(now_ns));
            if done_ns == u64::MAX {
                break;
            }
            index += 1;
            if index == self.starts_ns.len() {
                self.draw_after(end_ns);
            }
        }
        done_ns
    }
}
