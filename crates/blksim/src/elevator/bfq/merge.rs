//! The queue of each request, and queues that several processes share.
//!
//! Processes that read interleaved parts of one sequential stream are served best from one queue:
//! within 100 ms of its first I/O a queue is merged into one that will soon read close by, and
//! split again once their common queue seeks. Queues created together, with the same priority, by
//! processes of one group are merged for good (stable merge): at once on fast devices, where
//! separate queues gain nothing, otherwise after 600 ms if idling does not pay. Idling does not pay
//! while any queue is raised: with `low_latency`, two sequential readers that start together on a
//! disk end in one seeking queue.
//!
//! Kernel: `bfq_init_rq`, `bfq_setup_cooperator`, `bfq_merge_bfqqs`,
//! `bfq_split_bfqq`, `bfq_do_or_sched_stable_merge` in `block/bfq-iosched.c`,
//! Linux 6.1.

use super::Bfq;
use super::hierarchy::{Entity, GroupId, Owner, QueueId};
use super::queue::{MS, Queue, level_of, weight_of};
use super::weight_raising::BURST_NS;
use crate::block::request::{Priority, PriorityClass, Request, RequestId, Requests};
use crate::elevator::scheduler::Context;

/// Sectors between requests that are close.
pub(super) const CLOSE_SECTORS: u64 = 8192;
const MERGE_WITHIN_NS: i64 = 100 * MS;
/// Queues created within this time of one another wait before a stable merge.
const TOGETHER_NS: i64 = 600 * MS;
const STABLE_MERGE_AFTER_NS: i64 = 600 * MS;

fn async_slot(priority: Priority) -> usize {
    match priority.class {
        PriorityClass::Idle => 16,
        class => class as usize * 8 + level_of(priority),
    }
}

impl Bfq {
    /// The queue that a bio would go to, if it exists.
    #[inline]
    pub(super) fn queue_for_merge(&self, bio: &Request) -> Option<QueueId> {
        if bio.flags.sync {
            self.processes.get(bio.context as usize)?.sync
        } else {
            self.async_queues.get(usize::from(bio.group))?[async_slot(bio.priority)]
        }
    }

    /// The async queue of the process that owns queue `q`.
    pub(super) fn async_queue_of(&self, q: QueueId) -> Option<QueueId> {
        let queue = self.queue(q);
        self.async_queues.get(usize::from(queue.group))?[async_slot(queue.priority)]
    }

    /// The queue of a request, created if necessary (`bfq_init_rq`).
    #[inline]
    pub(super) fn queue_of_request(&mut self, cx: &Context, id: RequestId, now_ns: i64) -> QueueId {
        let request = &cx.requests[id];
        let (context, group, priority) = (request.context, request.group, request.priority);
        if usize::from(group) >= self.async_queues.len() {
            self.know_groups(cx, group);
        }
        let index = context as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Default::default);
        }
        self.processes[index].requests += 1;
        if !request.flags.sync {
            let slot = async_slot(priority);
            let q = match self.async_queues[usize::from(group)][slot] {
                Some(q) => q,
                None => self.create(group, false, priority, now_ns),
            };
            self.async_queues[usize::from(group)][slot] = Some(q);
            self.hierarchy.allocated(self.queue(q).entity, true);
            return q;
        }
        let q = self.sync_queue(context, group, priority, now_ns);
        let q = self.cooperate(cx.requests, q, id);
        self.hierarchy.allocated(self.queue(q).entity, true);
        q
    }

    /// The queue of a process, created or split off if necessary.
    #[inline]
    fn sync_queue(
        &mut self,
        context: u32,
        group: GroupId,
        priority: Priority,
        now_ns: i64,
    ) -> QueueId {
        let process = &self.processes[context as usize];
        let mut split = None;
        let q = match process.sync {
            Some(q) => {
                let queue = &self.queues[q as usize];
                if queue.group != group {
                    self.detach(q, context);
                    self.create_for(context, group, priority, now_ns)
                } else if queue.shared && queue.split_wanted && !process.stably_merged {
                    let own = self.split(q, context, now_ns);
                    split = Some(own == q);
                    own
                } else {
                    if !queue.shared && queue.priority != priority {
                        self.reprioritise(q, priority);
                    }
                    q
                }
            }
            None => self.create_for(context, group, priority, now_ns),
        };
        let queue = &mut self.queues[q as usize];
        let just_created = queue.just_created;
        if queue.merged_into.is_none() && queue.processes == 1 {
            queue.context = Some(context);
            if let Some(existed) = split {
                self.resume(q, context, existed);
            }
        }
        if just_created && (self.burst.size > 0 || self.nr_busy() == 0) {
            self.note_burst(q);
        }
        q
    }

    fn create(&mut self, group: GroupId, sync: bool, priority: Priority, now_ns: i64) -> QueueId {
        let recycled = self.free.pop();
        let id = recycled.unwrap_or(self.queues.len() as QueueId);
        let entity = Entity::new(Owner::Queue(id), group, priority.class, weight_of(priority));
        let number = match recycled {
            Some(id) => {
                let number = self.queue(id).entity;
                self.hierarchy.replace(number, entity);
                number
            }
            None => self.hierarchy.add(entity),
        };
        let mut queue = Queue::new(number, group, sync, priority, now_ns, self.hierarchy.tick_ns);
        queue.max_budget = self.assigned_max_budget() * 2 / 3;
        // The kernel sets the end of the last request, which there was not, a nanosecond ahead.
        // If computing takes no time, the first request comes before that: its think time is
        // endless, and the queue is no longer I/O-bound. Real processors take longer.
        queue.last_end_ns += i64::from(self.settings.zero_cpu_time);
        if recycled.is_some() {
            self.queues[id as usize] = queue;
        } else {
            self.queues.push(queue);
        }
        id
    }

    /// Creates a sync queue for a process.
    fn create_for(
        &mut self,
        context: u32,
        group: GroupId,
        priority: Priority,
        now_ns: i64,
    ) -> QueueId {
        let q = self.create(group, true, priority, now_ns);
        self.attach(q, context);
        self.stable_merge(q, context)
    }

    fn attach(&mut self, q: QueueId, context: u32) {
        self.queue_mut(q).processes += 1;
        self.processes[context as usize].sync = Some(q);
    }

    /// A process leaves a queue, and drops the queue that it was to merge into.
    fn detach(&mut self, q: QueueId, context: u32) {
        self.processes[context as usize].sync = None;
        if self.queue(q).context == Some(context) {
            self.queue_mut(q).context = None;
        }
        let mut ahead = self.queue(q).merged_into;
        while let Some(into) = ahead {
            ahead = self.queue(into).merged_into;
            self.release_process(into);
        }
        self.leave_company(q, None);
    }

    /// One process fewer uses a queue; the queue last created may change.
    fn leave_company(&mut self, q: QueueId, instead: Option<QueueId>) {
        let group = usize::from(self.queue(q).group);
        if self.last_created[group] == Some(q) {
            self.last_created[group] = instead;
        }
        if self.queue(q).busy && self.queue(q).is_empty() && self.in_service != Some(q) {
            self.no_longer_busy(q, false);
        }
        self.release_process(q);
    }

    fn release_process(&mut self, q: QueueId) {
        let queue = self.queue_mut(q);
        queue.processes = queue.processes.saturating_sub(1);
        self.release_if_unused(q);
    }

    /// Frees unused queues that no tree remembers.
    #[inline]
    pub(super) fn release_forgotten(&mut self) {
        while let Some(q) = self.hierarchy.forgotten.pop() {
            self.release_if_unused(q);
        }
    }

    /// Frees an unused queue.
    #[inline]
    pub(super) fn release_if_unused(&mut self, q: QueueId) {
        let queue = self.queue(q);
        if queue.sync && queue.processes == 0 {
            self.release_abandoned(q);
        }
    }

    fn release_abandoned(&mut self, q: QueueId) {
        let queue = self.queue(q);
        let needed = queue.nr_stable > 0
            || queue.busy
            || self.in_service == Some(q)
            || !self.hierarchy.entities[queue.entity as usize].is_unused();
        if needed || queue.freed {
            return;
        }
        self.leave_burst_list(q);
        self.forget_waker(q);
        for woken in std::mem::take(&mut self.queue_mut(q).woken) {
            self.queue_mut(woken).waker = None;
        }
        if self.last_completed == Some(q) {
            self.last_completed = None;
        }
        // The kernel leaves such pointers to the next queue in its place.
        for other in &mut self.queues {
            for link in [&mut other.tentative_waker, &mut other.merged_into] {
                if *link == Some(q) {
                    *link = None;
                }
            }
        }
        self.queue_mut(q).freed = true;
        self.free.push(q);
    }

    fn reprioritise(&mut self, q: QueueId, priority: Priority) {
        let queue = &mut self.queues[q as usize];
        queue.priority = priority;
        let entity = &mut self.hierarchy.entities[queue.entity as usize];
        entity.new_weight = weight_of(priority);
        entity.new_class = priority.class;
        entity.changed = true;
    }

    /// A queue of its own for a process whose shared one is split: that queue itself for its last
    /// user.
    fn split(&mut self, q: QueueId, context: u32, now_ns: i64) -> QueueId {
        let queue = self.queue(q);
        let (group, priority, large_burst) = (queue.group, queue.priority, queue.wr.in_large_burst);
        let waker = self.waker_after_split(q);
        if large_burst {
            self.processes[context as usize].saved.in_large_burst = true;
        }
        let queue = self.queue_mut(q);
        if queue.processes == 1 && queue.merged_into.is_none() {
            queue.shared = false;
            queue.split_wanted = false;
            return q;
        }
        self.detach(q, context);
        let own = self.create(group, true, priority, now_ns);
        self.attach(own, context);
        let saved = &self.processes[context as usize].saved;
        let (was_in_burst, in_large) = (saved.in_burst, saved.in_large_burst);
        let large = (was_in_burst && self.burst.large) || in_large;
        self.queue_mut(own).wr.in_large_burst = large;
        if !large && was_in_burst {
            self.join_burst_list(own);
        }
        self.queue_mut(own).split_ns = self.hierarchy.tick_ns;
        if let Some(waker) = waker {
            self.set_waker(own, waker);
        }
        own
    }

    /// The waker of a queue that is split off from `q`.
    fn waker_after_split(&self, q: QueueId) -> Option<QueueId> {
        let waker = self.queue(q).waker?;
        let mut ahead = self.queue(q).merged_into;
        while let Some(into) = ahead {
            if into == waker {
                return (self.queue(waker).processes != 1).then_some(waker);
            }
            ahead = self.queue(into).merged_into;
        }
        (self.queue(waker).processes > 0).then_some(waker)
    }

    /// Sends all processes of `q` to `into`, or to the queue that `into` merges into, with their
    /// next requests (`bfq_setup_merge`).
    fn plan_merge(&mut self, q: QueueId, into: QueueId) -> Option<QueueId> {
        if self.queue(into).processes == 0 {
            return None;
        }
        let mut into = into;
        while let Some(further) = self.queue(into).merged_into {
            if further == q {
                return None;
            }
            into = further;
        }
        let processes = self.queue(q).processes;
        if processes == 0
            || self.queue(into).processes == 0
            || self.queue(q).group != self.queue(into).group
        {
            return None;
        }
        self.queue_mut(q).merged_into = Some(into);
        self.queue_mut(into).processes += processes;
        Some(into)
    }

    /// Moves a process from queue `q` to the one that its processes go to.
    fn merge(&mut self, q: QueueId, into: QueueId, context: u32) {
        self.save(q);
        self.save(into);
        if std::mem::take(&mut self.queue_mut(q).io_bound) {
            self.queue_mut(into).io_bound = true;
        }
        if let (Some(waker), None) = (self.queue(q).waker, self.queue(into).waker) {
            if waker != into {
                self.set_waker(into, waker);
            }
        }
        let wr_coeff = self.wr_coeff(q);
        if wr_coeff > 1 {
            if !self.is_raised(into) {
                let wr = self.queue(q).wr;
                self.queue_mut(into).wr.take_period(&wr);
                self.set_wr_coeff(into, wr_coeff);
            }
            self.set_wr_coeff(q, 1);
        }
        let process = &mut self.processes[context as usize];
        process.sync = Some(into);
        if process.stable_merge == Some(into) {
            process.stable_merge = None;
            self.queue_mut(into).nr_stable -= 1;
        }
        self.queue_mut(q).context = None;
        let queue = self.queue_mut(into);
        queue.shared = true;
        queue.context = None;
        self.leave_company(q, Some(into));
    }

    /// A queue was created: one created shortly before, with the same priority, is the one to merge
    /// it with.
    fn stable_merge(&mut self, q: QueueId, context: u32) -> QueueId {
        let group = usize::from(self.queue(q).group);
        let close = self.last_created[group].filter(|last| {
            let (last, queue) = (self.queue(*last), self.queue(q));
            last.created_ns + TOGETHER_NS >= queue.created_ns && last.priority == queue.priority
        });
        let Some(last) = close else {
            self.last_created[group] = Some(q);
            return q;
        };
        if self.queue(last).created_ns + BURST_NS < self.queue(q).created_ns {
            return q;
        }
        if !self.fast {
            self.processes[context as usize].stable_merge = Some(last);
            self.queue_mut(last).nr_stable += 1;
            return q;
        }
        let Some(into) = self.plan_merge(q, last) else { return q };
        self.mark_stable(into, context);
        self.queue_mut(q).context = Some(context);
        self.merge(q, into, context);
        into
    }

    fn mark_stable(&mut self, into: QueueId, context: u32) {
        if let Some(other) = self.queue(into).context {
            self.processes[other as usize].stably_merged = true;
        }
        self.processes[context as usize].stably_merged = true;
    }

    /// Merges a queue that gets a request with one that it cooperates with, if there is one
    /// (`bfq_setup_cooperator`).
    #[inline]
    fn cooperate(&mut self, requests: &Requests, q: QueueId, id: RequestId) -> QueueId {
        if self.fast && self.queue(q).merged_into.is_none() {
            return q;
        }
        let Some(into) = self.cooperator(requests, q, id) else { return q };
        let context = requests[id].context;
        if self.processes[context as usize].sync == Some(q) {
            let mut at = q;
            while at != into {
                let Some(next) = self.queue(at).merged_into else { break };
                self.merge(at, next, context);
                at = next;
            }
        }
        self.queue_mut(q).just_created = false;
        into
    }

    fn cooperator(&mut self, requests: &Requests, q: QueueId, id: RequestId) -> Option<QueueId> {
        if let Some(mut into) = self.queue(q).merged_into {
            while let Some(further) = self.queue(into).merged_into {
                into = further;
            }
            return Some(into);
        }
        if self.fast {
            return None;
        }
        let (context, sector) = (requests[id].context, requests[id].sector);
        let tick_ns = self.hierarchy.tick_ns;
        let queue = self.queue(q);
        if let Some(other) = self.processes[context as usize].stable_merge {
            if !queue.just_created
                && queue.split_ns + STABLE_MERGE_AFTER_NS < tick_ns
                && queue.created_ns + STABLE_MERGE_AFTER_NS < tick_ns
            {
                self.processes[context as usize].stable_merge = None;
                self.queue_mut(other).nr_stable -= 1;
                let used = self.queue(q).processes.min(self.queue(other).processes) > 0;
                let into = if used && !self.waiting_pays(self.queue(q)) {
                    self.plan_merge(q, other)
                } else {
                    self.release_if_unused(other);
                    None
                };
                if let Some(into) = into {
                    self.mark_stable(into, context);
                }
                return into;
            }
        }
        if self.is_old(q) || self.nr_busy() == 1 {
            return None;
        }
        if let Some(current) = self.in_service {
            if current != q
                && sector.abs_diff(self.slot_last_sector) <= CLOSE_SECTORS
                && self.queue(q).group == self.queue(current).group
                && self.may_cooperate(q, current)
            {
                let into = self.plan_merge(q, current);
                if into.is_some() {
                    return into;
                }
            }
        }
        let close = self.positions.close_to(requests, &self.queues, self.queue(q).group, sector)?;
        if close != q && self.may_cooperate(q, close) {
            return self.plan_merge(q, close);
        }
        None
    }

    /// True if it has done I/O for too long to have new cooperators.
    pub(super) fn is_old(&self, q: QueueId) -> bool {
        let queue = self.queue(q);
        queue.service_from_backlogged > 0
            && queue.first_io_ns + MERGE_WITHIN_NS < self.hierarchy.tick_ns
    }

    fn may_cooperate(&self, q: QueueId, other: QueueId) -> bool {
        let (a, b) = (self.queue(q), self.queue(other));
        !self.is_old(other)
            && a.priority.class == b.priority.class
            && !a.is_idle_class()
            && a.sync
            && b.sync
            && !a.is_seeky()
            && !b.is_seeky()
    }

    /// A process has ended.
    pub(super) fn process_ended(&mut self, cx: &mut Context, context: u32) {
        let Some(process) = self.processes.get_mut(context as usize) else { return };
        if let Some(other) = process.stable_merge.take() {
            self.queue_mut(other).nr_stable -= 1;
            self.release_if_unused(other);
        }
        let Some(q) = self.processes[context as usize].sync else { return };
        if self.in_service == Some(q) {
            self.leave_service(cx.requests, q, super::budget::Reason::Timeout);
            cx.kick();
        }
        self.detach(q, context);
    }
}
