//! A queue of bfq: the requests of a process (or the async requests of all processes of a group
//! with one priority), and their statistics.
//!
//! Kernel: `struct bfq_queue` and `struct bfq_io_cq` in `block/bfq-iosched.h`,
//! Linux 6.1.

use super::hierarchy::{EntityId, GroupId, QueueId};
use super::saved::Saved;
use super::weight_raising::WeightRaising;
use crate::block::request::{Priority, PriorityClass, Request, RequestId};
use crate::elevator::decaying_mean::DecayingMean;
use crate::elevator::fifo::FifoQueue;
use crate::elevator::sort_list::SortList;

/// Longer than any time that is looked back.
pub(super) const LONG_AGO_NS: i64 = i64::MIN / 4;

pub(super) const MS: i64 = 1_000_000;

/// A jump of more sectors than this is a seek.
const SEEK_SECTORS: u64 = 800;
/// On a device without heads, large requests are not seeks.
pub(super) const LARGE_SECTORS: u32 = 64;
/// A queue is seeky with this many seeks among its last 32 requests.
const SEEKY: u32 = 19;

#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub entity: EntityId,
    pub group: GroupId,
    pub sync: bool,
    pub priority: Priority,
    /// I/O contexts that use it, including those that will be merged into it, and its own.
    pub processes: u32,
    pub context: Option<u32>,
    /// Processes whose queue may be merged into it for good (`stable_ref`).
    pub nr_stable: u32,
    /// No process refers to it.
    pub freed: bool,
    pub tree: SortList,
    pub fifo: FifoQueue,
    pub next: Option<RequestId>,
    /// It is among [`super::position::Positions`].
    pub positioned: bool,
    /// The FIFO was checked in this slot.
    pub fifo_checked: bool,
    pub dispatched: u32,
    pub busy: bool,
    /// It is counted by class while busy.
    pub busy_class: PriorityClass,
    pub max_budget: u64,
    /// The end of the slot; outside of slots, the time since which it has no requests.
    pub timeout_ns: i64,
    /// It left with budget and may come back as if it had stayed.
    pub may_resume: bool,
    pub short_think: bool,
    pub io_bound: bool,
    pub think: DecayingMean,
    pub last_end_ns: i64,
    pub io_start_ns: i64,
    pub idle_total_ns: u64,
    pub seeks: u32,
    pub last_sector: u64,
    pub created_ns: i64,
    pub just_created: bool,
    pub wr: WeightRaising,
    /// The factor of its weight (`wr_coeff`); see [`super::Bfq::set_wr_coeff`].
    pub wr_coeff: u64,
    pub split_ns: i64,
    /// Service and start of the current backlog.
    pub service_from_backlogged: u64,
    pub first_io_ns: i64,
    /// Injection.
    pub inject_limit: u32,
    pub base_service_ns: i64,
    pub inject_reset_ns: i64,
    pub waker: Option<QueueId>,
    pub tentative_waker: Option<QueueId>,
    pub nr_waker_detections: u32,
    pub waker_since_ns: i64,
    /// Queues that this one woke; the last one found, or the last with new requests, comes first.
    pub woken: Vec<QueueId>,
    /// Merging: whether several processes share it, whether to split it, and where its processes go
    /// (`new_bfqq`).
    pub shared: bool,
    pub split_wanted: bool,
    pub merged_into: Option<QueueId>,
}

impl Queue {
    pub fn new(
        entity: EntityId,
        group: GroupId,
        sync: bool,
        priority: Priority,
        now_ns: i64,
        tick_ns: i64,
    ) -> Self {
        Self {
            entity,
            group,
            sync,
            priority,
            processes: 0,
            context: None,
            nr_stable: 0,
            freed: false,
            tree: SortList::default(),
            fifo: FifoQueue::default(),
            next: None,
            positioned: false,
            fifo_checked: false,
            dispatched: 0,
            busy: false,
            busy_class: priority.class,
            max_budget: 0,
            timeout_ns: LONG_AGO_NS,
            may_resume: false,
            short_think: sync && priority.class != PriorityClass::Idle,
            io_bound: true,
            think: DecayingMean::default(),
            last_end_ns: now_ns,
            io_start_ns: now_ns,
            idle_total_ns: 0,
            // The first request is most likely far from anything.
            seeks: 1,
            last_sector: 0,
            created_ns: tick_ns,
            just_created: true,
            wr: WeightRaising::new(tick_ns),
            wr_coeff: 1,
            split_ns: LONG_AGO_NS,
            service_from_backlogged: 0,
            first_io_ns: tick_ns,
            inject_limit: 0,
            base_service_ns: 0,
            // As in the kernel, where its first request therefore resets the measurement that is
            // under way for another queue (`decrease_time_jif` is zero).
            inject_reset_ns: LONG_AGO_NS,
            waker: None,
            tentative_waker: None,
            nr_waker_detections: 0,
            waker_since_ns: 0,
            woken: Vec::new(),
            shared: false,
            split_wanted: false,
            merged_into: None,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.wr_coeff > 1
    }

    /// True for a sync queue that no process uses.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.sync && self.processes == 0
    }

    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.priority.class == PriorityClass::Idle
    }

    #[inline]
    pub fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKY
    }

    pub fn is_totally_seeky(&self) -> bool {
        self.seeks == u32::MAX
    }

    /// Updates its seeks with a new request.
    #[inline]
    pub fn note_seek(&mut self, request: &Request, rotational: bool) {
        self.seeks = self.seeks << 1 | u32::from(is_seek(self.last_sector, request, rotational));
    }

    /// Updates its think time with a new request.
    #[inline]
    pub fn note_think_time(&mut self, now_ns: i64, slice_idle_ns: i64) {
        if self.dispatched == 0 && !self.busy {
            let elapsed_ns = (now_ns - self.last_end_ns) as u64;
            self.think.add(elapsed_ns.min(2 * slice_idle_ns as u64));
        }
    }

    /// Updates whether the process thinks for long between requests, unless the queue was split off
    /// recently. Returns true if that changed (`bfq_update_has_short_ttime`).
    #[inline]
    pub fn think_time_turned(&mut self, slice_idle_ns: i64, tick_ns: i64) -> bool {
        if !self.sync
            || self.is_idle_class()
            || slice_idle_ns == 0
            || self.split_ns + super::weight_raising::SILENCE_NS >= tick_ns
        {
            return false;
        }
        let short = !(self.think.is_settled() && self.think.mean() as i64 > slice_idle_ns / 2);
        std::mem::replace(&mut self.short_think, short) != short
    }

    /// I/O-bound: busy for at least 80 % of the last 200 ms or so.
    #[inline]
    pub fn note_intensity(&mut self, now_ns: i64) {
        let total_ns = now_ns - self.io_start_ns;
        if self.is_empty() && self.dispatched == 0 {
            let idle_ns = (now_ns - self.last_end_ns) as u64;
            self.idle_total_ns = self.idle_total_ns.wrapping_add(idle_ns);
        }
        if self.just_created {
            return;
        }
        self.io_bound = self.idle_total_ns.wrapping_mul(5) <= total_ns as u64;
        if total_ns > 200 * MS {
            self.io_start_ns = now_ns - total_ns / 2;
            self.idle_total_ns /= 2;
        }
    }
}

/// The weight of a priority: 80 for level 0 to 10 for level 7; IDLE counts as 7.
pub(super) fn weight_of(priority: Priority) -> u64 {
    (8 - level_of(priority) as u64) * 10
}

pub(super) fn level_of(priority: Priority) -> usize {
    if priority.class == PriorityClass::Idle { 7 } else { usize::from(priority.level.min(7)) }
}

#[inline]
pub(super) fn is_seek(from_sector: u64, request: &Request, rotational: bool) -> bool {
    // 0: no request before.
    from_sector != 0
        && request.sector.abs_diff(from_sector) > SEEK_SECTORS
        && (rotational || request.nr_sectors < LARGE_SECTORS)
}

/// An I/O context (`struct bfq_io_cq`).
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub sync: Option<QueueId>,
    /// The state of its own queue while it shares another.
    pub saved: Saved,
    /// Its requests, including those in the device.
    pub requests: u32,
    /// The queue that it may be merged with, because both were created together.
    pub stable_merge: Option<QueueId>,
    pub stably_merged: bool,
}
