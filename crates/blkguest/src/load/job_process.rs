//! One clone of a job (`numjobs` in fio) as a process: preparation, I/O, record.

use blksim::mm::memory::paid_ahead_ns;
use std::sync::atomic::Ordering::SeqCst;

use blksim::core::record::{Direction, JobRecord};
use blksim::task::slots::SlotPlan;
use blksim::workload::Job;
use blksim::workload::generator::{Generator, Step, Transfer};
use blksim::workload::layout::Region;
use blksim::workload::order::JobOrder;

use super::buffer::Buffer;
use super::io_log::IoLog;
use super::real_replay::RealReplay;
use super::run_delay::RunDelay;
use super::target::{Manner, Place};
use super::{CloneSlots, Target, aio, contexts, identity, words};
use crate::clock;
use crate::failure::Failure;
use crate::shared_memory::SharedMemory;
use crate::transport::DeviceClock;

/// A clone that sleeps looks so often whether another job's end ends it, as fio does
/// (`usec_sleep` in time.c, fio 3.33).
const LOOK_NS: u64 = 1_000_000_000;
/// A replay makes up for this much at most: wake-ups that take long, and not a stall of the machine.
const MOST_LATE_NS: u64 = 1_000_000;
/// The name of what a clone leaves.
const RECORD: &str = "record";

/// A clone's description, before its process exists.
#[derive(Debug, Clone, Copy)]
pub struct JobProcess<'a> {
    /// Index among all clones of the run.
    pub number: u32,
    pub job: &'a Job,
    /// Index among the clones of its job.
    pub index: u32,
    pub job_index: usize,
    pub order: &'a JobOrder,
    /// Index of the flow that it shares in.
    pub flow: Option<usize>,
    /// Its parts of its files.
    pub regions: &'a [Region],
    pub seed: u64,
    /// Time that it waits before its job's own `startdelay`.
    pub start_delay_ns: u64,
    pub timing: Timing,
    pub slots: Option<&'a SlotPlan>,
    /// Whether slots that it does not reach count as without I/O; otherwise they are left out.
    pub closes_slots: bool,
    /// Whether it ends with a command.
    pub beside_command: bool,
    /// The file that takes the processes of its control group, if it has one.
    pub group_file: Option<&'a str>,
    /// The processor that it keeps to, if it is one.
    pub processor: Option<u16>,
    /// Of a clone that replays on real processors.
    pub real_replay: Option<RealReplay>,
}

impl JobProcess<'_> {
    /// Its place between stonewalls.
    pub fn phase(&self) -> usize {
        self.order.phases[self.job_index]
    }
}

/// The clock of a run, and the processor time that its calls cost.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The device's time without a system call: the shared page, where the device's server stamps it,
    /// and what the server has not seen yet. Only where the device alone takes time.
    pub device: Option<&'static dyn DeviceClock>,
    /// Processor time of a buffered call: fixed, and per byte copied.
    pub call_ns: u64,
    pub bytes_per_second: u64,
}

impl Timing {
    /// Processor time of a buffered read or write.
    pub fn cost_ns(&self, bytes: u32) -> u64 {
        if self.bytes_per_second == 0 {
            return 0;
        }
        paid_ahead_ns(self.call_ns, self.bytes_per_second, bytes)
    }
}

/// A clone at work.
#[derive(Debug)]
pub struct Worker<'a> {
    pub job: &'a Job,
    pub target: Target,
    pub generator: Generator,
    pub record: JobRecord,
    pub timing: Timing,
    slots: Option<CloneSlots>,
    /// Its I/Os, if the run is recorded.
    ios: Option<IoLog>,
    shared: SharedMemory,
    /// Its number, if another job's end may end it.
    may_be_terminated: Option<u32>,
    /// Of a replay on real processors.
    real_replay: Option<RealReplay>,
    /// Of the thread that works, if that matters.
    run_delay: Option<RunDelay>,
    /// The I/O context of the thread that works; `None` if the task has but one.
    context: Option<u16>,
}

impl Worker<'_> {
    /// The next step.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Step {
        let Some(number) = self.may_be_terminated else { return self.generator.next(now_ns) };
        if self.shared.terminated(number) {
            self.generator.terminate();
        }
        match self.generator.next(now_ns) {
            Step::Wait { until_ns } => Step::Wait { until_ns: until_ns.min(now_ns + LOOK_NS) },
            step => step,
        }
    }

    /// The time after something that ended; if it took any time, the device did.
    #[inline]
    pub fn moment_after(&self, before_ns: u64) -> u64 {
        let Some(device) = self.timing.device else { return clock::now_ns() };
        let stamped_ns = self.shared.device_now_ns.load(SeqCst);
        before_ns.max(stamped_ns).max(device.unseen_ns().unwrap_or(0))
    }

    /// Takes note of an I/O that it asks for now.
    #[inline]
    pub fn asked(&mut self, direction: Direction, offset: u64, bytes: u32, now_ns: u64) {
        if let Some(ios) = &mut self.ios {
            ios.add(direction, offset, bytes, now_ns);
        }
    }

    /// Takes note that it has submitted all I/Os that it asked for.
    #[inline]
    pub fn went_on(&mut self, now_ns: u64) {
        if let Some(ios) = &mut self.ios {
            ios.submitted(now_ns);
        }
    }

    /// Takes note of an I/O that is to be submitted; gives the index and the manner of a recorded one.
    pub fn submitted(&mut self) -> (u32, Manner) {
        let Some(cursor) = self.generator.replay() else { return (0, Manner::default()) };
        let index = cursor.submitted();
        let io = cursor.io(index);
        (index, Manner { durable: io.durable, memory: io.memory })
    }

    /// Whether I/Os that are prepared are held back, as a recorded one that is to come was in one plug with them.
    pub fn gathers(&mut self) -> bool {
        self.generator.replay().is_some_and(|cursor| cursor.next_is_plugged())
    }

    /// Whether a recorded I/O is to be a synchronous call.
    pub fn calls(&mut self, transfer: &Transfer) -> bool {
        let Some(real) = self.real_replay else { return false };
        let alone = self.generator.replay().is_some_and(|cursor| cursor.next_is_alone());
        real.is_call(alone, transfer.priority)
    }

    /// Takes the way of synchronous calls off the think times that follow, or that of asynchronous I/Os.
    pub fn take_off(&mut self, asynchronous: bool) {
        let Some(real) = self.real_replay else { return };
        if let Some(cursor) = self.generator.replay() {
            cursor.take_off(if asynchronous { real.asynchronous } else { real.synchronous });
        }
    }

    /// Takes note that a recorded I/O is complete; wakes the tasks that have waited for it.
    pub fn replayed(&mut self, index: u32, now_ns: u64) {
        let Some(cursor) = self.generator.replay() else { return };
        for place in cursor.completed(index, now_ns) {
            SharedMemory::wake(&cursor.signals().get(cursor.signal_set(place)).is_set);
        }
    }

    /// The context of the next recorded I/O, if that is another than the one that works. The I/Os before are submitted.
    #[inline]
    pub fn other_context(&mut self, now_ns: u64) -> Option<u16> {
        let own = self.context?;
        let cursor = self.generator.replay()?;
        let next = cursor.next_context().filter(|next| *next != own);
        if next.is_some() {
            cursor.went_on(now_ns);
        }
        next
    }

    /// Whether a thread's waits for a processor count.
    pub fn run_delay_counts(&self) -> bool {
        self.run_delay.is_some()
    }

    /// A thread begins to work in a context; returns the time.
    pub fn begin_turn(
        &mut self,
        context: u16,
        run_delay: &mut Option<RunDelay>,
        now_ns: u64,
    ) -> u64 {
        self.context = Some(context);
        std::mem::swap(&mut self.run_delay, run_delay);
        self.moment_after(now_ns)
    }

    /// The thread has given another its turn.
    pub fn end_turn(&mut self, run_delay: &mut Option<RunDelay>) {
        std::mem::swap(&mut self.run_delay, run_delay);
    }

    /// How long this thread has waited for a processor so far. A replay that shares processors with others learns
    /// of a completion late, and a recorded think time has the program's own wait in it already.
    #[inline]
    pub fn run_delay_ns(&self) -> u64 {
        self.run_delay.as_ref().map_or(0, RunDelay::so_far_ns)
    }

    /// The time at which it would have learned of something, had it not waited for a processor since the delay was
    /// `delay_ns`; brings that up to date.
    #[inline]
    pub fn without_delay(&self, now_ns: u64, delay_ns: &mut u64) -> u64 {
        let before_ns = std::mem::replace(delay_ns, self.run_delay_ns());
        now_ns.saturating_sub(delay_ns.saturating_sub(before_ns))
    }

    /// Sleeps until another task sets a signal.
    pub fn await_signal(&mut self, signal: u32) {
        if let Some(cursor) = self.generator.replay() {
            SharedMemory::await_value(&cursor.signals().get(signal).is_set, 1);
        }
    }

    /// Counts an I/O or sync that ended within the measured time.
    #[inline]
    pub fn finished(&mut self, direction: Direction, bytes: u32, start_ns: u64, now_ns: u64) {
        if direction != Direction::Sync {
            self.generator.completed(start_ns, now_ns);
        }
        if let Some(slots) = &mut self.slots {
            slots.advance(now_ns, &mut self.record);
        }
        if now_ns > self.generator.measure_ns() {
            self.record.add(direction, u64::from(bytes), now_ns - start_ns);
        } else {
            self.generator.finished_in_ramp(direction, u64::from(bytes));
        }
    }

    /// Calls fsync or fdatasync; returns the time after it.
    pub fn sync(&mut self, start_ns: u64) -> Result<u64, Failure> {
        let data_only = self.job.fsync == 0 && self.job.fdatasync > 0;
        self.target.sync(self.generator.byte_of_file(), data_only)?;
        let now_ns = self.moment_after(start_ns);
        self.finished(Direction::Sync, 0, start_ns, now_ns);
        Ok(now_ns)
    }
}

/// Prepares, waits for the start, does the job's I/O, and writes a record.
pub fn run_clone(
    clone: &JobProcess,
    places: &[Place],
    shared: SharedMemory,
) -> Result<(), Failure> {
    let job = clone.job;
    let renews = clone.real_replay.is_some();
    let target = Target::open(places, clone.regions, job, buffer(clone)?, renews)?;
    if job.pre_read {
        target.pre_read()?;
    }
    let mut worker = Worker {
        job,
        target,
        generator: Generator::new(job, clone.index, clone.regions, clone.seed),
        record: JobRecord::new(&job.name, 1),
        timing: clone.timing,
        slots: None,
        ios: shared.commands().is_kept().then(IoLog::default),
        shared,
        may_be_terminated: (clone.order.exitall || clone.beside_command).then_some(clone.number),
        real_replay: clone.real_replay,
        // Looking for it takes a microsecond.
        run_delay: clone
            .real_replay
            .filter(|real| real.shares_processors)
            .and_then(|_| RunDelay::of_this_thread()),
        context: None,
    };
    if let Some(flow) = clone.flow {
        worker.generator.join_flow(job, shared.flow(flow));
    }
    worker.generator.share_signals(&shared.signals());
    let mut asynchronous = job.direct && job.asynchronous() && !job.mode.trims;
    if let (Some(real), Some(replay)) = (&clone.real_replay, &job.replay) {
        asynchronous = !real.only_calls(&replay.plans[clone.index as usize]);
        if let Some(cursor) = worker.generator.replay() {
            cursor.make_up(MOST_LATE_NS);
        }
        worker.take_off(asynchronous);
    }
    let nr_contexts =
        job.replay.as_ref().map_or(1, |replay| replay.plans[clone.index as usize].nr_contexts());
    let mut queue = if asynchronous { Some(aio::Queue::open(job, clone.index)?) } else { None };
    // Last, so that the group is not charged for the preparation.
    identity::assume(job, clone.group_file, clone.processor)?;
    shared.clones_ready.store(clone.number + 1, SeqCst);
    shared.notify();
    if !shared.await_turn(clone) {
        worker.generator.abandon();
        if let Some(plan) = clone.slots {
            let mut slots = CloneSlots::new(plan, 0);
            slots.close(&mut worker.record);
            slots.leave(clone.number)?;
        }
        if let Some(ios) = worker.ios.take() {
            ios.leave(clone.number)?;
        }
        words::leave(RECORD, clone.number, worker.record.words())?;
        shared.clone_ended(clone, 0);
        return Ok(());
    }
    let first = clone.phase() == 0 && clone.order.waits_for[clone.job_index].is_none();
    let opened_ns = if first { shared.start_ns.load(SeqCst) } else { shared.end_ns.load(SeqCst) };
    let start_ns = shared.start_ns.load(SeqCst);
    worker.slots = clone.slots.map(|plan| CloneSlots::new(plan, start_ns));
    let delay_ns = job.startdelay_ns.saturating_add(clone.start_delay_ns);
    let begin_ns = opened_ns.saturating_add(delay_ns);
    let begin = |worker: &mut Worker| {
        if first || delay_ns > 0 {
            clock::sleep_until(begin_ns);
        }
        let now_ns = clock::now_ns();
        worker.generator.start(now_ns);
        if job.invalidate && !job.pre_read {
            worker.target.invalidate();
        }
        now_ns
    };
    let end_ns = contexts::work(&mut worker, queue.as_mut(), nr_contexts, begin)?;
    worker.record.runtime_ns = worker.generator.close(end_ns, &mut worker.record);
    if let Some(slots) = &mut worker.slots {
        slots.advance(end_ns, &mut worker.record);
        if clone.closes_slots {
            slots.close(&mut worker.record);
        }
        slots.leave(clone.number)?;
        worker.record = slots.whole(&worker.record);
    }
    if let Some(ios) = worker.ios.take() {
        ios.leave(clone.number)?;
    }
    words::leave(RECORD, clone.number, worker.record.words())?;
    shared.clone_ended(clone, end_ns);
    Ok(())
}

/// The memory of a clone's I/Os.
fn buffer(clone: &JobProcess) -> Result<Buffer, Failure> {
    let known = clone.real_replay.and_then(|real| Some((real.segment_limits?, real.most_buffers)));
    let (Some((limits, most)), Some(replay)) = (known, &clone.job.replay) else {
        return Buffer::anywhere(clone.job.largest_block() as usize);
    };
    let plan = &replay.plans[clone.index as usize];
    let ios = plan.ios.iter().map(|io| (io.bytes as usize, io.memory));
    Buffer::in_segments(ios, limits, plan.depth() as usize, most)
}

/// Adds a clone's record to that of its job.
pub fn collect_record(number: u32, record: &mut JobRecord) -> Result<(), Failure> {
    record.add_words(words::collect(RECORD, number)?).ok_or_else(|| words::broken(RECORD))
}
