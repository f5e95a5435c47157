//! The order of turns: keys of queues in their trees, lengths of slices, and the end of a turn.

use super::Cfq;
use super::group::{FRACTION_BITS, Place, Workload, tree_of};
use super::queue::{Queue, QueueId};
use super::settings::rank;
use crate::block::request::{PriorityClass, RequestId, Requests};

/// Distance of a queue of class IDLE behind the last one of its tree.
const IDLE_DELAY_NS: i64 = 200_000_000;
/// Distance of a queue that is put in front of the first.
const FRONT_NS: i64 = 1_000_000_000;
/// Distance in virtual time of a group that comes back behind the last; where requests are charged,
/// as many as there are ticks in it.
const GROUP_DELAY_TIME: u64 = 200_000_000;

impl<const TREES: bool> Cfq<TREES> {
    /// The kind of a queue, which selects its tree.
    #[inline]
    pub(super) fn workload_of(queue: &Queue) -> Workload {
        match (queue.sync, queue.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::SyncNoIdle,
            (true, true) => Workload::Sync,
        }
    }

    /// A queue that had no requests has one now.
    pub(super) fn queue_becomes_busy(&mut self, id: QueueId, now_ns: u64) {
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(self.queues[id].sync);
        self.enter_tree(id, now_ns, false);
    }

    /// A queue without requests leaves the order of turns.
    pub(super) fn queue_becomes_idle(&mut self, id: QueueId) {
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(self.queues[id].sync);
        self.leave_tree(id);
        let queue = &mut self.queues[id];
        if let Some((level, sector)) = queue.found_at.take() {
            self.neighbours[usize::from(level)].remove(&(sector, id));
        }
        if TREES {
            self.groups.queue_removed(queue.group);
        }
    }

    fn leave_tree(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if let Some(place) = queue.place.take() {
            self.groups[queue.group].trees[place.tree].remove(place, id);
        }
    }

    /// Places a queue in its tree: behind those that are due before it, or in front of all
    /// (`cfq_service_tree_add`).
    pub(super) fn enter_tree(&mut self, id: QueueId, now_ns: u64, to_front: bool) {
        let queue = &mut self.queues[id];
        let group = &self.groups[queue.group];
        let tree = if TREES { tree_of(queue.priority.class, Self::workload_of(queue)) } else { 0 };
        let rank = if TREES { 0 } else { rank(queue.priority.class) };
        let now = now_ns as i64;
        let key = if to_front {
            group.trees[tree].first().map_or(now, |(key, _)| key) - FRONT_NS
        } else if queue.is_idle_class() {
            match group.trees[tree].last() {
                Some((key, last)) if last != id && self.is_idle_class(last) => key + IDLE_DELAY_NS,
                _ => now + IDLE_DELAY_NS,
            }
        } else {
            // The worse the level, the further back among the others.
            let others = i64::from(if TREES { group.nr_queues } else { self.busy_queues }) - 1;
            let offset = self.settings.slice_offset_ns(queue.sync, queue.priority.level);
            now.saturating_add(others.saturating_mul(offset))
                .saturating_sub(std::mem::take(&mut self.queues[id].residual_ns))
        };
        let known = self.queues[id].place;
        if TREES && known.is_some_and(|place| place.tree == tree && place.key == key) {
            return;
        }
        self.sequence += 1;
        let place = Place { tree, rank, key, sequence: self.sequence };
        self.leave_tree(id);
        let queue = &mut self.queues[id];
        queue.place = Some(place);
        let group = queue.group;
        self.groups[group].trees[tree].insert(place, id);
        if TREES && known.is_none() && !to_front {
            let ticks = GROUP_DELAY_TIME / self.tick_ns;
            let delay = if self.counts_requests() { ticks } else { GROUP_DELAY_TIME };
            self.groups.queue_added(group, delay);
        }
    }

    fn is_idle_class(&self, id: QueueId) -> bool {
        self.queues[id].is_idle_class()
    }

    /// Sets the next request of a queue, and its place in the tree of positions.
    #[inline]
    pub(super) fn set_next(&mut self, requests: &Requests, id: QueueId, next: Option<RequestId>) {
        let queue = &mut self.queues[id];
        queue.next = next;
        if !queue.sync {
            return;
        }
        let found_at = next.map(|next| (queue.priority.level, requests[next].sector));
        if found_at == queue.found_at {
            return;
        }
        if let Some((level, sector)) = queue.found_at {
            self.neighbours[usize::from(level)].remove(&(sector, id));
        }
        if let Some((level, sector)) = found_at {
            self.neighbours[usize::from(level)].insert((sector, id));
        }
        queue.found_at = found_at;
    }

    /// The request that follows one that is about to leave the queue.
    #[inline]
    pub(super) fn following(
        &self,
        requests: &Requests,
        id: QueueId,
        request: RequestId,
    ) -> Option<RequestId> {
        let tree = &self.queues[id].held.tree;
        self.settings.back_seek.following(requests, tree, request, requests[request].sector)
    }

    /// A group's part of the time in which all queues take a turn.
    #[inline]
    pub(super) fn group_slice_ns(&self, group: u16) -> u64 {
        let whole = u128::from(self.settings.target_latency_ns);
        ((whole * u128::from(self.groups[group].fraction)) >> FRACTION_BITS) as u64
    }

    /// The slice of a queue. With many busy queues, `low_latency` shortens it so that all have a
    /// turn within `target_latency` (`cfq_scaled_cfqq_slice`).
    pub(super) fn scaled_slice_ns(&mut self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let slice_ns = self.settings.slice_ns(queue.sync, queue.priority.level);
        if !TREES || !self.settings.low_latency {
            return slice_ns;
        }
        let (group, class) = (queue.group, queue.priority.class);
        let busy = self.groups[group].smooth_busy(class);
        let sync_ns = self.settings.slice_sync_ns;
        let expected_ns = busy.saturating_mul(sync_ns);
        let group_ns = self.group_slice_ns(group);
        if expected_ns <= group_ns {
            return slice_ns;
        }
        let part = |value: u64, of: u64| {
            (u128::from(slice_ns) * u128::from(value) / u128::from(of)) as u64
        };
        let least_ns = slice_ns.min(part(2 * self.settings.slice_idle_ns, sync_ns));
        part(group_ns, expected_ns).max(least_ns)
    }

    /// Starts the active queue's slice.
    pub(super) fn start_slice(&mut self, id: QueueId, now_ns: u64) {
        let slice_ns = self.scaled_slice_ns(id);
        let queue = &mut self.queues[id];
        queue.slice_start_ns = now_ns;
        queue.slice_end_ns = now_ns.saturating_add(slice_ns);
        queue.allocated_ns = slice_ns;
        queue.slice_is_new = false;
    }

    /// Ends the turn of the active queue. With `save`, what is left of the slice or overdrawn goes
    /// into its next key (`cfq_slice_expired`).
    pub(super) fn expire(&mut self, id: QueueId, now_ns: u64, save: bool) {
        let queue = &mut self.queues[id];
        if queue.awaited {
            self.timer.cancel();
        }
        queue.awaited = false;
        queue.extended = false;
        if TREES && queue.shared && queue.has_many_seeks() {
            queue.to_split = true;
        }
        if save {
            if !queue.slice_is_new {
                queue.residual_ns = queue.slice_end_ns as i64 - now_ns as i64;
            } else if TREES {
                self.queues[id].residual_ns = self.scaled_slice_ns(id) as i64;
            }
        }
        if TREES {
            self.charge_group(id, now_ns);
        }
        if self.queues[id].place.is_some() {
            if self.queues[id].is_empty() {
                self.queue_becomes_idle(id);
            } else {
                self.enter_tree(id, now_ns, false);
            }
        }
        if self.active == Some(id) {
            self.active = None;
            self.active_task = None;
        }
        self.forget(id);
    }

    /// Charges a turn to the group, and keeps its workload.
    fn charge_group(&mut self, id: QueueId, now_ns: u64) {
        let queue = &self.queues[id];
        let group = &self.groups[queue.group];
        let nr_idle = group.nr_busy(PriorityClass::Idle);
        let nr_sync = u64::from(group.nr_queues).saturating_sub(group.nr_busy_async() + nr_idle);
        let charge = if self.counts_requests() {
            queue.slice_dispatched
        } else if !queue.sync && nr_sync == 0 {
            queue.allocated_ns
        } else {
            queue.used_ns(now_ns, self.tick_ns)
        };
        let group = queue.group;
        self.groups.charge(group, charge);
        let left_ns = self.workload_end_ns.saturating_sub(now_ns);
        self.groups[group].saved =
            (left_ns > 0).then_some((self.serving_class, self.serving_workload, left_ns));
    }
}
