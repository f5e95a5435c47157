//! The way of a piece of I/O from its submitter to the device
//! (`block/blk-mq.c` and `block/blk-merge.c` of Linux 6.1): policies, merging, tag, plug, scheduler.

use crate::block::disk::Merging;
use crate::block::request::{Fifo, NONE, Operation, Purpose, RequestId, Requests};
use crate::core::branch::unlikely;
use crate::elevator::scheduler::{Family, Merge};
use crate::machine::Machine;
use crate::rqos::policy::{Admission, Placement};
use crate::task::task_struct::TaskId;

/// Requests that a plug collects before it is flushed (6.1; 16 in 4.16).
const PLUG_REQUESTS: u32 = 32;
const PLUG_REQUESTS_LEGACY: u32 = 16;
/// A plug is flushed once its newest request is this large: 128 KiB.
const PLUG_FLUSH_SECTORS: u32 = 256;

/// Why a plug is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Its task is done submitting, or it is full.
    AtEnd,
    /// Its task goes to sleep: on blk-mq the queue's worker runs the queue.
    ForSleep,
}

impl Machine {
    /// Submits a bio for a task. It may have to sleep, of which false tells; then what it submits
    /// afterwards queues up behind.
    #[inline(always)]
    pub(crate) fn submit(&mut self, task: TaskId, id: RequestId) -> bool {
        if unlikely(self.raid.is_some()) {
            self.requests[id].submitted_ns = self.events.now_ns();
            self.submit_to_array(task, id);
            !self.tasks[task as usize].blocked
        } else {
            self.submit_to_disk(task, 0, id)
        }
    }

    /// Submits a bio for one disk, which is the request's. False if its task sleeps.
    #[inline(always)]
    pub(crate) fn submit_to_disk(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        self.requests[id].submitted_ns = self.events.now_ns();
        let submitter = &mut self.tasks[task as usize];
        if unlikely(submitter.blocked) {
            submitter.pending.push_back(&mut self.requests, id);
            return false;
        }
        let entered = self.enter(task, disk, id, true);
        if unlikely(!entered) {
            self.sleep_in_submission(task, id);
        }
        entered
    }

    #[cold]
    pub(crate) fn sleep_in_submission(&mut self, task: TaskId, id: RequestId) {
        let sleeper = &mut self.tasks[task as usize];
        sleeper.blocked = true;
        sleeper.pending.push_front(&mut self.requests, id);
        self.flush_plug(task, Flush::ForSleep);
    }

    /// Lets a task go on with its pending bios.
    pub(crate) fn resume(&mut self, task: TaskId) {
        self.tasks[task as usize].blocked = false;
        let mut slept_for = self.tasks[task as usize].waits_for_tag.take().map(usize::from);
        if let Some(disk) = slept_for {
            if self.disks[disk].family == Family::MultiQueue {
                // The kernel runs the queue before each attempt but the first.
                self.disks[disk].tags.try_again();
                self.run_queue(disk);
            }
        }
        while let Some(id) = self.tasks[task as usize].pending.pop_front(&mut self.requests) {
            let entered = if self.requests[id].operation == Operation::Flush {
                self.enter_flush(task, id)
            } else {
                let disk = self.requests[id].disk as usize;
                self.enter(task, disk, id, false)
            };
            if !entered {
                self.sleep_in_submission(task, id);
                return;
            }
            if let Some(disk) = slept_for.take() {
                self.disks[disk].tags.tried();
            }
        }
        self.release_page(task);
        if let Some(why) = self.tasks[task as usize].unplug_after.take() {
            self.end_plug(task, why);
        } else if !self.tasks[task as usize].plugging {
            self.flush_plug(task, Flush::AtEnd);
        }
        // As after any submission.
        if task < self.flusher && self.tasks[task as usize].call.is_none() && !self.goes_on(task) {
            return;
        }
        self.unblocked(task);
    }

    /// Takes a bio as far as it goes. False if its submitter must sleep. Where there are no
    /// policies, a fresh bio is known to come for the first time.
    #[inline(always)]
    fn enter(&mut self, task: TaskId, disk: usize, id: RequestId, fresh: bool) -> bool {
        if unlikely(!self.disks[disk].policies.is_empty()) {
            if let Some(go_on) = self.ask_policies(task, disk, id) {
                return go_on;
            }
        } else if (fresh || !self.requests[id].progress.merge_tried())
            && unlikely(self.try_merge(task, disk, id))
        {
            return true;
        }
        let (queue, request) = (&mut self.disks[disk], &mut self.requests[id]);
        if unlikely(!queue.take_tag(request)) {
            self.want_tag(task, disk, id);
            return false;
        }
        if unlikely(self.tasks[task as usize].plugging) {
            self.add_to_plug(task, disk, id);
        } else {
            self.enqueue(disk, id);
        }
        true
    }

    /// Lets a task sleep until there may be a tag for its request.
    #[cold]
    pub(crate) fn want_tag(&mut self, task: TaskId, disk: usize, id: RequestId) {
        if self.disks[disk].family == Family::MultiQueue {
            self.run_queue(disk);
        }
        self.requests[id].progress.set_merge_tried();
        self.disks[disk].sleep_for_tag(task, &self.requests[id]);
        self.tasks[task as usize].waits_for_tag = Some(disk as u8);
    }

    /// Puts a single request into the scheduler, and has the queue run.
    #[inline(always)]
    fn enqueue(&mut self, disk: usize, id: RequestId) {
        match self.disks[disk].family {
            Family::Legacy => self.insert_and_run(disk, id),
            Family::MultiQueue if self.disks[disk].direct => self.issue_directly(disk, id),
            Family::MultiQueue => {
                self.insert_or_merge(disk, id);
                self.run_queue_soon(disk);
            }
        }
    }

    /// Policies above, merging, policies beside. `None` if the bio goes on to
    /// its tag; otherwise whether the submitter may go on.
    #[inline(never)]
    fn ask_policies(&mut self, task: TaskId, disk: usize, id: RequestId) -> Option<bool> {
        let nr_above = self.disks[disk].nr_above();
        loop {
            let passed = self.requests[id].progress.policies_passed();
            let progress = &mut self.requests[id].progress;
            if passed == nr_above && !progress.merge_tried() {
                progress.set_merge_tried();
                if self.try_merge(task, disk, id) {
                    return Some(true);
                }
            }
            if passed >= self.disks[disk].policies.len() {
                return None;
            }
            let mut released = std::mem::take(&mut self.released);
            let admission = self.disks[disk].with_policy(
                passed,
                &mut self.requests,
                &mut self.events,
                &mut released,
                |policy, cx| {
                    debug_assert!(policy.placement() == Placement::Above || passed >= nr_above);
                    policy.admit(cx, id)
                },
            );
            self.released = released;
            match admission {
                Admission::Pass => self.requests[id].progress.pass(),
                Admission::Hold => return Some(true),
                Admission::Sleep => return Some(false),
            }
        }
    }

    /// Passes on what policies released.
    pub(crate) fn pass_on_released(&mut self) {
        let plugs = self
            .disks
            .iter()
            .any(|disk| disk.policies.iter().any(|policy| policy.plugs_what_it_releases()));
        if plugs {
            self.plug(self.worker);
        }
        // In the order of release; what is released meanwhile goes behind.
        let mut next = 0;
        while let Some(&id) = self.released.get(next) {
            next += 1;
            self.requests[id].progress.pass();
            // The worker sleeps in bios of others.
            let sleeper = [self.requests[id].context, self.worker].into_iter().find(|task| {
                let task = self.tasks.get(*task as usize);
                task.is_some_and(|t| t.blocked && t.pending.head() == Some(id))
            });
            if let Some(task) = sleeper {
                self.resume(task);
            } else {
                let disk = self.requests[id].disk as usize;
                self.submit_to_disk(self.worker, disk, id);
            }
        }
        self.released.clear();
        if plugs {
            self.unplug(self.worker);
        }
    }

    /// Joins a bio to a request that is already there, if there is one.
    #[inline]
    fn try_merge(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        let plugged = !self.tasks[task as usize].plug.is_empty();
        let held = self.disks[disk].nr_held > 0;
        (plugged || held)
            && self.disks[disk].merging != Merging::Never
            && ((plugged && self.merge_into_plug(task, disk, id))
                || (held && self.merge_into_held(disk, id)))
    }

    /// Joins a bio to a request that the scheduler holds.
    #[inline(never)]
    fn merge_into_held(&mut self, disk: usize, id: RequestId) -> bool {
        let Some((request, side)) = self.find_merge(disk, id) else { return false };
        let joins = self.has_room(disk, request, id);
        if joins {
            self.join_held(disk, request, id, side);
        }
        joins
    }

    #[inline(never)]
    fn merge_into_plug(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        let plug = self.tasks[task as usize].plug;
        // 6.1 looks at the newest plugged request only; 4.16 at all of them.
        let newest_only = self.disks[disk].family == Family::MultiQueue;
        let mut candidate = if newest_only { plug.tail() } else { plug.head() };
        while let Some(request) = candidate {
            if let Some(side) = joining_side(&self.requests, request, id) {
                if self.alike(disk, request, id) && self.has_room(disk, request, id) {
                    self.join(disk, request, id, side);
                    return true;
                }
            }
            let next = self.requests[request].next;
            candidate = (!newest_only && next != NONE).then_some(next);
        }
        false
    }

    /// Finds the held request that a bio would join: the one-entry cache, then by
    /// extent, then the scheduler's own candidates. Whether it has room is asked
    /// afterwards: if not, the others are not tried (`elv_merge`).
    #[inline]
    fn find_merge(&mut self, disk: usize, id: RequestId) -> Option<(RequestId, Merge)> {
        if let Some(last) = self.disks[disk].last_merge {
            if let Some(side) = joining_side(&self.requests, last, id) {
                if self.may_join(disk, last, id) {
                    return Some((last, side));
                }
            }
        }
        if self.disks[disk].merging != Merging::Full {
            return None;
        }
        let (sector, end) = (self.requests[id].sector, self.requests[id].end());
        let queue = &self.disks[disk];
        if queue.indexed {
            if let Some(request) = self.ending_at(disk, sector) {
                if self.may_join(disk, request, id) {
                    return Some((request, Merge::Back));
                }
            }
            if queue.scheduler.front_merges() {
                let front = queue.extents.find(&self.requests, Merge::Front, end, |request| {
                    self.may_join(disk, request, id)
                });
                if let Some(request) = front {
                    return Some((request, Merge::Front));
                }
            }
            return None;
        }
        let found = queue.scheduler.merge_candidate(&self.requests, id);
        found.filter(|(request, _)| self.may_join(disk, *request, id))
    }

    /// The newest held request that ends at a sector; older ones are hidden by it
    /// (`elv_rqhash_find`).
    #[inline]
    fn ending_at(&self, disk: usize, sector: u64) -> Option<RequestId> {
        let extents = &self.disks[disk].extents;
        extents.find(&self.requests, Merge::Back, sector, |held| {
            !self.requests[held].progress.no_merge()
        })
    }

    /// Their kind allows the bio, or a request, to join the request.
    #[inline]
    fn alike(&self, disk: usize, request: RequestId, id: RequestId) -> bool {
        let (a, b) = (&self.requests[request], &self.requests[id]);
        a.operation == b.operation
            && a.disk == b.disk
            && a.flags.sync == b.flags.sync
            && a.group == b.group
            && !(a.progress.no_merge() || b.progress.no_merge())
            && (self.disks[disk].family == Family::Legacy || a.priority == b.priority)
    }

    #[inline]
    fn may_join(&self, disk: usize, request: RequestId, id: RequestId) -> bool {
        self.alike(disk, request, id)
            && self.disks[disk].scheduler.allow_merge(&self.requests, request, id)
    }

    /// The two together are not too large.
    #[inline]
    fn fit(&self, disk: usize, a: RequestId, b: RequestId) -> bool {
        let (queue, (a, b)) = (&self.disks[disk], (&self.requests[a], &self.requests[b]));
        let written = a.purpose == Purpose::Writeback;
        let limit = if written { queue.max_written_sectors } else { queue.max_sectors };
        a.nr_sectors + b.nr_sectors <= limit
    }

    /// Whether a request can take in a bio that touches it. One that cannot is
    /// out of merging from then on (`req_set_nomerge`).
    #[inline]
    fn has_room(&mut self, disk: usize, request: RequestId, id: RequestId) -> bool {
        let fit = self.fit(disk, request, id);
        if !fit {
            self.requests[request].progress.set_no_merge();
            let queue = &mut self.disks[disk];
            if queue.last_merge == Some(request) {
                queue.last_merge = None;
            }
        }
        fit
    }

    /// Joins a bio to a request held by the scheduler, and the grown request
    /// to its neighbour if they meet now.
    fn join_held(&mut self, disk: usize, request: RequestId, id: RequestId, side: Merge) {
        let old_sector = self.requests[request].sector;
        let indexed = self.disks[disk].indexed;
        if indexed {
            self.disks[disk].extents.remove(&mut self.requests, request);
        }
        self.join(disk, request, id, side);
        if indexed {
            self.disks[disk].extents.insert(&mut self.requests, request);
        }
        self.disks[disk].schedule(&mut self.requests, &mut self.events, |s, cx| {
            s.request_merged(cx, request, side, old_sector);
        });
        self.disks[disk].last_merge = Some(request);
        if indexed {
            self.coalesce(disk, request, side);
        }
    }

    /// Two requests that have become neighbours become one.
    fn coalesce(&mut self, disk: usize, request: RequestId, side: Merge) {
        let grown = &self.requests[request];
        let (search, key) = match side {
            Merge::Back => (Merge::Front, grown.end()),
            Merge::Front => (Merge::Back, grown.sector),
        };
        let neighbour = self.disks[disk].extents.find(&self.requests, search, key, |other| {
            other != request
                && self.fit(disk, request, other)
                && self.may_join(disk, request, other)
        });
        let Some(neighbour) = neighbour else { return };
        // The lower of the two stays, as in the kernel.
        let (kept, gone) =
            if side == Merge::Back { (request, neighbour) } else { (neighbour, request) };
        self.absorb(disk, kept, gone);
    }

    fn absorb(&mut self, disk: usize, kept: RequestId, gone: RequestId) {
        self.disks[disk].extents.remove(&mut self.requests, kept);
        self.disks[disk].extents.remove(&mut self.requests, gone);
        self.disks[disk].schedule(&mut self.requests, &mut self.events, |s, cx| {
            s.requests_merged(cx, kept, gone)
        });
        self.disks[disk].nr_held -= 1;
        self.give_tag_back(disk, gone);
        self.join(disk, kept, gone, Merge::Back);
        self.disks[disk].extents.insert(&mut self.requests, kept);
        self.disks[disk].last_merge = Some(kept);
    }

    pub(crate) fn give_tag_back(&mut self, disk: usize, id: RequestId) {
        self.disks[disk].give_tag_back(&mut self.requests, id, &mut self.woken);
        self.wake_submissions();
    }

    /// Chains `id` (and what it already has) to `request`, whose extent grows.
    fn join(&mut self, disk: usize, request: RequestId, id: RequestId, side: Merge) {
        let added = &self.requests[id];
        let (sectors, sector, priority) = (added.nr_sectors, added.sector, added.priority);
        let tail = if added.chain_tail == NONE { id } else { added.chain_tail };
        let kept = &mut self.requests[request];
        kept.nr_sectors += sectors;
        if side == Merge::Front {
            kept.sector = sector;
        }
        // 2.6 and 4.x keep the better of two priorities.
        if (priority.class, priority.level) < (kept.priority.class, kept.priority.level) {
            kept.priority = priority;
        }
        let last = if kept.chain_tail == NONE { request } else { kept.chain_tail };
        kept.chain_tail = tail;
        self.requests[last].chain = id;
        self.disks[disk].counters.merges += 1;
        self.tell_policies(disk, |policy, cx| policy.merged(cx, id, request));
    }

    fn add_to_plug(&mut self, task: TaskId, disk: usize, id: RequestId) {
        let limit = match self.disks[disk].family {
            Family::Legacy => PLUG_REQUESTS_LEGACY,
            Family::MultiQueue => PLUG_REQUESTS,
        };
        let plug = &self.tasks[task as usize].plug;
        let newest_is_large = self.disks[disk].merging != Merging::Never
            && plug.tail().is_some_and(|tail| self.requests[tail].nr_sectors >= PLUG_FLUSH_SECTORS);
        if plug.len() >= limit || newest_is_large {
            self.flush_plug(task, Flush::AtEnd);
        }
        self.tasks[task as usize].plug.push_back(&mut self.requests, id);
    }

    /// Starts to collect a task's requests.
    pub(crate) fn plug(&mut self, task: TaskId) {
        self.tasks[task as usize].plugging = true;
    }

    /// Ends collecting and hands everything on.
    pub(crate) fn unplug(&mut self, task: TaskId) {
        self.end_plug(task, Flush::AtEnd);
    }

    /// Ends collecting because the task is done, or is about to sleep.
    pub(crate) fn end_plug(&mut self, task: TaskId, why: Flush) {
        let task_state = &mut self.tasks[task as usize];
        if task_state.blocked {
            // It plugs on with what it has still to submit.
            task_state.unplug_after = Some(why);
            return;
        }
        task_state.plugging = false;
        self.flush_plug(task, why);
    }

    /// Hands a task's collected requests to the scheduler.
    pub(crate) fn flush_plug(&mut self, task: TaskId, why: Flush) {
        if self.tasks[task as usize].plug.is_empty() {
            return;
        }
        let mut plug = std::mem::take(&mut self.tasks[task as usize].plug);
        let mut touched = 0_u64;
        if plug
            .head()
            .is_some_and(|id| self.disks[self.requests[id].disk as usize].family == Family::Legacy)
        {
            self.flush_sorted(plug, &mut touched);
        } else {
            let mut order = std::mem::take(&mut self.scratch);
            order.clear();
            while let Some(id) = plug.pop_front(&mut self.requests) {
                order.push(id);
            }
            let disk = self.requests[order[0]].disk as usize;
            if why == Flush::AtEnd && self.disks[disk].direct {
                // What goes to the driver straight from the plug goes newest first.
                for id in order.drain(..).rev() {
                    let disk = self.requests[id].disk as usize;
                    self.issue_directly(disk, id);
                }
            }
            for id in order.drain(..) {
                let disk = self.requests[id].disk as usize;
                touched |= 1 << disk;
                self.insert_or_merge(disk, id);
            }
            self.scratch = order;
        }
        while touched != 0 {
            let disk = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            if why == Flush::ForSleep && self.disks[disk].family == Family::MultiQueue {
                self.run_queue_soon(disk);
            } else {
                self.run_queue(disk);
            }
        }
    }

    /// The legacy flush: by disk and sector, each first tried as a back merge.
    fn flush_sorted(&mut self, mut plug: Fifo, touched: &mut u64) {
        let mut order = std::mem::take(&mut self.scratch);
        order.clear();
        while let Some(id) = plug.pop_front(&mut self.requests) {
            order.push(id);
        }
        order.sort_unstable_by_key(|&id| (self.requests[id].disk, self.requests[id].sector, id));
        for &id in &order {
            let disk = self.requests[id].disk as usize;
            *touched |= 1 << disk;
            self.insert_or_merge(disk, id);
        }
        self.scratch = order;
    }

    /// Joins a request to one that the scheduler holds and that it follows, or
    /// puts it into the scheduler.
    #[inline(never)]
    fn insert_or_merge(&mut self, disk: usize, id: RequestId) {
        let queue = &self.disks[disk];
        let before = if queue.indexed && queue.nr_held > 0 && queue.merging == Merging::Full {
            self.ending_at(disk, self.requests[id].sector)
                .filter(|&held| self.fit(disk, held, id) && self.may_join(disk, held, id))
        } else {
            None
        };
        match before {
            Some(request) => {
                self.give_tag_back(disk, id);
                self.join_held(disk, request, id, Merge::Back);
            }
            None => self.disks[disk].insert(&mut self.requests, &mut self.events, id),
        }
    }
}

/// On which side of `request` the bio lies, if they touch.
#[inline]
fn joining_side(requests: &Requests, request: RequestId, id: RequestId) -> Option<Merge> {
    let (a, b) = (&requests[request], &requests[id]);
    if a.end() == b.sector {
        Some(Merge::Back)
    } else if b.end() == a.sector {
        Some(Merge::Front)
    } else {
        None
    }
}
