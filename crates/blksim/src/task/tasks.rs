//! The state of all tasks: the processes of jobs, the flusher and the worker.

use std::ops::{Index, IndexMut};

use super::direct_ios::DirectIos;
use super::job_process::{IssueStage, JobProcess};
use super::ready::Ranks;
use super::ring::{Ring, nr_workers};
use super::slots::SlotRecorder;
use super::task_struct::{Role, Task};
use crate::block::request::{Priority, RequestId, TaskId};
use crate::core::branch::unlikely;
use crate::core::record::{Direction, JobRecord};
use crate::timeline::{NO_JOB, Recorder};
use crate::workload::Job;
use crate::workload::flow::{FlowCopies, Flows};
use crate::workload::generator::Transfer;
use crate::workload::job::nr_signals;
use crate::workload::layout::Layout;
use crate::workload::order::JobOrder;
use crate::workload::replay::SharedSignals;

/// All tasks, and the job processes that run as the first of them.
#[derive(Debug)]
pub struct Tasks {
    all: Vec<Task>,
    pub(crate) processes: Vec<JobProcess>,
    pub(crate) flusher: TaskId,
    pub(crate) worker: TaskId,
    /// By process; none if giving an I/O to a ring's workers takes no time.
    pub(crate) rings: Vec<Ring>,
    pub(crate) ios: DirectIos,
    /// Transfers that are issued together.
    pub(crate) batch: Vec<Transfer>,
    /// The process whose call begins now. If the call ends at once, the process continues from there.
    pub(crate) calling: Option<u32>,
    pub(crate) records: Vec<JobRecord>,
    /// Records slots, if the run has any; then `records` begin anew now and then.
    pub(crate) slots: Option<Box<SlotRecorder>>,
    /// Processes that have not ended, in each phase between stonewalls and of each job.
    pub(crate) left_in_phase: Vec<u32>,
    left_in_job: Vec<u32>,
    /// The process that waits for each signal of recorded I/Os.
    pub(crate) waiters_of_signals: Vec<u32>,
    pub(crate) phase: usize,
    pub(crate) order: JobOrder,
    /// The process of each I/O context beyond a task's own. They are numbered behind all tasks.
    processes_of_contexts: Vec<u32>,
}

impl Clone for Tasks {
    /// A snapshot. Its processes share flows and signals with each other, not with the original's.
    fn clone(&self) -> Self {
        let mut processes = self.processes.clone();
        let mut copies = FlowCopies::default();
        let mut signals = None;
        for process in &mut processes {
            process.generator.join_snapshot(&mut copies);
            if let Some(cursor) = process.generator.replay() {
                let signals = signals.get_or_insert_with(|| cursor.signals().snapshot());
                cursor.share(signals.clone());
            }
        }
        Self {
            all: self.all.clone(),
            processes,
            flusher: self.flusher,
            worker: self.worker,
            rings: self.rings.clone(),
            ios: self.ios.clone(),
            batch: self.batch.clone(),
            calling: self.calling,
            records: self.records.clone(),
            slots: self.slots.clone(),
            left_in_phase: self.left_in_phase.clone(),
            left_in_job: self.left_in_job.clone(),
            waiters_of_signals: self.waiters_of_signals.clone(),
            phase: self.phase,
            order: self.order.clone(),
            processes_of_contexts: self.processes_of_contexts.clone(),
        }
    }
}

impl Index<TaskId> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, task: TaskId) -> &Task {
        &self.all[task as usize]
    }
}

impl IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.all[task as usize]
    }
}

impl Tasks {
    /// One process for each clone of each job, then the kernel threads.
    pub fn new(jobs: &[Job], layout: &Layout, seed: u64) -> Self {
        let mut all = Vec::new();
        let mut processes = Vec::new();
        let nr_processes = layout.regions.iter().map(Vec::len).sum::<usize>() as u32;
        let ranks = Ranks::LateForksLag(nr_processes);
        let order = JobOrder::new(jobs);
        let mut left_in_phase = vec![0; order.nr_phases()];
        let flows = Flows::new(jobs);
        let mut processes_of_contexts = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let phase = order.phases[index];
            for (number, files) in layout.regions[index].iter().enumerate() {
                left_in_phase[phase] += 1;
                let fork = processes.len() as u32;
                let rank = ranks.of(fork);
                all.push(Task::new(Role::Process(fork)));
                let number = number as u32;
                let mut process = JobProcess::new(job, index, number, phase, rank, files, seed);
                if let Some(shared) = job.flow.and_then(|flow| flows.counters(flow.id)) {
                    process.generator.join_flow(job, shared);
                }
                process.first_context = processes_of_contexts.len() as u32;
                if let Some(replay) = &job.replay {
                    let further = replay.plans[number as usize].nr_contexts() - 1;
                    processes_of_contexts.extend((0..further).map(|_| fork));
                }
                processes.push(process);
            }
        }
        let waiters_of_signals = connect_replays(jobs, &mut processes);
        let flusher = all.len() as TaskId;
        all.push(Task::new(Role::Flusher));
        all.push(Task::new(Role::Worker));
        Self {
            all,
            processes,
            flusher,
            worker: flusher + 1,
            rings: Vec::new(),
            ios: DirectIos::default(),
            batch: Vec::new(),
            calling: None,
            records: jobs.iter().map(|job| JobRecord::new(&job.name, job.numjobs)).collect(),
            slots: None,
            left_in_phase,
            left_in_job: layout.regions.iter().map(|clones| clones.len() as u32).collect(),
            phase: 0,
            order,
            waiters_of_signals,
            processes_of_contexts,
        }
    }

    /// The I/O context in which a process queues a recorded I/O, of the number that it has in its task.
    #[inline]
    pub(crate) fn context_of(&self, process: u32, number: u16) -> u32 {
        match number {
            0 => process,
            further => {
                let first = self.count() + self.processes[process as usize].first_context;
                first + u32::from(further) - 1
            }
        }
    }

    /// The task that queues in an I/O context.
    #[inline]
    pub(crate) fn task_of_context(&self, context: u32) -> TaskId {
        match context.checked_sub(self.count()) {
            None => context,
            Some(further) => self.processes_of_contexts[further as usize],
        }
    }

    /// All I/O contexts of a process: those beyond its own follow each other.
    pub(crate) fn contexts_of(&self, process: u32) -> impl Iterator<Item = u32> {
        let first = self.processes[process as usize].first_context;
        let owners = &self.processes_of_contexts[first as usize..];
        let further = owners.iter().take_while(|owner| **owner == process).count() as u32;
        let first = self.count() + first;
        std::iter::once(process).chain(first..first + further)
    }

    /// The job of each I/O context.
    pub(crate) fn jobs_of_contexts(&self) -> Vec<u16> {
        let last = self.count() + self.processes_of_contexts.len() as u32;
        (0..last).map(|context| self.job_of_context(context)).collect()
    }

    /// The job of an I/O context; `NO_JOB` for those of the kernel's threads.
    pub(crate) fn job_of_context(&self, context: u32) -> u16 {
        let process = self.processes.get(self.task_of_context(context) as usize);
        process.and_then(|process| u16::try_from(process.job).ok()).unwrap_or(NO_JOB)
    }

    /// Gives every process that submits by `io_uring` the workers of its ring.
    pub(crate) fn add_io_workers(&mut self, cpus: u32) {
        let Self { all, processes, .. } = self;
        let ring_of = |(index, process): (usize, &JobProcess)| {
            if !process.punts {
                return Ring::default();
            }
            let first = all.len() as TaskId;
            let workers = first..first + nr_workers(process.depth, cpus);
            all.extend(workers.clone().map(|_| Task::new(Role::IoWorker(index as u32))));
            Ring { idle: workers.collect(), ..Ring::default() }
        };
        self.rings = processes.iter().enumerate().map(ring_of).collect();
    }

    /// Whether a task is a process whose ring's workers sleep for tags in its place.
    pub(crate) fn has_io_workers(&self, task: TaskId) -> bool {
        (task as usize) < self.rings.len() && self.processes[task as usize].punts
    }

    /// Sets the ranks of the processes.
    pub(crate) fn set_ranks(&mut self, ranks: Ranks) {
        for (index, process) in (0..).zip(&mut self.processes) {
            process.rank = ranks.of(index);
        }
    }

    /// The task that sleeps in the submission of a bio of a context. The worker, and those of rings, sleep in
    /// bios of others.
    pub(crate) fn sleeper_of(&self, bio: RequestId, context: TaskId) -> Option<TaskId> {
        let of_rings = self.worker + 1..self.count();
        [self.task_of_context(context), self.worker].into_iter().chain(of_rings).find(|&task| {
            self.get(task).is_some_and(|task| task.blocked && task.pending.head() == Some(bio))
        })
    }

    /// Changes the I/O priority of a job's processes, for the I/Os to come (`ioprio_set`).
    pub(crate) fn set_priority(&mut self, job: usize, priority: Priority) {
        for process in self.processes.iter_mut().filter(|process| process.job == job) {
            process.priority = priority;
        }
    }

    /// A process has not begun, and all that it waits for has ended.
    pub(crate) fn may_start(&self, index: usize) -> bool {
        let process = &self.processes[index];
        let waits = |job: usize| self.left_in_job[job] > 0;
        process.phase == self.phase
            && matches!(process.stage, IssueStage::Waiting)
            && process.wake_ns.is_none()
            && !self.order.waits_for[process.job].is_some_and(waits)
    }

    /// Counts a process that has ended.
    pub(crate) fn count_end(&mut self, index: usize) {
        let JobProcess { phase, job, .. } = self.processes[index];
        self.left_in_phase[phase] -= 1;
        self.left_in_job[job] -= 1;
    }

    /// Goes on to the next phase with processes if the current one is over. Returns true if there
    /// is one.
    pub(crate) fn next_phase(&mut self) -> bool {
        let before = self.phase;
        while !self.finished() && self.left_in_phase[self.phase] == 0 {
            self.phase += 1;
        }
        self.phase > before && !self.finished()
    }

    /// A task, if there is one of that number.
    pub(crate) fn get(&self, task: TaskId) -> Option<&Task> {
        self.all.get(task as usize)
    }

    /// Number of all tasks.
    pub(crate) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// All phases of jobs are over.
    pub fn finished(&self) -> bool {
        self.phase >= self.left_in_phase.len()
    }

    /// A process sleeps in a submission or is within a call.
    #[inline]
    pub(crate) fn sleeps(&self, index: u32) -> bool {
        let task = &self[index];
        unlikely(task.blocked || task.call.is_some())
    }

    /// The process that runs as a task.
    pub(crate) fn process_of(task: TaskId) -> u32 {
        // Processes come first, so that the two indices are the same.
        task
    }

    /// A process collects its completed direct I/Os.
    #[inline(always)]
    pub(crate) fn collect_done(
        &mut self,
        index: u32,
        now_ns: u64,
        recorder: &mut Option<Box<Recorder>>,
    ) {
        let Self { processes, records, .. } = self;
        let JobProcess { job, generator, done, in_flight, .. } = &mut processes[index as usize];
        let record = &mut records[*job];
        *in_flight -= done.len() as u32;
        for &(direction, bytes, start_ns) in &*done {
            let span = (start_ns, now_ns);
            let bytes = bytes.into();
            JobProcess::finish_io(generator, index, direction, bytes, span, record, recorder);
        }
        done.clear();
    }

    /// Records an I/O or call of a process that is done, with its first and last moment.
    pub(crate) fn finish_io(
        &mut self,
        index: u32,
        direction: Direction,
        bytes: u64,
        span: (u64, u64),
        recorder: &mut Option<Box<Recorder>>,
    ) {
        let process = &mut self.processes[index as usize];
        let JobProcess { job, generator, in_flight, .. } = process;
        *in_flight -= 1;
        let record = &mut self.records[*job];
        JobProcess::finish_io(generator, index, direction, bytes, span, record, recorder);
    }
}

/// Lets processes that replay signal each other. Returns the process that waits for each signal.
fn connect_replays(jobs: &[Job], processes: &mut [JobProcess]) -> Vec<u32> {
    let nr_signals = nr_signals(jobs);
    if nr_signals == 0 {
        return Vec::new();
    }
    let signals = SharedSignals::owned(nr_signals);
    for process in processes {
        process.generator.share_signals(&signals);
    }
    // Processes are in the order of jobs, and within one in that of its clones.
    let mut first = 0;
    let mut waiters = Vec::new();
    for job in jobs {
        let plans = job.replay.iter().flat_map(|replay| &replay.plans);
        for (clone, plan) in plans.enumerate() {
            let waits = plan.awaits.iter().map(|signal| (signal.number, first + clone as u32));
            waiters.extend(waits);
        }
        first += job.numjobs;
    }
    waiters.sort_unstable();
    waiters.into_iter().map(|(_, process)| process).collect()
}
