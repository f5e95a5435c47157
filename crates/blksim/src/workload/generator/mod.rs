//! The stream of I/Os of one clone: the next one, and its time.

mod next_block;
mod pace;

use self::next_block::lane;
use self::pace::Pace;
use super::command_priority::CommandPriorities;
use super::file_turns::{FileState, FileTurns};
use super::flow::{FlowCopies, FlowShare, SharedFlow};
use super::job::{BlockSizes, Job, Mode, PerDirection, Sequence};
use super::latency_search::LatencySearch;
use super::layout::Region;
use super::offsets::Offsets;
use super::own_priority::OwnPriority;
use super::replay::{Cursor, SharedSignals, Turn};
use super::strides::StridedZones;
use super::verification::{Verification, Written};
use crate::core::branch::{likely, unlikely};
use crate::core::record::{Direction, JobRecord};
use crate::core::rng::Stream;

/// An I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    pub direction: Direction,
    /// Of the device, in bytes.
    pub offset: u64,
    pub bytes: u32,
    /// `None` for the process's own.
    pub priority: Option<OwnPriority>,
}

/// The next step of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Transfer `bytes` at byte `offset` of the device.
    Transfer(Transfer),
    /// Call fsync or fdatasync.
    Sync,
    /// Wait until this time.
    Wait { until_ns: u64 },
    /// Wait until an I/O in flight completes.
    AwaitCompletion,
    /// Wait until another clone sets the signal of this number.
    AwaitSignal(u32),
    /// No more I/O.
    Finished,
}

/// Why a pass over the size is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassEnd {
    /// All its bytes were issued.
    Bytes,
    /// The end of the file, or no block that was not visited.
    File,
}

/// The I/Os of one clone of a job.
#[derive(Debug, Clone)]
pub struct Generator {
    mode: Mode,
    /// Direction of the I/Os that are no reads: writes or trims.
    change: Direction,
    region: Region,
    block_sizes: PerDirection<BlockSizes>,
    sizes_by_order: bool,
    align: PerDirection<u64>,
    rwmixread: u64,
    percentage_random: u64,
    offsets: Offsets,
    sequence: Sequence,
    /// I/Os until the next random offset, including that one.
    until_random: u64,
    /// Next sequential position of reads and of writes, relative to the region.
    position: [u64; 2],
    /// Offsets of the last read and the last write.
    last_start: [u64; 2],
    /// Bytes of a pass over the size, and the rest of the current one.
    pass_bytes: u64,
    left_of_pass: u64,
    /// Bytes that may be issued in all, if limited.
    left_bytes: u64,
    /// Further passes that `loops` asks for.
    left_loops: u64,
    /// `io_size`, up to which passes are repeated.
    io_size: Option<u64>,
    issued_bytes: u64,
    /// The smallest block: what no longer fits behind it ends a pass over a file.
    smallest_block: u64,
    largest_block: u64,
    left_ios: u64,
    time_based: bool,
    runtime_ns: Option<u64>,
    ramp_ns: u64,
    start_ns: u64,
    deadline_ns: u64,
    measure_ns: u64,
    /// I/Os and bytes of the ramp, by direction.
    in_ramp: [(u64, u64); 4],
    sync_every: u64,
    writes_since_sync: u64,
    end_fsync: bool,
    /// Files that remain to be synced at the end.
    end_syncs_left: usize,
    thinktime_ns: u64,
    thinktime_blocks: u64,
    blocks_since_pause: u64,
    pause_until_ns: u64,
    pace: [Pace; 2],
    poisson: bool,
    prepared: Option<(Direction, u64, u32)>,
    /// The current pass is over, but what it wrote is not read back.
    pass_ended: Option<PassEnd>,
    zones: Option<StridedZones>,
    /// Its files, if it has several.
    files: Option<Box<FileTurns>>,
    verification: Option<Box<Verification>>,
    latency_search: Option<Box<LatencySearch>>,
    flow: Option<FlowShare>,
    command_priorities: Option<Box<CommandPriorities>>,
    /// The recorded I/Os that it replays instead of generating any.
    replay: Option<Box<Cursor>>,
    /// It must be told of completions.
    watches: bool,
    /// It reads back, shares a flow, or searches for a depth.
    special: bool,
    /// I/Os issued and completed, if it watches.
    nr_issued: u64,
    nr_completed: u64,
    /// The direction of all I/Os, if they have one size, follow the random order, and depend on no
    /// limit but the deadline.
    plain: Option<Direction>,
    /// Plain I/Os that need no check of the limits any more: they are counted as issued.
    granted: u64,
    random: Stream,
    mix: Stream,
    timing: Stream,
}

impl Generator {
    /// The stream of clone `index` of `job`, with a region in each of its files.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(job: &Job, index: u32, regions: &[Region], seed: u64) -> Self {
        let region = regions[0];
        let several_files = regions.len() > 1;
        let seed = job.randseed.unwrap_or(seed);
        let stream = |what: &str| Stream::named(seed, &format!("job/{}/{index}/{what}", job.name));
        let change = if job.mode.trims { Direction::Trim } else { Direction::Write };
        let smallest = job.smallest_block();
        let align = job.block_align.unwrap_or(PerDirection {
            read: job.block_sizes.read.smallest(),
            write: job.block_sizes.write.smallest(),
        });
        let mut random = stream("offset");
        let (offsets, states) = offsets_in_files(job, regions, &align, &mut random);
        let files = several_files
            .then(|| Box::new(FileTurns::new(states, &job.file_service, stream("file"))));
        // fio 3.33: a time-based job ignores `number_ios` (`keep_running`).
        let left_ios = match job.number_ios {
            Some(ios) if !job.repeats() => ios.saturating_mul(job.loops),
            _ => u64::MAX,
        };
        let rate = job.rate;
        let sync_every = if job.fsync > 0 { job.fsync } else { job.fdatasync };
        let pace = [
            Pace::new(rate.bytes_per_second.read, rate.ios_per_second.read),
            Pace::new(rate.bytes_per_second.write, rate.ios_per_second.write),
        ];
        let plain = is_plain(job)
            && matches!(offsets, Offsets::Mapped(_))
            && !pace.iter().any(Pace::limited);
        let direction = if job.mode.reads { Direction::Read } else { change };
        let pass_bytes = pass_bytes(regions, smallest);
        let left_bytes = if job.repeats() {
            u64::MAX
        } else {
            job.io_size.unwrap_or(pass_bytes).saturating_mul(job.loops)
        };
        Self {
            mode: job.mode,
            change,
            region,
            block_sizes: job.block_sizes.clone(),
            sizes_by_order: job.sizes_by_order,
            align,
            rwmixread: job.rwmixread,
            percentage_random: job.percentage_random,
            offsets,
            sequence: job.sequence,
            until_random: job.sequence.nr_per_offset,
            position: [0, 0],
            last_start: [0, 0],
            pass_bytes,
            left_of_pass: pass_bytes,
            left_bytes,
            left_loops: job.loops - 1,
            io_size: job.io_size,
            issued_bytes: 0,
            largest_block: job.largest_block(),
            smallest_block: smallest,
            left_ios,
            time_based: job.repeats(),
            runtime_ns: job.runtime_ns,
            ramp_ns: job.ramp_time_ns,
            start_ns: 0,
            deadline_ns: u64::MAX,
            measure_ns: 0,
            in_ramp: [(0, 0); 4],
            sync_every,
            writes_since_sync: 0,
            end_fsync: job.end_fsync && job.mode.writes && !job.mode.trims,
            end_syncs_left: 0,
            thinktime_ns: job.thinktime_ns,
            thinktime_blocks: job.thinktime_blocks,
            blocks_since_pause: 0,
            pause_until_ns: 0,
            pace,
            poisson: rate.poisson,
            prepared: None,
            pass_ended: None,
            // fio leaves zones out of account with several files.
            zones: job.strides.filter(|_| !several_files).map(StridedZones::new),
            files,
            verification: job
                .verify
                .map(|verify| Box::new(Verification::new(verify, !job.norandommap))),
            latency_search: job
                .latency_goal
                .map(|goal| Box::new(LatencySearch::new(goal, job.depth()))),
            flow: None,
            command_priorities: CommandPriorities::new(&job.command_priorities, stream("priority")),
            replay: job.replay.as_ref().map(|replay| Box::new(replay.cursor(index))),
            watches: job.thinktime_ns > 0 || job.verify.is_some() || job.latency_goal.is_some(),
            special: job.verify.is_some() || job.latency_goal.is_some(),
            nr_issued: 0,
            nr_completed: 0,
            plain: plain.then_some(direction),
            granted: 0,
            random,
            mix: stream("direction"),
            timing: stream("timing"),
        }
    }

    /// Makes the clone share its flow's I/Os by weight; without this it runs alone.
    pub fn join_flow(&mut self, job: &Job, shared: SharedFlow) {
        if let Some(flow) = job.flow {
            self.flow = Some(FlowShare::new(shared, flow.weight, flow.sleep_ns));
            self.special = true;
        }
    }

    /// Makes a clone that replays share signals with the others; without this it runs alone.
    pub fn share_signals(&mut self, signals: &SharedSignals) {
        if let Some(cursor) = &mut self.replay {
            cursor.share(signals.clone());
        }
    }

    /// Shares the flow of a snapshot from now on.
    pub(crate) fn join_snapshot(&mut self, copies: &mut FlowCopies) {
        if let Some(flow) = &mut self.flow {
            flow.join_snapshot(copies);
        }
    }

    /// The place in the recorded I/Os, for a clone that replays.
    #[inline]
    pub fn replay(&mut self) -> Option<&mut Cursor> {
        self.replay.as_deref_mut()
    }

    /// The next step of a clone that replays.
    #[inline]
    pub fn replay_step(&mut self, now_ns: u64) -> Step {
        let Some(cursor) = &mut self.replay else { return Step::Finished };
        if now_ns >= self.deadline_ns {
            return Step::Finished;
        }
        match cursor.turn(now_ns) {
            Turn::Issue(io) => Step::Transfer(Transfer {
                direction: io.direction,
                offset: self.region.start + io.offset,
                bytes: io.bytes,
                priority: io.priority,
            }),
            Turn::Until(until_ns) => Step::Wait { until_ns: until_ns.min(self.deadline_ns) },
            Turn::AwaitCompletion => Step::AwaitCompletion,
            Turn::AwaitSignal(signal) => Step::AwaitSignal(signal),
            Turn::Finished => Step::Finished,
        }
    }

    /// Lets the clone end as soon as it asks for its next step.
    pub fn terminate(&mut self) {
        self.deadline_ns = 0;
        self.granted = 0;
    }

    /// Starts the clock of the clone.
    pub fn start(&mut self, now_ns: u64) {
        if let Some(search) = &mut self.latency_search {
            search.start(now_ns);
        }
        if let Some(cursor) = &mut self.replay {
            cursor.start(now_ns);
        }
        self.start_ns = now_ns;
        self.measure_ns = now_ns.saturating_add(self.ramp_ns);
        if let Some(runtime_ns) = self.runtime_ns {
            self.deadline_ns = self.measure_ns.saturating_add(runtime_ns);
        }
        for pace in &mut self.pace {
            pace.next_ns = now_ns;
        }
    }

    /// The time from which I/Os are measured.
    pub fn measure_ns(&self) -> u64 {
        self.measure_ns
    }

    /// The next step.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Step {
        match self.next_granted(now_ns) {
            Some(transfer) => Step::Transfer(transfer),
            None => self.next_within_limits(now_ns),
        }
    }

    /// A plain I/O that needs no check of the limits, if that is next.
    #[inline]
    pub fn next_granted(&mut self, now_ns: u64) -> Option<Transfer> {
        if unlikely(self.granted == 0 || now_ns >= self.deadline_ns) {
            return None;
        }
        let (Some(direction), Offsets::Mapped(order)) = (self.plain, &mut self.offsets) else {
            return None;
        };
        self.granted -= 1;
        let bytes = self.largest_block;
        let offset = self.region.start + order.next(&mut self.random) * bytes;
        Some(Transfer { direction, offset, bytes: bytes as u32, priority: None })
    }

    /// The next step, after checking all limits.
    #[inline(never)]
    fn next_within_limits(&mut self, now_ns: u64) -> Step {
        if unlikely(self.replay.is_some()) {
            return self.replay_step(now_ns);
        }
        if self.sync_every > 0 && self.writes_since_sync >= self.sync_every {
            self.writes_since_sync = 0;
            if likely(self.files.is_none()) || self.turn_to_next_file() {
                return Step::Sync;
            }
        }
        if now_ns >= self.deadline_ns || self.left_ios == 0 {
            return self.finish(now_ns);
        }
        if self.pause_until_ns > now_ns {
            return Step::Wait { until_ns: self.pause_until_ns.min(self.deadline_ns) };
        }
        if unlikely(self.special) {
            if let Some(step) = self.special_step(now_ns) {
                return step;
            }
        }
        let Some((direction, offset, bytes)) = self.prepare() else {
            return self.end_pass(now_ns);
        };
        let pace = &mut self.pace[lane(direction)];
        if pace.limited() {
            if pace.next_ns > now_ns {
                self.prepared = Some((direction, offset, bytes));
                return Step::Wait { until_ns: pace.next_ns.min(self.deadline_ns) };
            }
            let draw = self.poisson.then(|| self.timing.exponential());
            pace.issued(self.start_ns, bytes, draw);
        }
        self.count_issued(1, u64::from(bytes));
        self.writes_since_sync += u64::from(direction == Direction::Write);
        if unlikely(self.special) {
            self.note_to_verify(direction, offset, bytes);
        }
        if self.plain.is_some() {
            let bytes = self.largest_block;
            self.granted =
                self.left_ios.min(self.left_of_pass / bytes).min(self.left_bytes / bytes);
            self.count_issued(self.granted, bytes);
        }
        self.transfer(direction, offset, bytes)
    }

    /// The step of a clone that must let others go first, or that reads back what it has written.
    #[inline(never)]
    fn special_step(&mut self, now_ns: u64) -> Option<Step> {
        if let Some(step) = self.held_back(now_ns) {
            return Some(step);
        }
        if let Some(verification) = &mut self.verification {
            if let Some(write) = verification.take_from_backlog(self.nr_completed) {
                self.left_ios -= 1;
                return Some(self.read_back(write));
            }
        }
        self.pass_ended.is_some().then(|| self.end_pass(now_ns))
    }

    #[inline(never)]
    fn note_to_verify(&mut self, direction: Direction, offset: u64, bytes: u32) {
        if let Some(verification) = &mut self.verification {
            let offset = self.region.start + offset;
            let write = Written { offset, bytes, before: self.nr_issued };
            verification.issued((direction == Direction::Write).then_some(write));
        }
    }

    /// Reads back what the pass has written, and begins the next one, if there is one.
    fn end_pass(&mut self, now_ns: u64) -> Step {
        let Some(end) = self.pass_ended else { return self.finish(now_ns) };
        if let Some(step) = self.read_back_pass() {
            return step;
        }
        self.pass_ended = None;
        let empty = self.left_of_pass == self.pass_bytes;
        if (end == PassEnd::File && empty)
            || !self.next_pass(end == PassEnd::File && self.verification.is_none())
        {
            return self.finish(now_ns);
        }
        self.rewind(end);
        self.begin_pass_over_files(end);
        self.next_within_limits(now_ns)
    }

    /// Prepares the current file for another pass.
    fn rewind(&mut self, end: PassEnd) {
        match end {
            PassEnd::File => {
                self.position = [0, 0];
                self.offsets.forget_visits();
            }
            // Positions behind which no block is left in this pass begin again in the next.
            PassEnd::Bytes => {
                let (end, smallest) = (self.region.bytes, self.smallest_block);
                for position in self.position.iter_mut().filter(|p| **p + smallest > end) {
                    *position = 0;
                }
                if self.zones.is_none() {
                    self.offsets.forget_visits();
                }
            }
        }
    }

    /// An I/O at an offset of the region.
    fn transfer(&mut self, direction: Direction, offset: u64, bytes: u32) -> Step {
        self.transfer_at(direction, self.region.start + offset, bytes)
    }

    /// An I/O at an offset of the device.
    fn transfer_at(&mut self, direction: Direction, offset: u64, bytes: u32) -> Step {
        self.nr_issued += 1;
        let priority =
            self.command_priorities.as_mut().and_then(|shares| shares.draw(direction, bytes));
        Step::Transfer(Transfer { direction, offset, bytes, priority })
    }

    /// The step of a clone that must let others, or its own I/Os in flight, go first.
    fn held_back(&mut self, now_ns: u64) -> Option<Step> {
        if let Some(search) = &mut self.latency_search {
            let in_flight = self.nr_issued - self.nr_completed;
            search.check(now_ns);
            if search.done {
                return Some(self.finish(now_ns));
            }
            search.drains &= in_flight > 0;
            if search.drains || in_flight >= search.depth() {
                return Some(Step::AwaitCompletion);
            }
        }
        if self.prepared.is_none() {
            if let Some(Err(until_ns)) = self.flow.as_mut().map(|flow| flow.take(now_ns)) {
                return Some(Step::Wait { until_ns: until_ns.min(self.deadline_ns) });
            }
        }
        None
    }

    /// Reads back a write; fio counts it toward the bytes of a pass, so that fewer passes follow.
    fn read_back(&mut self, write: Written) -> Step {
        self.issued_bytes += u64::from(write.bytes);
        self.transfer_at(Direction::Read, write.offset, write.bytes)
    }

    /// Reads back what a pass has written, once all of it is complete.
    fn read_back_pass(&mut self) -> Option<Step> {
        let in_flight = self.nr_issued - self.nr_completed;
        let verification = self.verification.as_mut()?;
        if !verification.reading && verification.is_empty() {
            return None;
        }
        if (!verification.reading || verification.is_empty()) && in_flight > 0 {
            return Some(Step::AwaitCompletion);
        }
        verification.reading = true;
        let next = verification.take();
        verification.reading = next.is_some();
        next.map(|write| self.read_back(write))
    }

    fn count_issued(&mut self, ios: u64, bytes_of_each: u64) {
        let bytes = ios * bytes_of_each;
        self.left_ios -= ios;
        self.left_of_pass = self.left_of_pass.saturating_sub(bytes);
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.issued_bytes += bytes;
    }

    /// Notes that a transfer is complete, which began at `start_ns`.
    #[inline]
    pub fn completed(&mut self, start_ns: u64, now_ns: u64) {
        if unlikely(self.watches) {
            self.count_completed(start_ns, now_ns);
        }
    }

    #[inline(never)]
    fn count_completed(&mut self, start_ns: u64, now_ns: u64) {
        self.nr_completed += 1;
        if let Some(search) = &mut self.latency_search {
            search.completed(now_ns.saturating_sub(start_ns), now_ns);
        }
        if self.thinktime_ns > 0 {
            self.count_to_pause(now_ns);
        }
    }

    fn count_to_pause(&mut self, now_ns: u64) {
        self.blocks_since_pause += 1;
        if self.blocks_since_pause >= self.thinktime_blocks {
            self.blocks_since_pause = 0;
            self.pause_until_ns = now_ns.saturating_add(self.thinktime_ns);
        }
    }

    fn finish(&mut self, now_ns: u64) -> Step {
        self.left_ios = 0;
        let nr_files = self.files.as_ref().map_or(1, |files| files.states.len());
        if std::mem::take(&mut self.end_fsync) {
            self.end_syncs_left = nr_files;
        }
        if self.end_syncs_left > 0 {
            self.turn_to(nr_files - self.end_syncs_left);
            self.end_syncs_left -= 1;
            return Step::Sync;
        }
        if now_ns < self.deadline_ns {
            if let Some(step) = self.read_back_pass() {
                return step;
            }
        }
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
        Step::Finished
    }

    /// Counts an I/O that ended within the ramp time.
    #[cold]
    pub fn finished_in_ramp(&mut self, direction: Direction, bytes: u64) {
        let (ios, all) = &mut self.in_ramp[direction as usize];
        (*ios, *all) = (*ios + 1, *all + bytes);
    }

    /// The measured time of a clone that ends now. One that ends within its ramp time has all of its
    /// I/Os counted in its whole time, as fio does, which has no latencies of them.
    #[cold]
    pub fn close(&self, now_ns: u64, record: &mut JobRecord) -> u64 {
        if self.ramp_ns == 0 || now_ns > self.measure_ns {
            return now_ns.saturating_sub(self.measure_ns);
        }
        for direction in Direction::ALL {
            let (ios, bytes) = self.in_ramp[direction as usize];
            record.add_in_ramp(direction, ios, bytes);
        }
        now_ns.saturating_sub(self.start_ns)
    }

    /// Leaves the I/Os of its flow to the others: the clone ends before it has begun.
    pub fn abandon(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
    }
}

/// The random offsets of a clone in its first file, and the states of all its files if it has several.
fn offsets_in_files(
    job: &Job,
    regions: &[Region],
    align: &PerDirection<u64>,
    random: &mut Stream,
) -> (Offsets, Vec<FileState>) {
    let smallest = job.smallest_block();
    let one_size = smallest == job.largest_block();
    let aligned =
        align.read == smallest && align.write == smallest || !job.mode.reads || !job.mode.writes;
    let has_map = !job.norandommap && job.block_align.is_none();
    // With several files each must know when all of its blocks were visited.
    let marked =
        !one_size || job.sizes_by_order || !aligned || job.strides.is_some() || regions.len() > 1;
    let offsets_in = |region: &Region, random: &mut Stream| {
        let blocks = (region.bytes / smallest).max(1);
        if has_map && marked {
            Offsets::of_several_sizes(&job.distribution, blocks, random)
        } else {
            Offsets::new(&job.distribution, has_map, blocks, random)
        }
    };
    let offsets = offsets_in(&regions[0], random);
    if regions.len() == 1 {
        return (offsets, Vec::new());
    }
    let state = |region: &Region| {
        let offsets = offsets_in(region, random);
        FileState { region: *region, offsets, position: [0, 0], last_start: [0, 0] }
    };
    (offsets, regions.iter().map(state).collect())
}

/// Bytes of a pass over all files: whole blocks of each, unless fewer are asked for.
fn pass_bytes(regions: &[Region], smallest_block: u64) -> u64 {
    let whole: u64 = regions.iter().map(|region| region.bytes).sum();
    if regions[0].pass_bytes < whole {
        return regions[0].pass_bytes;
    }
    regions.iter().map(|region| region.bytes / smallest_block * smallest_block).sum()
}

/// Nothing but its deadline, and its bytes and I/Os, limits the job, and no I/O differs from another
/// in more than its random offset.
fn is_plain(job: &Job) -> bool {
    job.mode.random
        && job.mode.reads != job.mode.writes
        && job.percentage_random == 100
        && job.sequence.nr_per_offset == 1
        && job.fsync == 0
        && job.fdatasync == 0
        && job.verify.is_none()
        && job.strides.is_none()
        && !job.sizes_by_order
        && job.flow.is_none()
        && job.latency_goal.is_none()
        && job.command_priorities == PerDirection::default()
        && job.thinktime_ns == 0
}

#[cfg(test)]
mod tests;
