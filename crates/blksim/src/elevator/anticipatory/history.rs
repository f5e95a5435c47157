//! The history of tasks (`struct as_io_context`): how long they think between reads, how far they
//! seek, and how likely a new one ends after its first.

use super::super::decaying_mean::DecayingMean;
use super::TICK_NS;

/// Think times are capped at 20 ms.
const MAX_THINK_NS: u64 = 20_000_000 - TICK_NS;
/// Probabilities are fixed-point numbers: 256 stands for one.
const ONE: u64 = 256;

/// One step of a decaying probability towards "it happened".
#[inline]
fn raised(probability: u64) -> u64 {
    (7 * probability + ONE) / 8
}

/// One step towards "it did not happen".
#[inline]
fn lowered(probability: u64) -> u64 {
    7 * probability / 8
}

/// The history of a task on this disk.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub alive: bool,
    /// Requests that the scheduler holds.
    pub queued: u32,
    /// True once it has inserted, and completed, a sync request.
    started: bool,
    pub completed: bool,
    pub last_end_ns: u64,
    last_sector: u64,
    pub think: DecayingMean,
    seek: DecayingMean,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            alive: true,
            queued: 0,
            started: false,
            completed: false,
            last_end_ns: 0,
            last_sector: 0,
            think: DecayingMean::default(),
            seek: DecayingMean::default(),
        }
    }
}

/// The statistics of first requests, for tasks without a history.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Newcomers {
    think_total: u64,
    think_mean_ns: u64,
    seek_total: u64,
    seek_mean: u64,
    /// The probability that a task ends, or thinks too long, after its first read.
    exit: u64,
    /// The probability that no other task reads nearby after it ended.
    exit_without_successor: u64,
}

impl Newcomers {
    pub fn exits_again(&mut self) {
        self.exit = raised(self.exit);
    }

    pub fn no_successor_again(&mut self) {
        self.exit_without_successor = raised(self.exit_without_successor);
    }

    pub fn successor_came(&mut self) {
        self.exit_without_successor = lowered(self.exit_without_successor);
    }

    /// True if an ended task is hardly ever followed by a neighbour.
    pub fn successor_unlikely(&self) -> bool {
        self.exit_without_successor > ONE / 2
    }

    /// True if waiting for a new task's second read does not pay.
    pub fn not_worth_waiting(&self, antic_expire_ns: u64) -> bool {
        self.think_mean_ns > antic_expire_ns
            || self.exit * self.exit_without_successor > ONE * ONE / 2
    }
}

impl Task {
    /// Learns from a sync request at `sector` .. `end` that the task inserts.
    #[inline]
    pub fn learn(&mut self, newcomers: &mut Newcomers, now_ns: u64, sector: u64, end: u64) {
        if self.started {
            let idle = self.completed && self.queued == 0;
            let think_ns = if idle { (now_ns - self.last_end_ns).min(MAX_THINK_NS) } else { 0 };
            if self.think.is_empty() {
                newcomers.think_total = (7 * newcomers.think_total + 256 * think_ns) / 8;
                newcomers.think_mean_ns = newcomers.think_total / 256;
                newcomers.exit = lowered(newcomers.exit);
            }
            self.think.add(think_ns);
            let distance = self.last_sector.abs_diff(sector);
            if self.seek.is_empty() {
                newcomers.seek_total =
                    (7 * newcomers.seek_total).saturating_add(distance.saturating_mul(256)) / 8;
                newcomers.seek_mean = newcomers.seek_total / 256;
            }
            self.seek.add_seek(distance);
        }
        self.started = true;
        self.last_sector = end;
    }

    /// The expected seek of its next request.
    #[inline]
    pub fn expected_seek(&self, newcomers: &Newcomers) -> u64 {
        if self.seek.is_empty() { newcomers.seek_mean } else { self.seek.mean() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_counts_only_while_nothing_is_queued() {
        let mut newcomers = Newcomers::default();
        let mut task = Task::default();
        task.learn(&mut newcomers, 0, 0, 8);
        assert!(task.think.is_empty(), "a first request tells nothing");
        task.completed = true;
        task.last_end_ns = 1_000_000;
        task.learn(&mut newcomers, 4_000_000, 8, 16);
        assert!((2_990_000..=3_010_000).contains(&task.think.mean()));
        task.queued = 1;
        task.learn(&mut newcomers, 90_000_000, 16, 24);
        assert!(task.think.mean() < 2_000_000);
    }

    #[test]
    fn tasks_that_read_once_are_not_waited_for() {
        let mut newcomers = Newcomers::default();
        assert!(!newcomers.not_worth_waiting(6_000_000));
        for _ in 0..20 {
            newcomers.exits_again();
            newcomers.no_successor_again();
        }
        assert!(newcomers.not_worth_waiting(6_000_000) && newcomers.successor_unlikely());
        for _ in 0..20 {
            newcomers.successor_came();
        }
        assert!(!newcomers.not_worth_waiting(6_000_000) && !newcomers.successor_unlikely());
    }
}
