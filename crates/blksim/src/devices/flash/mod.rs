//! `flash`: a solid-state drive. Channels, dies, a write buffer, an SLC cache,
//! a page-mapped translation layer with garbage collection.
//!
//! * A controller with a bounded number of slots fetches commands in turn from its submission
//!   queues ([`front_end`]).
//! * A read waits for its die, then crosses channel and link. It suspends a program or an erase on
//!   the die, or waits for its end (`hold`).
//! * A write is acknowledged once it is in the buffer. Full program units go to the dies in turn;
//!   when the buffer is full, writes wait for programs and keep their slots.
//! * Garbage collection runs in step with the writes that cause it, or in bursts on some of the
//!   dies ([`collector`]), and takes the dies' time for reading, programming and erasing.
//! * A flush empties the buffer, unless the drive has capacitors; on SATA it is not queued and
//!   holds up everything behind it.
//!
//! Simplified: channel and link are charged in order of arrival, with the
//! backlog found then; moved data is charged to the die that it is moved to;
//! a read of data that is still in the buffer costs a read of the medium;
//! the SLC cache empties itself whenever the drive is idle.
//!
//! References: `MQSim` and FEMU (structure, cell times); Desnoyers 2014
//! (steady state of garbage collection); Wu and He, "Reducing SSD Read Latency via NAND Flash
//! Program and Erase Suspension", FAST 2012 (what reads wait for without it).

mod collector;
mod command_times;
mod dies;
mod front_end;
mod ftl;
mod parameters;
mod slot_map;

use std::collections::VecDeque;

use collector::Collector;
use command_times::{CommandTimes, READ, WRITE};
use dies::{Dies, Hold, Purpose, Work};
use front_end::FrontEnd;
use ftl::{Condition, Ftl, Program, Shape};
pub use ftl::{LEAST_BEYOND, RESERVE};
pub use parameters::PARAMETERS;

use crate::block::request::Operation;
use crate::core::branch::{likely, unlikely};
use crate::core::divisor::Divisor;
use crate::core::error::ProfileError;
use crate::core::params::Values;
use crate::core::rng::Stream;
use crate::devices::device::{Command, Device, Facts, Outbox, UnitTimes};

pub const SUMMARY: &str =
    "solid-state drive: channels, dies, write buffer, SLC cache, garbage collection";

const SLOT_BYTES: u64 = 4096;
const SLOT_SECTORS: u64 = SLOT_BYTES / 512;

/// A bandwidth, with its last answer: most transfers are as long as the one before.
#[derive(Debug, Clone)]
struct Speed {
    bytes_per_second: u64,
    bytes: u64,
    transfer_ns: u64,
}

impl Speed {
    fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, bytes: 0, transfer_ns: 0 }
    }

    #[inline]
    fn transfer_ns(&mut self, bytes: u64) -> u64 {
        if unlikely(bytes != self.bytes) {
            self.bytes = bytes;
            self.transfer_ns = bytes * 1_000_000_000 / self.bytes_per_second;
        }
        self.transfer_ns
    }
}

/// The controller's work for a command. It takes one after the other, while the link carries the data of
/// others.
#[derive(Debug, Clone)]
struct Fetch {
    /// 0: at once.
    each_ns: u64,
    free_ns: u64,
}

impl Fetch {
    /// The time at which the controller has taken a command.
    #[inline]
    fn take(&mut self, now_ns: u64) -> u64 {
        if self.each_ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + self.each_ns;
        self.free_ns
    }
}

/// A flush that waits for the buffer.
#[derive(Debug, Clone, Copy)]
struct Draining {
    id: u32,
    /// It is done once this many slots in all have been programmed.
    target: u64,
}

#[derive(Debug, Clone)]
pub struct Flash {
    facts: Facts,
    front_end: FrontEnd,
    collector: Collector,
    ftl: Ftl,
    dies: Dies,
    unit_slots: u64,
    unit_bytes: u64,
    /// Dies are spread over the channels in turn.
    by_channels: Divisor,
    read_ns: [u64; 3],
    program_ns: u64,
    erase_ns: u64,
    slc_slots: u64,
    slc_program_ns: u64,
    slc_fold_rate: u64,
    slc_used: u64,
    link_read: Speed,
    link_write: Speed,
    channel: Speed,
    command_times: CommandTimes,
    interface_ns: u64,
    fetch: Fetch,
    /// Times at which the link in each direction and the channels are free.
    link_free_ns: [u64; 2],
    channel_free_ns: Vec<u64>,
    buffer_slots: u64,
    buffered: u64,
    /// Slots of the program unit that is being collected.
    collecting: Vec<u32>,
    accepted_slots: u64,
    programmed_slots: u64,
    blocked: VecDeque<Command>,
    flush_drains: bool,
    flush_exclusive: bool,
    flush_ns: u64,
    draining: VecDeque<Draining>,
    barrier: bool,
    barrier_id: u32,
    held: VecDeque<Command>,
    outstanding: u32,
    programs: Vec<Program>,
    busy_until_ns: u64,
    busy_ns: u64,
}

impl Flash {
    pub fn new(values: &Values, source: &str, seed: u64) -> Result<Self, ProfileError> {
        let get = |name: &str| values.get(name);
        let fail = |field: &str, message: String| ProfileError {
            message,
            source_name: source.to_owned(),
            field: Some(field.to_owned()),
        };
        let (dies, channels) = (get("dies"), get("channels"));
        if channels > dies {
            let message = format!("{channels} channels have only {dies} dies");
            return Err(fail("channels", message));
        }
        let page = get("page");
        if page % SLOT_BYTES != 0 {
            return Err(fail("page", format!("page = {page}: must be a multiple of 4096 bytes")));
        }
        let unit_bytes = page * get("planes");
        let erase_block = get("erase_block");
        if erase_block % unit_bytes != 0 {
            let message = format!(
                "erase_block = {erase_block}: must be a multiple of page x planes = {unit_bytes} bytes"
            );
            return Err(fail("erase_block", message));
        }
        let buffer_slots = get("buffer") / SLOT_BYTES;
        if get("buffer") < unit_bytes {
            return Err(fail("buffer", format!("must hold a program unit of {unit_bytes} bytes")));
        }
        let logical = get("capacity") / SLOT_BYTES;
        let physical = u128::from(logical) * u128::from(1000 + get("spare_permille")) / 1000;
        if physical + 16 * u128::from(dies * erase_block / SLOT_BYTES) >= u128::from(u32::MAX) {
            return Err(fail("capacity", "capacity and spare exceed 16 TiB".to_owned()));
        }
        let shape = Shape {
            logical,
            superblock: dies * erase_block / SLOT_BYTES,
            unit: unit_bytes / SLOT_BYTES,
            dies,
            spare_permille: get("spare_permille"),
            filled: logical * get("fill") / 100,
        };
        let condition = match values.word("condition") {
            _ if shape.filled == 0 => Condition::Fresh,
            "fresh" => Condition::Fresh,
            "random" => Condition::Random,
            _ => Condition::Sequential,
        };
        let ftl = Ftl::new(shape, condition, seed).map_err(|message| fail("capacity", message))?;
        Ok(Self {
            facts: Facts {
                capacity_bytes: logical * SLOT_BYTES,
                rotational: false,
                queue_depth: get("queue_depth") as u32,
                nr_hw_queues: get("hw_queues") as u32,
                shares_tags: false,
                bio_based: false,
                volatile_cache: values.flag("flush_drains"),
                discards: true,
                max_hw_sectors_kb: get("max_sectors_kb") as u32,
            },
            front_end: FrontEnd::new(get("slots") as u32, get("arbitration_burst") as u32),
            collector: collector(values, seed),
            ftl,
            dies: Dies::new(dies as usize, get("suspend"), Hold::named(values.word("hold"))),
            unit_slots: shape.unit,
            unit_bytes,
            by_channels: Divisor::new(channels)
                .ok_or_else(|| fail("channels", format!("{channels} channels are too many")))?,
            read_ns: [get("read_low"), get("read_middle"), get("read_high")],
            program_ns: get("program"),
            erase_ns: get("erase"),
            slc_slots: get("slc_cache") / SLOT_BYTES,
            slc_program_ns: get("slc_program"),
            slc_fold_rate: get("slc_fold_rate"),
            slc_used: 0,
            link_read: Speed::new(get("link_read_rate")),
            link_write: Speed::new(get("link_write_rate")),
            channel: Speed::new(get("channel_rate")),
            command_times: command_times(values),
            interface_ns: get("interface"),
            fetch: Fetch { each_ns: get("fetch"), free_ns: 0 },
            link_free_ns: [0; 2],
            channel_free_ns: vec![0; channels as usize],
            buffer_slots,
            buffered: 0,
            collecting: Vec::with_capacity(shape.unit as usize),
            accepted_slots: 0,
            programmed_slots: 0,
            blocked: VecDeque::new(),
            flush_drains: values.flag("flush_drains"),
            flush_exclusive: values.flag("flush_exclusive"),
            flush_ns: get("flush"),
            draining: VecDeque::new(),
            barrier: false,
            barrier_id: 0,
            held: VecDeque::new(),
            outstanding: 0,
            programs: Vec::new(),
            busy_until_ns: 0,
            busy_ns: 0,
        })
    }

    /// Charges a transfer to a resource that serves in order, with a constant part. Returns waiting
    /// plus transfer.
    #[inline]
    fn charge(free_ns: &mut u64, now_ns: u64, constant_ns: u64, transfer_ns: u64) -> u64 {
        *free_ns = (*free_ns).max(now_ns) + constant_ns + transfer_ns;
        *free_ns - now_ns
    }

    #[inline]
    fn note_busy(&mut self, from_ns: u64, until_ns: u64) {
        self.busy_ns += until_ns.saturating_sub(from_ns.max(self.busy_until_ns));
        self.busy_until_ns = self.busy_until_ns.max(until_ns);
    }

    /// A command enters the controller.
    #[inline(always)]
    fn begin(&mut self, command: Command, outbox: &mut Outbox) {
        if unlikely(self.barrier) {
            self.held.push_back(command);
        } else {
            self.outstanding += 1;
            self.accept(command, outbox);
        }
    }

    #[inline(always)]
    fn accept(&mut self, command: Command, outbox: &mut Outbox) {
        match command.operation {
            Operation::Read => self.read(command, outbox),
            Operation::Write => self.write(command, outbox),
            Operation::Flush => self.flush(command.id, outbox),
            Operation::Discard => self.discard(command, outbox),
        }
    }

    #[inline(never)]
    fn write(&mut self, command: Command, outbox: &mut Outbox) {
        if self.blocked.is_empty() && self.has_room(&command) {
            self.take_in(command, outbox);
        } else {
            self.blocked.push_back(command);
            self.make_room(outbox);
        }
    }

    #[inline(always)]
    fn read(&mut self, command: Command, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        let (first, end) = slots(&command);
        // Most random reads are of one slot: without the loop over slots they take 80
        // instructions less.
        let done_ns = if likely(first + 1 == end) {
            match self.ftl.find(first as u32) {
                Some(physical) => self.read_of_unit(self.ftl.unit(physical), 1, now_ns),
                None => now_ns,
            }
        } else {
            self.read_slots(first, end, now_ns)
        };
        self.note_busy(now_ns, done_ns);
        let bytes = u64::from(command.nr_sectors) * 512;
        let transfer_ns = self.link_read.transfer_ns(bytes);
        let command_ns = self.command_times.of(READ, command.sector, command.nr_sectors);
        let link_free_ns = &mut self.link_free_ns[READ];
        let fetched_ns = self.fetch.take(now_ns);
        let link_ns = Self::charge(link_free_ns, fetched_ns, command_ns, transfer_ns);
        let link_ns = fetched_ns - now_ns + link_ns;
        outbox.complete_at(done_ns + link_ns + self.interface_ns, command.id);
    }

    /// Reads slots from the medium. Returns the time at which they have crossed the channels.
    #[inline(never)]
    fn read_slots(&mut self, first: u64, end: u64, now_ns: u64) -> u64 {
        let mut done_ns = now_ns;
        let mut slot = first;
        while slot < end {
            let Some(physical) = self.ftl.find(slot as u32) else {
                // Never written: the controller answers with zeros.
                slot += 1;
                continue;
            };
            // Slots that follow each other in the same unit are read at once.
            let unit = self.ftl.unit(physical);
            let mut count = 1;
            while slot + count < end
                && self.ftl.find((slot + count) as u32) == Some(physical + count as u32)
                && self.ftl.unit(physical + count as u32) == unit
            {
                count += 1;
            }
            slot += count;
            done_ns = done_ns.max(self.read_of_unit(unit, count, now_ns));
        }
        done_ns
    }

    /// Reads slots of one program unit.
    #[inline(always)]
    fn read_of_unit(&mut self, unit: u32, nr_slots: u64, now_ns: u64) -> u64 {
        // Units go round the dies; lower, middle and upper pages of a cell
        // follow each other on a die.
        let (die, turn) = self.ftl.die_and_turn(unit);
        let level = (turn % 3) as usize;
        let read_ns = self.dies.read(die as usize, now_ns, self.read_ns[level]);
        let channel = &mut self.channel_free_ns[self.by_channels.divide(die).1 as usize];
        let transfer_ns = self.channel.transfer_ns(nr_slots * SLOT_BYTES);
        read_ns + Self::charge(channel, now_ns, 0, transfer_ns)
    }

    /// True if the buffer takes a write. One larger than the buffer goes in when it is empty.
    fn has_room(&self, command: &Command) -> bool {
        if self.collector.is_stopping() {
            return false;
        }
        let (first, end) = slots(command);
        self.buffered == 0 || self.buffered + (end - first) <= self.buffer_slots
    }

    /// A write waits for room while no program is under way that would make some: the collected
    /// slots go to a die although they fill no unit. This happens only if the buffer is small
    /// beside the largest write.
    fn make_room(&mut self, outbox: &mut Outbox) {
        let collected = self.collecting.len() as u64;
        if self.collector.is_stopping() {
            return;
        }
        if !self.blocked.is_empty() && collected > 0 && self.buffered == collected {
            self.program(outbox);
        }
    }

    fn take_in(&mut self, command: Command, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        let (first, end) = slots(&command);
        let bytes = u64::from(command.nr_sectors) * 512;
        let transfer_ns = self.link_write.transfer_ns(bytes);
        let command_ns = self.command_times.of(WRITE, command.sector, command.nr_sectors);
        let link_free_ns = &mut self.link_free_ns[WRITE];
        let fetched_ns = self.fetch.take(now_ns);
        let link_ns = Self::charge(link_free_ns, fetched_ns, command_ns, transfer_ns);
        outbox.complete_at(fetched_ns + link_ns + self.interface_ns, command.id);
        self.collector.note_command();
        self.buffered += end - first;
        self.accepted_slots += end - first;
        for slot in first..end {
            self.collecting.push(slot as u32);
            if self.collecting.len() as u64 >= self.unit_slots {
                self.program(outbox);
            }
        }
    }

    /// Sends the collected slots to the dies, with the garbage collection that is due.
    fn program(&mut self, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        self.fold(now_ns);
        let collected = std::mem::take(&mut self.collecting);
        let mut programs = std::mem::take(&mut self.programs);
        self.ftl.write(&collected, &mut programs);
        let due_slots = self.collector.note_host_slots(self.unit_slots);
        if due_slots > 0 {
            while let Some((die, work)) = self.collector.hurry() {
                self.give_to_die(die, work, outbox);
            }
            self.ftl.collect(due_slots, &mut programs);
        }
        for program in programs.drain(..) {
            if program.moved_slots > 0 {
                self.move_data(program, outbox);
                continue;
            }
            let slots = collected.len() as u64;
            let duration_ns = if self.slc_used + slots <= self.slc_slots {
                self.slc_used += slots;
                self.slc_program_ns
            } else {
                self.program_ns
            };
            let work = Work { duration_ns, slots, purpose: Purpose::Host };
            self.give_to_die(program.die, work, outbox);
        }
        let erase = Work { duration_ns: self.erase_ns, slots: 0, purpose: Purpose::Erase };
        for _ in 0..self.ftl.take_erased() {
            for die in 0..self.dies.count() {
                self.dies.add(die, erase, outbox);
            }
        }
        self.programs = programs;
        self.collecting = collected;
        self.collecting.clear();
    }

    /// A program of moved data, now or when it is the turn of its die.
    fn move_data(&mut self, program: Program, outbox: &mut Outbox) {
        let duration_ns = program.moved_slots * self.read_ns[1] + self.program_ns;
        let work = Work { duration_ns, slots: 0, purpose: Purpose::Move };
        self.collector.begin();
        let now = if self.collector.is_bounded() {
            self.collector.add(program.die, work)
        } else {
            Some((program.die, work))
        };
        if let Some((die, work)) = now {
            self.give_to_die(die, work, outbox);
        }
    }

    /// A program crosses the channel and goes to its die.
    fn give_to_die(&mut self, die: u32, work: Work, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        let (_, channel) = self.by_channels.divide(die);
        let transfer_ns = self.channel.transfer_ns(self.unit_bytes);
        Self::charge(&mut self.channel_free_ns[channel as usize], now_ns, 0, transfer_ns);
        let busy_ns = self.dies.add(die as usize, work, outbox);
        self.note_busy(now_ns, busy_ns);
    }

    /// An idle drive has moved data out of its SLC cache.
    fn fold(&mut self, now_ns: u64) {
        let idle_ns = now_ns.saturating_sub(self.busy_until_ns);
        if idle_ns > 0 && self.slc_used > 0 {
            let bytes = u128::from(idle_ns) * u128::from(self.slc_fold_rate) / 1_000_000_000;
            let slots = (bytes / u128::from(SLOT_BYTES)) as u64;
            self.slc_used = self.slc_used.saturating_sub(slots);
        }
    }

    /// Forgets the slots that a discard covers wholly. It takes a command's time and no data; slots
    /// in the write buffer are written nevertheless.
    #[inline(never)]
    fn discard(&mut self, command: Command, outbox: &mut Outbox) {
        let now_ns = outbox.now_ns();
        let end = (command.sector + u64::from(command.nr_sectors)) / SLOT_SECTORS;
        for slot in command.sector.div_ceil(SLOT_SECTORS)..end {
            self.ftl.discard(slot as u32);
        }
        let command_ns = self.command_times.without_data_ns(WRITE);
        let link_ns = Self::charge(&mut self.link_free_ns[WRITE], now_ns, command_ns, 0);
        outbox.complete_at(now_ns + link_ns + self.interface_ns, command.id);
    }

    #[inline(never)]
    fn flush(&mut self, id: u32, outbox: &mut Outbox) {
        if self.flush_drains && !self.collecting.is_empty() {
            self.program(outbox);
        }
        if self.flush_exclusive {
            self.barrier = true;
            self.barrier_id = id;
        }
        // Writes that still wait for the buffer were not acknowledged: the
        // flush need not cover them, but an exclusive one comes after them.
        let target = if self.flush_drains { self.accepted_slots } else { 0 };
        self.draining.push_back(Draining { id, target });
        self.finish_flushes(outbox);
    }

    /// True for a command done while an exclusive flush is not, or for that flush.
    #[cold]
    fn completed_at_barrier(&mut self, id: u32, outbox: &mut Outbox) {
        if id != self.barrier_id {
            self.finish_flushes(outbox);
            return;
        }
        self.barrier = false;
        while !self.barrier {
            let Some(command) = self.held.pop_front() else { return };
            self.outstanding += 1;
            self.accept(command, outbox);
        }
    }

    /// Completes flushes whose data is on the medium.
    fn finish_flushes(&mut self, outbox: &mut Outbox) {
        while let Some(&Draining { id, target }) = self.draining.front() {
            if self.programmed_slots < target || (self.barrier && self.outstanding > 1) {
                return;
            }
            self.draining.pop_front();
            outbox.complete_at(outbox.now_ns() + self.interface_ns + self.flush_ns, id);
        }
    }
}

/// The collector of these parameters; the seed says where between two bursts the drive begins.
fn collector(values: &Values, seed: u64) -> Collector {
    let burst_slots = values.get("collection_burst") / SLOT_BYTES;
    let since_burst = Stream::named(seed, "device/flash/collection").below(burst_slots.max(1));
    let burst_commands = values.get("collection_commands");
    let since = Stream::named(seed, "device/flash/collection").below(burst_commands.max(1));
    Collector::new(burst_slots, values.get("collection_dies") as usize, since_burst)
        .count_commands(burst_commands, since)
        .stop_writes(values.flag("collection_stops"))
}

/// The link's times of commands; 0 means that of the plainer command.
fn command_times(values: &Values) -> CommandTimes {
    let get = |name: &str, else_ns: u64| match values.get(name) {
        0 => else_ns,
        given_ns => given_ns,
    };
    let read_ns = values.get("command");
    let write_ns = get("write_command", read_ns);
    let random_ns = [get("random_read_command", read_ns), get("random_write_command", write_ns)];
    CommandTimes::new([read_ns, write_ns], random_ns)
}

/// Slots that a command touches.
#[inline]
fn slots(command: &Command) -> (u64, u64) {
    let end = command.sector + u64::from(command.nr_sectors);
    (command.sector / SLOT_SECTORS, end.div_ceil(SLOT_SECTORS))
}

impl Device for Flash {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        if !self.front_end.is_bounded() || self.front_end.admit(command) {
            self.begin(command, outbox);
        }
    }

    #[inline]
    fn completed(&mut self, id: u32, outbox: &mut Outbox) {
        self.outstanding -= 1;
        if unlikely(self.barrier) {
            self.completed_at_barrier(id, outbox);
        }
        if self.front_end.is_bounded() {
            if let Some(next) = self.front_end.complete() {
                self.begin(next, outbox);
            }
        }
    }

    /// A die may have finished a program.
    fn wake(&mut self, number: u32, outbox: &mut Outbox) {
        let Some(Work { slots, purpose, .. }) = self.dies.wake(number as usize, outbox) else {
            return;
        };
        let mut resumes = false;
        if purpose == Purpose::Move {
            resumes = self.collector.end();
            if self.collector.is_bounded() {
                if let Some((die, work)) = self.collector.done() {
                    self.give_to_die(die, work, outbox);
                }
            }
        }
        if slots == 0 && !resumes {
            return;
        }
        self.buffered -= slots;
        self.programmed_slots += slots;
        while self.blocked.front().is_some_and(|command| self.has_room(command)) {
            if let Some(command) = self.blocked.pop_front() {
                self.take_in(command, outbox);
            }
        }
        self.make_room(outbox);
        if !self.draining.is_empty() {
            if self.flush_drains && !self.collecting.is_empty() && self.blocked.is_empty() {
                self.program(outbox);
            }
            self.finish_flushes(outbox);
        }
    }

    fn units(&self) -> Vec<UnitTimes> {
        self.dies.times().collect()
    }

    fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}
