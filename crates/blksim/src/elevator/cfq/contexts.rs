//! The queue of each task's requests (`struct cfq_io_cq`): queues of tasks, shared async queues,
//! and merging and splitting queues of tasks that read in the same place.

use super::Cfq;
use super::group::Group;
use super::queue::{Queue, QueueId, ThinkTime};
use super::settings::NR_LEVELS;
use crate::block::request::{Priority, Request};

/// 2.6.32: a shared queue is split once it has been seeky this long.
const SPLIT_AFTER_NS: u64 = 1_000_000_000;

/// A priority whose level is one of the eight.
#[inline]
fn known_level(priority: Priority) -> Priority {
    Priority { level: priority.level.min(NR_LEVELS as u8 - 1), ..priority }
}

/// A task, on this disk.
#[derive(Debug, Clone)]
struct TaskContext {
    queue: Option<QueueId>,
    group: u16,
    priority: Priority,
    alive: bool,
    /// It has had a request.
    met: bool,
    think: ThinkTime,
}

/// All tasks, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Contexts {
    tasks: Vec<TaskContext>,
}

impl Contexts {
    #[inline]
    fn ensure(&mut self, task: u32, now_ns: u64) {
        if self.tasks.len() <= task as usize {
            let newcomer = TaskContext {
                queue: None,
                group: 0,
                priority: Priority::DEFAULT,
                alive: true,
                met: false,
                think: ThinkTime::since(now_ns),
            };
            self.tasks.resize(task as usize + 1, newcomer);
        }
        let context = &mut self.tasks[task as usize];
        if !std::mem::replace(&mut context.met, true) {
            context.think = ThinkTime::since(now_ns);
        }
    }

    /// The queue of a task's sync requests.
    #[inline]
    pub fn sync_queue(&self, bio: &Request) -> Option<QueueId> {
        let task = self.tasks.get(bio.context as usize)?;
        task.queue.filter(|_| task.group == bio.group)
    }

    #[inline]
    pub fn think(&mut self, task: u32) -> Option<&mut ThinkTime> {
        self.tasks.get_mut(task as usize).map(|task| &mut task.think)
    }

    #[inline]
    pub fn is_alive(&self, task: u32) -> bool {
        self.tasks.get(task as usize).is_some_and(|task| task.alive)
    }
}

impl<const TREES: bool> Cfq<TREES> {
    /// The shared queue of async requests at a bio's priority, if it exists.
    #[inline]
    pub(super) fn async_queue(&self, bio: &Request) -> Option<QueueId> {
        let slot = Group::async_slot(known_level(bio.priority));
        self.groups.get(Self::group_of(bio))?.async_queues[slot]
    }

    #[inline]
    fn group_of(request: &Request) -> u16 {
        if TREES { request.group } else { 0 }
    }

    /// The queue that a new request goes to.
    #[inline]
    pub(super) fn queue_for(&mut self, request: &Request, now_ns: u64) -> QueueId {
        let group = Self::group_of(request);
        let priority = known_level(request.priority);
        self.contexts.ensure(request.context, now_ns);
        if !request.flags.sync {
            let slot = Group::async_slot(priority);
            if let Some(queue) = self.groups[group].async_queues[slot] {
                return queue;
            }
            let queue = self.queues.allocate(Queue::new(false, priority, group));
            // A reference that is never dropped.
            self.queues[queue].tasks = 1;
            self.groups[group].async_queues[slot] = Some(queue);
            return queue;
        }
        let index = request.context as usize;
        let task = &mut self.contexts.tasks[index];
        if task.group != group {
            task.group = group;
            if let Some(old) = task.queue.take() {
                self.release_task(old);
            }
        }
        if let Some(queue) = self.contexts.tasks[index].queue {
            if let Some(queue) = self.follow(index, queue, now_ns) {
                if self.contexts.tasks[index].priority != priority {
                    self.contexts.tasks[index].priority = priority;
                    self.queues[queue].priority = priority;
                }
                return queue;
            }
        }
        let queue = self.queues.allocate(Queue::new(true, priority, group));
        self.queues[queue].tasks = 1;
        let task = &mut self.contexts.tasks[index];
        task.queue = Some(queue);
        task.priority = priority;
        queue
    }

    /// Splits a task from a shared queue, or leads it to the queue that its own was merged into.
    /// Returns `None` if it needs a new queue.
    #[inline]
    fn follow(&mut self, index: usize, id: QueueId, now_ns: u64) -> Option<QueueId> {
        let queue = &mut self.queues[id];
        let apart = if TREES {
            queue.shared && queue.to_split
        } else {
            queue.seeky_since_ns.is_some_and(|since_ns| now_ns > since_ns + SPLIT_AFTER_NS)
        };
        if apart {
            if queue.tasks > 1 {
                self.contexts.tasks[index].queue = None;
                self.release_task(id);
                return None;
            }
            // The last task keeps the queue.
            queue.shared = false;
            queue.to_split = false;
            queue.seeky_since_ns = None;
        }
        let Some(successor) = self.queues[id].successor else { return Some(id) };
        let joined = &mut self.queues[successor];
        joined.shared = true;
        joined.tasks += 1;
        self.contexts.tasks[index].queue = Some(successor);
        self.release_task(id);
        Some(successor)
    }

    /// Merges two queues: the tasks of the one with fewer go to the other with their next requests
    /// (`cfq_setup_merge`).
    pub(super) fn plan_merge(&mut self, id: QueueId, other: QueueId) {
        let mut other = other;
        while let Some(further) = self.queues[other].successor {
            if further == id {
                return;
            }
            other = further;
        }
        let (own, others) = (self.queues[id].tasks, self.queues[other].tasks);
        if own == 0 || others == 0 || self.queues[id].successor.is_some() || id == other {
            return;
        }
        let (from, to) = if others >= own { (id, other) } else { (other, id) };
        self.queues[from].successor = Some(to);
        self.queues[to].pointed_at += 1;
    }

    /// Notes that a task no longer uses a queue.
    fn release_task(&mut self, id: QueueId) {
        self.queues[id].tasks -= 1;
        self.forget(id);
    }

    /// Frees a queue without references, and those that only it referred to.
    pub(super) fn forget(&mut self, id: QueueId) {
        let mut candidate = Some(id);
        while let Some(id) = candidate {
            if !self.queues[id].is_forgotten() || self.active == Some(id) {
                return;
            }
            candidate = self.queues[id].successor.take();
            if let Some(successor) = candidate {
                self.queues[successor].pointed_at -= 1;
            }
            // It must not be released twice.
            self.queues[id].pointed_at = u32::MAX;
            self.queues.release(id);
        }
    }

    /// A task has ended: its queue does not wait for it.
    pub(super) fn end_task(&mut self, task: u32, now_ns: u64) {
        let Some(context) = self.contexts.tasks.get_mut(task as usize) else { return };
        context.alive = false;
        let Some(queue) = context.queue.take() else { return };
        if self.active == Some(queue) {
            self.expire(queue, now_ns, false);
        }
        self.release_task(queue);
    }
}
