//! `hdd`: a disk with one arm. Seeks, rotation, zones, skew, a cache for readahead and write-back,
//! and queued commands in positional order.
//!
//! * The arm serves one media access at a time. Among the queued ones it takes the one that it
//!   reaches first (seek + rotation), unless one has waited too long.
//! * After a read the heads go on reading into the cache until the segment is full or the arm is
//!   needed, so a sequential reader gets the media rate.
//! * Writes are acknowledged once they are in the cache, and written when the arm has no reads or
//!   the cache is nearly full. A flush waits for all commands before it, writes everything, and
//!   holds up the commands after it, as the unqueued FLUSH of SATA does.
//! * Commands answered from the cache pass the interface one after another.
//!
//! Simplified: no defects, no thermal recalibration, no vibration; access
//! times are exact, so positional ordering is a little better than a drive's.
//!
//! References: `DiskSim` 4.0 (geometry, seek curves, cache segments);
//! T13 ACS-4 (NCQ, FLUSH CACHE EXT).

mod cache;
mod geometry;

use std::collections::VecDeque;

use cache::{Dirty, ReadCache, WriteCache};
pub use geometry::Geometry;
use geometry::{Figures, SeekCurve, SeekFigures};

use crate::block::request::Operation;
use crate::core::error::ProfileError;
use crate::core::params::{Param, Unit, Values};
use crate::devices::device::{Command, Device, Facts, Outbox};

pub const SUMMARY: &str =
    "one arm: seeks, rotation, zones, memory for read-ahead and write-back, NCQ";

const MS: u64 = 1_000_000;

pub const PARAMETERS: &[Param] = &[
    Param::new("rpm", Unit::Count, 7200, (1000, 30_000), "revolutions a minute"),
    Param::new("heads", Unit::Count, 10, (1, 64), "recording surfaces"),
    Param::new("cylinders", Unit::Count, 310_194, (16, 10_000_000), "tracks of a surface"),
    Param::new("zones", Unit::Count, 60, (1, 1000), "zones of equal width"),
    Param::new(
        "outer_sectors",
        Unit::Sectors,
        3072,
        (1, 100_000),
        "sectors a track in the outermost zone",
    ),
    Param::new(
        "inner_sectors",
        Unit::Sectors,
        1536,
        (1, 100_000),
        "sectors a track in the innermost zone",
    ),
    Param::new(
        "serpentine",
        Unit::Count,
        128,
        (1, 1_000_000),
        "tracks on one head before the next head's turn",
    ),
    Param::new(
        "track_switch",
        Unit::Nanoseconds,
        600_000,
        (0, 100 * MS),
        "time to the neighbouring track; tracks are skewed by it",
    ),
    Param::new(
        "head_switch",
        Unit::Nanoseconds,
        600_000,
        (0, 100 * MS),
        "time to the next head; skewed by it",
    ),
    Param::new(
        "seek_near",
        Unit::Nanoseconds,
        1_497_000,
        (0, 1000 * MS),
        "short seeks: constant part",
    ),
    Param::new(
        "seek_near_root",
        Unit::Nanoseconds,
        19_200,
        (0, 100 * MS),
        "short seeks: times the root of the distance in cylinders",
    ),
    Param::new(
        "seek_far_from",
        Unit::Count,
        67_809,
        (2, 10_000_000),
        "distance at which the linear part begins",
    ),
    Param::new(
        "seek_far",
        Unit::Nanoseconds,
        4_508_000,
        (0, 1000 * MS),
        "long seeks: constant part",
    ),
    Param::new("seek_far_slope", Unit::Nanoseconds, 31, (0, MS), "long seeks: for each cylinder"),
    Param::new(
        "write_settle",
        Unit::Nanoseconds,
        461_000,
        (0, 100 * MS),
        "additional settling before a write",
    ),
    Param::new("queue_depth", Unit::Count, 32, (1, 256), "commands queued in the drive; 1: no NCQ"),
    Param::new(
        "starvation_limit",
        Unit::Nanoseconds,
        2000 * MS,
        (MS, 1_000_000 * MS),
        "age at which a command is served before all nearer ones",
    ),
    Param::new("cache_segments", Unit::Count, 32, (0, 1024), "segments of memory for data read"),
    Param::new("segment_sectors", Unit::Sectors, 3072, (1, 1 << 20), "size of a segment"),
    Param::flag("read_ahead", 1, "go on reading after a read"),
    Param::new(
        "write_cache_sectors",
        Unit::Sectors,
        33_792,
        (0, 1 << 24),
        "memory for data to be written; 0: write through",
    ),
    Param::new(
        "write_cache_extents",
        Unit::Count,
        11,
        (1, 4096),
        "separate pieces of data that this memory tells apart",
    ),
    Param::new(
        "cache_hit",
        Unit::Nanoseconds,
        66_000,
        (1, 100 * MS),
        "time of a command that memory serves, beside the transfer",
    ),
    Param::new(
        "interface_rate",
        Unit::BytesPerSecond,
        600_000_000,
        (1_000_000, 100_000_000_000),
        "speed of the interface",
    ),
];

/// A command that needs the arm.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: u32,
    write: bool,
    sector: u64,
    nr_sectors: u64,
    cylinder: u32,
    /// Media clock of its first sector, and the same modulo a revolution.
    clock_ns: u64,
    angle_ns: u64,
    since_ns: u64,
}

/// The activity of the arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Idle,
    /// Serves a command of the host.
    Command(u32),
    /// Writes cached data; a wake is under way.
    Destage,
}

/// The heads go on reading from `sector`, which they passed at `since_ns`.
#[derive(Debug, Clone, Copy)]
struct Stream {
    sector: u64,
    since_ns: u64,
    end: u64,
}

/// A motion of the arm: a seek, the wait for the sector, the transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Motion {
    pub from_cylinder: u32,
    /// Of the first sector, and where the transfer ends.
    pub to_cylinder: u32,
    pub end_cylinder: u32,
    pub start_ns: u64,
    /// The heads are on the track, and the first sector is under them.
    pub arrive_ns: u64,
    pub transfer_ns: u64,
    pub done_ns: u64,
    /// The command that it serves; `None` for cached writes.
    pub command: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Hdd {
    facts: Facts,
    geometry: Geometry,
    write_settle_ns: u64,
    starvation_ns: u64,
    segment_sectors: u64,
    read_ahead: bool,
    write_limit: u64,
    extent_limit: usize,
    cache_hit_ns: u64,
    interface_rate: u64,
    /// Time at which the interface has passed on everything that the cache answered.
    interface_free_ns: u64,
    arm: Arm,
    cylinder: u32,
    motion: Motion,
    waiting: Vec<Waiting>,
    reads: ReadCache,
    stream: Option<Stream>,
    dirty: WriteCache,
    /// The last access wrote cached data.
    destaged: bool,
    /// Writes that wait for the cache.
    blocked: VecDeque<Command>,
    /// A flush under way, and the commands behind it.
    barrier: Option<u32>,
    held: VecDeque<Command>,
    /// Commands acknowledged from the cache that have not completed.
    answering: u32,
    head_sector: u64,
    busy_ns: u64,
}

impl Hdd {
    pub fn new(values: &Values, source: &str, _seed: u64) -> Result<Self, ProfileError> {
        let get = |name: &str| values.get(name);
        let fail = |field: &str, message: String| {
            Err(ProfileError {
                message,
                source_name: source.to_owned(),
                field: Some(field.to_owned()),
            })
        };
        let (outer, inner) = (get("outer_sectors"), get("inner_sectors"));
        if inner > outer {
            return fail(
                "inner_sectors",
                format!("inner_sectors = {inner} exceeds outer_sectors = {outer}"),
            );
        }
        let (cylinders, zones) = (get("cylinders"), get("zones"));
        if zones > cylinders {
            return fail("zones", format!("{zones} zones do not fit {cylinders} cylinders"));
        }
        let curve = SeekCurve::new(SeekFigures {
            near_ns: get("seek_near") as f64,
            near_root_ns: get("seek_near_root") as f64,
            far_ns: get("seek_far"),
            far_slope_ps: get("seek_far_slope") * 1000,
            far_from: get("seek_far_from") as u32,
            track_switch_ns: get("track_switch"),
        });
        if curve.ns(2) < curve.ns(1) {
            let message = "a seek over two cylinders is quicker than track_switch".to_owned();
            return fail("track_switch", message);
        }
        let geometry = Geometry::new(&Figures {
            rpm: get("rpm"),
            cylinders,
            heads: get("heads"),
            zones,
            outer_sectors: outer,
            inner_sectors: inner,
            band: get("serpentine"),
            head_switch_ns: get("head_switch"),
            curve,
        });
        Ok(Self {
            facts: Facts {
                capacity_bytes: geometry.capacity_sectors * 512,
                rotational: true,
                queue_depth: get("queue_depth") as u32,
                nr_hw_queues: 1,
                shares_tags: false,
                bio_based: false,
                volatile_cache: get("write_cache_sectors") > 0,
                discards: false,
                max_hw_sectors_kb: 32_767,
            },
            geometry,
            write_settle_ns: get("write_settle"),
            starvation_ns: get("starvation_limit"),
            segment_sectors: get("segment_sectors"),
            read_ahead: values.flag("read_ahead") && get("cache_segments") > 0,
            write_limit: get("write_cache_sectors"),
            extent_limit: get("write_cache_extents") as usize,
            cache_hit_ns: get("cache_hit"),
            interface_rate: get("interface_rate"),
            interface_free_ns: 0,
            arm: Arm::Idle,
            cylinder: 0,
            motion: Motion::default(),
            waiting: Vec::new(),
            reads: ReadCache::new(get("cache_segments") as usize),
            stream: None,
            dirty: WriteCache::default(),
            destaged: false,
            blocked: VecDeque::new(),
            barrier: None,
            held: VecDeque::new(),
            answering: 0,
            head_sector: 0,
            busy_ns: 0,
        })
    }

    /// For closed forms in tests, and for plots.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The last motion of the arm, which may still be under way.
    pub fn motion(&self) -> Motion {
        self.motion
    }

    fn accept(&mut self, command: Command, outbox: &mut Outbox) {
        match command.operation {
            Operation::Flush => {
                self.barrier = Some(command.id);
                self.next_access(outbox);
            }
            Operation::Write if self.write_limit > 0 => self.accept_write(command, outbox),
            Operation::Write | Operation::Discard => {
                self.enqueue(command, outbox);
            }
            Operation::Read => self.accept_read(command, outbox),
        }
    }

    fn accept_read(&mut self, command: Command, outbox: &mut Outbox) {
        let (first, end) = extent(&command);
        if self.reads.holds(first, end) || self.dirty.holds(first, end) {
            self.answer(command, outbox);
            return;
        }
        if let (Arm::Idle, Some(stream)) = (self.arm, self.stream) {
            // The heads are on their way there, or the data is in memory already.
            if stream.sector <= first && end <= stream.end {
                let passed_ns = stream.since_ns + self.geometry.locate(end).clock_ns
                    - self.geometry.locate(stream.sector).clock_ns;
                if passed_ns <= outbox.now_ns() {
                    self.answer(command, outbox);
                } else {
                    self.continue_stream(command.id, first, end, passed_ns, outbox);
                }
                return;
            }
        }
        self.enqueue(command, outbox);
    }

    /// Serves a read from the stream that the heads are reading.
    fn continue_stream(
        &mut self,
        id: u32,
        first: u64,
        end: u64,
        passed_ns: u64,
        outbox: &mut Outbox,
    ) {
        let Some(stream) = self.stream.as_mut() else { return };
        let from = stream.sector;
        stream.sector = end;
        stream.since_ns = passed_ns;
        stream.end = (end + self.segment_sectors).min(self.geometry.capacity_sectors);
        self.reads.add(from.min(first), end, self.segment_sectors);
        self.arm = Arm::Command(id);
        let now_ns = outbox.now_ns();
        let end_cylinder = self.geometry.locate(end).cylinder;
        self.motion = Motion {
            from_cylinder: self.cylinder,
            to_cylinder: self.cylinder,
            end_cylinder,
            start_ns: now_ns,
            arrive_ns: now_ns,
            transfer_ns: now_ns,
            done_ns: passed_ns,
            command: Some(id),
        };
        self.cylinder = end_cylinder;
        self.head_sector = end;
        self.busy_ns += passed_ns - now_ns;
        outbox.complete_at(passed_ns, id);
    }

    /// Serves a command from the cache.
    fn answer(&mut self, command: Command, outbox: &mut Outbox) {
        let transfer_ns = u64::from(command.nr_sectors) * 512 * 1_000_000_000 / self.interface_rate;
        self.answering += 1;
        // One command's data passes the interface at a time.
        self.interface_free_ns =
            self.interface_free_ns.max(outbox.now_ns() + self.cache_hit_ns) + transfer_ns;
        outbox.complete_at(self.interface_free_ns, command.id);
    }

    fn accept_write(&mut self, command: Command, outbox: &mut Outbox) {
        if !self.blocked.is_empty() || !self.has_room(&command) {
            self.blocked.push_back(command);
            self.next_access(outbox);
            return;
        }
        self.take_in(command, outbox);
        self.next_access(outbox);
    }

    /// True if the cache has room for a write. One larger than the cache goes in when it is empty.
    fn has_room(&self, command: &Command) -> bool {
        if self.dirty.is_empty() {
            return true;
        }
        let (first, end) = extent(command);
        self.dirty.nr_sectors + (end - first) <= self.write_limit
            && (self.dirty.extents.len() < self.extent_limit
                || self.dirty.takes_without_extent(first, end, self.segment_sectors))
    }

    fn take_in(&mut self, command: Command, outbox: &mut Outbox) {
        let (first, end) = extent(&command);
        self.reads.forget(first, end);
        let place = self.geometry.locate(first);
        let dirty = Dirty {
            sector: first,
            nr_sectors: end - first,
            cylinder: place.cylinder,
            clock_ns: place.clock_ns,
        };
        self.dirty.add(dirty, self.segment_sectors);
        self.answer(command, outbox);
    }

    fn enqueue(&mut self, command: Command, outbox: &mut Outbox) {
        let place = self.geometry.locate(command.sector);
        self.waiting.push(Waiting {
            id: command.id,
            write: command.operation == Operation::Write,
            sector: command.sector,
            nr_sectors: u64::from(command.nr_sectors),
            cylinder: place.cylinder,
            clock_ns: place.clock_ns,
            angle_ns: place.clock_ns % self.geometry.revolution_ns,
            since_ns: outbox.now_ns(),
        });
        self.next_access(outbox);
    }

    /// The command that the head reaches first: the time until then, and its place in the queue.
    #[inline]
    fn nearest_waiting(&self, now_ns: u64, phase_ns: u64) -> Option<(u64, usize)> {
        let reach_ns = |w: &Waiting| {
            let seek_ns = self.geometry.seek_ns(self.cylinder.abs_diff(w.cylinder));
            let settles = w.write && self.cylinder != w.cylinder;
            let settle_ns = if settles { self.write_settle_ns } else { 0 };
            self.reach_ns(self.turn_ns(phase_ns, w.angle_ns), seek_ns + settle_ns)
        };
        let oldest = self.waiting.first()?;
        if now_ns - oldest.since_ns > self.starvation_ns {
            return Some((reach_ns(oldest), 0));
        }
        let least = self.least_turn(phase_ns);
        if reach_ns(&self.waiting[least.1]) == least.0 {
            return Some(least);
        }
        // The head arrives late there after all, so another command may come first.
        self.waiting.iter().map(reach_ns).zip(0..).min()
    }

    /// The command that the head reaches first if all seeks are as fast as [`Geometry::farthest`]
    /// assumes: the time until then, and its place. The choice is unpredictable, so the loop has no
    /// branch on it.
    #[inline]
    fn least_turn(&self, phase_ns: u64) -> (u64, usize) {
        let mut least = (u64::MAX, 0);
        for (index, w) in self.waiting.iter().enumerate() {
            let turn_ns = self.turn_ns(phase_ns, w.angle_ns);
            let distance = self.cylinder.abs_diff(w.cylinder);
            let spare = i64::from(self.geometry.farthest(turn_ns)) - i64::from(distance);
            // A command that misses this turn comes a whole revolution later.
            let reach_ns = turn_ns + if_negative(spare, self.geometry.revolution_ns);
            least = if reach_ns < least.0 { (reach_ns, index) } else { least };
        }
        least
    }

    /// The cached data that the head reaches in less than `best_ns` and before all others: the time
    /// until then, and its place.
    fn nearest_dirty(&self, phase_ns: u64, best_ns: u64) -> Option<(u64, usize)> {
        let mut best = (best_ns, None);
        for (index, d) in self.dirty.extents.iter().enumerate() {
            let mut seek_ns = self.geometry.seek_ns(self.cylinder.abs_diff(d.cylinder));
            if self.cylinder != d.cylinder {
                seek_ns += self.write_settle_ns;
            }
            if seek_ns < best.0 {
                let angle_ns = d.clock_ns % self.geometry.revolution_ns;
                let reach_ns = self.reach_ns(self.turn_ns(phase_ns, angle_ns), seek_ns);
                if reach_ns < best.0 {
                    best = (reach_ns, Some(index));
                }
            }
        }
        best.1.map(|index| (best.0, index))
    }

    /// Time until a sector next passes the head.
    #[inline]
    fn turn_ns(&self, phase_ns: u64, angle_ns: u64) -> u64 {
        let turn_ns = angle_ns as i64 - phase_ns as i64;
        (turn_ns as u64).wrapping_add(if_negative(turn_ns, self.geometry.revolution_ns))
    }

    /// Time until the head is over a sector, after a seek.
    #[inline]
    fn reach_ns(&self, turn_ns: u64, seek_ns: u64) -> u64 {
        let mut reach_ns = turn_ns;
        while reach_ns < seek_ns {
            reach_ns += self.geometry.revolution_ns;
        }
        reach_ns
    }

    /// Starts the arm, if it is free, on the access that it reaches first.
    fn next_access(&mut self, outbox: &mut Outbox) {
        if self.arm != Arm::Idle {
            return;
        }
        let now_ns = outbox.now_ns();
        // Cached writes go when there is no command, when a flush needs them,
        // or when memory is three quarters full. In the last two cases they
        // alternate with commands; otherwise a stream of writes, always near
        // the head, would keep a reader waiting until the starvation limit.
        let pressed = self.barrier.is_some()
            || !self.blocked.is_empty()
            || self.dirty.nr_sectors * 4 > self.write_limit * 3
            || self.dirty.extents.len() * 4 > self.extent_limit * 3;
        let destage =
            !self.dirty.is_empty() && (self.waiting.is_empty() || (pressed && !self.destaged));
        if self.waiting.is_empty() && !destage {
            self.finish_barrier(outbox);
            return;
        }
        let phase_ns = now_ns % self.geometry.revolution_ns;
        let (mut reach_ns, mut index) =
            self.nearest_waiting(now_ns, phase_ns).unwrap_or((u64::MAX, 0));
        let nearer = if destage { self.nearest_dirty(phase_ns, reach_ns) } else { None };
        if let Some(dirty) = nearer {
            (reach_ns, index) = dirty;
        }
        self.stop_stream(now_ns);
        self.destaged = nearer.is_some();
        let from_cylinder = self.cylinder;
        if self.destaged {
            let dirty = self.dirty.take(index);
            let end = dirty.sector + dirty.nr_sectors;
            let done_ns = self.access(now_ns + reach_ns, dirty.clock_ns, end);
            self.moved(from_cylinder, dirty.cylinder, None, [now_ns, now_ns + reach_ns, done_ns]);
            self.busy_ns += done_ns - now_ns;
            self.arm = Arm::Destage;
            outbox.wake_at(done_ns, 0);
            self.admit_blocked(outbox);
        } else {
            let w = self.waiting.remove(index);
            let end = w.sector + w.nr_sectors;
            let done_ns = self.access(now_ns + reach_ns, w.clock_ns, end);
            self.moved(from_cylinder, w.cylinder, Some(w.id), [now_ns, now_ns + reach_ns, done_ns]);
            self.busy_ns += done_ns - now_ns;
            self.arm = Arm::Command(w.id);
            if w.write {
                self.reads.forget(w.sector, end);
            } else {
                self.reads.add(w.sector, end, self.segment_sectors);
                self.stream = self.read_ahead.then_some(Stream {
                    sector: end,
                    since_ns: done_ns,
                    end: (end + self.segment_sectors).min(self.geometry.capacity_sectors),
                });
            }
            outbox.complete_at(done_ns, w.id);
        }
    }

    /// Notes a motion that begins, reaches its first sector, and is done at these times.
    #[inline]
    fn moved(&mut self, from: u32, to: u32, command: Option<u32>, times_ns: [u64; 3]) {
        let [start_ns, transfer_ns, done_ns] = times_ns;
        self.motion = Motion {
            from_cylinder: from,
            to_cylinder: to,
            end_cylinder: self.cylinder,
            start_ns,
            arrive_ns: (start_ns + self.geometry.seek_ns(from.abs_diff(to))).min(transfer_ns),
            transfer_ns,
            done_ns,
            command,
        };
    }

    /// Transfers sectors up to `end` from `start_ns` on; `clock_ns` is the media clock of the
    /// first. Returns the end of the transfer.
    #[inline]
    fn access(&mut self, start_ns: u64, clock_ns: u64, end: u64) -> u64 {
        let last = self.geometry.locate(end);
        self.cylinder = last.cylinder;
        self.head_sector = end;
        start_ns + last.clock_ns - clock_ns
    }

    /// The arm is needed elsewhere: data that was read ahead stays in the cache.
    fn stop_stream(&mut self, now_ns: u64) {
        if let Some(stream) = self.stream.take() {
            let elapsed_ns = now_ns.saturating_sub(stream.since_ns);
            let limit = stream.end - stream.sector;
            let read = self.geometry.sectors_within(stream.sector, elapsed_ns, limit);
            if read > 0 {
                self.reads.add(stream.sector, stream.sector + read, self.segment_sectors);
            }
        }
    }

    fn admit_blocked(&mut self, outbox: &mut Outbox) {
        while let Some(command) = self.blocked.front() {
            if !self.has_room(command) {
                return;
            }
            if let Some(command) = self.blocked.pop_front() {
                self.take_in(command, outbox);
            }
        }
    }

    /// Completes a flush once everything before it is done, and lets in the commands behind it.
    fn finish_barrier(&mut self, outbox: &mut Outbox) {
        if self.answering > 0 || !self.blocked.is_empty() {
            return;
        }
        if let Some(id) = self.barrier {
            self.arm = Arm::Command(id);
            outbox.complete_at(outbox.now_ns() + self.cache_hit_ns, id);
        }
    }
}

fn extent(command: &Command) -> (u64, u64) {
    (command.sector, command.sector + u64::from(command.nr_sectors))
}

/// `value` if a number is negative, otherwise 0; branch-free.
#[inline]
fn if_negative(number: i64, value: u64) -> u64 {
    (number >> 63) as u64 & value
}

impl Device for Hdd {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        if self.barrier.is_some() {
            self.held.push_back(command);
        } else {
            self.accept(command, outbox);
        }
    }

    fn completed(&mut self, id: u32, outbox: &mut Outbox) {
        if self.arm == Arm::Command(id) {
            self.arm = Arm::Idle;
            if self.barrier == Some(id) {
                self.barrier = None;
                while let (None, Some(command)) = (self.barrier, self.held.pop_front()) {
                    self.accept(command, outbox);
                }
            }
        } else {
            self.answering -= 1;
        }
        self.next_access(outbox);
    }

    fn wake(&mut self, _number: u32, outbox: &mut Outbox) {
        if self.arm == Arm::Destage {
            self.arm = Arm::Idle;
            self.admit_blocked(outbox);
            self.next_access(outbox);
        }
    }

    fn head_sector(&self) -> Option<u64> {
        Some(self.head_sector)
    }

    fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}
