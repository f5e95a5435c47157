//! The state of a process's queue that is kept while it shares another.
//!
//! Kernel: `bfq_bfqq_save_state` and `bfq_bfqq_resume_state` in
//! `block/bfq-iosched.c`, Linux 6.1.

use super::Bfq;
use super::hierarchy::QueueId;
use super::weight_raising::WeightRaising;
use crate::elevator::decaying_mean::DecayingMean;

/// The state of a queue that its process keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saved {
    short_think: bool,
    io_bound: bool,
    think: DecayingMean,
    last_end_ns: i64,
    io_start_ns: i64,
    idle_total_ns: u64,
    inject_limit: u32,
    base_service_ns: i64,
    inject_reset_ns: i64,
    weight: u64,
    wr: WeightRaising,
    wr_coeff: u64,
    pub in_large_burst: bool,
    /// It was on the list of a burst that was not large yet.
    pub in_burst: bool,
    /// True once a state has been saved.
    valid: bool,
}

impl Default for Saved {
    fn default() -> Self {
        Self {
            short_think: false,
            io_bound: false,
            think: DecayingMean::default(),
            last_end_ns: 0,
            io_start_ns: 0,
            idle_total_ns: 0,
            inject_limit: 0,
            base_service_ns: 0,
            inject_reset_ns: 0,
            weight: 0,
            wr: WeightRaising::new(0),
            wr_coeff: 1,
            in_large_burst: false,
            in_burst: false,
            valid: false,
        }
    }
}

impl Bfq {
    /// Saves the state of a queue that belongs to one process.
    pub(super) fn save(&mut self, q: QueueId) {
        let Some(context) = self.queue(q).context else { return };
        let queue = self.queue(q);
        let before = self.processes[context as usize].saved;
        let mut saved = Saved {
            short_think: queue.short_think,
            io_bound: queue.io_bound,
            think: queue.think,
            last_end_ns: queue.last_end_ns,
            io_start_ns: queue.io_start_ns,
            idle_total_ns: queue.idle_total_ns,
            inject_limit: queue.inject_limit,
            base_service_ns: queue.base_service_ns,
            inject_reset_ns: queue.inject_reset_ns,
            weight: self.hierarchy.entities[queue.entity as usize].base_weight,
            wr: queue.wr,
            wr_coeff: self.wr_coeff(q),
            in_large_burst: queue.wr.in_large_burst,
            in_burst: queue.wr.in_burst,
            valid: true,
        };
        if queue.just_created && !queue.wr.in_large_burst && self.settings.low_latency {
            // It had no chance to be raised yet, but would have been.
            saved.wr_coeff = super::weight_raising::INTERACTIVE;
            saved.wr.begin_interactive(self.hierarchy.tick_ns, self.rate.raise_ns());
            saved.wr.service = before.wr.service;
        }
        self.processes[context as usize].saved = saved;
    }

    /// Restores the saved state to a process's own queue.
    pub(super) fn resume(&mut self, q: QueueId, context: u32, existed: bool) {
        let saved = self.processes[context as usize].saved;
        if !saved.valid {
            return;
        }
        let tick_ns = self.hierarchy.tick_ns;
        let raise_ns = self.rate.raise_ns();
        let queue = self.queue_mut(q);
        queue.short_think = saved.short_think;
        queue.io_bound = saved.io_bound;
        queue.think = saved.think;
        queue.last_end_ns = saved.last_end_ns;
        queue.io_start_ns = saved.io_start_ns;
        queue.idle_total_ns = saved.idle_total_ns;
        queue.inject_limit = saved.inject_limit;
        queue.base_service_ns = saved.base_service_ns;
        queue.inject_reset_ns = saved.inject_reset_ns;
        queue.wr.take_period(&saved.wr);
        queue.wr.service = saved.wr.service;
        let large_burst = queue.wr.in_large_burst;
        let over = saved.wr.started_ns + saved.wr.duration_ns < tick_ns;
        let entity = queue.entity as usize;
        self.hierarchy.entities[entity].new_weight = saved.weight;
        self.hierarchy.entities[entity].changed = true;
        let mut wr_coeff =
            if self.settings.low_latency { saved.wr_coeff } else { self.wr_coeff(q) };
        if wr_coeff > 1 && (large_burst || over) {
            let goes_on = saved.wr.is_soft_real_time()
                && !large_burst
                && saved.wr.interrupted_ns() + raise_ns >= tick_ns;
            if goes_on {
                self.queue_mut(q).wr.back_to_interactive(raise_ns);
                wr_coeff = super::weight_raising::INTERACTIVE;
            } else {
                wr_coeff = 1;
            }
        }
        // A new queue is not busy: it counts once it becomes busy.
        debug_assert!(existed || !self.queue(q).busy);
        self.set_wr_coeff(q, wr_coeff);
    }
}
