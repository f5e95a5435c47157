//! One processor: what it computes, and what waits for it.

use std::collections::VecDeque;

use crate::block::request::{RequestId, TaskId};
use crate::core::event::{Class, EventQueue};
use crate::task::ready::Ready;

/// One processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Processor {
    /// It computes until then.
    pub free_ns: u64,
    /// All the time that it computed.
    pub busy_ns: u64,
    /// The task or thread that ran last, and since when without a pause.
    pub last: Option<Runner>,
    pub since_ns: u64,
    /// With ranks; see [`Processors::by_rank`].
    pub queue: VecDeque<(u32, Ready)>,
    /// An event that runs the first of `queue` is on its way.
    pub called: bool,
    /// Requests that were finished while it was busy, and whether an event for the first is on its way.
    pub interrupts: VecDeque<RequestId>,
    pub interrupted: bool,
    /// It is the only processor, and keeps its events to itself; see [`Processors::own_event`].
    pub alone: bool,
    pub interrupt_ns: u64,
    pub call_ns: u64,
}

impl Processor {
    /// Whether a task of a rank has some of its slice left, and nothing with a lower rank is ready.
    pub fn slice_is_left(&self, rank: u32, now_ns: u64, slice_ns: u64) -> bool {
        self.queue.front().is_none_or(|&(first, _)| {
            first >= rank && now_ns.saturating_sub(self.since_ns) < slice_ns
        })
    }

    /// Takes its next interrupt as soon as it can; it is processor `cpu`.
    #[inline]
    pub fn interrupt(&mut self, cpu: usize, events: &mut EventQueue) {
        if !self.interrupts.is_empty() && !self.interrupted {
            self.interrupted = true;
            if self.alone {
                self.interrupt_ns = self.free_ns.max(events.now_ns());
            } else {
                events.at(self.free_ns, Class::Interrupt, cpu as u32);
            }
        }
    }

    /// Runs the first of its queue as soon as it can: after its interrupts, of which the last calls this again.
    #[inline]
    pub fn call(&mut self, cpu: usize, events: &mut EventQueue) {
        if !self.queue.is_empty() && !self.called && !self.interrupted {
            self.called = true;
            if self.alone {
                self.call_ns = self.free_ns.max(events.now_ns());
            } else {
                events.at(self.free_ns, Class::Processor, cpu as u32);
            }
        }
    }

    /// Enters something behind all that have its rank or a lower one.
    pub fn insert(&mut self, rank: u32, ready: Ready) {
        if self.queue.back().is_none_or(|last| last.0 <= rank) {
            self.queue.push_back((rank, ready));
            return;
        }
        if self.queue.front().is_some_and(|first| first.0 > rank) {
            self.queue.push_front((rank, ready));
            return;
        }
        let place = self.queue.partition_point(|other| other.0 <= rank);
        self.queue.insert(place, (rank, ready));
    }

    /// Enters something before all that have its rank.
    pub fn insert_first(&mut self, rank: u32, ready: Ready) {
        let place = self.queue.partition_point(|other| other.0 < rank);
        self.queue.insert(place, (rank, ready));
    }
}

/// A task or thread that runs on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    Task(TaskId),
    /// The worker of a queue.
    Worker,
    /// The thread that serves a disk.
    Thread(u32),
    /// The thread of the processor that completes requests.
    Softirq,
}

impl From<Ready> for Runner {
    fn from(ready: Ready) -> Self {
        match ready {
            Ready::Submission(task) | Ready::Process(task) | Ready::Call(task) => Self::Task(task),
            Ready::Queue(_) | Ready::CacheFlush(_) => Self::Worker,
            Ready::Device(disk) => Self::Thread(disk),
            Ready::Softirq(_) => Self::Softirq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: u32 = 0;
    const TASK: u32 = 1;

    #[test]
    fn a_worker_takes_the_processor_at_once_and_a_task_when_the_slice_is_over() {
        let mut processor = Processor { since_ns: 1000, ..Processor::default() };
        assert!(processor.slice_is_left(TASK, 9000, 500));
        processor.insert(TASK, Ready::Process(1));
        assert!(processor.slice_is_left(TASK, 1499, 500));
        assert!(!processor.slice_is_left(TASK, 1500, 500));
        processor.insert(WORKER, Ready::Queue(0));
        assert!(!processor.slice_is_left(TASK, 1001, 500));
        assert!(processor.slice_is_left(WORKER, 1001, 500));
    }

    #[test]
    fn a_task_that_goes_on_is_behind_workers_and_before_other_tasks() {
        let mut processor = Processor::default();
        processor.insert(TASK, Ready::Process(1));
        processor.insert(WORKER, Ready::Queue(0));
        processor.insert_first(TASK, Ready::Process(2));
        let order: Vec<_> = processor.queue.iter().map(|&(_, ready)| Runner::from(ready)).collect();
        assert_eq!(order, [Runner::Worker, Runner::Task(2), Runner::Task(1)]);
    }
}
