//! The active queue: its choice, its right to dispatch, and the request that it dispatches.

use super::Cfq;
use super::group::{Workload, tree_of};
use super::queue::QueueId;
use super::settings::CLOSE_SECTORS;
use crate::block::request::{PriorityClass, RequestId, Requests};

/// The next step of the active queue.
enum Verdict {
    Serve,
    /// Nothing to serve now: a completion, a request or the timer decides again.
    Wait,
    /// Its turn ends; this queue is next, or the first in order.
    End(Option<QueueId>),
}

impl<const TREES: bool> Cfq<TREES> {
    /// The queue in service, if any.
    pub(super) fn select(&mut self, now_ns: u64) -> Option<QueueId> {
        let mut neighbour = None;
        if let Some(id) = self.active {
            match self.judge(id, now_ns) {
                Verdict::Serve => return Some(id),
                Verdict::Wait => return None,
                Verdict::End(next) => neighbour = next,
            }
            self.expire(id, now_ns, false);
        }
        if TREES && neighbour.is_none() {
            self.choose_group(now_ns);
        }
        let id = neighbour.or_else(|| self.first_queue())?;
        if self.active.is_none() {
            self.timer.cancel();
        }
        self.queues[id].begin_turn(now_ns);
        self.active = Some(id);
        self.active_task = None;
        Some(id)
    }

    fn judge(&mut self, id: QueueId, now_ns: u64) -> Verdict {
        let queue = &self.queues[id];
        let (empty, used) = (queue.is_empty(), queue.slice_is_used(now_ns));
        if TREES && queue.extended && !empty {
            return Verdict::End(None);
        }
        if used && !queue.must_dispatch {
            // A group whose only queue idled its slice away keeps the disk
            // until its request is done.
            let alone = TREES && self.groups[queue.group].nr_queues == 1;
            if alone && empty && queue.dispatched > 0 && self.deserves_idling(id) {
                return Verdict::Wait;
            }
            return self.wait_for_group(id);
        }
        if !empty {
            return Verdict::Serve;
        }
        if let Some(neighbour) = self.close_neighbour(id) {
            if self.queues[id].successor.is_none() {
                self.plan_merge(id, neighbour);
            }
            return Verdict::End(Some(neighbour));
        }
        if self.timer.is_set() {
            return Verdict::Wait;
        }
        if !TREES {
            let queue = &self.queues[id];
            let waits = queue.dispatched > 0 && queue.idle_window;
            return if waits { Verdict::Wait } else { Verdict::End(None) };
        }
        // A queue that seeks, and is not deep enough for this device, is not
        // worth idling for.
        let queue = &mut self.queues[id];
        if queue.has_many_seeks()
            && queue.idle_window
            && (queue.slice_is_new || queue.slice_left_ns(now_ns) > now_ns - queue.slice_start_ns)
        {
            queue.deep = false;
            queue.idle_window = false;
        }
        if queue.dispatched > 0 && self.deserves_idling(id) {
            return Verdict::Wait;
        }
        self.wait_for_group(id)
    }

    /// The last queue of a group keeps the disk from other groups while its group has requests in
    /// the device and thinks fast.
    fn wait_for_group(&self, id: QueueId) -> Verdict {
        let group = &self.groups[self.queues[id].group];
        let idle_ns = self.settings.group_idle_ns;
        let waits = TREES
            && idle_ns > 0
            && group.nr_queues == 1
            && group.dispatched > 0
            && !group.think.exceeds(idle_ns);
        if waits { Verdict::Wait } else { Verdict::End(None) }
    }

    /// Another queue of the same level whose next request is close to the head, which is better
    /// than idling (`cfq_close_cooperator`).
    pub(super) fn close_neighbour(&self, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let seeky = |id: QueueId| {
            let queue = &self.queues[id];
            if TREES { queue.has_many_seeks() } else { queue.has_long_seeks() }
        };
        if !queue.sync || seeky(id) || self.busy_queues < 2 {
            return None;
        }
        if TREES && (queue.is_idle_class() || self.groups[queue.group].nr_queues == 1) {
            return None;
        }
        let distance = if TREES { CLOSE_SECTORS } else { queue.expected_seek() };
        let level = &self.neighbours[usize::from(queue.priority.level)];
        let after = level.range((self.head, 0)..).find(|(_, other)| *other != id);
        let before = || level.range(..(self.head, 0)).next_back().filter(|(_, other)| *other != id);
        let is_close = |&&(sector, _): &&(u64, QueueId)| sector.abs_diff(self.head) <= distance;
        let &(_, other) = after.filter(is_close).or_else(|| before().filter(is_close))?;
        let neighbour = &self.queues[other];
        let suits = neighbour.group == queue.group
            && !seeky(other)
            && (!TREES || neighbour.is_real_time() == queue.is_real_time());
        suits.then_some(other)
    }

    /// The first queue of the workload in service.
    fn first_queue(&self) -> Option<QueueId> {
        let tree = if TREES { tree_of(self.serving_class, self.serving_workload) } else { 0 };
        self.groups[self.serving_group].trees[tree].first().map(|(_, id)| id)
    }

    /// Chooses the group with the least virtual time, and its workload (`cfq_choose_cfqg`).
    fn choose_group(&mut self, now_ns: u64) {
        let Some(group) = self.groups.first() else { return };
        self.serving_group = group;
        match self.groups[group].saved {
            Some((class, workload, left_ns)) => {
                self.serving_class = class;
                self.serving_workload = workload;
                self.workload_end_ns = now_ns + left_ns;
            }
            None => self.workload_end_ns = now_ns.saturating_sub(1),
        }
        self.choose_workload(now_ns);
    }

    /// Real time goes before best effort before idle. Within a class the current kind continues
    /// until its turn is over; then the kind whose first queue is due first
    /// (`choose_wl_class_and_type`).
    fn choose_workload(&mut self, now_ns: u64) {
        let group = &self.groups[self.serving_group];
        let before = self.serving_class;
        let class = if group.nr_busy(PriorityClass::RealTime) > 0 {
            PriorityClass::RealTime
        } else if group.nr_busy(PriorityClass::BestEffort) > 0 {
            PriorityClass::BestEffort
        } else {
            self.serving_class = PriorityClass::Idle;
            self.workload_end_ns = now_ns + self.tick_ns;
            return;
        };
        self.serving_class = class;
        let current = group.trees[tree_of(class, self.serving_workload)].len();
        if class == before && current > 0 && now_ns <= self.workload_end_ns {
            return;
        }
        let due = |workload: &Workload| group.trees[tree_of(class, *workload)].first();
        let workload = Workload::ALL
            .into_iter()
            .filter_map(|workload| due(&workload).map(|(key, _)| (key, workload)))
            .min_by_key(|(key, _)| *key)
            .map_or(Workload::Sync, |(_, workload)| workload);
        self.serving_workload = workload;
        self.workload_end_ns = now_ns.saturating_add(self.workload_turn_ns(class, workload));
    }

    /// The turn of a kind of queues, in proportion to its queues.
    fn workload_turn_ns(&self, class: PriorityClass, workload: Workload) -> u64 {
        let settings = &self.settings;
        let group = &self.groups[self.serving_group];
        let part = |whole_ns: u64, part: u64, of: u64| {
            (u128::from(whole_ns) * u128::from(part) / u128::from(of.max(1))) as u64
        };
        let count = group.trees[tree_of(class, workload)].len() as u64;
        let all = group.average_busy(class).max(group.nr_busy(class));
        let turn_ns = part(self.group_slice_ns(self.serving_group), count, all);
        let turn_ns = if workload == Workload::Async {
            let share_ns = part(
                settings.target_latency_ns,
                group.nr_busy_async(),
                u64::from(self.busy_queues),
            );
            part(turn_ns.min(share_ns), settings.slice_async_ns, settings.slice_sync_ns)
        } else {
            turn_ns.max(2 * settings.slice_idle_ns)
        };
        turn_ns.max(2 * self.tick_ns)
    }

    /// The oldest request of a queue if its deadline is past. It is checked once in a slice
    /// (`cfq_check_fifo`).
    pub(super) fn overdue(
        &mut self,
        requests: &Requests,
        id: QueueId,
        now_ns: u64,
    ) -> Option<RequestId> {
        let queue = &mut self.queues[id];
        if std::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        queue.held.fifo.head().filter(|&oldest| requests[oldest].deadline_ns <= now_ns)
    }

    /// True if the active queue may have one more request in the device (`cfq_may_dispatch`).
    #[inline]
    pub(super) fn may_dispatch(&self, id: QueueId, now_ns: u64) -> bool {
        let queue = &self.queues[id];
        if TREES && queue.must_dispatch {
            return true;
        }
        let [async_in_flight, sync_in_flight] = self.in_flight;
        let drains =
            async_in_flight > 0 && if TREES { self.deserves_idling(id) } else { queue.idle_window };
        if drains || sync_in_flight > 0 && !queue.sync {
            return false;
        }
        let dispatched = u64::from(queue.dispatched);
        let mut limit = match (queue.is_idle_class(), TREES) {
            (true, _) => 1,
            (false, true) => (self.settings.quantum / 2).max(1),
            (false, false) => self.settings.quantum,
        };
        if dispatched >= limit {
            if queue.is_idle_class() {
                return false;
            }
            if TREES {
                let only_sync = queue.sync && self.busy_sync_queues == 1;
                if self.busy_queues > 1 && !only_sync && self.slice_ends_soon(id, now_ns) {
                    return false;
                }
                limit = if self.busy_queues == 1 || only_sync {
                    u64::MAX
                } else {
                    self.settings.quantum
                };
            } else if self.busy_queues > 1 {
                return false;
            } else {
                limit *= 4;
            }
        }
        if !queue.sync && self.settings.low_latency {
            // The longer sync requests have not been held up, the more async
            // ones may go at once.
            let quiet_ns = now_ns.saturating_add_signed(-self.last_delayed_sync_ns);
            let depth = quiet_ns / self.settings.slice_sync_ns;
            let depth = if depth == 0 && dispatched == 0 { 1 } else { depth };
            limit = limit.min(depth);
        }
        dispatched < limit
    }

    /// True if the requests in the device will probably use up the slice.
    fn slice_ends_soon(&self, id: QueueId, now_ns: u64) -> bool {
        let queue = &self.queues[id];
        let expected_ns = self.settings.slice_idle_ns.saturating_mul(u64::from(queue.dispatched));
        queue.slice_is_new || now_ns.saturating_add(expected_ns) > queue.slice_end_ns
    }

    pub(super) fn hand_out(
        &mut self,
        requests: &mut Requests,
        id: QueueId,
        request: RequestId,
        now_ns: u64,
    ) {
        let next = self.following(requests, id, request);
        self.queues[id].held.remove(requests, request);
        self.set_next(requests, id, next);
        let queue = &mut self.queues[id];
        queue.dispatched += 1;
        queue.slice_dispatched += 1;
        queue.must_dispatch = false;
        if std::mem::take(&mut queue.awaited) {
            self.timer.cancel();
        }
        let (sync, idle_class, level) = (queue.sync, queue.is_idle_class(), queue.priority.level);
        let over = !sync && queue.slice_dispatched >= self.settings.max_async_requests(level);
        self.groups[queue.group].dispatched += 1;
        self.in_flight[usize::from(sync)] += 1;
        self.in_driver += 1;
        self.nr_queued -= 1;
        self.head = requests[request].end();
        self.active_task.get_or_insert(requests[request].context);
        if self.busy_queues > 1 && (over || idle_class) {
            self.queues[id].slice_end_ns = now_ns + 1;
            self.expire(id, now_ns, false);
        }
    }
}
