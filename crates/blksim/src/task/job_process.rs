//! Clones of jobs: their life from start to end, and the loop that issues.

use crate::block::request::Priority;
use crate::core::branch::{cold_path, likely, unlikely};
use crate::core::event::Class;
use crate::core::record::{Direction, JobRecord};
use crate::machine::Machine;
use crate::mm::readahead::Window;
use crate::task::task_struct::TaskId;
use crate::timeline::Recorder;
use crate::workload::Job;
use crate::workload::generator::{Generator, Step, Transfer};
use crate::workload::job::Advice;
use crate::workload::layout::Region;

/// How far a clone has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// It has not started.
    Waiting,
    /// It has more to issue.
    Issuing,
    /// It is between the two transfers of a batch.
    BetweenTwo(SecondOfBatch),
    /// It waits for what is in flight.
    Draining,
    Ended,
}

/// What is left of a batch that is submitted without a plug: its second transfer. The kernel lets
/// others run between the two, where it looks up the second one's pages (`cond_resched` in
/// `__get_user_pages`, Linux 6.1).
#[derive(Debug, Clone, Copy)]
struct SecondOfBatch {
    transfer: Transfer,
    /// When the batch was put together.
    start_ns: u64,
    /// What comes after it.
    then: Option<Step>,
}

/// One process of a job.
#[derive(Debug)]
pub struct JobProcess {
    pub(crate) job: usize,
    pub(crate) phase: usize,
    pub(crate) generator: Generator,
    pub(crate) region: Region,
    pub(crate) priority: Priority,
    /// Control group.
    pub(crate) group: u16,
    pub(crate) direct: bool,
    /// It does not wait for each I/O.
    pub(crate) asynchronous: bool,
    pub(crate) sync: bool,
    pub(crate) advice: Advice,
    invalidate: bool,
    pre_read: bool,
    startdelay_ns: u64,
    depth: u32,
    batch: u32,
    /// I/Os in flight.
    pub(crate) in_flight: u32,
    /// Direct I/Os that are done, of which it has not learnt: bytes and when they were issued.
    pub(crate) done: Vec<(Direction, u32, u64)>,
    /// It is about to learn of completions.
    pub(crate) woken: bool,
    /// How far it stands behind others that are ready to run.
    pub(crate) rank: u32,
    stage: Stage,
    /// The moment of the Issue event that is under way, if any.
    wake_ns: Option<u64>,
    /// Readahead state of its file descriptor.
    pub(crate) window: Window,
}

impl JobProcess {
    pub fn new(
        job: &Job,
        index: usize,
        number: u32,
        phase: usize,
        rank: u32,
        region: Region,
        seed: u64,
    ) -> Self {
        Self {
            job: index,
            phase,
            generator: Generator::new(job, number, region, seed),
            region,
            priority: Priority::resolve(job.prioclass, job.prio, job.nice),
            group: 0,
            direct: job.direct,
            asynchronous: job.asynchronous(),
            sync: job.sync,
            advice: job.advice,
            invalidate: job.invalidate && !job.pre_read,
            pre_read: job.pre_read,
            startdelay_ns: job.startdelay_ns,
            depth: job.depth(),
            batch: job.iodepth_batch.min(job.depth()),
            in_flight: 0,
            done: Vec::new(),
            woken: false,
            rank,
            stage: Stage::Waiting,
            wake_ns: None,
            window: Window::default(),
        }
    }

    /// An I/O or call that lasted from one moment to another is done: it is recorded.
    #[inline]
    fn finish_io(
        generator: &mut Generator,
        index: u32,
        direction: Direction,
        bytes: u64,
        (start_ns, now_ns): (u64, u64),
        record: &mut JobRecord,
        recorder: &mut Option<Box<Recorder>>,
    ) {
        if likely(direction != Direction::Sync) {
            generator.completed(now_ns);
        }
        let measured = now_ns > generator.measure_ns();
        if likely(measured) {
            record.add(direction, bytes, now_ns - start_ns);
        }
        if let Some(recorder) = recorder {
            cold_path();
            recorder.finished_io(index, direction, bytes, (start_ns, now_ns), measured);
        }
    }

    /// Has something to issue, fewer I/Os in flight than it may have, and no batch half submitted.
    #[inline]
    fn may_issue(&self) -> bool {
        self.in_flight < self.depth && matches!(self.stage, Stage::Issuing)
    }

    /// The next I/O, if that is a direct transfer that needs no look at the job's limits.
    #[inline(always)]
    fn next_granted(&mut self, now_ns: u64) -> Option<Transfer> {
        if likely(self.direct) { self.generator.next_granted(now_ns) } else { None }
    }

    /// The next I/O, if that is a direct transfer, or what comes instead.
    #[inline]
    fn next_direct(&mut self, now_ns: u64) -> Result<Transfer, Step> {
        match self.generator.next(now_ns) {
            Step::Transfer(transfer) if likely(self.direct) => Ok(transfer),
            step => Err(step),
        }
    }
}

impl Machine {
    /// Starts the clones of the current phase; empty phases cannot occur.
    pub(crate) fn start_phase(&mut self) {
        let now_ns = self.events.now_ns();
        for index in 0..self.clones.len() {
            let clone = &mut self.clones[index];
            if clone.phase == self.phase {
                let start_ns = now_ns.saturating_add(clone.startdelay_ns);
                clone.wake_ns = Some(start_ns);
                self.events.at(start_ns, Class::Issue, index as u32);
            }
        }
    }

    /// The moment has come at which a clone wanted to start or to issue.
    pub(crate) fn issue_timer(&mut self, index: u32) {
        let now_ns = self.events.now_ns();
        let clone = &mut self.clones[index as usize];
        if clone.wake_ns.is_some_and(|wake_ns| wake_ns <= now_ns) {
            clone.wake_ns = None;
        }
        if matches!(clone.stage, Stage::Waiting) {
            clone.stage = Stage::Issuing;
            clone.generator.start(now_ns);
            let (invalidate, pre_read, region) = (clone.invalidate, clone.pre_read, clone.region);
            if invalidate {
                self.cache.invalidate(region.start, region.bytes);
            }
            if pre_read {
                self.cache.load(region.start, region.bytes);
            }
        }
        self.wake_clone(index);
    }

    /// Lets a clone go on: it fills its queue, batch by batch, then learns of
    /// what is done, and begins again. One that sleeps in a submission learns
    /// of nothing meanwhile, as with libaio.
    #[inline(always)]
    pub(crate) fn drive(&mut self, index: u32) {
        if self.sleeps(index) || !self.issue_second_of_batch(index) {
            return;
        }
        loop {
            if self.clones[index as usize].may_issue() && !self.fill(index) {
                return;
            }
            let clone = &self.clones[index as usize];
            if clone.done.is_empty() {
                if unlikely(matches!(clone.stage, Stage::Draining)) && clone.in_flight == 0 {
                    self.end_clone(index);
                }
                return;
            }
            self.collect_done(index);
        }
    }

    /// The same where it is not the usual way of a request.
    #[inline(never)]
    pub(crate) fn drive_cold(&mut self, index: u32) {
        self.drive(index);
    }

    /// A clone's task sleeps in a submission or is within a call.
    #[inline]
    pub(crate) fn sleeps(&self, index: u32) -> bool {
        let task = &self.tasks[index as usize];
        unlikely(task.blocked || task.call.is_some())
    }

    /// Issues as much as the depth and the generator allow, which must be
    /// something. False if the clone sleeps in that, or lets others go first.
    #[inline(always)]
    fn fill(&mut self, index: u32) -> bool {
        loop {
            let clone = &mut self.clones[index as usize];
            let wanted = clone.batch.min(clone.depth - clone.in_flight);
            let now_ns = self.events.now_ns();
            let single = if likely(wanted == 1) { clone.next_granted(now_ns) } else { None };
            let awake = if let Some(transfer) = single {
                clone.in_flight += 1;
                let awake = self.issue_direct(index, transfer, false, now_ns);
                self.goes_on(index) && awake
            } else if let Some(last) = self.fill_cold(index, wanted) {
                if !self.take_step(index, last) {
                    return true;
                }
                !self.sleeps(index)
            } else {
                self.goes_on(index) && !self.sleeps(index)
            };
            if !awake {
                return false;
            }
            if !self.clones[index as usize].may_issue() {
                return true;
            }
        }
    }

    /// Issues up to `wanted` transfers of which some may need a look at the job's limits; gives what
    /// came instead of a direct one.
    #[inline(never)]
    fn fill_cold(&mut self, index: u32, wanted: u32) -> Option<Step> {
        if wanted > 1 {
            return self.fill_batch(index, wanted);
        }
        let now_ns = self.events.now_ns();
        let clone = &mut self.clones[index as usize];
        match clone.next_direct(now_ns) {
            Ok(transfer) => {
                clone.in_flight += 1;
                self.issue_direct(index, transfer, false, now_ns);
                None
            }
            Err(step) => Some(step),
        }
    }

    /// Issues up to `wanted` direct transfers together; gives what came before as many were found.
    /// More than two are plugged (`AIO_PLUG_THRESHOLD` in `fs/aio.c`).
    #[inline(never)]
    fn fill_batch(&mut self, index: u32, wanted: u32) -> Option<Step> {
        let clone = &mut self.clones[index as usize];
        let mut last = None;
        let mut batch = std::mem::take(&mut self.batch);
        let now_ns = self.events.now_ns();
        while last.is_none() && (batch.len() as u32) < wanted {
            match clone.next_direct(now_ns) {
                Ok(transfer) => batch.push(transfer),
                Err(step) => last = Some(step),
            }
        }
        clone.in_flight += batch.len() as u32;
        match *batch {
            [first, transfer] => {
                let second = SecondOfBatch { transfer, start_ns: now_ns, then: last.take() };
                clone.stage = Stage::BetweenTwo(second);
                if self.issue_direct(index, first, false, now_ns) && self.goes_on(index) {
                    self.issue_second_of_batch(index);
                }
            }
            [single] => {
                self.issue_direct(index, single, false, now_ns);
            }
            _ => {
                self.plug(index);
                for &transfer in &batch {
                    self.issue_direct(index, transfer, true, now_ns);
                }
                self.unplug(index);
            }
        }
        batch.clear();
        self.batch = batch;
        last
    }

    /// Issues what is left of a batch. False if the clone sleeps in that, or lets others go first.
    #[inline]
    fn issue_second_of_batch(&mut self, index: u32) -> bool {
        let clone = &mut self.clones[index as usize];
        let Stage::BetweenTwo(second) = clone.stage else { return true };
        cold_path();
        clone.stage = Stage::Issuing;
        self.issue_second(index, second)
    }

    #[inline(never)]
    fn issue_second(&mut self, index: u32, second: SecondOfBatch) -> bool {
        let SecondOfBatch { transfer, start_ns, then } = second;
        self.issue_direct(index, transfer, false, start_ns);
        if let Some(step) = then {
            self.take_step(index, step);
        } else if !self.goes_on(index) {
            return false;
        }
        !self.sleeps(index)
    }

    /// Does what is not a direct transfer. False if there is nothing to issue for now.
    #[inline(never)]
    fn take_step(&mut self, index: u32, step: Step) -> bool {
        let clone = &mut self.clones[index as usize];
        match step {
            Step::Transfer(transfer) => {
                clone.in_flight += 1;
                self.start_buffered(index, transfer);
                true
            }
            Step::Sync => {
                clone.in_flight += 1;
                self.start_sync(index);
                true
            }
            Step::Wait { until_ns } => {
                if clone.wake_ns.is_none_or(|wake_ns| wake_ns > until_ns) {
                    clone.wake_ns = Some(until_ns);
                    self.events.at(until_ns, Class::Issue, index);
                }
                false
            }
            Step::Finished => {
                clone.stage = Stage::Draining;
                false
            }
        }
    }

    /// A clone learns of the direct I/Os that are done.
    #[inline(always)]
    fn collect_done(&mut self, index: u32) {
        let Self { clones, records, recorder, events, .. } = self;
        let JobProcess { job, generator, done, in_flight, .. } = &mut clones[index as usize];
        let record = &mut records[*job];
        *in_flight -= done.len() as u32;
        for &(direction, bytes, start_ns) in &*done {
            let span = (start_ns, events.now_ns());
            JobProcess::finish_io(
                generator,
                index,
                direction,
                bytes.into(),
                span,
                record,
                recorder,
            );
        }
        done.clear();
    }

    /// An I/O or call of a clone is done: it is recorded.
    pub(crate) fn finish_io(
        &mut self,
        index: u32,
        direction: Direction,
        bytes: u64,
        start_ns: u64,
    ) {
        let JobProcess { job, generator, in_flight, .. } = &mut self.clones[index as usize];
        let record = &mut self.records[*job];
        let span = (start_ns, self.events.now_ns());
        *in_flight -= 1;
        JobProcess::finish_io(generator, index, direction, bytes, span, record, &mut self.recorder);
    }

    #[cold]
    fn end_clone(&mut self, index: u32) {
        let now_ns = self.events.now_ns();
        let clone = &mut self.clones[index as usize];
        clone.stage = Stage::Ended;
        let runtime_ns = now_ns.saturating_sub(clone.generator.measure_ns());
        let record = &mut self.records[clone.job];
        record.runtime_ns = record.runtime_ns.max(runtime_ns);
        let phase = clone.phase;
        self.tell_schedulers_of_end(index);
        self.left_in_phase[phase] -= 1;
        if phase == self.phase && self.left_in_phase[phase] == 0 {
            self.phase += 1;
            if !self.finished() {
                self.start_phase();
            }
        }
    }

    /// A scheduler that waits for this task's next request need not any more.
    fn tell_schedulers_of_end(&mut self, task: TaskId) {
        for disk in 0..self.disks.count() {
            let (requests, events) = (&mut self.requests, &mut self.events);
            let ((), kicked) =
                self.disks[disk].schedule(requests, events, |s, cx| s.exit_task(cx, task));
            if kicked {
                self.run_queue(disk);
            }
        }
    }

    /// The clone that runs as a task.
    pub(crate) fn clone_of(task: TaskId) -> u32 {
        // Clones come first, so that the two indices are the same.
        task
    }
}
