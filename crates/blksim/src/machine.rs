//! The host above the queue: tasks that submit I/O, the page cache, writeback,
//! and the disks below.
//!
//! A [`Machine`] reacts to events; only the engine takes them off the events.

use crate::block::disks::Disks;
use crate::block::raid::Raid;
use crate::block::request::{RequestId, Requests, SECTOR_BYTES};
use crate::core::branch::likely;
use crate::core::event::{Class, EventQueue};
use crate::core::params::Values;
use crate::core::record::JobRecord;
use crate::devices::device::Device;
use crate::elevator::AnyScheduler;
use crate::elevator::scheduler::Family;
use crate::mm::page_cache::{PAGE_BYTES, PAGE_SECTORS, PageCache};
use crate::mm::writeback::Writeback;
use crate::rqos::policy::{Policy, PolicyContext};
use crate::task::direct::Ios;
use crate::task::job_process::JobProcess;
use crate::task::ready::{self, ReadyList};
use crate::task::task_struct::{Role, Task, TaskId};
use crate::timeline::{NO_JOB, Recorder, Timeline};
use crate::workload::Job;
use crate::workload::generator::Transfer;
use crate::workload::layout::{File, Layout};

/// Pieces of memory that a request may consist of (`BLK_MAX_SEGMENTS` in `include/linux/blkdev.h`,
/// Linux 6.1). Each bio that joins is one at least, so that of bios of one page it holds no more.
const MAX_SEGMENTS: u32 = 128;

/// Who waits for a cache flush of the device.
#[derive(Debug, Clone, Copy)]
pub enum FlushWaiter {
    /// A synchronous direct write, by its I/O.
    Io(u32),
    /// A task in fsync or a synchronous buffered write.
    Call(TaskId),
    /// The same by its request, which has a tag (blk-mq).
    Tagged(RequestId),
    /// An array, by its flush.
    Array(u32),
}

/// Costs of the processor's work, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) system_call_ns: u64,
    /// Copying one page, in the course of the call.
    pub(crate) page_ns: u64,
    /// Copying so many bytes a second is paid before the call, as guests do, whose kernels copy in no time.
    pub(crate) ahead: Option<u64>,
}

impl Costs {
    /// Of the page cache's machine, by its parameters.
    fn new(machine: &Values) -> Self {
        let bandwidth = machine.get("copy_bandwidth");
        let instant = machine.flag("instant");
        Self {
            system_call_ns: machine.get_ns("system_call"),
            page_ns: if instant { 0 } else { (PAGE_BYTES * 1_000_000_000).div_ceil(bandwidth) },
            ahead: instant.then_some(bandwidth),
        }
    }

    /// What a buffered call of so many bytes pays before it begins to copy.
    pub(crate) fn first_ns(&self, bytes: u32) -> u64 {
        match self.ahead {
            Some(bandwidth) => paid_ahead_ns(self.system_call_ns, bandwidth, bytes),
            None => self.system_call_ns,
        }
    }
}

/// What a program in a guest pays before a buffered call: for the call, and for copying so many bytes.
pub fn paid_ahead_ns(system_call_ns: u64, bytes_per_second: u64, bytes: u32) -> u64 {
    let copying_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
    system_call_ns + copying_ns as u64
}

/// A simulated machine.
#[derive(Debug)]
pub struct Machine {
    pub events: EventQueue,
    pub requests: Requests,
    pub disks: Disks,
    pub(crate) clones: Vec<JobProcess>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) flusher: TaskId,
    pub(crate) worker: TaskId,
    pub(crate) raid: Option<Raid>,
    pub(crate) ios: Ios,
    pub(crate) files: Vec<File>,
    pub(crate) cache: PageCache,
    pub(crate) writeback: Writeback,
    pub(crate) costs: Costs,
    pub(crate) read_ahead_pages: u64,
    pub(crate) max_io_pages: u64,
    pub(crate) capacity_sectors: u64,
    /// Tasks that sleep until a page is read or written back.
    pub(crate) page_waiters: Vec<(u64, TaskId)>,
    /// What policies let go, to be passed on at the end of the event.
    pub(crate) released: Vec<RequestId>,
    /// What runs next, in order of waking.
    pub(crate) ready: ReadyList,
    pub(crate) woken: Vec<TaskId>,
    pub(crate) scratch: Vec<RequestId>,
    /// Transfers that are issued together.
    pub(crate) batch: Vec<Transfer>,
    pub(crate) records: Vec<JobRecord>,
    /// Clones that have not ended, in each phase between stonewalls.
    pub(crate) left_in_phase: Vec<u32>,
    pub(crate) phase: usize,
    /// Writes down what happens, if that was asked for.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Machine {
    /// Puts jobs, disks and the host together. Nothing happens before [`Machine::start`].
    pub fn new(
        jobs: &[Job],
        layout: &Layout,
        seed: u64,
        mut disks: Disks,
        queue: &Values,
        machine: &Values,
    ) -> Self {
        for disk in disks.iter_mut() {
            disk.tags.begin_at(machine.get("first_tag") as u32);
            if machine.flag("bare") {
                let largest = MAX_SEGMENTS * PAGE_SECTORS as u32;
                disk.max_written_sectors = disk.max_written_sectors.min(largest);
            }
        }
        let mut tasks = Vec::new();
        let mut clones = Vec::new();
        let nr_clones = layout.regions.iter().map(Vec::len).sum::<usize>() as u32;
        let mut left_in_phase = vec![0];
        for (index, job) in jobs.iter().enumerate() {
            if job.stonewall && index > 0 {
                left_in_phase.push(0);
            }
            let phase = left_in_phase.len() - 1;
            for (number, region) in layout.regions[index].iter().enumerate() {
                left_in_phase[phase] += 1;
                let fork = clones.len() as u32;
                let rank = ready::rank_of_fork(fork, nr_clones);
                tasks.push(Task::new(Role::Process(fork)));
                clones.push(JobProcess::new(job, index, number as u32, phase, rank, *region, seed));
            }
        }
        let mut files = layout.files.clone();
        if machine.flag("bare") {
            files = vec![File { start: 0, bytes: disks[0].device.facts().capacity_bytes }];
            for clone in &mut clones {
                clone.region.file = 0;
            }
        }
        let flusher = tasks.len() as TaskId;
        tasks.push(Task::new(Role::Flusher));
        tasks.push(Task::new(Role::Worker));
        let read_ahead_pages = queue.get("read_ahead_kb") * 1024 / PAGE_BYTES;
        let capacity_sectors = disks[0].device.facts().capacity_bytes / SECTOR_BYTES;
        let max_io_pages = queue.get("max_sectors_kb") * 1024 / PAGE_BYTES;
        Self {
            events: EventQueue::new(),
            requests: Requests::new(),
            disks,
            clones,
            tasks,
            flusher,
            worker: flusher + 1,
            raid: None,
            ios: Ios::default(),
            writeback: Writeback::new(machine, files.len()),
            files,
            cache: PageCache::new(machine.get("memory") / PAGE_BYTES),
            costs: Costs::new(machine),
            read_ahead_pages,
            max_io_pages,
            capacity_sectors,
            page_waiters: Vec::new(),
            released: Vec::new(),
            ready: ReadyList::default(),
            woken: Vec::new(),
            scratch: Vec::new(),
            batch: Vec::new(),
            records: jobs.iter().map(|job| JobRecord::new(&job.name, job.numjobs)).collect(),
            left_in_phase,
            phase: 0,
            recorder: None,
        }
    }

    /// Puts every job into its control group, by index.
    pub fn set_groups(&mut self, of_jobs: &[u16]) {
        for clone in &mut self.clones {
            clone.group = of_jobs.get(clone.job).copied().unwrap_or(0);
        }
    }

    /// Writes a timeline of up to about `limit_bytes` from now on.
    pub fn record(&mut self, limit_bytes: u64) {
        let job_of = |clone: &JobProcess| u16::try_from(clone.job).unwrap_or(NO_JOB);
        let jobs = self.clones.iter().map(job_of).collect();
        self.recorder = Some(Box::new(Recorder::new(jobs, limit_bytes)));
    }

    /// Whether the timeline has outgrown its limit.
    pub fn timeline_is_full(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.is_full())
    }

    /// Ends the timeline and hands it over.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.recorder.take().map(|recorder| recorder.into_timeline())
    }

    /// Starts the first jobs and the flusher's clock.
    pub fn start(&mut self) {
        self.start_phase();
        let period_ns = self.writeback.period_ns();
        self.events.at(period_ns, Class::Writeback, 0);
    }

    /// All jobs have ended.
    pub fn finished(&self) -> bool {
        self.phase >= self.left_in_phase.len()
    }

    /// What the jobs did.
    pub fn records(&self) -> &[JobRecord] {
        &self.records
    }

    /// Reacts to one event; the clock already shows its time.
    #[inline]
    pub(crate) fn react(&mut self, class: Class, subject: u32) {
        if likely(class == Class::Complete) {
            self.complete(subject);
            // What completes at one moment is all seen to before any task runs.
            if self.has_ready() && !self.events.more_now(Class::Complete) {
                self.run_ready();
            }
        } else {
            self.handle_event_cold(class, subject);
        }
    }

    /// The same if it is not the end of a command. With all in one `match`, which is a jump by a
    /// table, the legacy schedulers do some 7 % fewer requests a second.
    #[inline(never)]
    fn handle_event_cold(&mut self, class: Class, subject: u32) {
        self.handle_event_of(class, subject);
        // So are the clones whose time has come.
        let more = class == Class::Issue && self.events.more_now(class);
        if self.has_ready() && !more {
            self.run_ready_cold();
        }
    }

    fn handle_event_of(&mut self, class: Class, subject: u32) {
        match class {
            Class::Complete => self.complete(subject),
            Class::DeviceWake => self.wake_device(subject),
            Class::SchedulerTimer => self.scheduler_timer(subject as usize),
            Class::PolicyTimer => self.policy_timer(subject as usize),
            Class::Writeback => self.writeback_tick(),
            Class::Task => self.task_goes_on(subject),
            Class::Issue => self.issue_timer(subject),
            Class::QueueRun => self.run_delayed(subject as usize),
        }
    }

    fn scheduler_timer(&mut self, disk: usize) {
        let ((), kicked) =
            self.disks[disk].schedule(&mut self.requests, &mut self.events, AnyScheduler::timer);
        match self.disks[disk].family {
            Family::Legacy => self.run_queue(disk),
            Family::MultiQueue if kicked => self.run_queue_soon(disk),
            Family::MultiQueue => {}
        }
    }

    fn policy_timer(&mut self, disk: usize) {
        self.tell_policies(disk, |policy, cx| policy.timer(cx));
    }

    /// Calls every policy of a disk; what they let go is passed on at the end of the event.
    #[inline(never)]
    pub(crate) fn tell_policies(
        &mut self,
        disk: usize,
        call: impl FnMut(&mut dyn Policy, &mut PolicyContext),
    ) {
        let Self { disks, requests, events, released, .. } = self;
        disks[disk].tell_policies(requests, events, released, call);
    }

    /// A task's submission is through: it goes on with what it was doing.
    pub(crate) fn unblocked(&mut self, task: TaskId) {
        match self.tasks[task as usize].role {
            Role::Process(_) if self.tasks[task as usize].call.is_some() => self.advance_call(task),
            Role::Process(clone) => self.drive_cold(clone),
            Role::Flusher => self.run_flusher(),
            Role::Worker => {}
        }
    }

    /// A task computed or slept for the time that it wanted.
    pub(crate) fn task_goes_on(&mut self, task: TaskId) {
        if self.tasks[task as usize].call.is_some() {
            self.advance_call(task);
        }
    }
}
