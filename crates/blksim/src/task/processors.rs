//! Processors that take time: each has a clock of its own and a queue of what is ready to run on it.
//!
//! What runs on a processor moves the clock as it computes ([`EventQueue::compute`]); then the
//! processor is busy until that moment, and whatever comes for it meanwhile waits. A task is
//! interrupted after each I/O that it issues, if an event is due by then. So a processor is never
//! ahead of the others by more than the work for one I/O, and locks are waited for in nearly the
//! order in which they were asked for.
//!
//! [`EventQueue::compute`]: crate::core::event::EventQueue::compute

use crate::block::hw_queue::HwQueueId;
use crate::block::request::{RequestId, TaskId};
use crate::core::event::{Class, EventQueue};
use crate::core::processor_table::{ProcessorTable, StepCosts};
use crate::task::processor::{Processor, Runner};
use crate::task::ready::{GIVES_WAY, Ranks, Ready};

/// Runs of a hardware queue by its worker on one processor, before the next processor's worker has its turn
/// (`BLK_MQ_CPU_WORK_BATCH` in `block/blk-mq.h`, Linux 6.1).
const WORK_BATCH: u32 = 8;

/// All processors.
#[derive(Debug, Clone)]
pub struct Processors {
    all: Vec<Processor>,
    steps: StepCosts,
    slice_ns: u64,
    /// A single processor runs what is ready in the order that a guest's does in virtual time
    /// ([`crate::task::ready`]); several run it in the order of waking: no task that is woken takes a
    /// processor from one whose slice has begun (`RUN_TO_PARITY` in `kernel/sched/features.h`, since Linux 6.6).
    by_rank: bool,
    /// The processes of jobs are the first tasks.
    nr_processes: u32,
    ranks: Ranks,
    /// The one that computes now, and whether it runs a task rather than an interrupt.
    current: usize,
    runs_task: bool,
    /// Where each task ran last, and until when: on another processor, whose clock may be behind, it
    /// continues no earlier.
    of_task: Vec<u32>,
    task_ns: Vec<u64>,
    /// Where the thread that serves a disk ran last, and until when, as of tasks.
    of_thread: Vec<u32>,
    thread_ns: Vec<u64>,
    /// For each disk, the runs of each of its hardware queues so far, if they are several.
    worker_runs: Vec<Vec<u32>>,
}

impl Processors {
    /// The processes of jobs are the first of all tasks.
    pub(crate) fn new(
        table: &ProcessorTable,
        nr_processes: u32,
        ranks: Ranks,
        nr_tasks: u32,
        nr_hctxs: &[usize],
    ) -> Self {
        let ProcessorTable { cpus, slice_ns, steps, .. } = *table;
        let nr = cpus.max(1);
        Self {
            all: vec![Processor { alone: nr == 1, ..Processor::default() }; nr as usize],
            steps,
            slice_ns,
            by_rank: nr == 1,
            nr_processes,
            ranks,
            current: 0,
            runs_task: false,
            of_task: (0..nr_tasks).map(|task| task % nr).collect(),
            task_ns: vec![0; nr_tasks as usize],
            // Beside the first tasks, where there is room.
            of_thread: (0..nr_hctxs.len() as u32).map(|disk| (nr_processes + disk) % nr).collect(),
            thread_ns: vec![0; nr_hctxs.len()],
            worker_runs: nr_hctxs.iter().map(|&nr| vec![0; nr]).collect(),
        }
    }

    /// The next event of a processor that is the only one. It has at most one of each class, so they need no
    /// place in the queue of all events; entering and taking them would be a tenth of the work for a request.
    #[inline]
    pub(crate) fn own_event(&self) -> Option<(u64, Class)> {
        let first = &self.all[0];
        if !first.alone {
            return None;
        }
        match (first.interrupted, first.called) {
            (true, true) if first.call_ns < first.interrupt_ns => {
                Some((first.call_ns, Class::Processor))
            }
            (true, _) => Some((first.interrupt_ns, Class::Interrupt)),
            (false, true) => Some((first.call_ns, Class::Processor)),
            (false, false) => None,
        }
    }

    /// The processor on which a task runs.
    pub(crate) fn of_task(&self, task: TaskId) -> usize {
        self.of_task.get(task as usize).map_or(0, |cpu| *cpu as usize)
    }

    /// The latest moment that any has reached.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.all.iter().map(|processor| processor.free_ns).max().unwrap_or(0)
    }

    /// Time that each processor computed.
    pub fn busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().map(|processor| processor.busy_ns)
    }

    /// Lets a processor run a task or handle an interrupt now.
    ///
    /// # Errors
    ///
    /// The time until which it computes, if it does.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        cpu: usize,
        runs_task: bool,
        events: &mut EventQueue,
    ) -> Result<(), u64> {
        let processor = &mut self.all[cpu];
        if processor.free_ns > events.now_ns() {
            return Err(processor.free_ns);
        }
        self.current = cpu;
        self.runs_task = runs_task;
        if processor.free_ns < events.now_ns() {
            events.compute(self.steps.idle_exit_ns);
            processor.since_ns = events.now_ns();
        }
        if !runs_task {
            events.compute(self.steps.interrupt_ns);
        }
        Ok(())
    }

    /// An event waits until its processor is free.
    pub(crate) fn postpone(
        &mut self,
        cpu: usize,
        free_ns: u64,
        class: Class,
        subject: u32,
        events: &mut EventQueue,
    ) {
        let first = &mut self.all[0];
        match class {
            Class::Interrupt if first.alone => first.interrupt_ns = free_ns,
            Class::Processor if first.alone => first.call_ns = free_ns,
            // There is only one of these for each processor.
            Class::Interrupt | Class::Processor => events.at(free_ns, class, subject),
            _ => events.postpone(cpu, class, subject, |cpu| self.all[cpu].free_ns),
        }
    }

    /// The next to run on the current processor; computes the switch to it.
    #[inline]
    pub(crate) fn next(&mut self, events: &mut EventQueue) -> Option<Ready> {
        let processor = &mut self.all[self.current];
        processor.called = false;
        let (_, ready) = processor.queue.pop_front()?;
        let runner = Runner::from(ready);
        match runner {
            Runner::Task(task) => events.move_to(self.task_ns[task as usize]),
            Runner::Thread(disk) => events.move_to(self.thread_ns[disk as usize]),
            Runner::Worker | Runner::Softirq => {}
        }
        if processor.last != Some(runner) {
            processor.last = Some(runner);
            processor.since_ns = events.now_ns();
            events.compute(self.steps.context_switch_ns);
        }
        Some(ready)
    }

    /// Whether a processor takes no interrupt now; then it does so as soon as it can.
    pub(crate) fn defers(&mut self, cpu: usize, id: RequestId, events: &mut EventQueue) -> bool {
        let processor = &mut self.all[cpu];
        if processor.free_ns <= events.now_ns() && processor.interrupts.is_empty() {
            return false;
        }
        processor.interrupts.push_back(id);
        processor.interrupt(cpu, events);
        true
    }

    /// The request of the interrupt that a processor takes, once it has begun.
    pub(crate) fn take_interrupt(&mut self, cpu: usize) -> Option<RequestId> {
        let processor = &mut self.all[cpu];
        processor.interrupted = false;
        processor.interrupts.pop_front()
    }

    /// The current processor has computed since `start_ns`. Returns the task for which it did, if
    /// any.
    #[inline]
    pub(crate) fn end(&mut self, start_ns: u64, events: &mut EventQueue) -> Option<TaskId> {
        let now_ns = events.now_ns();
        let processor = &mut self.all[self.current];
        processor.free_ns = now_ns;
        processor.busy_ns += now_ns - start_ns;
        let ran = processor.last;
        let runs_task = std::mem::replace(&mut self.runs_task, false);
        let cpu = self.current;
        processor.interrupt(cpu, events);
        processor.call(cpu, events);
        match ran {
            Some(Runner::Task(task)) if runs_task => {
                self.task_ns[task as usize] = now_ns;
                Some(task)
            }
            Some(Runner::Thread(disk)) if runs_task => {
                self.thread_ns[disk as usize] = now_ns;
                None
            }
            _ => None,
        }
    }

    /// Puts something that was woken into the queue of a processor.
    pub(crate) fn place(&mut self, ready: Ready, events: &mut EventQueue) {
        let cpu = match ready {
            Ready::Submission(task) | Ready::Process(task) | Ready::Call(task) => {
                let before = self.of_task(task);
                let cpu = self.idle_near(before, events.now_ns());
                if cpu != before {
                    events.task_moves(task, before);
                }
                if let Some(place) = self.of_task.get_mut(task as usize) {
                    *place = cpu as u32;
                }
                cpu
            }
            Ready::Queue(queue) => self.next_of_worker(HwQueueId(queue)),
            Ready::CacheFlush(_) | Ready::Softirq(_) => self.current,
            Ready::Device(disk) => {
                let before = self.of_thread[disk as usize] as usize;
                if self.thread_ns[disk as usize] > events.now_ns() {
                    // It computes still, and goes on where it is.
                    before
                } else {
                    let cpu = self.idle_near(before, events.now_ns());
                    self.of_thread[disk as usize] = cpu as u32;
                    cpu
                }
            }
        };
        events.compute(self.steps.wake_ns);
        let rank = self.rank_of(ready);
        let processor = &mut self.all[cpu];
        processor.insert(rank, ready);
        if cpu != self.current {
            processor.call(cpu, events);
        }
    }

    /// The processor of the next run of a hardware queue: this one if there is only one queue, else one
    /// of those that the queue serves (`blk_mq_hctx_next_cpu` of `block/blk-mq.c`, Linux 6.1).
    fn next_of_worker(&mut self, queue: HwQueueId) -> usize {
        let runs = &mut self.worker_runs[queue.disk()];
        let nr_hctxs = runs.len();
        if nr_hctxs == 1 {
            return self.current;
        }
        let nr_served = (self.all.len() - queue.hctx()).div_ceil(nr_hctxs);
        let runs = &mut runs[queue.hctx()];
        *runs += 1;
        queue.hctx() + (*runs / WORK_BATCH) as usize % nr_served * nr_hctxs
    }

    /// The given processor if it is idle, else one that is, else the given one
    /// (`select_idle_sibling`).
    fn idle_near(&self, before: usize, now_ns: u64) -> usize {
        let idle = |cpu: usize| {
            let processor = &self.all[cpu];
            processor.queue.is_empty()
                && if cpu == self.current { !self.runs_task } else { processor.free_ns <= now_ns }
        };
        if idle(before) {
            return before;
        }
        (0..self.all.len()).find(|&cpu| idle(cpu)).unwrap_or(before)
    }

    /// Of several processors, only the workers of queues have a rank before others: `kblockd` has the highest
    /// priority (`WQ_HIGHPRI` in `block/blk-core.c`) and takes the processor from a task at once.
    fn rank_of(&self, ready: Ready) -> u32 {
        match ready {
            Ready::Submission(task) | Ready::Process(task) | Ready::Call(task)
                if self.by_rank && task < self.nr_processes =>
            {
                self.ranks.of(task)
            }
            Ready::Queue(_) | Ready::CacheFlush(_) => 0,
            _ => u32::from(!self.by_rank),
        }
    }

    /// Called after a task has done a step. Returns whether it continues at once; if not, it is in the
    /// queue again.
    pub(crate) fn goes_on(&mut self, ready: Ready, events: &EventQueue) -> bool {
        if !self.event_is_due(events) && self.may_stay(ready, events.now_ns()) {
            return true;
        }
        self.requeue(ready, events);
        false
    }

    /// Called when a task's call ends. Returns whether an event is due that lets others go first; if so, the task
    /// is in the queue again.
    pub(crate) fn interrupted(&mut self, ready: Ready, events: &EventQueue) -> bool {
        let interrupted = self.interrupted_go_last() && self.event_is_due(events);
        if interrupted {
            self.requeue(ready, events);
        }
        interrupted
    }

    /// Whether an interrupt at the end of a call puts the task behind those that wait: on a single processor, where
    /// tasks run in the order of waking.
    pub(crate) fn interrupted_go_last(&self) -> bool {
        self.by_rank && matches!(self.ranks, Ranks::BehindWorkers)
    }

    fn event_is_due(&self, events: &EventQueue) -> bool {
        let own_ns = self.own_event().map(|(time_ns, _)| time_ns);
        events.next_ns().into_iter().chain(own_ns).any(|due_ns| due_ns <= events.now_ns())
    }

    /// Lets a task that has computed go on later.
    pub(crate) fn requeue(&mut self, ready: Ready, events: &EventQueue) {
        let rank = self.rank_of(ready);
        let now_ns = events.now_ns();
        let processor = &mut self.all[self.current];
        if !self.by_rank && processor.slice_is_left(rank, now_ns, self.slice_ns) {
            processor.insert_first(rank, ready);
        } else {
            processor.insert(rank, ready);
        }
    }

    /// Another processor is to take the interrupt of a request.
    pub(crate) fn send_interrupt(&mut self, cpu: usize, id: RequestId, events: &mut EventQueue) {
        events.compute(self.steps.ipi_ns);
        let processor = &mut self.all[cpu];
        processor.interrupts.push_back(id);
        processor.interrupt(cpu, events);
    }

    /// Whether those that wait for the current processor let the task that has it go on.
    fn may_stay(&self, ready: Ready, now_ns: u64) -> bool {
        let processor = &self.all[self.current];
        let rank = self.rank_of(ready);
        if !self.by_rank {
            return processor.slice_is_left(rank, now_ns, self.slice_ns);
        }
        rank < GIVES_WAY || processor.queue.front().is_none_or(|first| first.0 >= rank)
    }
}
