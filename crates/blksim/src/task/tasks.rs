//! The state of all tasks: the processes of jobs, the flusher and the worker.

use std::ops::{Index, IndexMut};

use super::direct_ios::DirectIos;
use super::job_process::JobProcess;
use super::ready::rank_of_fork;
use super::slots::SlotRecorder;
use super::task_struct::{Role, Task};
use crate::block::request::TaskId;
use crate::core::branch::unlikely;
use crate::core::record::{Direction, JobRecord};
use crate::timeline::Recorder;
use crate::workload::Job;
use crate::workload::generator::Transfer;
use crate::workload::layout::Layout;

/// All tasks, and the job processes that run as the first of them.
#[derive(Debug)]
pub struct Tasks {
    all: Vec<Task>,
    pub(crate) processes: Vec<JobProcess>,
    pub(crate) flusher: TaskId,
    pub(crate) worker: TaskId,
    pub(crate) ios: DirectIos,
    /// Transfers that are issued together.
    pub(crate) batch: Vec<Transfer>,
    pub(crate) records: Vec<JobRecord>,
    /// Records slots, if the run has any; then `records` begin anew now and then.
    pub(crate) slots: Option<Box<SlotRecorder>>,
    /// Processes that have not ended, in each phase between stonewalls.
    pub(crate) left_in_phase: Vec<u32>,
    pub(crate) phase: usize,
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
        let mut left_in_phase = vec![0];
        for (index, job) in jobs.iter().enumerate() {
            if job.stonewall && index > 0 {
                left_in_phase.push(0);
            }
            let phase = left_in_phase.len() - 1;
            for (number, region) in layout.regions[index].iter().enumerate() {
                left_in_phase[phase] += 1;
                let fork = processes.len() as u32;
                let rank = rank_of_fork(fork, nr_processes);
                all.push(Task::new(Role::Process(fork)));
                let number = number as u32;
                processes.push(JobProcess::new(job, index, number, phase, rank, *region, seed));
            }
        }
        let flusher = all.len() as TaskId;
        all.push(Task::new(Role::Flusher));
        all.push(Task::new(Role::Worker));
        Self {
            all,
            processes,
            flusher,
            worker: flusher + 1,
            ios: DirectIos::default(),
            batch: Vec::new(),
            records: jobs.iter().map(|job| JobRecord::new(&job.name, job.numjobs)).collect(),
            slots: None,
            left_in_phase,
            phase: 0,
        }
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
