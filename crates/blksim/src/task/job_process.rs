//! Processes of jobs: their life from start to end, and the loop that issues.

use crate::block::request::Priority;
use crate::core::branch::{cold_path, likely};
use crate::core::record::{Direction, JobRecord};
use crate::mm::readahead::Window;
use crate::timeline::Recorder;
use crate::workload::Job;
use crate::workload::generator::{Generator, Step, Transfer};
use crate::workload::job::Advice;
use crate::workload::layout::Region;

/// How far a process has come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IssueStage {
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
pub(crate) struct SecondOfBatch {
    pub(crate) transfer: Transfer,
    /// When the batch was put together.
    pub(crate) start_ns: u64,
    /// What comes after it.
    pub(crate) then: Option<Step>,
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
    pub(crate) invalidate: bool,
    pub(crate) pre_read: bool,
    pub(crate) startdelay_ns: u64,
    pub(crate) depth: u32,
    pub(crate) batch: u32,
    /// I/Os in flight.
    pub(crate) in_flight: u32,
    /// Direct I/Os that are done, of which it has not learnt: bytes and when they were issued.
    pub(crate) done: Vec<(Direction, u32, u64)>,
    /// It is about to learn of completions.
    pub(crate) woken: bool,
    /// How far it stands behind others that are ready to run.
    pub(crate) rank: u32,
    pub(crate) stage: IssueStage,
    /// The moment of the Issue event that is under way, if any.
    pub(crate) wake_ns: Option<u64>,
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
            stage: IssueStage::Waiting,
            wake_ns: None,
            window: Window::default(),
        }
    }

    /// An I/O or call that lasted from one moment to another is done: it is recorded.
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
    pub(crate) fn may_issue(&self) -> bool {
        self.in_flight < self.depth && matches!(self.stage, IssueStage::Issuing)
    }

    /// The next I/O, if that is a direct transfer that needs no look at the job's limits.
    #[inline(always)]
    pub(crate) fn next_granted(&mut self, now_ns: u64) -> Option<Transfer> {
        if likely(self.direct) { self.generator.next_granted(now_ns) } else { None }
    }

    /// The next I/O, if that is a direct transfer, or what comes instead.
    #[inline]
    pub(crate) fn next_direct(&mut self, now_ns: u64) -> Result<Transfer, Step> {
        match self.generator.next(now_ns) {
            Step::Transfer(transfer) if likely(self.direct) => Ok(transfer),
            step => Err(step),
        }
    }
}
