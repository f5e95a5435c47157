//! The processor's run queue: tasks that were woken, and the workers that run request queues.
//!
//! A completion only wakes; the woken task runs after it. As in CFS (`kernel/sched/fair.c`, Linux
//! 6.1) the task with the least virtual runtime goes first; among equals, the one that was woken
//! first. Computing takes no virtual runtime here, so it stays as it was at the start: a forked
//! task begins some way behind the one before it, and a task that slept is credited with at most
//! half a scheduling period, which is as far as the last three lag. The last two lag by more than
//! the wake-up preemption granularity (`wakeup_preempt_entity`): they give way to the queue's
//! worker after each submission. The others go on before it.

use std::collections::VecDeque;

use crate::block::request::TaskId;
use crate::core::branch::likely;

/// Number of tasks, the last to be forked, that lag behind all others, each farther than the one
/// before.
const LATE_FORKS: u32 = 3;
/// From this rank on, a task lags so far that a task woken ahead of it runs at once.
pub(crate) const GIVES_WAY: u32 = 2;

/// The ranks of the processes of jobs, which are forked in order. Kernel threads have the first rank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ranks {
    /// The last of so many processes lag in virtual runtime.
    LateForksLag(u32),
    /// Processes go behind the workers of queues, in the order of waking ([`Behaviours::workers_go_first`]).
    ///
    /// [`Behaviours::workers_go_first`]: crate::block::kernel_version::Behaviours::workers_go_first
    BehindWorkers,
    /// All have the first rank.
    None,
}

impl Ranks {
    /// The rank of a process, by its index.
    #[inline]
    pub(crate) fn of(self, index: u32) -> u32 {
        match self {
            Self::LateForksLag(nr_processes) => {
                (index + 1 + LATE_FORKS).saturating_sub(nr_processes)
            }
            Self::BehindWorkers => GIVES_WAY - 1,
            Self::None => 0,
        }
    }
}

/// Something that is ready to run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ready {
    /// A task whose submission slept.
    Submission(TaskId),
    /// A process that learns of completions.
    Process(u32),
    /// A task whose buffered call slept.
    Call(TaskId),
    /// The worker of a hardware queue (`HwQueueId`).
    Queue(u32),
    /// The worker that puts a disk's flush into the queue.
    CacheFlush(u32),
    /// The thread of this machine that serves a disk.
    Device(u32),
    /// The thread that completes what the one above has served (`ksoftirqd`).
    Softirq(u32),
}

/// The run queue, ordered by rank, then by time of waking.
#[derive(Debug, Clone)]
pub(crate) struct ReadyList {
    /// The first tasks are the processes of jobs.
    nr_processes: u32,
    ranks: Ranks,
    /// The first entry has a field of its own: usually there is only one.
    first: Option<(u32, Ready)>,
    /// Empty if there is no first.
    rest: VecDeque<(u32, Ready)>,
}

impl ReadyList {
    pub fn new(nr_processes: u32) -> Self {
        let ranks = Ranks::LateForksLag(nr_processes);
        Self { nr_processes, ranks, first: None, rest: VecDeque::new() }
    }

    /// Sets the ranks of the processes from now on.
    pub(crate) fn set_ranks(&mut self, ranks: Ranks) {
        self.ranks = ranks;
    }

    pub(crate) fn ranks(&self) -> Ranks {
        self.ranks
    }

    /// The first entry, with its rank.
    #[inline]
    pub fn first(&self) -> Option<(u32, Ready)> {
        self.first
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub fn insert(&mut self, rank: u32, ready: Ready) {
        match self.first {
            None => self.first = Some((rank, ready)),
            Some(first) => self.insert_beside(first, rank, ready),
        }
    }

    #[inline(never)]
    fn insert_beside(&mut self, first: (u32, Ready), rank: u32, ready: Ready) {
        if first.0 > rank {
            self.rest.push_front(first);
            self.first = Some((rank, ready));
            return;
        }
        if self.rest.back().is_none_or(|last| last.0 <= rank) {
            self.rest.push_back((rank, ready));
            return;
        }
        let place = self.rest.partition_point(|other| other.0 <= rank);
        self.rest.insert(place, (rank, ready));
        debug_assert!(self.rest.iter().is_sorted_by_key(|entry| entry.0), "the run queue's order");
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Ready> {
        let (_, ready) = self.first?;
        self.first = if likely(self.rest.is_empty()) { None } else { self.rest.pop_front() };
        Some(ready)
    }

    /// Takes a process off the list again.
    pub(crate) fn remove_process(&mut self, process: u32) {
        let is_it = |ready: Ready| matches!(ready, Ready::Process(index) if index == process);
        self.rest.retain(|&(_, ready)| !is_it(ready));
        if self.first.is_some_and(|(_, ready)| is_it(ready)) {
            self.first = self.rest.pop_front();
        }
    }

    /// Enters something into the run queue.
    #[inline]
    pub(crate) fn make_ready(&mut self, ready: Ready) {
        let rank = match ready {
            Ready::Submission(task) | Ready::Process(task) | Ready::Call(task) => {
                self.rank_of(task)
            }
            Ready::Queue(_) | Ready::CacheFlush(_) | Ready::Device(_) | Ready::Softirq(_) => 0,
        };
        self.insert(rank, ready);
    }

    /// The rank of a task; kernel threads have the first.
    #[inline]
    fn rank_of(&self, task: TaskId) -> u32 {
        if task < self.nr_processes { self.ranks.of(task) } else { 0 }
    }
}
