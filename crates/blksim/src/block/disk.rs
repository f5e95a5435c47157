//! A disk of the machine: the device, its scheduler, and the request queue between them (`struct
//! request_queue`) with its hardware queues and limits.

use crate::block::request_stage::RequestStage;
use std::collections::VecDeque;

use crate::block::extent_index::ExtentIndex;
use crate::block::flush_queue::FlushQueue;
use crate::block::hw_queue::HwQueue;
use crate::block::per_hctx::{Hctx, PerHctx};
use crate::block::queue_facts::QueueFacts;
use crate::block::queue_usage::QueueUsage;
use crate::block::request::{Operation, Request, RequestId, Requests, Tag, TaskId};
use crate::block::request_list::RequestLists;
use crate::core::branch::{cold_path, unlikely};
use crate::core::event::EventQueue;
use crate::core::params::Values;
use crate::core::processor_table::SchedulerCosts;
use crate::devices::AnyDevice;
use crate::devices::device::{Command, Device, Facts, Outbox};
use crate::elevator::AnyScheduler;
use crate::elevator::scheduler::{Context, Family, Info, QueueView};
use crate::rqos::policy::{Placement, Policy, PolicyContext};
use crate::rqos::wbt::Wbt;

/// Merges that a queue looks for (`nomerges`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// All.
    Full,
    /// Only with the last request and within a plug.
    Simple,
    Never,
}

impl Merging {
    /// The merges of an array or disk with that `nomerges`.
    pub fn of_number(nomerges: u64, bio_based: bool) -> Self {
        match nomerges {
            _ if bio_based => Self::Never,
            0 => Self::Full,
            1 => Self::Simple,
            _ => Self::Never,
        }
    }
}

/// The processor that completes a request: the one that takes the device's interrupt, or the one that
/// submitted the request (`rq_affinity` in `block/blk-sysfs.c`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CompletionAffinity {
    /// 0: the one that takes the interrupt.
    #[default]
    Interrupted,
    /// 1: that one too if it shares its last cache with the submitter's, as all here do.
    SameCache,
    /// 2: the submitter's.
    Submitter,
}

impl CompletionAffinity {
    /// The affinity of that number.
    pub fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Interrupted,
            1 => Self::SameCache,
            _ => Self::Submitter,
        }
    }
}

/// Counts of what happened on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests given to the device, flushes included.
    pub requests: u64,
    pub flushes: u64,
    /// Pieces of I/O that joined another request.
    pub merges: u64,
    pub sectors_read: u64,
    pub sectors_written: u64,
    pub sectors_discarded: u64,
    /// Processor time of the scheduler's hooks, without waiting for its lock.
    pub scheduler_ns: u64,
    /// Most tags ever in use, and most commands ever in the device.
    pub peak_tags: u32,
    pub peak_in_flight: u32,
}

/// The thread that serves a disk whose driver computes (a loop device).
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskThread {
    /// Requests that it has yet to serve.
    pub waiting: VecDeque<RequestId>,
    /// It is ready to run, or runs.
    pub woken: bool,
    /// Requests that it has served, and that are yet to be completed.
    pub served: VecDeque<RequestId>,
}

#[derive(Debug, Clone)]
pub struct Disk {
    pub device: AnyDevice,
    pub scheduler: AnyScheduler,
    pub family: Family,
    pub indexed: bool,
    pub extents: ExtentIndex,
    pub policies: Vec<Box<dyn Policy>>,
    /// The queue as the scheduler sees it.
    pub view: QueueView,
    /// Time at which a task that dirties pages was last held back.
    pub dirtier_paused_ns: Option<u64>,
    pub max_sectors: u32,
    /// The same limit for writes from the page cache.
    pub max_written_sectors: u32,
    /// Largest request that is made of bios of one page.
    pub(crate) max_segments_sectors: u32,
    pub merging: Merging,
    pub volatile_cache: bool,
    /// It takes bios, not requests ([`Facts::bio_based`]).
    pub(crate) bio_based: bool,
    /// Requests that the scheduler holds.
    pub nr_held: u32,
    pub(crate) hctxs: PerHctx<HwQueue>,
    /// The scheduler works by hardware queues.
    per_hctx: bool,
    /// The request that was last inserted or merged into: the one-entry cache (`q->last_merge`).
    pub last_merge: Option<RequestId>,
    /// The scheduler limits some requests to a part of the tags (`limit_depth`).
    shares_tags: bool,
    /// It limits even synchronous reads.
    limits_sync_reads: bool,
    /// Legacy: the requests in use, and the tasks that sleep for one.
    pub lists: RequestLists,
    /// blk-mq without a scheduler: requests go to the device at once (`blk_mq_try_issue_directly`).
    pub direct: bool,
    pub flushes: FlushQueue,
    /// Kept only if the scheduler is switched.
    pub usage: QueueUsage,
    pub counters: DiskCounters,
    /// Processor time of the scheduler; `None` if computing takes no time.
    pub(crate) costs: Option<SchedulerCosts>,
    /// `None` if no lock is waited for, because there is one processor.
    pub(crate) lock_handover_ns: Option<u64>,
    /// Where completions run (`rq_affinity`).
    pub(crate) affinity: CompletionAffinity,
    /// The thread of this machine that serves the disk, if one does.
    pub(crate) thread: DiskThread,
}

impl Disk {
    pub fn new(
        index: u8,
        device: AnyDevice,
        scheduler: AnyScheduler,
        info: &Info,
        facts: QueueFacts,
        queue: &Values,
    ) -> Self {
        let Facts { volatile_cache, bio_based, .. } = *device.facts();
        let max_sectors = queue.get("max_sectors_kb") as u32 * 2;
        let min_shallow_depth = scheduler.min_shallow_depth();
        let limits_sync_reads = scheduler.limits_sync_reads();
        Self {
            device,
            scheduler,
            family: info.family,
            indexed: info.indexed,
            extents: ExtentIndex::default(),
            policies: Vec::new(),
            view: QueueView::new(facts, index),
            dirtier_paused_ns: None,
            max_sectors,
            max_written_sectors: max_sectors,
            max_segments_sectors: u32::MAX,
            merging: Merging::of_number(queue.get("nomerges"), bio_based),
            volatile_cache,
            bio_based,
            nr_held: 0,
            hctxs: PerHctx::new(facts.nr_hctxs, || HwQueue::new(facts, min_shallow_depth)),
            per_hctx: info.per_hctx,
            last_merge: None,
            shares_tags: min_shallow_depth < u32::MAX,
            limits_sync_reads,
            lists: RequestLists::default(),
            direct: info.bypass,
            flushes: FlushQueue::default(),
            usage: QueueUsage::default(),
            counters: DiskCounters::default(),
            costs: None,
            lock_handover_ns: None,
            affinity: CompletionAffinity::default(),
            thread: DiskThread::default(),
        }
    }

    /// The hardware queue of a request.
    #[inline(always)]
    pub(crate) fn hctx_of(&self, request: &Request) -> usize {
        self.view.facts.hctx_of(request.cpu)
    }

    /// The hardware queue whose lock a hook of the scheduler takes.
    #[inline]
    fn locked_hctx(&self, hctx: usize) -> usize {
        if self.per_hctx { hctx } else { 0 }
    }

    /// Requests that have a tag, or are out of the pools of the legacy path.
    pub(crate) fn nr_requests_used(&self) -> u32 {
        match self.family {
            Family::Legacy => self.lists.nr_used(),
            Family::MultiQueue => self.nr_tags_used(),
        }
    }

    /// A request goes before the scheduler's.
    pub(crate) fn has_ahead(&self, id: RequestId) -> bool {
        self.hctxs.iter().any(|hw_queue| hw_queue.ahead.contains(&id))
    }

    fn nr_tags_used(&self) -> u32 {
        self.hctxs.iter().map(|hw_queue| hw_queue.tags.nr_used()).sum()
    }

    /// Commands in the device.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        if self.view.facts.has_one_hctx() {
            self.hctxs[0].in_flight
        } else {
            self.hctxs.iter().map(|hw_queue| hw_queue.in_flight).sum()
        }
    }

    /// A hardware queue has as many commands in the device as that takes from it.
    #[inline]
    pub(crate) fn is_full<H: Hctx>(&self, hctx: H) -> bool {
        let in_flight = if H::SEVERAL && self.view.facts.shares_tags {
            self.in_flight()
        } else {
            self.hctxs.of(hctx).in_flight
        };
        in_flight >= self.view.facts.device_depth
    }

    /// Computes what a hook of the scheduler costs.
    #[inline]
    pub(crate) fn compute_hook(
        &mut self,
        hctx: usize,
        events: &mut EventQueue,
        base_ns: impl FnOnce(&SchedulerCosts) -> u64,
    ) {
        if let Some(costs) = &self.costs {
            cold_path();
            let work_ns = costs.grown_ns(base_ns(costs), self.nr_held);
            self.counters.scheduler_ns += work_ns;
            if let Some(handover_ns) = self.lock_handover_ns {
                let locked_ns = work_ns * costs.locked_percent / 100;
                self.compute_locked(hctx, events, work_ns - locked_ns, locked_ns, handover_ns);
            } else {
                events.compute(work_ns);
            }
        }
    }

    /// Computes without the scheduler's lock, then under it, where other processors may have it.
    #[inline(never)]
    fn compute_locked(
        &mut self,
        hctx: usize,
        events: &mut EventQueue,
        free_ns: u64,
        locked_ns: u64,
        handover_ns: u64,
    ) {
        events.compute(free_ns);
        let locked_hctx = self.locked_hctx(hctx);
        let lock = &mut self.hctxs[locked_hctx].scheduler_lock;
        events.compute_locked(lock, locked_ns, handover_ns);
    }

    /// Sets the largest request (`max_sectors_kb`).
    pub(crate) fn limit_sectors(&mut self, max_sectors: u32) {
        self.max_sectors = max_sectors;
        self.max_written_sectors = max_sectors.min(self.max_segments_sectors);
    }

    /// Adds a policy behind those of the same placement.
    pub fn add_policy(&mut self, policy: Box<dyn Policy>) {
        let place = self.policies.partition_point(|p| p.placement() <= policy.placement());
        self.policies.insert(place, policy);
    }

    /// Replaces the scheduler of a drained queue. The new one has tags of its own.
    pub(crate) fn set_scheduler(
        &mut self,
        scheduler: AnyScheduler,
        info: &Info,
        facts: QueueFacts,
    ) {
        debug_assert!(self.is_drained(), "the scheduler of a queue in use is replaced");
        let min_shallow_depth = scheduler.min_shallow_depth();
        for hw_queue in self.hctxs.iter_mut() {
            hw_queue.new_tags(facts, min_shallow_depth);
        }
        self.per_hctx = info.per_hctx;
        self.shares_tags = min_shallow_depth < u32::MAX;
        self.limits_sync_reads = scheduler.limits_sync_reads();
        self.scheduler = scheduler;
        self.family = info.family;
        self.indexed = info.indexed;
        self.direct = info.bypass;
        self.view.facts = facts;
        self.last_merge = None;
    }

    /// Changes the number of tags of an empty queue, or the size of its pools. More tags than there
    /// ever were are new ones (`blk_mq_tag_update_depth`).
    pub(crate) fn set_depth(&mut self, facts: QueueFacts, new_tags_at: Option<u32>) {
        self.view.facts = facts;
        let min_shallow_depth = self.scheduler.min_shallow_depth();
        for hw_queue in self.hctxs.iter_mut() {
            match new_tags_at {
                Some(_) => hw_queue.new_tags(facts, min_shallow_depth),
                None => hw_queue.tags.resize(facts.nr_requests),
            }
        }
        if let Some(tag) = new_tags_at {
            self.begin_tags_at(tag);
        }
    }

    /// Sets the tag at which the first search of each hardware queue begins.
    pub(crate) fn begin_tags_at(&mut self, tag: u32) {
        for hw_queue in self.hctxs.iter_mut() {
            hw_queue.tags.begin_at(tag);
        }
    }

    /// True if nobody uses the queue.
    pub(crate) fn is_drained(&self) -> bool {
        self.usage.entered == 0
            && self.nr_held == 0
            && self.hctxs.iter().all(HwQueue::is_drained)
            && self.lists.nr_used() == 0
            && self.nr_waiting_for_tag() == 0
            && !self.flushes.running
            && self.flushes.waiting.is_empty()
    }

    /// Turns writeback throttling on with a target, or off with 0. What is on stays as it is
    /// (`wbt_enable_default`).
    pub(crate) fn set_wbt(&mut self, target_ns: u64) {
        let is_on = self.policies.iter().any(|policy| policy.name() == Wbt::NAME);
        if target_ns == 0 {
            self.policies.retain(|policy| policy.name() != Wbt::NAME);
        } else if !is_on {
            self.add_policy(Box::new(Wbt::new(
                target_ns,
                self.view.facts.reported_depth,
                self.view.facts.jiffy_ns,
            )));
        }
    }

    /// Number of policies above merging.
    pub fn nr_above(&self) -> usize {
        self.policies.iter().filter(|p| p.placement() == Placement::Above).count()
    }

    /// Takes a tag for a request, if one that it may have is free.
    #[inline(always)]
    pub fn take_tag<H: Hctx>(&mut self, hctx: H, request: &mut Request, now_ns: u64) -> bool {
        let (tag, used) = match self.family {
            Family::Legacy => {
                cold_path();
                let must = self.scheduler.must_queue(request);
                let Some(used) = self.lists.take(request, self.view.facts, must, now_ns) else {
                    return false;
                };
                (0, used)
            }
            Family::MultiQueue => {
                // The scheduler's first answer holds, however long the task then sleeps.
                let ask = || self.scheduler.limit_depth(request);
                let may_have_all = request.operation == Operation::Read && request.flags.sync;
                let limited =
                    self.shares_tags && (unlikely(!may_have_all) || self.limits_sync_reads);
                debug_assert!(
                    limited || self.scheduler.limit_depth(request).is_none(),
                    "a scheduler limits synchronous reads and did not say so"
                );
                let limit = if limited { request.tag.limit(ask) } else { None };
                let number = if H::SEVERAL { self.view.facts.tags_of(hctx.number()) } else { 0 };
                let tags = &mut self.hctxs[number].tags;
                let Some(tag) = tags.take(limit) else {
                    cold_path();
                    request.tag = Tag::one_of(limit);
                    return false;
                };
                (tag, if H::SEVERAL { self.nr_tags_used() } else { tags.nr_used() })
            }
        };
        self.counters.peak_tags = self.counters.peak_tags.max(used);
        request.tag = Tag::of(tag);
        true
    }

    /// Gives a request's tag back; `woken` collects sleepers that may try again.
    #[inline]
    pub fn give_tag_back(
        &mut self,
        requests: &mut Requests,
        id: RequestId,
        woken: &mut Vec<TaskId>,
    ) {
        let request = &mut requests[id];
        let Some(tag) = request.tag.take() else { return };
        match self.family {
            Family::Legacy => {
                self.lists.give_back(request, self.view.facts.nr_requests, woken);
            }
            Family::MultiQueue => {
                let facts = &self.view.facts;
                let hctx = facts.tags_of(facts.hctx_of(request.cpu));
                self.hctxs[hctx].tags.give_back(tag, woken);
            }
        }
    }

    /// Lets a task sleep until its request may have a tag.
    pub fn sleep_for_tag(&mut self, task: TaskId, request: &Request) {
        match self.family {
            Family::Legacy => self.lists.sleep(task, request),
            Family::MultiQueue => {
                let hctx = self.view.facts.tags_of(self.hctx_of(request));
                self.hctxs[hctx].tags.sleep(task);
            }
        }
    }

    pub(crate) fn nr_waiting_for_tag(&self) -> u32 {
        let tagged: u32 = self.hctxs.iter().map(|hw_queue| hw_queue.tags.nr_sleepers()).sum();
        self.lists.nr_sleepers() + tagged
    }

    /// Calls the scheduler with a context, for a hardware queue. Returns also whether it asked for
    /// dispatch.
    #[inline(always)]
    pub fn schedule<R>(
        &mut self,
        hctx: usize,
        requests: &mut Requests,
        events: &mut EventQueue,
        call: impl FnOnce(&mut AnyScheduler, &mut Context) -> R,
    ) -> (R, bool) {
        if unlikely(self.costs.is_some()) {
            // Another processor, whose clock may be ahead, may have been here.
            let locked_hctx = self.locked_hctx(hctx);
            let hook_ns = &mut self.hctxs[locked_hctx].hook_ns;
            events.move_to(*hook_ns);
            *hook_ns = events.now_ns();
        }
        self.view.kicked = false;
        let mut context = Context { requests, queue: &mut self.view, events };
        let result = call(&mut self.scheduler, &mut context);
        (result, self.view.kicked)
    }

    /// True if requests wait to go to the device through a hardware queue.
    #[inline]
    pub(crate) fn has_waiting<H: Hctx>(&self, hctx: H) -> bool {
        let hw_queue = self.hctxs.of(hctx);
        let nr_held = if H::SEVERAL && self.per_hctx { hw_queue.nr_held } else { self.nr_held };
        nr_held > 0 || !hw_queue.ahead.is_empty()
    }

    /// Counts a request that the scheduler held.
    #[inline]
    pub(crate) fn holds_no_longer<H: Hctx>(&mut self, request: &Request) {
        self.nr_held -= 1;
        if H::SEVERAL {
            let hctx = self.hctx_of(request);
            self.hctxs[hctx].nr_held -= 1;
        }
    }

    /// Puts a request into the scheduler.
    #[inline(always)]
    pub fn insert<H: Hctx>(
        &mut self,
        hctx: H,
        requests: &mut Requests,
        events: &mut EventQueue,
        id: RequestId,
    ) {
        let request = &mut requests[id];
        self.compute_hook(hctx.number(), events, |costs| costs.insert_ns);
        request.stage.step(&[RequestStage::Submitted], RequestStage::Inserted);
        request.inserted_ns = events.now_ns();
        debug_assert!(
            request.submitted_ns <= request.inserted_ns,
            "inserted before it was submitted"
        );
        if self.indexed {
            // A request stays here until it grows no more or leaves.
            if self.last_merge.is_none() && !request.progress.no_merge() {
                self.last_merge = Some(id);
            }
            self.extents.insert(requests, id);
        }
        self.nr_held += 1;
        if H::SEVERAL {
            self.view.hctx = hctx.number();
            self.hctxs.of_mut(hctx).nr_held += 1;
        }
        self.schedule(hctx.number(), requests, events, |s, cx| s.insert(cx, id));
    }

    /// Takes a request from the scheduler, for a hardware queue.
    #[inline(always)]
    pub fn next_of_scheduler<H: Hctx>(
        &mut self,
        hctx: H,
        requests: &mut Requests,
        events: &mut EventQueue,
    ) -> Option<RequestId> {
        if H::SEVERAL {
            self.view.hctx = hctx.number();
        }
        let id = self.schedule(hctx.number(), requests, events, AnyScheduler::dispatch).0?;
        self.compute_hook(hctx.number(), events, |costs| costs.dispatch_ns);
        debug_assert!(self.nr_held > 0, "a scheduler hands out a request that it does not hold");
        requests.step(id, &[RequestStage::Inserted], RequestStage::Dispatched);
        self.holds_no_longer::<H>(&requests[id]);
        if self.indexed {
            self.extents.remove(requests, id);
        }
        if self.last_merge == Some(id) {
            self.last_merge = None;
        }
        Some(id)
    }

    /// Calls every policy; `released` collects what they let go.
    pub fn tell_policies(
        &mut self,
        requests: &mut Requests,
        events: &mut EventQueue,
        released: &mut Vec<RequestId>,
        mut call: impl FnMut(&mut dyn Policy, &mut PolicyContext),
    ) {
        for index in 0..self.policies.len() {
            self.with_policy(index, requests, events, released, &mut call);
        }
    }

    /// Calls one policy.
    pub fn with_policy<R>(
        &mut self,
        index: usize,
        requests: &mut Requests,
        events: &mut EventQueue,
        released: &mut Vec<RequestId>,
        call: impl FnOnce(&mut dyn Policy, &mut PolicyContext) -> R,
    ) -> R {
        let mut context = PolicyContext {
            requests,
            in_flight: self.in_flight(),
            waiting_for_tag: self.nr_waiting_for_tag(),
            device_depth: self.view.facts.device_depth,
            nr_requests: self.view.facts.nr_requests,
            volatile_cache: self.volatile_cache,
            dirtier_paused_ns: self.dirtier_paused_ns,
            rotational: self.view.facts.rotational,
            usage: &mut self.usage,
            events,
            disk: self.view.disk,
            released,
        };
        call(self.policies[index].as_mut(), &mut context)
    }

    /// Counts a request that the driver takes.
    #[inline(always)]
    pub(crate) fn note_issued<H: Hctx>(
        &mut self,
        hctx: H,
        request: &mut Request,
        events: &EventQueue,
    ) {
        request
            .stage
            .step(&[RequestStage::Submitted, RequestStage::Dispatched], RequestStage::InFlight);
        request.dispatched_ns = events.now_ns();
        debug_assert!(!self.is_full(hctx), "more commands than the device takes");
        self.hctxs.of_mut(hctx).in_flight += 1;
        debug_assert!(
            request.operation == Operation::Flush
                || [request.submitted_ns, request.inserted_ns, request.dispatched_ns].is_sorted(),
            "a request went to the device before it was inserted"
        );
        self.counters.requests += 1;
        let in_flight = if H::SEVERAL { self.in_flight() } else { self.hctxs.of(hctx).in_flight };
        self.counters.peak_in_flight = self.counters.peak_in_flight.max(in_flight);
    }

    /// Hands a request to the device.
    #[inline(always)]
    pub fn give_to_device<H: Hctx>(
        &mut self,
        hctx: H,
        request: &mut Request,
        id: RequestId,
        events: &mut EventQueue,
    ) {
        self.note_issued(hctx, request, events);
        let command = Command {
            id,
            operation: request.operation,
            sector: request.sector,
            nr_sectors: request.nr_sectors,
            queue: hctx.number() as u16,
        };
        self.device.submit(command, &mut Outbox::new(events, self.view.disk));
    }
}
