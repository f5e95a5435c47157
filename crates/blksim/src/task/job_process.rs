//! The process of a job: one of fio's clones.

use crate::block::request::Priority;
use crate::core::branch::{cold_path, likely};
use crate::core::record::{CpuTime, Direction, JobRecord};
use crate::mm::readahead::Window;
use crate::timeline::Recorder;
use crate::workload::Job;
use crate::workload::generator::{Generator, Step, Transfer};
use crate::workload::job::Advice;
use crate::workload::layout::Region;

/// The stage of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IssueStage {
    /// It has not started.
    Waiting,
    /// It has more to issue.
    Issuing,
    /// It is between the two transfers of a batch.
    BetweenTwo(SecondOfBatch),
    /// It waits for its I/Os in flight.
    Draining,
    Ended,
}

/// The second transfer of a batch without a plug. The kernel lets other tasks run between the two,
/// where it looks up the second one's pages (`cond_resched` in `__get_user_pages`, Linux 6.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecondOfBatch {
    pub(crate) transfer: Transfer,
    /// The time at which the batch was put together.
    pub(crate) start_ns: u64,
    /// The step after it.
    pub(crate) then: Option<Step>,
}

/// One process of a job.
#[derive(Debug, Clone)]
pub struct JobProcess {
    pub(crate) job: usize,
    pub(crate) phase: usize,
    pub(crate) generator: Generator,
    /// Its part of the file that it works on.
    pub(crate) region: Region,
    /// Its parts of all its files, with the readahead state of each file descriptor.
    pub(crate) files: Vec<(Region, Window)>,
    pub(crate) priority: Priority,
    /// Of its I/O contexts beyond its own: the first one's index among those of all processes.
    pub(crate) first_context: u32,
    /// Control group.
    pub(crate) group: u16,
    /// Its I/Os pass by the page cache.
    pub(crate) direct: bool,
    /// It does not wait for each I/O.
    pub(crate) asynchronous: bool,
    /// It submits by `io_uring`, which does not sleep for a tag but has a worker do so.
    pub(crate) punts: bool,
    pub(crate) sync: bool,
    /// It moves data by page faults in a mapped file.
    pub(crate) mapped: bool,
    pub(crate) advice: Advice,
    pub(crate) invalidate: bool,
    pub(crate) pre_read: bool,
    pub(crate) startdelay_ns: u64,
    pub(crate) depth: u32,
    pub(crate) batch: u32,
    /// I/Os in flight.
    pub(crate) in_flight: u32,
    /// Recorded I/Os of one plug that it has queued, with the time of each, and not yet submitted.
    pub(crate) plugged: Vec<(Transfer, u64)>,
    /// Direct I/Os that are complete but not collected: direction, bytes and time of issue.
    pub(crate) done: Vec<(Direction, u32, u64)>,
    /// It is ready to collect completions.
    pub(crate) woken: bool,
    /// Its synchronous call has ended, but others went first ([`Machine::collect_on_processor`]).
    ///
    /// [`Machine::collect_on_processor`]: crate::machine::Machine::collect_on_processor
    pub(crate) returns: bool,
    /// Its rank behind others that are ready to run.
    pub(crate) rank: u32,
    pub(crate) stage: IssueStage,
    /// The time of its pending Issue event, if there is one.
    pub(crate) wake_ns: Option<u64>,
    /// Processor time while it is measured.
    pub(crate) cpu: CpuTime,
    /// Readahead state of the file that it works on.
    pub(crate) window: Window,
}

impl JobProcess {
    pub fn new(
        job: &Job,
        index: usize,
        number: u32,
        phase: usize,
        rank: u32,
        regions: &[Region],
        seed: u64,
    ) -> Self {
        Self {
            job: index,
            phase,
            generator: Generator::new(job, number, regions, seed),
            region: regions[0],
            files: regions.iter().map(|region| (*region, Window::default())).collect(),
            priority: Priority::resolve(job.prioclass, job.prio, job.nice),
            first_context: 0,
            group: 0,
            direct: !job.buffered(),
            asynchronous: job.asynchronous(),
            punts: job.engine == "io_uring",
            // fio ends every I/O of a mapped job with msync if direct is set; O_SYNC is for calls.
            sync: if job.mapped() { job.direct } else { job.sync },
            mapped: job.mapped(),
            advice: job.advice,
            invalidate: job.invalidate && !job.pre_read,
            pre_read: job.pre_read,
            startdelay_ns: job.startdelay_ns,
            depth: job.depth(),
            // Recorded I/Os have a time each.
            batch: if job.replay.is_some() { 1 } else { job.iodepth_batch.min(job.depth()) },
            in_flight: 0,
            plugged: Vec::new(),
            done: Vec::new(),
            woken: false,
            returns: false,
            rank,
            stage: IssueStage::Waiting,
            wake_ns: None,
            cpu: CpuTime::default(),
            window: Window::default(),
        }
    }

    /// Records an I/O or call that is done, with its first and last moment.
    #[inline]
    pub(crate) fn finish_io(
        generator: &mut Generator,
        index: u32,
        direction: Direction,
        bytes: u64,
        (start_ns, now_ns): (u64, u64),
        record: &mut JobRecord,
        recorder: &mut Option<Box<Recorder>>,
    ) {
        if likely(direction != Direction::Sync) {
            generator.completed(start_ns, now_ns);
        }
        let measured = now_ns > generator.measure_ns();
        if likely(measured) {
            record.add(direction, bytes, now_ns - start_ns);
        } else {
            generator.finished_in_ramp(direction, bytes);
        }
        if let Some(recorder) = recorder {
            cold_path();
            recorder.finished_io(index, direction, bytes, (start_ns, now_ns), measured);
        }
    }

    /// Turns to the file in which a byte of the device lies.
    pub(crate) fn turn_to(&mut self, byte: u64) {
        let holds = |region: &Region| (region.start..region.start + region.bytes).contains(&byte);
        if likely(self.files.len() == 1) || holds(&self.region) {
            return;
        }
        for (region, window) in &mut self.files {
            if *region == self.region {
                *window = self.window;
            }
        }
        if let Some((region, window)) = self.files.iter().find(|(region, _)| holds(region)) {
            (self.region, self.window) = (*region, *window);
        }
    }

    /// True if it has something to issue, fewer I/Os in flight than its depth, and no
    /// half-submitted batch.
    #[inline]
    pub(crate) fn may_issue(&self) -> bool {
        self.in_flight < self.depth && matches!(self.stage, IssueStage::Issuing)
    }

    /// True once all its I/Os are done.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.stage, IssueStage::Ended)
    }

    /// True once it is measured: after its ramp, until it ends.
    pub(crate) fn is_measured(&self, now_ns: u64) -> bool {
        !matches!(self.stage, IssueStage::Waiting | IssueStage::Ended)
            && now_ns >= self.generator.measure_ns()
    }

    /// The next I/O, if it is a direct transfer that needs no check of the job's limits.
    #[inline(always)]
    pub(crate) fn next_granted(&mut self, now_ns: u64) -> Option<Transfer> {
        if likely(self.direct) { self.generator.next_granted(now_ns) } else { None }
    }

    /// The next I/O if it is a direct transfer, otherwise the step that comes instead.
    #[inline]
    pub(crate) fn next_direct(&mut self, now_ns: u64) -> Result<Transfer, Step> {
        match self.generator.next(now_ns) {
            Step::Transfer(transfer) if likely(self.direct) => Ok(transfer),
            step => Err(step),
        }
    }
}
