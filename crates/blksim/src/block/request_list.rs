//! The pools of requests of the legacy path (`struct request_list` of `block/blk-core.c`, Linux 4.19).
//!
//! Each control group has one pool of sync and one of async requests, of `nr_requests` each. The task that
//! takes the last request of a pool, and one that has slept for a request, may take a batch beyond the limit
//! (`ioc_batching`), while others sleep.

use std::collections::VecDeque;

use super::queue_facts::QueueFacts;
use super::request::{Request, TaskId};

/// Requests of a batch (`BLK_BATCH_REQ`).
const BATCH_REQUESTS: u32 = 32;
/// How long a batch lasts: `BLK_BATCH_TIME` is `HZ/50`.
const BATCH_NS: u64 = 20_000_000;

/// The sync and the async pool of a group.
#[derive(Debug, Clone, Default)]
struct Pools {
    met: bool,
    used: [u32; 2],
    full: [bool; 2],
    sleepers: [VecDeque<TaskId>; 2],
}

/// A task's right to exceed the limit (`nr_batch_requests`, `last_waited` of `struct io_context`).
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    left: u32,
    since_tick: u64,
}

/// The pools of all control groups.
#[derive(Debug, Clone, Default)]
pub struct RequestLists {
    groups: Vec<Pools>,
    /// Groups that have asked for a request, in the order in which they first did (`q->blkg_list`).
    met: Vec<u16>,
    tasks: Vec<Batch>,
}

/// The pool that a request comes from.
#[inline]
fn pool_of(request: &Request) -> usize {
    usize::from(!request.flags.sync)
}

impl RequestLists {
    fn pools(&mut self, group: u16) -> &mut Pools {
        let index = usize::from(group);
        if self.groups.get(index).is_none_or(|pools| !pools.met) {
            self.meet(group);
        }
        &mut self.groups[index]
    }

    #[cold]
    fn meet(&mut self, group: u16) {
        let index = usize::from(group);
        let nr_groups = self.groups.len().max(index + 1);
        self.groups.resize_with(nr_groups, Pools::default);
        self.groups[index].met = true;
        self.met.push(group);
    }

    /// The root, then the others, the newest first (`__blk_queue_next_rl`).
    fn in_order_of_resizing(&self) -> Vec<u16> {
        let root = self.met.iter().copied().filter(|group| *group == 0);
        root.chain(self.met.iter().rev().copied().filter(|group| *group != 0)).collect()
    }

    /// Takes a request out of its pool; returns how many that has given out. With `must`, the scheduler
    /// waits for this task (`ELV_MQUEUE_MUST`).
    pub fn take(
        &mut self,
        request: &Request,
        facts: QueueFacts,
        must: bool,
        now_ns: u64,
    ) -> Option<u32> {
        let (pool, task) = (pool_of(request), request.context);
        let tick = now_ns / facts.jiffy_ns;
        let batches = self.is_batching(task, facts, tick);
        let pools = self.pools(request.group);
        let used = pools.used[pool];
        if used + 1 >= facts.nr_requests {
            if !std::mem::replace(&mut pools.full[pool], true) {
                self.begin_batch(task, facts, tick);
            } else if !must && !batches {
                return None;
            }
        }
        let pools = self.pools(request.group);
        if used >= 3 * facts.nr_requests / 2 {
            return None;
        }
        pools.used[pool] += 1;
        if self.is_batching(task, facts, tick) {
            self.tasks[task as usize].left -= 1;
        }
        Some(used + 1)
    }

    /// Gives a request back; one sleeper may try again if the pool is below its limit.
    pub fn give_back(&mut self, request: &Request, nr_requests: u32, woken: &mut Vec<TaskId>) {
        let pool = pool_of(request);
        let pools = self.pools(request.group);
        pools.used[pool] -= 1;
        if pools.used[pool] < nr_requests {
            woken.extend(pools.sleepers[pool].pop_front());
            pools.full[pool] = false;
        }
    }

    pub fn sleep(&mut self, task: TaskId, request: &Request) {
        let pool = pool_of(request);
        self.pools(request.group).sleepers[pool].push_back(task);
    }

    /// A task that slept for a request continues: it may take a batch.
    pub fn awake(&mut self, task: TaskId, facts: QueueFacts, now_ns: u64) {
        self.begin_batch(task, facts, now_ns / facts.jiffy_ns);
    }

    /// `nr_requests` was changed: one sleeper of each pool below the new limit is woken
    /// (`blk_queue_update_nr_requests`).
    pub fn resize(&mut self, nr_requests: u32, woken: &mut Vec<TaskId>) {
        for group in self.in_order_of_resizing() {
            let pools = &mut self.groups[usize::from(group)];
            for pool in 0..2 {
                pools.full[pool] = pools.used[pool] >= nr_requests;
                if !pools.full[pool] {
                    woken.extend(pools.sleepers[pool].pop_front());
                }
            }
        }
    }

    /// Requests in use.
    pub fn nr_used(&self) -> u32 {
        self.groups.iter().flat_map(|pools| pools.used).sum()
    }

    pub fn nr_sleepers(&self) -> u32 {
        let sleepers = self.groups.iter().flat_map(|pools| &pools.sleepers);
        sleepers.map(VecDeque::len).sum::<usize>() as u32
    }

    /// A batch that has not begun counts whatever its age, as the kernel has it.
    fn is_batching(&self, task: TaskId, facts: QueueFacts, tick: u64) -> bool {
        self.tasks.get(task as usize).is_some_and(|batch| {
            batch.left == BATCH_REQUESTS
                || (batch.left > 0 && tick < batch.since_tick + BATCH_NS / facts.jiffy_ns)
        })
    }

    fn begin_batch(&mut self, task: TaskId, facts: QueueFacts, tick: u64) {
        if self.is_batching(task, facts, tick) {
            return;
        }
        let index = task as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, Batch::default());
        }
        self.tasks[index] = Batch { left: BATCH_REQUESTS, since_tick: tick };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose};

    const FACTS: QueueFacts = QueueFacts { nr_requests: 4, ..QueueFacts::TYPICAL };

    fn request(task: TaskId) -> Request {
        let mut request = Request::new(Operation::Read, 0, 8, Purpose::Direct);
        request.context = task;
        request.flags.sync = true;
        request
    }

    #[test]
    fn the_task_that_fills_a_pool_exceeds_it_by_half() {
        let mut lists = RequestLists::default();
        let taken = |lists: &mut RequestLists, task| lists.take(&request(task), FACTS, false, 0);
        for used in 1..=6 {
            assert_eq!(taken(&mut lists, 0), Some(used));
        }
        assert_eq!((taken(&mut lists, 0), taken(&mut lists, 1)), (None, None));
        lists.sleep(1, &request(1));
        let mut woken = Vec::new();
        for _ in 0..2 {
            lists.give_back(&request(0), FACTS.nr_requests, &mut woken);
            assert!(woken.is_empty(), "the pool is still full");
        }
        lists.give_back(&request(0), FACTS.nr_requests, &mut woken);
        assert_eq!(woken, [1]);
        lists.awake(1, FACTS, 0);
        assert_eq!(taken(&mut lists, 1), Some(4));
    }

    #[test]
    fn groups_have_pools_of_their_own() {
        let mut lists = RequestLists::default();
        let other = Request { group: 3, ..request(1) };
        for _ in 0..6 {
            lists.take(&request(0), FACTS, false, 0);
        }
        assert_eq!(lists.take(&other, FACTS, false, 0), Some(1));
        assert_eq!(lists.nr_used(), 7);
    }
}
