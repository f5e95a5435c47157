//! `cfq` and `cfq-2.6.32`: time slices of the disk for each process, longer at
//! better I/O priorities.
//!
//! The sync requests of a process have a queue of their own; async requests of all processes share
//! queues by priority. The active queue has the disk for a slice of time, counted from its first
//! completion. The disk idles up to `slice_idle` for its next request if its history says that
//! idling pays. In 4.19 queues are in trees by class (real time, best effort, idle) and kind
//! (async; sync and not worth idling for; sync), the kinds take turns, and control groups share the
//! disk by weight. 2.6.32 has one tree, no groups and no turns of kinds.
//!
//! Kernel: `block/cfq-iosched.c`, until 4.20. `cfq` follows 4.19,
//! `cfq-2.6.32` follows 2.6.32.
//!
//! Simplified: time is in nanoseconds in 2.6.32 too; rules that count ticks use 1000 a second there. No
//! request is marked as metadata, so no queue is boosted or preempted for that. A queue is chosen
//! when a request is inserted, not when it is allocated. When idling ends early, its timer is stopped.
//!
//! Parameters: `settings.rs`. References: `Documentation/block/cfq-iosched.txt` (4.16).

mod active;
mod contexts;
mod describe;
mod group;
mod idling;
mod order;
mod preemption;
mod queue;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::idle_timer::IdleTimer;
use crate::block::cgroup::GroupWeights;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, NONE, PriorityClass, Request, RequestId, Requests};
use crate::core::params::Values;
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};
use contexts::Contexts;
pub use group::GroupShare;
use group::{Groups, Workload};
use idling::CommandQueueing;
use queue::{QueueId, Queues, ThinkTime};
use settings::{NR_LEVELS, Settings};

/// The scheduler; `TREES` distinguishes 4.19, with groups and kinds, from 2.6.32.
#[derive(Debug, Clone)]
pub struct Cfq<const TREES: bool> {
    settings: Settings,
    rotational: bool,
    /// A tick of the kernel.
    tick_ns: u64,
    queues: Queues,
    groups: Groups,
    contexts: Contexts,
    /// The active queue, and the task whose request it dispatched.
    active: Option<QueueId>,
    active_task: Option<u32>,
    timer: IdleTimer,
    /// The group, class and kind in service, and the end of their turn.
    serving_group: u16,
    serving_class: PriorityClass,
    serving_workload: Workload,
    workload_end_ns: u64,
    /// Next requests of sync queues, by level and sector.
    neighbours: [BTreeSet<(u64, QueueId)>; NR_LEVELS],
    /// Order of arrival, for equal keys.
    sequence: u64,
    nr_queued: u32,
    busy_queues: u32,
    busy_sync_queues: u32,
    in_driver: u32,
    /// Requests in the device: async, sync.
    in_flight: [u32; 2],
    /// The end of the request that was dispatched last.
    head: u64,
    /// The time since which async requests have not delayed sync ones; long ago at first.
    last_delayed_sync_ns: i64,
    command_queueing: CommandQueueing,
}

impl<const TREES: bool> Scheduler for Cfq<TREES> {
    const INFO: Info = if TREES {
        Info {
            name: "cfq",
            kernel_versions: "until 4.20; follows 4.19",
            summary: "time slices for each process by I/O priority, groups by weight; waits for readers",
            family: Family::Legacy,
            bypass: false,
            disables_wbt: false,
            indexed: true,
            per_hctx: false,
            tunables: settings::TUNABLES_4_19,
        }
    } else {
        Info {
            name: "cfq-2.6.32",
            kernel_versions: "follows 2.6.32",
            summary: "cfq before groups: one tree of queues with time slices by I/O priority",
            family: Family::Legacy,
            bypass: false,
            disables_wbt: false,
            indexed: true,
            per_hctx: false,
            tunables: settings::TUNABLES_2_6_32,
        }
    };

    fn new(tunables: &Values, queue: QueueFacts) -> Self {
        let settings =
            if TREES { Settings::of_4_19(tunables, queue) } else { Settings::of_2_6_32(tunables) };
        Self {
            settings,
            rotational: queue.rotational,
            tick_ns: if TREES { queue.jiffy_ns } else { settings::TICK_NS },
            queues: Queues::default(),
            groups: Groups::new(),
            contexts: Contexts::default(),
            active: None,
            active_task: None,
            timer: IdleTimer::default(),
            serving_group: 0,
            serving_class: PriorityClass::BestEffort,
            serving_workload: Workload::Sync,
            workload_end_ns: 0,
            neighbours: Default::default(),
            sequence: 0,
            nr_queued: 0,
            busy_queues: 0,
            busy_sync_queues: 0,
            in_driver: 0,
            in_flight: [0; 2],
            head: 0,
            last_delayed_sync_ns: if TREES { ThinkTime::LONG_IDLE } else { 0 },
            command_queueing: CommandQueueing::new::<TREES>(),
        }
    }

    fn defaults(tunables: &mut Values, queue: QueueFacts) {
        if TREES {
            settings::defaults_4_19(tunables, queue);
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let now_ns = cx.now_ns();
        if TREES {
            self.meet_group(cx, cx.requests[id].group);
        }
        let queue_id = self.queue_for(&cx.requests[id], now_ns);
        cx.requests[id].queue = queue_id;
        let queue = &mut self.queues[queue_id];
        let expire_ns = self.settings.fifo_expire_ns(queue.sync);
        queue.held.insert(cx.requests, id, expire_ns, now_ns);
        self.nr_queued += 1;
        if queue.place.is_none() {
            self.queue_becomes_busy(queue_id, now_ns);
        }
        let queue = &mut self.queues[queue_id];
        let next = self.settings.back_seek.closer_of(cx.requests, queue.next, Some(id), self.head);
        self.set_next(cx.requests, queue_id, next);
        self.learn(cx.requests, id, queue_id, now_ns);
        self.consider(cx, queue_id, id);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        if self.nr_queued == 0 {
            return None;
        }
        let now_ns = cx.now_ns();
        let queue_id = self.select(now_ns)?;
        if !TREES && !self.may_dispatch(queue_id, now_ns) {
            return None;
        }
        let overdue = self.overdue(cx.requests, queue_id, now_ns);
        if TREES {
            if overdue.is_some() {
                self.queues[queue_id].must_dispatch = true;
            }
            if !self.may_dispatch(queue_id, now_ns) {
                return None;
            }
        }
        let id = overdue.or(self.queues[queue_id].next)?;
        self.hand_out(cx.requests, queue_id, id, now_ns);
        Some(id)
    }

    /// The task that the disk idles for may take one request beyond the limit (`cfq_may_queue`).
    fn must_queue(&mut self, bio: &Request) -> bool {
        let Some(queue) = self.known_queue(bio) else { return false };
        let queue = &mut self.queues[queue];
        queue.awaited && !std::mem::replace(&mut queue.must_alloc_used, true)
    }

    /// A bio joins only requests of its own queue.
    #[inline]
    fn allow_merge(&self, requests: &Requests, request: RequestId, bio: RequestId) -> bool {
        let (request, bio) = (&requests[request], &requests[bio]);
        request.flags.sync == bio.flags.sync
            && self.known_queue(bio).is_some_and(|queue| queue == request.queue)
    }

    #[inline]
    fn front_merges(&self) -> bool {
        true
    }

    fn request_merged(&mut self, cx: &mut Context, id: RequestId, side: Merge, old_sector: u64) {
        if side == Merge::Front {
            let queue_id = cx.requests[id].queue;
            let queue = &mut self.queues[queue_id];
            queue.held.tree.remove(old_sector, id);
            queue.held.tree.insert(cx.requests[id].sector, id);
            let next =
                self.settings.back_seek.closer_of(cx.requests, queue.next, Some(id), self.head);
            self.set_next(cx.requests, queue_id, next);
        }
    }

    fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let queue_id = cx.requests[gone].queue;
        if self.queues[queue_id].next == Some(gone) {
            let next = if cx.requests[kept].queue == queue_id {
                Some(kept)
            } else {
                self.following(cx.requests, queue_id, gone)
            };
            self.set_next(cx.requests, queue_id, next);
        }
        let queue = &mut self.queues[queue_id];
        if cx.requests[kept].queue == queue_id {
            queue.held.absorb(cx.requests, kept, gone);
        } else {
            queue.held.remove(cx.requests, gone);
        }
        self.nr_queued -= 1;
        if self.queues[queue_id].is_empty() && self.active != Some(queue_id) {
            self.queue_becomes_idle(queue_id);
            self.forget(queue_id);
        }
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        self.completed(cx, id);
        if self.in_driver == 0 && self.nr_queued > 0 {
            cx.kick();
        }
    }

    fn timer(&mut self, cx: &mut Context) {
        if !self.timer.rings(cx) {
            return;
        }
        if let Some(queue_id) = self.active {
            let now_ns = cx.now_ns();
            let queue = &mut self.queues[queue_id];
            if !queue.must_dispatch && (queue.slice_is_used(now_ns) || queue.is_empty()) {
                if !queue.slice_is_used(now_ns) {
                    queue.deep = false;
                }
                self.expire(queue_id, now_ns, false);
            }
        }
        cx.kick();
    }

    fn exit_task(&mut self, cx: &mut Context, task: u32) {
        self.end_task(task, cx.now_ns());
        cx.kick();
    }

    fn retune(&mut self, _cx: &mut Context, tunables: &Values, name: &str) {
        self.settings.store(tunables, name);
    }

    fn regroup(&mut self, cx: &mut Context) {
        for group in 0..self.groups.iter().count() as u16 {
            if TREES && usize::from(group) < cx.queue.groups.len() {
                let GroupShare { weight, leaf_weight, .. } = share_of(cx, group);
                self.groups.set_weight(group, weight, leaf_weight);
            }
        }
    }

    fn describe(&self, requests: &Requests) -> Option<Holding> {
        Some(self.description(requests))
    }

    fn effective_tunables(&self, tunables: &mut Values) {
        if TREES {
            self.settings.effective_4_19(tunables);
        }
    }
}

/// The weights of a group. The root has twice the weight of others. Tasks beside child groups weigh
/// as their group does.
fn share_of(cx: &Context, group: u16) -> GroupShare {
    let GroupWeights { cfq, parent, .. } = cx.group(group);
    let weight = if group == 0 { 2 * cfq } else { cfq };
    GroupShare { parent, weight, leaf_weight: weight }
}

impl<const TREES: bool> Cfq<TREES> {
    /// Sets the weights of a control group.
    pub fn set_group(&mut self, group: u16, share: GroupShare) {
        self.groups.set_share(group, share);
    }

    /// First request of a group.
    #[inline]
    fn meet_group(&mut self, cx: &Context, group: u16) {
        if !self.groups.has_met(group) {
            self.take_weights(cx, group);
        }
    }

    /// The first new group takes over the weights of all. Later changes come with [`Scheduler::regroup`].
    #[cold]
    fn take_weights(&mut self, cx: &Context, group: u16) {
        let nr_groups = cx.queue.groups.len().max(usize::from(group) + 1);
        if self.groups.iter().count() < nr_groups {
            for index in 0..nr_groups as u16 {
                self.set_group(index, share_of(cx, index));
            }
        }
        self.groups.meet(group, cx.now_ns());
    }

    /// The queue of a request, or the one that a bio would go to.
    #[inline]
    fn known_queue(&self, bio: &Request) -> Option<QueueId> {
        if bio.queue != NONE {
            return Some(bio.queue);
        }
        if bio.flags.sync { self.contexts.sync_queue(bio) } else { self.async_queue(bio) }
    }

    /// 4.19: groups are charged by requests instead of time (`iops_mode`).
    #[inline]
    fn counts_requests(&self) -> bool {
        self.settings.slice_idle_ns == 0 && self.command_queueing.is_there()
    }
}
