//! Which queue a request goes to, and queues that several processes share.
//!
//! Processes that read interleaved parts of one sequential stream are served
//! best from one queue: within 100 ms of its first I/O a queue is merged into
//! one that is about to read close by, and taken apart again once their common
//! queue seeks. Queues created together, with the same priority, by processes
//! of one group are merged for good: at once on fast devices, where nothing is
//! gained by keeping them apart, otherwise after 600 ms if waiting does not pay.
//! The latter is so while anything is raised: two sequential readers that are
//! started at once on a disk, with `low_latency`, end in one seeking queue.
//!
//! Kernel: `bfq_setup_cooperator`, `bfq_merge_bfqqs`, `bfq_split_bfqq`,
//! `bfq_do_or_sched_stable_merge` in `block/bfq-iosched.c`, Linux 6.1.
//!
//! Simplified: all processes of a group count as started by the same parent.

use super::Bfq;
use super::entity::{Entity, GroupId, Owner, QueueId, ROOT};
use super::queue::{MS, Queue, Saved, level_of, weight_of};
use super::raise::BURST_NS;
use crate::request::{Priority, PriorityClass, Request, RequestId};
use crate::scheduler::Context;

/// Sectors between requests that are close.
const CLOSE_SECTORS: u64 = 8192;
const MERGE_WITHIN_NS: i64 = 100 * MS;
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

    /// The queue of a request, made if need be.
    #[inline]
    pub(super) fn queue_of_request(&mut self, cx: &Context, id: RequestId, now_ns: i64) -> QueueId {
        let request = &cx.requests[id];
        let (context, group, priority) = (request.context, request.group, request.priority);
        if usize::from(group) >= self.async_queues.len() {
            self.know_group(cx, group);
        }
        let index = context as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Default::default);
        }
        self.processes[index].requests += 1;
        if !request.flags.sync {
            let slot = async_slot(priority);
            if let Some(q) = self.async_queues[usize::from(group)][slot] {
                return q;
            }
            let q = self.create(group, false, priority, now_ns);
            self.queue_mut(q).just_created = false;
            self.async_queues[usize::from(group)][slot] = Some(q);
            return q;
        }
        let q = match self.processes[index].sync {
            Some(q) if self.queue(q).group == group => self.own_or_split(q, context, now_ns),
            Some(q) => {
                self.detach(q, context);
                self.create_for(context, group, priority, now_ns)
            }
            None => self.create_for(context, group, priority, now_ns),
        };
        if self.queue(q).priority != priority && !self.queue(q).shared {
            self.reprioritise(q, priority);
        }
        if self.settings.rotational || !self.fast {
            return self.cooperate(q, context, request, now_ns);
        }
        q
    }

    fn create(&mut self, group: GroupId, sync: bool, priority: Priority, now_ns: i64) -> QueueId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.queues.len() as QueueId,
        };
        let entity =
            Entity::new(Owner::Queue(id), group, priority.class as usize, weight_of(priority));
        let tick_ns = self.settings.tick(now_ns);
        let mut queue = if (id as usize) < self.queues.len() {
            let number = self.queues[id as usize].entity;
            self.hierarchy.entities[number as usize] = entity;
            Queue::new(number, group, sync, priority, now_ns, tick_ns)
        } else {
            Queue::new(self.hierarchy.add(entity), group, sync, priority, now_ns, tick_ns)
        };
        queue.max_budget = self.assigned_max_budget() * 2 / 3;
        if (id as usize) < self.queues.len() {
            self.queues[id as usize] = queue;
        } else {
            self.queues.push(queue);
        }
        id
    }

    /// A sync queue for a process that has none.
    fn create_for(
        &mut self,
        context: u32,
        group: GroupId,
        priority: Priority,
        now_ns: i64,
    ) -> QueueId {
        let q = self.create(group, true, priority, now_ns);
        self.attach(q, context);
        if self.burst_is_on() || self.nr_busy() == 0 {
            self.note_burst(q, now_ns);
        }
        self.stable_merge(q, context)
    }

    fn attach(&mut self, q: QueueId, context: u32) {
        let queue = self.queue_mut(q);
        queue.processes += 1;
        if queue.processes == 1 && !queue.shared {
            queue.context = Some(context);
        }
        self.processes[context as usize].sync = Some(q);
    }

    /// A process leaves a queue.
    fn detach(&mut self, q: QueueId, context: u32) {
        self.processes[context as usize].sync = None;
        let queue = self.queue_mut(q);
        queue.processes = queue.processes.saturating_sub(1);
        if queue.context == Some(context) {
            queue.context = None;
        }
        self.release_if_unused(q);
    }

    /// Frees a queue that nobody uses.
    pub(super) fn release_if_unused(&mut self, q: QueueId) {
        let queue = self.queue(q);
        let needed = !queue.sync
            || queue.processes > 0
            || queue.busy
            || queue.dispatched > 0
            || queue.has_pending
            || self.in_service == Some(q);
        if needed || self.free.contains(&q) {
            return;
        }
        let entity = self.queue(q).entity;
        self.hierarchy.remove(entity);
        self.forget_burst(q);
        for other in &mut self.queues {
            for link in [
                &mut other.waker,
                &mut other.tentative_waker,
                &mut other.woken,
                &mut other.merged_into,
            ] {
                if *link == Some(q) {
                    *link = None;
                }
            }
        }
        for process in &mut self.processes {
            if process.stable_merge == Some(q) {
                process.stable_merge = None;
            }
        }
        for last in self.last_created.iter_mut().chain([&mut self.last_completed]) {
            if *last == Some(q) {
                *last = None;
            }
        }
        self.free.push(q);
    }

    fn reprioritise(&mut self, q: QueueId, priority: Priority) {
        let queue = &mut self.queues[q as usize];
        queue.priority = priority;
        let entity = &mut self.hierarchy.entities[queue.entity as usize];
        entity.base_weight = weight_of(priority);
        entity.new_class = priority.class as usize;
    }

    /// The queue of a process, apart from the others' if it is to be split.
    #[inline]
    fn own_or_split(&mut self, q: QueueId, context: u32, now_ns: i64) -> QueueId {
        let tick_ns = self.settings.tick(now_ns);
        let queue = self.queue(q);
        if !(queue.shared && queue.split_wanted) || self.processes[context as usize].stably_merged {
            return q;
        }
        if queue.processes == 1 {
            let queue = self.queue_mut(q);
            queue.shared = false;
            queue.split_wanted = false;
            queue.context = Some(context);
            queue.split_ns = tick_ns;
            return q;
        }
        let (group, priority) = (queue.group, queue.priority);
        let in_large_burst = queue.raise.in_large_burst;
        self.detach(q, context);
        let own = self.create(group, true, priority, now_ns);
        self.attach(own, context);
        self.resume(own, context, in_large_burst, now_ns);
        own
    }

    fn save(&self, q: QueueId) -> Saved {
        let queue = self.queue(q);
        Saved {
            short_think: queue.short_think,
            io_bound: queue.io_bound,
            think: queue.think,
            io_start_ns: queue.io_start_ns,
            idle_total_ns: queue.idle_total_ns,
            inject_limit: queue.inject_limit,
            base_service_ns: queue.base_service_ns,
            inject_reset_ns: queue.inject_reset_ns,
            raise: queue.raise,
            coefficient: self.coefficient(q),
        }
    }

    /// Gives a queue of its own the state that its process's last one had.
    fn resume(&mut self, q: QueueId, context: u32, in_large_burst: bool, now_ns: i64) {
        let tick_ns = self.settings.tick(now_ns);
        let Some(saved) = self.processes[context as usize].saved.take() else { return };
        let queue = self.queue_mut(q);
        queue.short_think = saved.short_think;
        queue.io_bound = saved.io_bound;
        queue.think = saved.think;
        queue.io_start_ns = saved.io_start_ns;
        queue.idle_total_ns = saved.idle_total_ns;
        queue.inject_limit = saved.inject_limit;
        queue.base_service_ns = saved.base_service_ns;
        queue.inject_reset_ns = saved.inject_reset_ns;
        queue.raise = saved.raise;
        queue.raise.leave_burst(in_large_burst);
        queue.split_ns = tick_ns;
        queue.just_created = false;
        let over = saved.raise.started_ns + saved.raise.duration_ns < tick_ns;
        if saved.coefficient > 1 && !over && !in_large_burst {
            self.set_coefficient(q, saved.coefficient);
        }
    }

    /// Redirects a process from queue `q` to `into`.
    fn merge(&mut self, q: QueueId, into: QueueId, context: u32) -> QueueId {
        if q == into {
            return q;
        }
        let saved = self.save(q);
        self.processes[context as usize].saved = Some(saved);
        if let Some(other) = self.queue(into).context {
            let saved = self.save(into);
            self.processes[other as usize].saved = Some(saved);
        }
        if saved.coefficient > 1 {
            if !self.is_raised(into) {
                let burst = self.queue(into).raise;
                self.queue_mut(into).raise = saved.raise.within(burst);
                self.set_coefficient(into, saved.coefficient);
            }
            self.set_coefficient(q, 1);
        }
        let io_bound = saved.io_bound;
        let queue = self.queue_mut(into);
        queue.shared = true;
        queue.context = None;
        queue.io_bound |= io_bound;
        self.queue_mut(q).merged_into = Some(into);
        self.attach(into, context);
        self.queue_mut(into).context = None;
        let queue = self.queue_mut(q);
        queue.processes = queue.processes.saturating_sub(1);
        queue.context = None;
        self.release_if_unused(q);
        into
    }

    /// Where a queue's processes have gone, through several merges.
    fn follow(&self, q: QueueId) -> QueueId {
        let mut q = q;
        for _ in 0..16 {
            match self.queue(q).merged_into {
                Some(into) if self.queue(into).processes > 0 => q = into,
                _ => break,
            }
        }
        q
    }

    /// Queues created together.
    fn stable_merge(&mut self, q: QueueId, context: u32) -> QueueId {
        let group = usize::from(self.queue(q).group);
        let last = self.last_created[group];
        let close = last.filter(|last| {
            let (last, queue) = (self.queue(*last), self.queue(q));
            last.created_ns + BURST_NS >= queue.created_ns && last.priority == queue.priority
        });
        let Some(last) = close else {
            self.last_created[group] = Some(q);
            return q;
        };
        if last == q || self.queue(last).processes == 0 {
            self.last_created[group] = Some(q);
            return q;
        }
        if self.fast {
            self.mark_stable(last, context);
            return self.merge(q, last, context);
        }
        self.processes[context as usize].stable_merge = Some(last);
        q
    }

    fn mark_stable(&mut self, q: QueueId, context: u32) {
        if let Some(other) = self.queue(q).context {
            self.processes[other as usize].stably_merged = true;
        }
        self.processes[context as usize].stably_merged = true;
    }

    /// Merges a queue with one that it cooperates with, if there is one.
    fn cooperate(&mut self, q: QueueId, context: u32, request: &Request, now_ns: i64) -> QueueId {
        let now_ns = self.settings.tick(now_ns);
        if self.queue(q).merged_into.is_some() && self.follow(q) != q {
            return self.merge(q, self.follow(q), context);
        }
        let queue = self.queue(q);
        if let Some(other) = self.processes[context as usize].stable_merge {
            if !queue.just_created
                && queue.split_ns + STABLE_MERGE_AFTER_NS < now_ns
                && queue.created_ns + STABLE_MERGE_AFTER_NS < now_ns
            {
                self.processes[context as usize].stable_merge = None;
                let other = self.follow(other);
                if other != q && !self.waiting_pays(q) && self.queue(other).processes > 0 {
                    self.mark_stable(other, context);
                    return self.merge(q, other, context);
                }
                return q;
            }
        }
        if self.is_old(q, now_ns) || self.nr_busy() == 1 {
            return q;
        }
        if let Some(current) = self.in_service {
            if current != q
                && request.sector.abs_diff(self.slot_last_sector) <= CLOSE_SECTORS
                && self.may_cooperate(q, current, now_ns)
            {
                return self.merge(q, self.follow(current), context);
            }
        }
        let mut candidate = self.list;
        while let Some(other) = candidate {
            let close = self
                .queue(other)
                .next_sector
                .is_some_and(|sector| sector.abs_diff(request.sector) <= CLOSE_SECTORS);
            if other != q && close && self.may_cooperate(q, other, now_ns) {
                return self.merge(q, self.follow(other), context);
            }
            candidate = self.queue(other).list_next;
        }
        q
    }

    /// It has done I/O for so long that it has no new cooperators.
    fn is_old(&self, q: QueueId, now_ns: i64) -> bool {
        let queue = self.queue(q);
        queue.service_from_backlogged > 0 && queue.first_io_ns + MERGE_WITHIN_NS < now_ns
    }

    fn may_cooperate(&self, q: QueueId, other: QueueId, now_ns: i64) -> bool {
        let (a, b) = (self.queue(q), self.queue(other));
        !self.is_old(other, now_ns)
            && a.group == b.group
            && a.priority.class == b.priority.class
            && !a.is_idle_class()
            && a.sync
            && b.sync
            && b.processes > 0
            && !a.is_seeky()
            && !b.is_seeky()
    }

    /// A process is gone.
    pub(super) fn process_ended(&mut self, cx: &mut Context, context: u32, now_ns: i64) {
        let Some(process) = self.processes.get_mut(context as usize) else { return };
        process.stable_merge = None;
        let Some(q) = process.sync else { return };
        let sole = self.queue(q).processes == 1;
        self.detach(q, context);
        if sole && self.in_service == Some(q) && self.queue(q).is_empty() {
            self.expire(cx, super::budget::Reason::Timeout, false, now_ns);
            cx.kick();
        }
    }

    pub(super) fn in_group(&self, q: QueueId) -> bool {
        self.queue(q).group != ROOT
    }
}
