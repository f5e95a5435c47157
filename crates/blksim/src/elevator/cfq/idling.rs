//! Idling: waiting for a queue's next request, and the estimates behind that decision.

use super::Cfq;
use super::group::tree_of;
use super::queue::QueueId;
use crate::block::request::{Hint, Request, RequestId, Requests};
use crate::elevator::scheduler::Context;

/// Fewer requests than this tell nothing about the device's queueing.
const FEW_REQUESTS: u32 = 5;
/// Completions that are observed before a decision.
const SAMPLES: u32 = 50;
/// A queue is deep once it has had this many requests at once.
const DEEP: u32 = 4;
/// 2.6.32: the longest wait for a seeky queue.
const SEEKY_IDLE_NS: u64 = 2_000_000;

/// The estimate of whether the device queues commands (`hw_tag`).
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandQueueing {
    /// `None`: unknown, which counts as yes.
    found: Option<bool>,
    samples: u32,
    peak: u32,
}

impl CommandQueueing {
    pub fn new<const TREES: bool>() -> Self {
        Self { found: if TREES { None } else { Some(true) }, samples: 0, peak: 0 }
    }

    #[inline]
    pub fn is_there(&self) -> bool {
        self.found != Some(false)
    }
}

/// A write with a waiter that is not direct (fsync and the like), after which no other is expected.
#[inline]
fn ends_a_series(request: &Request) -> bool {
    request.flags.sync && request.is_write() && request.flags.hint != Hint::Idle
}

impl<const TREES: bool> Cfq<TREES> {
    /// A request completes: samples the number in the device.
    #[inline]
    fn watch_device(&mut self) {
        let state = &mut self.command_queueing;
        state.peak = state.peak.max(self.in_driver);
        if TREES && state.found == Some(true) {
            return;
        }
        if self.nr_queued <= FEW_REQUESTS && self.in_driver <= FEW_REQUESTS {
            return;
        }
        if TREES {
            // Idling for a shallow queue keeps the device from filling.
            if let Some(active) = self.active.map(|id| &self.queues[id]) {
                if active.idle_window
                    && active.dispatched + active.held.fifo.len() < FEW_REQUESTS
                    && self.in_driver < FEW_REQUESTS
                {
                    return;
                }
            }
        }
        state.samples += 1;
        if state.samples <= SAMPLES {
            return;
        }
        state.found = Some(state.peak >= FEW_REQUESTS);
        if !TREES {
            state.samples = 0;
            state.peak = 0;
        }
    }

    /// Learns from a request that has just been inserted.
    #[inline]
    pub(super) fn learn(
        &mut self,
        requests: &Requests,
        inserted: RequestId,
        id: QueueId,
        now_ns: u64,
    ) {
        let settings = self.settings;
        let request = &requests[inserted];
        let queue = &mut self.queues[id];
        if TREES {
            let group = &mut self.groups[queue.group];
            if queue.sync {
                if let Some(place) = queue.place {
                    group.trees[place.tree].think.add(now_ns, settings.slice_idle_ns);
                }
            }
            group.think.add(now_ns, settings.group_idle_ns);
            queue.learn_seek(request.sector, request.nr_sectors, self.rotational);
        } else {
            queue.learn_seek_distance(request.sector, request.nr_sectors, now_ns);
        }
        if !queue.sync {
            return;
        }
        if let Some(think) = self.contexts.think(request.context) {
            think.add(now_ns, settings.slice_idle_ns);
        }
        self.judge_idle_window(requests, request.context, id);
    }

    /// True if the queue is worth idling for (`cfq_update_idle_window`).
    fn judge_idle_window(&mut self, requests: &Requests, task: u32, id: QueueId) {
        let alive = self.contexts.is_alive(task);
        let slice_idle_ns = self.settings.slice_idle_ns;
        let queueing = self.command_queueing.is_there();
        let queue = &mut self.queues[id];
        if queue.is_idle_class() {
            return;
        }
        if queue.held.fifo.len() >= DEEP {
            queue.deep = true;
        }
        let seeky = if TREES { queue.has_many_seeks() } else { queue.has_long_seeks() };
        let hopeless = if TREES {
            seeky && !queue.deep
        } else {
            seeky && !self.settings.low_latency && queueing
        };
        // Nobody follows up a sync write such as one of fsync.
        let next_is_last = TREES && queue.next.is_some_and(|next| ends_a_series(&requests[next]));
        let Some(think) = self.contexts.think(task) else { return };
        if next_is_last || !alive || slice_idle_ns == 0 || hopeless {
            queue.idle_window = false;
        } else if think.is_known() {
            let short = !TREES && seeky && queue.seek_distance_is_known();
            let limit_ns = if short { SEEKY_IDLE_NS } else { slice_idle_ns };
            queue.idle_window = !think.exceeds(limit_ns);
        }
    }

    /// True if the disk may idle for the queue: it has the idle window, or it is the last of its
    /// tree and that tree thinks fast (`cfq_should_idle`).
    #[inline]
    pub(super) fn deserves_idling(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let slice_idle_ns = self.settings.slice_idle_ns;
        if slice_idle_ns == 0 || queue.is_idle_class() {
            return false;
        }
        let fast_device = !self.rotational && self.command_queueing.is_there();
        if queue.idle_window && !fast_device {
            return true;
        }
        let Some(place) = queue.place else { return false };
        let tree = &self.groups[queue.group].trees[place.tree];
        tree.len() == 1 && queue.sync && !tree.think.exceeds(slice_idle_ns)
    }

    /// A request is done.
    pub(super) fn completed(&mut self, cx: &mut Context, request_id: u32) {
        let now_ns = cx.now_ns();
        self.watch_device();
        let request = &cx.requests[request_id];
        let (id, task) = (request.queue, request.context);
        let sync = request.flags.sync;
        let slow = now_ns >= request.inserted_ns.saturating_add(self.settings.fifo_expire_sync_ns);
        let is_last = ends_a_series(request);
        let queue = &mut self.queues[id];
        queue.dispatched -= 1;
        let group = &mut self.groups[queue.group];
        group.dispatched -= 1;
        group.think.ended(now_ns as i64);
        self.in_driver -= 1;
        self.in_flight[usize::from(queue.sync)] -= 1;
        if sync {
            if let Some(think) = self.contexts.think(task) {
                think.ended(now_ns as i64);
            }
            if TREES {
                let tree = match queue.place {
                    Some(place) => place.tree,
                    None => tree_of(queue.priority.class, Self::workload_of(queue)),
                };
                group.trees[tree].think.ended(now_ns as i64);
            }
            if slow || !TREES {
                self.last_delayed_sync_ns = now_ns as i64;
            }
        }
        if self.active == Some(id) {
            self.active_completed(cx, id, sync, is_last);
        } else {
            self.forget(id);
        }
    }

    /// A request of the active queue is done.
    fn active_completed(&mut self, cx: &mut Context, id: QueueId, sync: bool, is_last: bool) {
        let now_ns = cx.now_ns();
        if self.queues[id].slice_is_new {
            self.start_slice(id, now_ns);
        }
        if TREES && self.should_extend(id, now_ns) {
            let settings = &self.settings;
            let idle_ns = match settings.slice_idle_ns {
                0 => settings.group_idle_ns,
                idle_ns => idle_ns,
            };
            let queue = &mut self.queues[id];
            queue.slice_end_ns = now_ns.saturating_add(idle_ns);
            queue.extended = true;
        }
        let queue = &self.queues[id];
        if queue.slice_is_used(now_ns) || queue.is_idle_class() {
            self.expire(id, now_ns, true);
        } else if sync
            && queue.is_empty()
            && (TREES || !is_last)
            && self.close_neighbour(id).is_none()
        {
            self.idle_for(cx, id);
        }
    }

    /// Extends the slice of a group's only queue when it is about to run out, so that the group
    /// keeps its place.
    fn should_extend(&mut self, id: QueueId, now_ns: u64) -> bool {
        let queue = &self.queues[id];
        let group = &self.groups[queue.group];
        if !queue.is_empty()
            || group.nr_queues > 1
            || group.think.exceeds(self.settings.group_idle_ns)
        {
            return false;
        }
        let left_ns = queue.slice_left_ns(now_ns);
        let thinks_longer = self
            .active_task
            .and_then(|task| self.contexts.think(task))
            .is_some_and(|think| think.exceeds(left_ns));
        left_ns <= self.tick_ns || thinks_longer
    }

    /// Begins to idle for the active queue's next request, if that pays (`cfq_arm_slice_timer`).
    fn idle_for(&mut self, cx: &mut Context, id: QueueId) {
        let now_ns = cx.now_ns();
        let settings = self.settings;
        let fast_device = !self.rotational && self.command_queueing.is_there();
        if fast_device && (!TREES || settings.group_idle_ns == 0) {
            return;
        }
        let queue = &self.queues[id];
        let by_queue = if TREES {
            self.deserves_idling(id)
        } else {
            settings.slice_idle_ns > 0 && queue.idle_window
        };
        if !by_queue && settings.group_idle_ns == 0 {
            return;
        }
        let busy = if TREES { queue.dispatched > 0 } else { self.in_driver > 0 };
        let Some(task) = self.active_task.filter(|task| self.contexts.is_alive(*task)) else {
            return;
        };
        let left_ns = queue.slice_left_ns(now_ns);
        if busy || self.contexts.think(task).is_some_and(|think| think.exceeds(left_ns)) {
            return;
        }
        let queue = &self.queues[id];
        if !by_queue {
            let tree_thinks = queue.place.is_some_and(|place| {
                let tree = &self.groups[queue.group].trees[place.tree];
                tree.think.exceeds(settings.group_idle_ns)
            });
            if self.groups[queue.group].nr_queues > 1 || tree_thinks {
                return;
            }
        }
        let idle_ns = if !by_queue {
            settings.group_idle_ns
        } else if !TREES && queue.seek_distance_is_known() && queue.has_long_seeks() {
            settings.slice_idle_ns.min(SEEKY_IDLE_NS)
        } else {
            settings.slice_idle_ns
        };
        self.queues[id].awaited = true;
        self.timer.set(cx, now_ns.saturating_add(idle_ns));
    }
}
