//! `virtual`: a disk known by its figures alone, as a hypervisor or a network presents one, and any disk
//! whose times do not depend on the address. `blklab calibrate` fits it to measurements.
//!
//! * Limits come first: token buckets for I/Os and bytes, as cloud providers set them.
//! * Then the link, which takes one command after the other: a time for each command, and its data at the
//!   rate of its direction. Both directions share it, or each has its own.
//! * Then one of `parallel` servers takes the command for its latency, a median with a lognormal spread.
//!   It goes to the first server that is free, or to one drawn at random, as data lie on the dies of flash.
//! * Or a thread of the host takes commands in batches, as hypervisors do: a command wakes it, and after the
//!   latency it takes all that have come, or at most `batch_size`, each for its time on the link. Of a
//!   batch with reads and writes the longer latency counts, or the sum.
//! * A write ends only when the write buffer has room for it. The buffer empties at a rate of its own; one with
//!   a cache of fast cells behind it counts as a larger one. Neither link nor servers wait for it, nor do reads.
//! * A flush begins when the writes before it have ended.
//!
//! All of this is charged in order of arrival. Not modelled: addresses, collection of garbage, caches for
//! reads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::block::request::{Operation, SECTOR_BYTES};
use crate::core::error::ProfileError;
use crate::core::params::{Param, Unit, Values};
use crate::core::rng::Stream;
use crate::devices::device::{Command, Device, Facts, Outbox};

pub const SUMMARY: &str =
    "virtual disk: latencies with a spread, parallel servers, a shared link, limits with bursts";

const S: u64 = 1_000_000_000;
const PLACEMENTS: &[&str] = &["any", "random", "batch"];
const MIXED_LATENCIES: &[&str] = &["longer", "sum"];

pub const PARAMETERS: &[Param] = &[
    Param::new("capacity", Unit::Bytes, 64 << 30, (1 << 20, 1 << 56), "size"),
    Param::new(
        "read_latency",
        Unit::Nanoseconds,
        100_000,
        (1, 100 * S),
        "median time of a read in its server",
    ),
    Param::new(
        "write_latency",
        Unit::Nanoseconds,
        100_000,
        (1, 100 * S),
        "median time of a write in its server",
    ),
    Param::new(
        "read_spread",
        Unit::Count,
        0,
        (0, 3000),
        "standard deviation of the logarithm of a read's time, in thousandths",
    ),
    Param::new("write_spread", Unit::Count, 0, (0, 3000), "the same of a write's"),
    Param::new("parallel", Unit::Count, 32, (1, 65_536), "servers"),
    Param::choice(
        "placement",
        PLACEMENTS,
        0,
        "the server of a command: any that is free, one drawn at random, or one for all in batches",
    ),
    Param::new(
        "batch_size",
        Unit::Count,
        0,
        (0, 65_536),
        "commands in a batch at most; 0: all that have come",
    ),
    Param::choice(
        "mixed_latency",
        MIXED_LATENCIES,
        0,
        "the latency of a batch with reads and writes: the longer of the two, or their sum",
    ),
    Param::new("read_command", Unit::Nanoseconds, 0, (0, S), "time of the link for each read"),
    Param::new("write_command", Unit::Nanoseconds, 0, (0, S), "time of the link for each write"),
    Param::new(
        "read_rate",
        Unit::BytesPerSecond,
        10_000_000_000,
        (1000, 1 << 44),
        "speed of the link for reads",
    ),
    Param::new(
        "write_rate",
        Unit::BytesPerSecond,
        10_000_000_000,
        (1000, 1 << 44),
        "speed of the link for writes",
    ),
    Param::flag("full_duplex", 1, "reads and writes have a link each"),
    Param::new(
        "flush",
        Unit::Nanoseconds,
        0,
        (0, 100 * S),
        "time of a flush after the writes before it; 0: there is no volatile cache",
    ),
    Param::new("io_limit", Unit::Count, 0, (0, 1_000_000_000), "I/Os per second; 0: no limit"),
    Param::new(
        "io_burst",
        Unit::Count,
        0,
        (0, 1 << 40),
        "I/Os that an idle disk takes at once beyond",
    ),
    Param::new(
        "rate_limit",
        Unit::BytesPerSecond,
        0,
        (0, 1 << 44),
        "bytes per second; 0: no limit",
    ),
    Param::new(
        "rate_burst",
        Unit::Bytes,
        0,
        (0, 1 << 50),
        "bytes that an idle disk takes at once beyond",
    ),
    Param::new(
        "write_buffer",
        Unit::Bytes,
        0,
        (0, 1 << 50),
        "writes that an idle disk takes before they slow down to write_drain_rate",
    ),
    Param::new(
        "write_drain_rate",
        Unit::BytesPerSecond,
        0,
        (0, 1 << 44),
        "speed at which the write buffer empties; 0: writes never fill it",
    ),
    Param::new("queue_depth", Unit::Count, 256, (1, 65_536), "commands that it takes at once"),
    Param::new(
        "hw_queues",
        Unit::Count,
        1,
        (1, 65_536),
        "hardware queues, of which a machine uses at most one for each processor",
    ),
    Param::flag("shared_tags", 0, "all hardware queues have the tags of one"),
    Param::new("max_sectors_kb", Unit::Kibibytes, 1280, (4, 32_767), "largest command"),
    Param::flag("rotational", 0, "what the device tells the host of itself"),
];

/// The times of a direction's commands.
#[derive(Clone, Debug)]
struct Service {
    latency_ns: f64,
    spread: f64,
    command_ns: u64,
    rate: u64,
}

impl Service {
    /// Time in a server.
    fn draw_ns(&self, stream: &mut Stream) -> u64 {
        if self.spread == 0.0 {
            return self.latency_ns as u64;
        }
        (self.latency_ns * libm::exp(self.spread * stream.normal())) as u64
    }
}

#[derive(Clone, Debug)]
pub struct VirtualDisk {
    facts: Facts,
    read: Service,
    write: Service,
    flush_ns: u64,
    servers: Servers,
    /// In place of the servers.
    batches: Option<Batches>,
    /// When the link of reads and that of writes are free; the first is both if they share one.
    link_free_ns: [u64; 2],
    full_duplex: bool,
    ios: Option<TokenBucket>,
    bytes: Option<TokenBucket>,
    /// Its tokens are the room in the write buffer.
    write_buffer: Option<TokenBucket>,
    stream: Stream,
    writes_end_ns: u64,
    busy_until_ns: u64,
    busy_ns: u64,
}

impl VirtualDisk {
    #[expect(clippy::unnecessary_wraps, reason = "all devices are built alike")]
    pub fn new(values: &Values, _source: &str, seed: u64) -> Result<Self, ProfileError> {
        let get = |name: &str| values.get(name);
        let spread = |name: &str| values.get(name) as f64 / 1000.0;
        Ok(Self {
            facts: Facts {
                capacity_bytes: get("capacity") / SECTOR_BYTES * SECTOR_BYTES,
                rotational: values.flag("rotational"),
                queue_depth: get("queue_depth") as u32,
                nr_hw_queues: get("hw_queues") as u32,
                shares_tags: values.flag("shared_tags"),
                bio_based: false,
                volatile_cache: get("flush") > 0,
                discards: true,
                max_hw_sectors_kb: get("max_sectors_kb") as u32,
            },
            read: Service {
                latency_ns: get("read_latency") as f64,
                spread: spread("read_spread"),
                command_ns: get("read_command"),
                rate: get("read_rate"),
            },
            write: Service {
                latency_ns: get("write_latency") as f64,
                spread: spread("write_spread"),
                command_ns: get("write_command"),
                rate: get("write_rate"),
            },
            flush_ns: get("flush"),
            servers: Servers::new(get("parallel") as usize, values.word("placement")),
            batches: (values.word("placement") == "batch")
                .then(|| Batches::new(get("batch_size") as u32, values.word("mixed_latency"))),
            link_free_ns: [0; 2],
            full_duplex: values.flag("full_duplex"),
            ios: TokenBucket::new(get("io_limit"), get("io_burst")),
            bytes: TokenBucket::new(get("rate_limit"), get("rate_burst")),
            write_buffer: TokenBucket::new(get("write_drain_rate"), get("write_buffer")),
            stream: Stream::named(seed, "device/virtual"),
            writes_end_ns: 0,
            busy_until_ns: 0,
            busy_ns: 0,
        })
    }

    fn admitted_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let ios_ns = self.ios.as_mut().map_or(now_ns, |bucket| bucket.take(now_ns, 1));
        self.bytes.as_mut().map_or(ios_ns, |bucket| bucket.take(now_ns, bytes).max(ios_ns))
    }

    fn serve(&mut self, command: Command, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        let writes = command.operation != Operation::Read;
        // A discard moves no data.
        let bytes = match command.operation {
            Operation::Discard => 0,
            _ => u64::from(command.nr_sectors) * SECTOR_BYTES,
        };
        let admitted_ns = self.admitted_ns(now_ns, bytes);
        let service = if writes { &self.write } else { &self.read };
        let transfer_ns = u128::from(bytes) * u128::from(S) / u128::from(service.rate);
        let link_ns = service.command_ns + transfer_ns as u64;
        let mut done_ns = if let Some(batches) = &mut self.batches {
            batches.serve(admitted_ns, link_ns, writes, || service.draw_ns(&mut self.stream))
        } else {
            let link_free_ns = &mut self.link_free_ns[usize::from(writes && self.full_duplex)];
            *link_free_ns = (*link_free_ns).max(admitted_ns) + link_ns;
            let ready_ns = *link_free_ns;
            let work_ns = service.draw_ns(&mut self.stream);
            self.servers.serve(ready_ns, work_ns, &mut self.stream)
        };
        if writes {
            if let Some(room) = &mut self.write_buffer {
                done_ns = done_ns.max(room.take(now_ns, bytes));
            }
            self.writes_end_ns = self.writes_end_ns.max(done_ns);
        }
        self.complete(done_ns, command.id, outbox);
    }

    fn complete(&mut self, done_ns: u64, id: u32, outbox: &mut Outbox) {
        let from_ns = self.busy_until_ns.max(outbox.now_ns());
        self.busy_ns += done_ns.saturating_sub(from_ns);
        self.busy_until_ns = self.busy_until_ns.max(done_ns);
        outbox.complete_at(done_ns, id);
    }
}

impl Device for VirtualDisk {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        match command.operation {
            Operation::Flush => {
                let from_ns = self.writes_end_ns.max(outbox.now_ns());
                self.complete(from_ns + self.flush_ns, command.id, outbox);
            }
            _ => self.serve(command, outbox),
        }
    }

    fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}

/// Servers, each of which takes one command after the other.
#[derive(Clone, Debug)]
enum Servers {
    /// When each is free, the first first.
    Any(BinaryHeap<Reverse<u64>>),
    Random(Vec<u64>),
}

impl Servers {
    fn new(count: usize, placement: &str) -> Self {
        if placement == "random" {
            Self::Random(vec![0; count])
        } else {
            Self::Any((0..count).map(|_| Reverse(0)).collect())
        }
    }

    /// The end of some work that is ready at a moment.
    fn serve(&mut self, ready_ns: u64, work_ns: u64, stream: &mut Stream) -> u64 {
        match self {
            Self::Any(free) => {
                let free_ns = free.pop().map_or(0, |Reverse(free_ns)| free_ns);
                let done_ns = free_ns.max(ready_ns).saturating_add(work_ns);
                free.push(Reverse(done_ns));
                done_ns
            }
            Self::Random(free) => {
                let drawn = stream.below(free.len() as u64) as usize;
                let free_ns = &mut free[drawn];
                *free_ns = (*free_ns).max(ready_ns).saturating_add(work_ns);
                *free_ns
            }
        }
    }
}

/// A thread of the host that a command wakes. After a latency it takes the commands that have come, one after
/// the other; those that come later, or are too many, wait until it is done with these.
#[derive(Clone, Debug)]
struct Batches {
    most_commands: u32,
    adds_latencies: bool,
    /// In the last batch.
    commands: u32,
    /// Of reads and of writes in the last batch; `None` for a direction that it lacks.
    latencies_ns: [Option<u64>; 2],
    /// Until then commands join the last batch.
    open_until_ns: u64,
    /// The end of the last batch, as far as it is known.
    end_ns: u64,
}

impl Batches {
    /// Batches of so many commands at most; 0: of all that have come.
    fn new(size: u32, mixed_latency: &str) -> Self {
        let most_commands = if size == 0 { u32::MAX } else { size };
        Self {
            most_commands,
            adds_latencies: mixed_latency == "sum",
            commands: 0,
            latencies_ns: [None; 2],
            open_until_ns: 0,
            end_ns: 0,
        }
    }

    /// The end of a command that comes at a moment and takes some time of its own; commands come in order.
    fn serve(
        &mut self,
        moment_ns: u64,
        own_ns: u64,
        writes: bool,
        latency_ns: impl FnOnce() -> u64,
    ) -> u64 {
        let direction = usize::from(writes);
        let misses_last = moment_ns > self.open_until_ns || self.commands == self.most_commands;
        if self.end_ns == 0 || misses_last {
            let latency_ns = latency_ns();
            self.open_until_ns = self.end_ns.max(moment_ns) + latency_ns;
            self.end_ns = self.open_until_ns;
            self.commands = 0;
            self.latencies_ns = [None; 2];
            self.latencies_ns[direction] = Some(latency_ns);
        } else if self.latencies_ns[direction].is_none() {
            let latency_ns = latency_ns();
            let other_ns = self.latencies_ns[1 - direction].unwrap_or(0);
            let counted_ns = if self.adds_latencies { 0 } else { other_ns };
            self.end_ns += latency_ns.saturating_sub(counted_ns);
            self.latencies_ns[direction] = Some(latency_ns);
        }
        self.commands += 1;
        self.end_ns += own_ns;
        self.end_ns
    }
}

/// A limit with a burst: tokens come at a rate, and an idle bucket fills up to the burst.
#[derive(Clone, Debug)]
struct TokenBucket {
    per_second: u64,
    burst_ns: u64,
    /// When the tokens taken so far will all have come, were the burst none.
    earned_ns: u64,
}

impl TokenBucket {
    /// `None` without a limit.
    fn new(per_second: u64, burst: u64) -> Option<Self> {
        (per_second > 0).then(|| Self {
            per_second,
            burst_ns: time_ns(burst, per_second),
            earned_ns: 0,
        })
    }

    /// Takes tokens; returns the moment at which they are there.
    fn take(&mut self, now_ns: u64, tokens: u64) -> u64 {
        let from_ns = self.earned_ns.max(now_ns);
        self.earned_ns = from_ns + time_ns(tokens, self.per_second);
        from_ns.saturating_sub(self.burst_ns).max(now_ns)
    }
}

fn time_ns(tokens: u64, per_second: u64) -> u64 {
    let time_ns = u128::from(tokens) * u128::from(S) / u128::from(per_second);
    u64::try_from(time_ns).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use crate::block::request::Operation::{self, Flush, Read, Write};
    use crate::devices::build;
    use crate::devices::device::{Command, Runner};

    const KIB_SECTORS: u32 = 2;

    /// The times at which commands end that are all submitted at 0, in their order.
    fn ends_ns(parameters: &[(&str, &str)], commands: &[(Operation, u32)]) -> Vec<u64> {
        let mut runner = Runner::new(build("virtual", parameters, "test", 1).unwrap());
        for (number, &(operation, kib)) in commands.iter().enumerate() {
            let (id, nr_sectors) = (number as u32, kib * KIB_SECTORS);
            runner.submit(0, Command { id, operation, sector: 0, nr_sectors, queue: 0 });
        }
        let mut done = Vec::new();
        runner.advance(u64::MAX / 2, &mut done);
        done.sort_by_key(|&(_, id)| id);
        done.into_iter().map(|(time_ns, _)| time_ns).collect()
    }

    fn ends_us(parameters: &[(&str, &str)], commands: &[(Operation, u32)]) -> Vec<u64> {
        ends_ns(parameters, commands).iter().map(|end_ns| end_ns / 1000).collect()
    }

    /// A disk whose host takes commands in batches.
    const IN_BATCHES: [(&str, &str); 4] = [
        ("read_latency", "50us"),
        ("read_command", "10us"),
        ("read_rate", "1t"),
        ("placement", "batch"),
    ];

    #[test]
    fn a_command_takes_its_time_on_the_link_and_in_a_server() {
        let disk =
            [("read_latency", "100us"), ("read_command", "5us"), ("read_rate", "1024000000")];
        assert_eq!(ends_ns(&disk, &[(Read, 4)]), [109_000]);
        assert_eq!(ends_ns(&disk, &[(Read, 4), (Read, 4)]), [109_000, 118_000], "one link");
    }

    #[test]
    fn servers_limit_commands_under_way() {
        let disk = [("read_latency", "100us"), ("read_rate", "1t"), ("parallel", "2")];
        assert_eq!(ends_us(&disk, &[(Read, 4); 4]), [100, 100, 200, 200]);
    }

    #[test]
    fn commands_that_wait_for_the_host_are_a_batch_with_one_latency() {
        assert_eq!(ends_us(&IN_BATCHES, &[(Read, 4); 3]), [60, 70, 80]);
        let mut runner = Runner::new(build("virtual", &IN_BATCHES, "test", 1).unwrap());
        let mut done = Vec::new();
        // The second still joins the first, the others have missed it.
        for (id, moment_us) in [(0, 0), (1, 49), (2, 52), (3, 100)] {
            let read = Command { id, operation: Read, sector: 0, nr_sectors: 8, queue: 0 };
            runner.advance(1000 * moment_us, &mut done);
            runner.submit(1000 * moment_us, read);
        }
        runner.advance(u64::MAX / 2, &mut done);
        let ends_us: Vec<u64> = done.iter().map(|(end_ns, _)| end_ns / 1000).collect();
        assert_eq!(ends_us, [60, 70, 130, 140]);
    }

    #[test]
    fn a_batch_holds_so_many_commands_at_most() {
        let disk = [&IN_BATCHES[..], &[("batch_size", "2")]].concat();
        assert_eq!(ends_us(&disk, &[(Read, 4); 5]), [60, 70, 130, 140, 200]);
    }

    #[test]
    fn of_a_batch_with_reads_and_writes_the_longer_latency_counts_or_the_sum() {
        let ends = |mixed_latency, commands: &[(Operation, u32)]| {
            let of_writes =
                [("write_latency", "70us"), ("write_rate", "1t"), ("mixed_latency", mixed_latency)];
            ends_us(&[&IN_BATCHES[..], &of_writes].concat(), commands)
        };
        let read_first = [(Read, 4), (Read, 4), (Write, 4), (Read, 4)];
        assert_eq!(ends("longer", &read_first), [60, 70, 90, 100]);
        assert_eq!(ends("sum", &read_first), [60, 70, 140, 150]);
        assert_eq!(ends("longer", &[(Write, 4), (Read, 4)]), [70, 80]);
    }

    #[test]
    fn directions_share_the_link_unless_it_is_full_duplex() {
        let disk = [("read_command", "10us"), ("write_command", "10us"), ("full_duplex", "0")];
        let both = [(Read, 4), (Write, 4)];
        let half = ends_ns(&disk, &both);
        assert!(half[1] > half[0] + 9_000, "{half:?}");
        assert_eq!(ends_ns(&disk[..2], &both)[1], half[0]);
    }

    #[test]
    fn a_flush_waits_for_writes_before_it() {
        let disk = [("write_latency", "100us"), ("write_rate", "1t"), ("flush", "1ms")];
        let ends = ends_ns(&disk, &[(Write, 4), (Flush, 0)]);
        assert_eq!(ends[1], ends[0] + 1_000_000);
    }

    #[test]
    fn a_burst_passes_and_the_rest_comes_at_the_limit() {
        let disk =
            [("read_latency", "1us"), ("read_rate", "1t"), ("io_limit", "1000"), ("io_burst", "3")];
        let ends_ms: Vec<u64> =
            ends_ns(&disk, &[(Read, 4); 6]).iter().map(|end_ns| end_ns / 1_000_000).collect();
        assert_eq!(ends_ms, [0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn writes_fill_the_buffer_and_then_come_at_its_drain_rate_while_reads_pass() {
        let disk = [
            ("read_latency", "1us"),
            ("write_latency", "1us"),
            ("write_rate", "1t"),
            ("write_buffer", "12k"),
            ("write_drain_rate", "4096000"),
        ];
        let mut commands = vec![(Write, 4); 6];
        commands.push((Read, 4));
        let ends_ms: Vec<u64> =
            ends_ns(&disk, &commands).iter().map(|end_ns| end_ns / 1_000_000).collect();
        assert_eq!(ends_ms, [0, 0, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn the_spread_leaves_the_median_where_it_is() {
        let disk = [("read_spread", "400"), ("read_rate", "16t"), ("parallel", "10001")];
        let mut ends = ends_ns(&disk, &vec![(Read, 4); 10_001]);
        ends.sort_unstable();
        let (median, p84) = (ends[5000] as f64, ends[8413] as f64);
        assert!((median / 100_000.0 - 1.0).abs() < 0.03, "{median}");
        assert!((p84 / median / 0.4_f64.exp() - 1.0).abs() < 0.03, "{p84}");
    }
}
