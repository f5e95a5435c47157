//! A worker: reads and writes its own part of the disk, several I/Os at a time, and knows what each block
//! must hold.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::slice;

use blksim::core::rng::{Stream, mix};

use super::async_io::{AsyncIo, Order};
use super::kept_file::KeptFile;
use super::plan::{BLOCK_BYTES, BLOCKS, Load, Plan};
use super::{Torture, contents, disk, leave_count};
use crate::aio_abi::{FDSYNC, PREAD, PWRITE};
use crate::clock;
use crate::disk::Disk;
use crate::failure::{Failure, checked};
use crate::load::identity::set_priority;
use crate::mounts::{CGROUPS, mount};

/// Most blocks of an I/O.
const MOST_BLOCKS: u64 = 16;
/// A worker looks so often whether an I/O has waited too long.
const LOOK_NS: u64 = 1_000_000_000;
/// Longest time between two bursts.
const LONGEST_PAUSE_NS: u64 = 30_000_000;
/// Most I/Os of all workers together: they take real time, however fast the disk is.
const MOST_IOS: u64 = 4000;
/// Of 100 I/Os, those below the first are syncs, those from the second on writes.
const KIND_OF_READ: u64 = 4;
const KIND_OF_WRITE: u64 = 52;
/// Errors of requests that timed out.
const OF_TIMEOUTS: [i64; 2] = [-(libc::EIO as i64), -(libc::ETIMEDOUT as i64)];

/// Where a worker works, and until when.
pub struct Place<'a> {
    pub torture: &'a Torture,
    pub plan: &'a Plan,
    pub disk: &'a Disk,
    /// There are control groups.
    pub groups: bool,
    pub number: u32,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Mounts control groups; false if this kernel has none for I/O.
pub fn groups() -> Result<bool, Failure> {
    match mount("cgroup2", CGROUPS, "cgroup2", "") {
        Ok(()) => Ok(fs::write(format!("{CGROUPS}/cgroup.subtree_control"), "+io").is_ok()),
        Err(Failure::Unsupported { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Works until the end, checks the whole part, and leaves its counts.
pub fn work(place: &Place) -> Result<(), Failure> {
    let mut worker = Worker::open(place)?;
    clock::sleep_until(place.start_ns);
    worker.work()?;
    worker.check_all()?;
    for (name, count) in [
        ("reads", worker.counts.reads),
        ("writes", worker.counts.writes),
        ("syncs", worker.counts.syncs),
        ("failed", worker.counts.failed),
        ("digest", worker.digest),
    ] {
        leave_count(&format!("{name}-{}", place.number), count)?;
    }
    Ok(())
}

/// An I/O in flight; blocks are counted from the worker's first.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    opcode: u16,
    first: u64,
    blocks: u64,
    version: u32,
    start_ns: u64,
    /// Of a sync to a disk with a volatile cache: the flushes that the disk had done when it began.
    flushes: Option<u64>,
}

/// The possible contents of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Holds {
    version: u32,
    /// A write that failed may have been done.
    or: Option<u32>,
    in_use: bool,
}

#[derive(Debug, Default)]
struct Counts {
    reads: u64,
    writes: u64,
    syncs: u64,
    failed: u64,
}

struct Worker<'a> {
    place: &'a Place<'a>,
    draw: Stream,
    file: fs::File,
    queue: AsyncIo,
    /// `MOST_BLOCKS` blocks for each slot.
    memory: &'static mut [u8],
    in_flight: Vec<Option<InFlight>>,
    holds: Vec<Holds>,
    versions: u32,
    next: u64,
    /// The burst is one of writes.
    writes: bool,
    nr_groups: u32,
    counts: Counts,
    /// Of all completions with their times: equal for equal runs.
    digest: u64,
    /// The disk's counters.
    counters: KeptFile,
    /// The time since this task last slept: none passes while it computes, and asking the kernel takes real time.
    now_ns: u64,
}

impl<'a> Worker<'a> {
    fn open(place: &'a Place<'a>) -> Result<Self, Failure> {
        let depth = place.plan.depths[place.number as usize] as usize;
        let file = open_direct(&place.disk.path())?;
        Ok(Self {
            draw: Stream::named(place.torture.seed, &format!("worker {}", place.number)),
            queue: AsyncIo::open(file.as_raw_fd(), depth)?,
            file,
            memory: of_this_process(depth * (MOST_BLOCKS * BLOCK_BYTES) as usize)?,
            in_flight: vec![None; depth],
            holds: vec![Holds::default(); BLOCKS as usize],
            versions: 0,
            next: 0,
            writes: false,
            nr_groups: 0,
            counts: Counts::default(),
            digest: 0,
            counters: disk::counters(place.disk),
            now_ns: 0,
            place,
        })
    }

    fn work(&mut self) -> Result<(), Failure> {
        self.now_ns = clock::now_ns();
        loop {
            if self.place.plan.load == Load::Bursts && self.in_flight.iter().all(Option::is_none) {
                let pause_ns = self.draw.below(LONGEST_PAUSE_NS);
                clock::sleep_until(self.now_ns + pause_ns);
                self.now_ns = clock::now_ns();
            }
            let now_ns = self.now_ns;
            let done = self.counts.reads + self.counts.writes + self.counts.syncs;
            let own_most = MOST_IOS / u64::from(self.place.plan.workers);
            let begins =
                now_ns < self.place.end_ns && (self.place.plan.load.is_long() || done < own_most);
            let bursts = self.place.plan.load == Load::Bursts;
            if begins && !(bursts && self.in_flight.iter().any(Option::is_some)) {
                self.begin()?;
                self.do_something_else()?;
            }
            if self.in_flight.iter().all(Option::is_none) {
                if !begins {
                    return Ok(());
                }
                clock::sleep_until(now_ns + 1_000_000);
                self.now_ns = clock::now_ns();
                continue;
            }
            let reaped = self.queue.reap(LOOK_NS)?;
            self.now_ns = clock::now_ns();
            for (slot, result) in reaped {
                self.end(slot, result)?;
            }
            self.look()?;
        }
    }

    /// Begins some I/Os: in one call, or each in its own under long loads, where waits are near their bound. A call
    /// waits for room in the scheduler, and 6.12 leaves a single place to writes where mq-deadline's `async_depth` is 1
    /// or where a process has more requests than bfq grants it: in one call, the last of 160 writes would seem to have
    /// waited for as long as all before it together.
    fn begin(&mut self) -> Result<(), Failure> {
        let free: Vec<usize> =
            (0..self.in_flight.len()).filter(|slot| self.in_flight[*slot].is_none()).collect();
        let wanted = match self.place.plan.load {
            Load::Bursts => {
                self.writes = self.draw.percent(70);
                free.len()
            }
            Load::Mixed | Load::Long | Load::Equals => {
                1 + self.draw.below(free.len() as u64) as usize
            }
        };
        let mut orders = Vec::new();
        for slot in free.into_iter().take(wanted) {
            let Some((io, durable)) = self.drawn(self.now_ns) else { continue };
            let start = slot * (MOST_BLOCKS * BLOCK_BYTES) as usize;
            let bytes = (io.blocks * BLOCK_BYTES) as usize;
            let memory = &mut self.memory[start..start + bytes];
            if io.opcode == PWRITE {
                for (block, memory) in
                    (io.first..).zip(memory.chunks_exact_mut(BLOCK_BYTES as usize))
                {
                    contents::fill(
                        memory,
                        self.place.torture.seed,
                        self.place.block(block),
                        io.version,
                    );
                }
            } else {
                memory.fill(0xa5);
            }
            let order = Order {
                slot,
                opcode: io.opcode,
                durable,
                // A sync takes none of these.
                memory: if io.opcode == FDSYNC {
                    (0, 0)
                } else {
                    (memory.as_ptr() as u64, bytes as u64)
                },
                offset: if io.opcode == FDSYNC {
                    0
                } else {
                    self.place.block(io.first) * BLOCK_BYTES
                },
            };
            for block in io.first..io.first + io.blocks {
                self.holds[block as usize].in_use = true;
            }
            self.in_flight[slot] = Some(io);
            if !self.place.plan.load.is_long() {
                orders.push(order);
                continue;
            }
            // SAFETY: each slot has memory of its own, mapped for the life of the process.
            unsafe { self.queue.submit(&[order]) }?;
            self.now_ns = clock::now_ns();
            self.require_in_bound(&io)?;
            if self.now_ns - io.start_ns > LOOK_NS {
                // Others may have ended meanwhile.
                return Ok(());
            }
        }
        // SAFETY: likewise.
        unsafe { self.queue.submit(&orders) }
    }

    /// Draws an I/O, and whether it is to be durable; `None` if the blocks drawn are in use.
    fn drawn(&mut self, start_ns: u64) -> Option<(InFlight, bool)> {
        let plan = self.place.plan;
        let kind = match (self.draw.below(100), plan.load) {
            (kind, Load::Mixed) => kind,
            (_, load) if load.is_long() && self.place.number % 2 == 0 => KIND_OF_READ,
            (_, Load::Bursts) if !self.writes => KIND_OF_READ,
            _ => KIND_OF_WRITE,
        };
        if kind < KIND_OF_READ {
            let flushes = if plan.cache_mib > 0 { disk::flushes(&self.counters) } else { None };
            let sync =
                InFlight { opcode: FDSYNC, first: 0, blocks: 0, version: 0, start_ns, flushes };
            return Some((sync, false));
        }
        // In bursts no two requests are neighbours, so that none are merged.
        let (first, blocks) = if plan.load == Load::Bursts {
            (self.draw.below(BLOCKS / 2) * 2, 1)
        } else {
            self.drawn_place()
        };
        let durable = self.draw.percent(5);
        if self.holds[first as usize..(first + blocks) as usize].iter().any(|block| block.in_use) {
            return None;
        }
        self.next = (first + blocks) % BLOCKS;
        if kind < KIND_OF_WRITE {
            let (opcode, version, flushes) = (PREAD, 0, None);
            return Some((InFlight { opcode, first, blocks, version, start_ns, flushes }, false));
        }
        self.versions += 1;
        let (opcode, version, flushes) = (PWRITE, self.versions, None);
        Some((InFlight { opcode, first, blocks, version, start_ns, flushes }, durable))
    }

    /// Draws a first block and a number of blocks; every second I/O begins where the last one ended.
    fn drawn_place(&mut self) -> (u64, u64) {
        let blocks = if self.draw.percent(50) { 1 } else { 1 + self.draw.below(MOST_BLOCKS) };
        let first = if self.draw.percent(50) { self.next } else { self.draw.below(BLOCKS) };
        (first.min(BLOCKS - blocks), blocks)
    }

    fn end(&mut self, slot: usize, result: i64) -> Result<(), Failure> {
        let Some(io) = self.in_flight.get_mut(slot).and_then(Option::take) else {
            let message = format!("an I/O of worker {} was completed twice", self.place.number);
            return Err(Failure::mistake("completed_twice", message));
        };
        let now_ns = self.now_ns - self.place.start_ns;
        self.digest = mix(self.digest ^ mix(now_ns ^ slot as u64) ^ result as u64);
        for block in io.first..io.first + io.blocks {
            self.holds[block as usize].in_use = false;
        }
        if result != (io.blocks * BLOCK_BYTES) as i64 {
            return self.failed(io, result);
        }
        match io.opcode {
            PREAD => {
                self.counts.reads += 1;
                let start = slot * (MOST_BLOCKS * BLOCK_BYTES) as usize;
                for block in 0..io.blocks {
                    let begin = start + (block * BLOCK_BYTES) as usize;
                    self.check(io.first + block, begin)?;
                }
            }
            PWRITE => {
                self.counts.writes += 1;
                for block in io.first..io.first + io.blocks {
                    self.holds[block as usize] = Holds { version: io.version, ..Holds::default() };
                }
            }
            _ => {
                require_flush(io.flushes, || disk::flushes(&self.counters))?;
                self.counts.syncs += 1;
            }
        }
        Ok(())
    }

    fn failed(&mut self, io: InFlight, result: i64) -> Result<(), Failure> {
        if !self.place.torture.timeouts || !(OF_TIMEOUTS.contains(&result) || result >= 0) {
            let message =
                format!("{} of {} blocks ended with {result}", name_of(io.opcode), io.blocks);
            return Err(Failure::mistake("error", message));
        }
        self.counts.failed += 1;
        if io.opcode == PWRITE {
            for block in io.first..io.first + io.blocks {
                let holds = &mut self.holds[block as usize];
                // Two failed writes of a block: it is written anew before it is read again.
                holds.in_use = holds.or.is_some();
                holds.or = Some(io.version);
            }
            self.heal(io)?;
        }
        Ok(())
    }

    /// Writes blocks anew of which more than two versions are possible.
    fn heal(&mut self, io: InFlight) -> Result<(), Failure> {
        for block in io.first..io.first + io.blocks {
            if !self.holds[block as usize].in_use {
                continue;
            }
            self.versions += 1;
            let memory = aligned(BLOCK_BYTES as usize)?;
            let place = self.place.block(block);
            contents::fill(memory, self.place.torture.seed, place, self.versions);
            while self.file.write_all_at(memory, place * BLOCK_BYTES).is_err() {}
            self.holds[block as usize] = Holds { version: self.versions, ..Holds::default() };
            unmap(memory);
            self.now_ns = clock::now_ns();
        }
        Ok(())
    }

    /// Checks a block that was read into the memory from `begin` on.
    fn check(&mut self, block: u64, begin: usize) -> Result<(), Failure> {
        let (seed, place) = (self.place.torture.seed, self.place.block(block));
        let memory = &self.memory[begin..begin + BLOCK_BYTES as usize];
        let holds = self.holds[block as usize];
        if contents::is_of(memory, seed, place, holds.version) {
            self.holds[block as usize].or = None;
            return Ok(());
        }
        if let Some(version) = holds.or.filter(|or| contents::is_of(memory, seed, place, *or)) {
            self.holds[block as usize] = Holds { version, ..Holds::default() };
            return Ok(());
        }
        let blocks = u64::from(self.place.plan.workers) * BLOCKS;
        let message = format!(
            "block {place} must hold version {} and holds {}",
            holds.version,
            contents::describe(memory, seed, blocks, self.versions)
        );
        Err(Failure::mistake("corruption", message))
    }

    /// Reads the whole part once more.
    fn check_all(&mut self) -> Result<(), Failure> {
        for first in (0..BLOCKS).step_by(MOST_BLOCKS as usize) {
            let memory = &mut self.memory[..(MOST_BLOCKS * BLOCK_BYTES) as usize];
            let offset = self.place.block(first) * BLOCK_BYTES;
            loop {
                match self.file.read_exact_at(memory, offset) {
                    Ok(()) => break,
                    Err(_) if self.place.torture.timeouts => {}
                    Err(error) => {
                        let message = format!("reading block {first} at the end: {error}");
                        return Err(Failure::mistake("error", message));
                    }
                }
            }
            for block in 0..MOST_BLOCKS {
                self.check(first + block, (block * BLOCK_BYTES) as usize)?;
            }
        }
        Ok(())
    }

    /// Makes sure that nothing waits longer than it may.
    fn look(&self) -> Result<(), Failure> {
        let oldest = self.in_flight.iter().flatten().min_by_key(|io| io.start_ns);
        oldest.map_or(Ok(()), |io| self.require_in_bound(io))
    }

    fn require_in_bound(&self, io: &InFlight) -> Result<(), Failure> {
        let waited_ns = self.now_ns - io.start_ns;
        if waited_ns <= self.place.plan.bound_ns {
            return Ok(());
        }
        let message = format!(
            "{} of {} blocks has waited for {} s; this worker has {} I/Os in flight",
            name_of(io.opcode),
            io.blocks,
            waited_ns / 1_000_000_000,
            self.in_flight.iter().flatten().count()
        );
        Err(Failure::mistake("stuck", message))
    }

    fn do_something_else(&mut self) -> Result<(), Failure> {
        let choice = self.draw.below(100);
        match self.place.plan.load {
            Load::Mixed => {}
            Load::Long if (20..22).contains(&choice) => {}
            Load::Long | Load::Equals | Load::Bursts => return Ok(()),
        }
        match choice {
            0..20 => {
                let pause_ns = self.draw.below(5_000_000);
                clock::sleep_until(clock::now_ns() + pause_ns);
                Ok(())
            }
            20..22 => {
                let class = 1 + self.draw.below(3) as u8;
                let level = if class == 3 { 0 } else { self.draw.below(8) as u8 };
                set_priority(0, class, level)
            }
            22..24 => self.leave_with_io_in_flight(),
            24..26 if self.place.groups => self.work_in_a_group(),
            _ => Ok(()),
        }
    }

    /// A task that ends while its I/Os are in flight.
    fn leave_with_io_in_flight(&mut self) -> Result<(), Failure> {
        let first = self.draw.below(BLOCKS - 8);
        child(|| {
            let mut queue = AsyncIo::open(self.file.as_raw_fd(), 4)?;
            let memory = aligned(4 * BLOCK_BYTES as usize)?;
            let orders: Vec<Order> = (0..4_u64)
                .map(|number| Order {
                    slot: number as usize,
                    opcode: PREAD,
                    durable: false,
                    memory: (memory.as_ptr() as u64 + number * BLOCK_BYTES, BLOCK_BYTES),
                    offset: self.place.block(first + 2 * number) * BLOCK_BYTES,
                })
                .collect();
            // SAFETY: the kernel waits for the I/Os before the process's memory goes.
            unsafe { queue.submit(&orders) }
        })
    }

    /// A task in a group of its own, which vanishes after it.
    fn work_in_a_group(&mut self) -> Result<(), Failure> {
        self.nr_groups += 1;
        let group = format!("{CGROUPS}/worker-{}-{}", self.place.number, self.nr_groups);
        let weight = (1 + self.draw.below(1000)).to_string();
        let first = self.draw.below(BLOCKS - 8);
        fs::create_dir(&group).map_err(|error| Failure::kernel("creating a group", error))?;
        for name in ["io.bfq.weight", "io.weight"] {
            let _not_every_kernel = fs::write(format!("{group}/{name}"), &weight);
        }
        child(|| {
            fs::write(format!("{group}/cgroup.procs"), "0")
                .map_err(|error| Failure::kernel("joining a group", error))?;
            let memory = aligned(BLOCK_BYTES as usize)?;
            for number in 0..4_u64 {
                let offset = self.place.block(first + 2 * number) * BLOCK_BYTES;
                let _may_time_out = self.file.read_exact_at(memory, offset);
            }
            Ok(())
        })?;
        fs::remove_dir(&group).map_err(|error| Failure::kernel("removing a group", error))
    }
}

impl Place<'_> {
    /// The number of one of the worker's blocks on the disk.
    fn block(&self, block: u64) -> u64 {
        u64::from(self.number) * BLOCKS + block
    }
}

fn name_of(opcode: u16) -> &'static str {
    match opcode {
        PREAD => "a read",
        PWRITE => "a write",
        _ => "a sync",
    }
}

/// Runs work in a child of this process, and waits for its end.
fn child(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    // SAFETY: this program has a single thread, so the child may do anything.
    let process = checked("creating a task", unsafe { libc::fork() })?;
    if process == 0 {
        let failed = work().is_err();
        // SAFETY: ends this process without running its parent's exit handlers.
        unsafe { libc::_exit(i32::from(failed)) }
    }
    let mut status = 0;
    // SAFETY: the pointer is valid for the call.
    checked("waiting for a task", unsafe {
        libc::waitpid(process, ptr::from_mut(&mut status), 0)
    })?;
    if status == 0 {
        return Ok(());
    }
    Err(Failure::mistake("error", format!("a task that only reads ended with status {status}")))
}

/// Makes sure that a flush has ended since a sync began: one that ended before says nothing of data that
/// was written since.
fn require_flush(before: Option<u64>, after: impl Fn() -> Option<u64>) -> Result<(), Failure> {
    let (Some(before), Some(after)) = (before, before.and_then(|_| after())) else { return Ok(()) };
    if after > before {
        return Ok(());
    }
    let message =
        format!("a sync was reported before a flush had reached the disk; all in all {after} have");
    Err(Failure::mistake("unflushed", message))
}

fn open_direct(path: &str) -> Result<fs::File, Failure> {
    let text = CString::new(path)
        .map_err(|_| Failure::Internal { message: format!("{path:?} has a NUL") })?;
    let flags = libc::O_RDWR | libc::O_DIRECT | libc::O_CLOEXEC;
    // SAFETY: the path is a string that outlives the call; the descriptor is fresh and nobody else's.
    unsafe {
        let descriptor = checked(&format!("opening {path}"), libc::open(text.as_ptr(), flags))?;
        Ok(fs::File::from_raw_fd(descriptor))
    }
}

/// Memory for direct I/O, which stays mapped until [`unmap`].
fn aligned(bytes: usize) -> Result<&'static mut [u8], Failure> {
    // SAFETY: a fresh anonymous mapping, zeroed by the kernel.
    unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(Failure::last("allocating memory"));
        }
        Ok(slice::from_raw_parts_mut(start.cast(), bytes))
    }
}

/// The same, which a child made by `fork` does not have, so that a fork costs no fault of each page.
fn of_this_process(bytes: usize) -> Result<&'static mut [u8], Failure> {
    let memory = aligned(bytes)?;
    // SAFETY: the mapping is of `aligned`; only the child loses it.
    let result = unsafe { libc::madvise(memory.as_mut_ptr().cast(), bytes, libc::MADV_DONTFORK) };
    checked("keeping memory from children", result)?;
    Ok(memory)
}

fn unmap(memory: &'static mut [u8]) {
    // SAFETY: the mapping is of `aligned`, and nobody uses it any more.
    unsafe { libc::munmap(memory.as_mut_ptr().cast(), memory.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_needs_a_flush_of_its_own() {
        assert!(require_flush(Some(3), || Some(4)).is_ok());
        assert!(require_flush(Some(3), || Some(3)).is_err());
        assert!(require_flush(Some(3), || None).is_ok());
        assert!(require_flush(None, || Some(0)).is_ok());
    }
}
