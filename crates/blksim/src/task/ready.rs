//! What is about to run on the processor: tasks that were woken, and the
//! workers that run queues.
//!
//! A completion only wakes; what it woke runs after it. As in CFS
//! (`kernel/sched/fair.c`, Linux 6.1) the task with the least virtual runtime
//! goes first, and among equals the one that was woken first. No task computes
//! here, so that its virtual runtime stays what it began with: a task that is
//! forked begins some way behind the one before it, and one that slept is
//! credited with at most half a scheduling period, which is as far as the last
//! three stand behind. The last two do so by more than a task that wakes up must
//! be ahead by to take the processor from another (`wakeup_preempt_entity`):
//! they give way to the queue's worker after each submission. The others go on
//! before it.

use std::collections::VecDeque;

use crate::core::branch::{likely, unlikely};
use crate::machine::Machine;
use crate::task::task_struct::TaskId;

/// The last to be forked stand behind all others, each farther than the one before.
const LATE_FORKS: u32 = 3;
/// Ranks from this one on are so far behind that whoever wakes up ahead of them runs at once.
const GIVES_WAY: u32 = 2;

/// How far a clone stands behind, of so many, which are forked in order.
pub(crate) fn rank_of_fork(index: u32, nr_clones: u32) -> u32 {
    (index + 1 + LATE_FORKS).saturating_sub(nr_clones)
}

/// Something that is ready to run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ready {
    /// A task whose submission slept.
    Submission(TaskId),
    /// A clone that learns of completions.
    Process(u32),
    /// A task whose buffered call slept.
    Call(TaskId),
    /// The worker of a disk's queue.
    Queue(u32),
    /// The worker that puts a disk's flush into the queue.
    Flush(u32),
}

/// What is ready, in the order in which it will run: by rank, then by time of waking.
#[derive(Debug, Default)]
pub(crate) struct ReadyList {
    /// The first, apart from the rest: mostly there is but one.
    first: Option<(u32, Ready)>,
    /// Empty if there is no first.
    rest: VecDeque<(u32, Ready)>,
}

impl ReadyList {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    fn insert(&mut self, rank: u32, ready: Ready) {
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
    }

    #[inline]
    fn pop(&mut self) -> Option<Ready> {
        let (_, ready) = self.first?;
        self.first = if likely(self.rest.is_empty()) { None } else { self.rest.pop_front() };
        Some(ready)
    }
}

impl Machine {
    /// Lets something run once all that goes before it has run.
    #[inline]
    pub(crate) fn make_ready(&mut self, ready: Ready) {
        let rank = match ready {
            Ready::Submission(task) | Ready::Process(task) | Ready::Call(task) => {
                self.rank_of(task)
            }
            Ready::Queue(_) | Ready::Flush(_) => 0,
        };
        self.ready.insert(rank, ready);
    }

    /// Kernel threads do not stand behind.
    #[inline]
    fn rank_of(&self, task: TaskId) -> u32 {
        self.clones.get(task as usize).map_or(0, |clone| clone.rank)
    }

    /// A clone has submitted what it was about to. Whether it goes on: something that is ready may
    /// take the processor from it, and then its turn comes later. A queue's worker alone, which it
    /// mostly is, runs in between.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, clone: u32) -> bool {
        self.ready.is_empty() || self.keeps_processor(clone)
    }

    #[inline(always)]
    fn keeps_processor(&mut self, clone: u32) -> bool {
        let rank = self.rank_of(clone);
        if rank < GIVES_WAY {
            return true;
        }
        loop {
            match self.ready.first {
                Some((first, Ready::Queue(disk))) if first < rank && self.released.is_empty() => {
                    self.ready.pop();
                    self.run_worker(disk as usize);
                    // What policies have let go is passed on before any task runs.
                    if !self.released.is_empty() {
                        break;
                    }
                }
                Some((first, _)) if first < rank => break,
                _ => return true,
            }
        }
        self.wake_clone(clone);
        false
    }

    /// The worker of a disk's queue runs.
    #[inline]
    fn run_worker(&mut self, disk: usize) {
        self.disks[disk].run_pending = false;
        self.run_queue(disk);
    }

    /// Something is to run.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !(self.released.is_empty() && self.ready.is_empty())
    }

    /// Runs what is ready where it is not the usual way of a request.
    #[inline(never)]
    pub(crate) fn run_ready_cold(&mut self) {
        self.run_ready();
    }

    /// Runs what is ready, until nothing is left.
    #[inline(always)]
    pub(crate) fn run_ready(&mut self) {
        loop {
            if unlikely(!self.released.is_empty()) {
                self.pass_on_released();
            }
            let Some(next) = self.ready.pop() else { break };
            match next {
                Ready::Process(index) => {
                    self.clones[index as usize].woken = false;
                    self.drive(index);
                }
                Ready::Queue(disk) => self.run_worker(disk as usize),
                other => self.run_other(other),
            }
        }
    }

    /// Runs what is seldom ready.
    #[inline(never)]
    fn run_other(&mut self, ready: Ready) {
        match ready {
            Ready::Submission(task) => self.resume(task),
            Ready::Process(index) => self.drive_cold(index),
            Ready::Call(task) => self.advance_call(task),
            Ready::Flush(disk) => self.queue_flush(disk as usize),
            Ready::Queue(disk) => self.run_worker(disk as usize),
        }
    }

    /// Lets a clone go on once what is ready before it has run.
    #[inline]
    pub(crate) fn wake_clone(&mut self, index: u32) {
        let clone = &mut self.clones[index as usize];
        if likely(!std::mem::replace(&mut clone.woken, true)) {
            self.ready.insert(clone.rank, Ready::Process(index));
        }
    }

    /// Lets the tasks in `woken`, which slept for a tag, try again.
    #[inline]
    pub(crate) fn wake_submissions(&mut self) {
        if unlikely(!self.woken.is_empty()) {
            self.wake_sleepers();
        }
    }

    #[inline(never)]
    fn wake_sleepers(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        for task in woken.drain(..) {
            self.make_ready(Ready::Submission(task));
        }
        self.woken = woken;
    }
}
