//! Weight raising (`low_latency`): the weight of new, long idle and steadily slow queues is
//! multiplied by `wr_coeff` for a while.
//!
//! *Interactive*: a queue that is new or was idle for 2 s has `wr_coeff` 30, for the time in which
//! a large application starts on the device, or for 120,000 sectors. *Soft real-time*: a queue
//! whose requests come no sooner than its rate so far allows (at most 7000 sectors a second) has
//! `wr_coeff` 3000, for 300 ms at a time. Neither applies to the queues of a *large burst*: eight
//! or more created in quick succession, as when a service with many processes starts.
//!
//! Kernel: `block/bfq-iosched.c`, Linux 6.1: `bfq_update_bfqq_wr_on_rq_arrival`,
//! `bfq_update_wr_data`, `bfq_bfqq_softrt_next_start`, `bfq_handle_burst`.

use super::Bfq;
use super::hierarchy::{GroupId, Place, QueueId, ROOT};
use super::queue::{LONG_AGO_NS, MS};

pub(super) const INTERACTIVE: u64 = 30;
const SOFT_REAL_TIME: u64 = 3000;
const SOFT_REAL_TIME_NS: i64 = 300 * MS;
/// Idleness after which a sync queue counts as interactive, and an async one is raised.
pub(super) const SILENCE_NS: i64 = 2000 * MS;
const ASYNC_SILENCE_NS: i64 = 500 * MS;
/// Sectors after which a queue was not interactive after all.
const MOST_SERVICE: u64 = 120_000;
/// Sectors a second of the fastest soft real-time application (`bfq_wr_max_softrt_rate`).
const SOFT_REAL_TIME_RATE: u64 = 7000;
/// Ticks of tolerance for the next arrival.
const MORE_TICKS: i64 = 4;
/// Size of a large burst, and the time between its queues.
const LARGE_BURST: usize = 8;
pub(super) const BURST_NS: i64 = 180 * MS;
const BURST_FORGOTTEN_NS: i64 = 10_000 * MS;
/// The weight of the default priority; the only one that is raised.
const DEFAULT_WEIGHT: u64 = 40;

/// The state of a queue's weight raising (`last_wr_start_finish`, `wr_cur_max_time`,
/// `soft_rt_next_start`).
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightRaising {
    /// Start of the raising; for a queue that is not raised, its last arrival or service.
    pub started_ns: i64,
    pub duration_ns: i64,
    soft_real_time: bool,
    /// Start of the interactive period that soft real-time interrupted.
    interrupted_ns: i64,
    pub service: u64,
    /// The earliest next arrival that counts as soft real-time.
    pub soft_next_ns: i64,
    /// Compute that time when nothing is outstanding.
    pub soft_pending: bool,
    pub backlogged_ns: i64,
    pub in_large_burst: bool,
    pub in_burst: bool,
}

impl WeightRaising {
    pub fn new(now_ns: i64) -> Self {
        Self {
            started_ns: now_ns,
            duration_ns: 0,
            soft_real_time: false,
            interrupted_ns: LONG_AGO_NS,
            service: 0,
            soft_next_ns: now_ns,
            soft_pending: false,
            backlogged_ns: now_ns,
            in_large_burst: false,
            in_burst: false,
        }
    }

    pub fn is_soft_real_time(&self) -> bool {
        self.soft_real_time
    }

    pub fn interrupted_ns(&self) -> i64 {
        self.interrupted_ns
    }

    /// Takes over the period of another queue.
    pub fn take_period(&mut self, other: &Self) {
        self.duration_ns = other.duration_ns;
        self.started_ns = other.started_ns;
        self.soft_real_time = other.soft_real_time;
        self.interrupted_ns = other.interrupted_ns;
    }

    pub fn begin_interactive(&mut self, tick_ns: i64, duration_ns: i64) {
        self.duration_ns = duration_ns;
        self.started_ns = tick_ns;
        self.soft_real_time = false;
        self.interrupted_ns = LONG_AGO_NS;
    }

    /// Returns to the interactive period that soft real-time interrupted.
    pub fn back_to_interactive(&mut self, duration_ns: i64) {
        self.duration_ns = duration_ns;
        self.started_ns = self.interrupted_ns;
        self.soft_real_time = false;
    }
}

/// A burst: queues created in quick succession.
#[derive(Debug, Clone, Default)]
pub(super) struct Burst {
    queues: Vec<QueueId>,
    /// Its size, including queues that have left.
    pub size: usize,
    pub large: bool,
    last_ns: i64,
    group: GroupId,
}

/// The classification of an arrival on an empty queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub interactive: bool,
    pub soft_real_time: bool,
    pub in_burst: bool,
    pub deserves: bool,
    idle_for_long: bool,
}

impl Bfq {
    pub(super) fn wr_coeff(&self, q: QueueId) -> u64 {
        self.queues[q as usize].wr_coeff
    }

    pub(super) fn is_raised(&self, q: QueueId) -> bool {
        self.queues[q as usize].is_raised()
    }

    /// Sets a queue's `wr_coeff`. The weight follows when the entity is next entered, or with
    /// [`Self::update_wr_data`].
    pub(super) fn set_wr_coeff(&mut self, q: QueueId, wr_coeff: u64) {
        let queue = &mut self.queues[q as usize];
        let old = std::mem::replace(&mut queue.wr_coeff, wr_coeff);
        let entity = &mut self.hierarchy.entities[queue.entity as usize];
        entity.wr_coeff = wr_coeff;
        entity.changed = true;
        if queue.busy && (old > 1) != (wr_coeff > 1) {
            if wr_coeff > 1 {
                self.nr_raised += 1;
            } else {
                self.nr_raised -= 1;
            }
        }
    }

    pub(super) fn classify(&self, q: QueueId, context: u32) -> Arrival {
        let now_ns = self.hierarchy.tick_ns;
        let queue = &self.queues[q as usize];
        let weight = self.hierarchy.entities[queue.entity as usize].new_weight;
        let default_weight = weight == DEFAULT_WEIGHT;
        let idle_for_long = queue.dispatched == 0 && queue.timeout_ns + SILENCE_NS < now_ns;
        let in_burst = queue.wr.in_large_burst;
        let soft_real_time = !queue.is_totally_seeky()
            && !in_burst
            && queue.wr.soft_next_ns < now_ns
            && queue.dispatched == 0
            && default_weight;
        let interactive = !in_burst && idle_for_long && default_weight;
        let stably_merged = self.processes[context as usize].stably_merged;
        let unshared = queue.context.is_some() || stably_merged;
        let deserves = self.settings.low_latency
            && (self.is_raised(q) || (queue.sync && unshared && (interactive || soft_real_time)));
        Arrival { interactive, soft_real_time, in_burst, deserves, idle_for_long }
    }

    /// A queue got its first request after having none.
    pub(super) fn raise_on_arrival(&mut self, q: QueueId, arrival: Arrival) {
        let now_ns = self.hierarchy.tick_ns;
        let raise_ns = self.rate.raise_ns();
        let least_budget = self.min_budget();
        let old = self.wr_coeff(q);
        let queue = &mut self.queues[q as usize];
        if !queue.just_created
            && arrival.idle_for_long
            && queue.timeout_ns + BURST_FORGOTTEN_NS < now_ns
        {
            queue.wr.in_large_burst = false;
            self.leave_burst_list(q);
        }
        let queue = &mut self.queues[q as usize];
        queue.just_created = false;
        if !self.settings.low_latency || queue.split_ns + SILENCE_NS >= now_ns {
            return;
        }
        let wr = &mut queue.wr;
        let mut wr_coeff = old;
        if old == 1 {
            if arrival.deserves {
                if arrival.interactive {
                    wr.service = 0;
                    wr.soft_real_time = false;
                    wr.duration_ns = raise_ns;
                    wr_coeff = INTERACTIVE;
                } else {
                    wr.interrupted_ns = LONG_AGO_NS;
                    wr.soft_real_time = true;
                    wr.duration_ns = SOFT_REAL_TIME_NS;
                    wr_coeff = SOFT_REAL_TIME;
                }
                // A small budget: it needs low latency.
                let entity = &mut self.hierarchy.entities[queue.entity as usize];
                entity.budget = entity.budget.min(2 * least_budget);
            }
        } else if arrival.interactive {
            wr.soft_real_time = false;
            wr.duration_ns = raise_ns;
            wr_coeff = INTERACTIVE;
        } else if arrival.in_burst {
            wr_coeff = 1;
        } else if arrival.soft_real_time {
            if !wr.soft_real_time {
                wr.interrupted_ns = wr.started_ns;
            }
            wr.soft_real_time = true;
            wr.duration_ns = SOFT_REAL_TIME_NS;
            wr.started_ns = now_ns;
            wr_coeff = SOFT_REAL_TIME;
        }
        if wr_coeff != old {
            self.set_wr_coeff(q, wr_coeff);
        }
    }

    /// Raises an async queue that was idle for long, as interactive.
    pub(super) fn raise_async(&mut self, q: QueueId) {
        let raise_ns = self.rate.raise_ns();
        let wr = &mut self.queues[q as usize].wr;
        if wr.started_ns + ASYNC_SILENCE_NS < self.hierarchy.tick_ns {
            wr.duration_ns = raise_ns;
            wr.soft_real_time = false;
            self.set_wr_coeff(q, INTERACTIVE);
        }
    }

    /// Ends or changes the raising of the queue in service when it is due (`bfq_update_wr_data`).
    #[inline]
    pub(super) fn update_wr_data(&mut self, q: QueueId) {
        if self.is_raised(q) {
            self.end_raise_in_time(q);
        }
        let id = self.queues[q as usize].entity;
        let entity = &self.hierarchy.entities[id as usize];
        if (entity.weight > entity.base_weight) != (entity.wr_coeff > 1) {
            self.hierarchy.renew(id, false);
        }
    }

    fn end_raise_in_time(&mut self, q: QueueId) {
        let now_ns = self.hierarchy.tick_ns;
        let wr = &self.queues[q as usize].wr;
        if wr.in_large_burst {
            self.end_raise(q);
        } else if wr.started_ns + wr.duration_ns < now_ns {
            let interrupted_is_over = wr.interrupted_ns + self.rate.raise_ns() < now_ns;
            if !wr.soft_real_time || interrupted_is_over {
                self.end_raise(q);
            } else {
                self.back_to_interactive(q);
            }
        }
        let queue = &self.queues[q as usize];
        if queue.is_raised() && !queue.wr.soft_real_time && queue.wr.service > MOST_SERVICE {
            self.end_raise(q);
        }
    }

    fn end_raise(&mut self, q: QueueId) {
        let wr = &mut self.queues[q as usize].wr;
        if !wr.soft_real_time {
            wr.soft_next_ns = self.hierarchy.tick_ns;
        }
        wr.duration_ns = 0;
        wr.soft_real_time = false;
        wr.started_ns = self.hierarchy.tick_ns;
        self.set_wr_coeff(q, 1);
    }

    /// Ends the raising of the queues in trees and of all async ones: `low_latency` was turned off
    /// (`bfq_end_wr`). The one in service is in no tree, and is raised until its time is up.
    pub(super) fn end_all_raises(&mut self) {
        for q in 0..self.queues.len() as QueueId {
            let queue = self.queue(q);
            let in_tree = self.hierarchy.entities[queue.entity as usize].place != Place::Out;
            if !queue.freed && (in_tree || !queue.sync) {
                self.end_raise(q);
            }
        }
    }

    fn back_to_interactive(&mut self, q: QueueId) {
        let raise_ns = self.rate.raise_ns();
        self.queues[q as usize].wr.back_to_interactive(raise_ns);
        self.set_wr_coeff(q, INTERACTIVE);
    }

    /// A totally seeky queue is not soft real-time.
    pub(super) fn end_soft(&mut self, q: QueueId) {
        let wr = &self.queues[q as usize].wr;
        if wr.interrupted_ns + self.rate.raise_ns() < self.hierarchy.tick_ns {
            self.end_raise(q);
        } else {
            self.back_to_interactive(q);
        }
    }

    /// Extends the raising of a soft real-time queue that got no service for a while.
    pub(super) fn prolong_soft(&mut self, q: QueueId) {
        let now_ns = self.hierarchy.tick_ns;
        let raised = self.is_raised(q);
        let queue = &mut self.queues[q as usize];
        let wr = &mut queue.wr;
        if raised && wr.soft_real_time && wr.started_ns < now_ns && queue.timeout_ns < now_ns {
            if queue.timeout_ns > wr.started_ns {
                wr.started_ns += now_ns - queue.timeout_ns;
            } else {
                wr.started_ns = now_ns;
            }
        }
    }

    /// The earliest next arrival on the empty queue that counts as soft real-time
    /// (`bfq_bfqq_softrt_next_start`).
    pub(super) fn set_soft_next(&mut self, q: QueueId) {
        let now_ns = self.hierarchy.tick_ns;
        let waits_ns =
            self.settings.tick(self.settings.slice_idle_ns) + MORE_TICKS * self.settings.jiffy_ns;
        let queue = &mut self.queues[q as usize];
        let paced_ns = queue.wr.backlogged_ns
            + (queue.service_from_backlogged.saturating_mul(1_000_000_000) / SOFT_REAL_TIME_RATE)
                as i64;
        queue.wr.soft_next_ns = queue.wr.soft_next_ns.max(paced_ns).max(now_ns + waits_ns);
    }

    /// A queue has been created: adds it to the burst if it belongs there (`bfq_handle_burst`).
    pub(super) fn note_burst(&mut self, q: QueueId) {
        let now_ns = self.hierarchy.tick_ns;
        let nothing_busy = self.nr_busy() == 0;
        let after_split_ns = self.settings.jiffies(10 * MS);
        let queue = &mut self.queues[q as usize];
        if queue.wr.in_burst || queue.wr.in_large_burst || queue.split_ns + after_split_ns >= now_ns
        {
            return;
        }
        let group = queue.group;
        if self.burst.last_ns + BURST_NS < now_ns || group != self.burst.group {
            self.burst.large = false;
            self.empty_burst_list();
            self.burst.size = 0;
            if nothing_busy {
                self.burst.size = 1;
                self.join_burst_list(q);
            }
            self.burst.group = group;
        } else if self.burst.large {
            queue.wr.in_large_burst = true;
        } else {
            self.burst.size += 1;
            if self.burst.size == LARGE_BURST {
                self.burst.large = true;
                self.join_burst_list(q);
                for &other in &self.burst.queues {
                    self.queues[other as usize].wr.in_large_burst = true;
                }
                self.empty_burst_list();
            } else {
                self.join_burst_list(q);
            }
        }
        self.burst.last_ns = now_ns;
    }

    pub(super) fn join_burst_list(&mut self, q: QueueId) {
        self.queues[q as usize].wr.in_burst = true;
        self.burst.queues.push(q);
    }

    fn empty_burst_list(&mut self) {
        for other in self.burst.queues.drain(..) {
            self.queues[other as usize].wr.in_burst = false;
        }
    }

    pub(super) fn leave_burst_list(&mut self, q: QueueId) {
        if std::mem::take(&mut self.queues[q as usize].wr.in_burst) {
            self.burst.queues.retain(|other| *other != q);
        }
    }
}

impl Burst {
    pub fn new() -> Self {
        Self { last_ns: LONG_AGO_NS, group: ROOT, ..Self::default() }
    }
}
