//! Tunables that are stored while the scheduler runs.
//!
//! Kernel: `bfq_*_store` in `block/bfq-iosched.c`, Linux 6.1.

use super::queue::MS;
use super::{Bfq, Settings};
use crate::block::queue_facts::QueueFacts;
use crate::core::params::Values;

/// The least `slice_idle` when `strict_guarantees` is turned on.
const STRICT_IDLE_NS: i64 = 8 * MS;

impl Bfq {
    pub(super) fn store(&mut self, tunables: &Values, name: &str, facts: &QueueFacts) {
        let before = self.settings;
        self.settings =
            Settings { slice_idle_ns: before.slice_idle_ns, ..Settings::new(tunables, facts) };
        match name {
            "slice_idle" => self.settings.slice_idle_ns = tunables.get_ns(name) as i64,
            "slice_idle_us" => {
                self.settings.slice_idle_ns = Settings::new(tunables, facts).slice_idle_ns;
            }
            "low_latency" if before.low_latency && !self.settings.low_latency => {
                self.end_all_raises();
            }
            "strict_guarantees" if !before.strict && self.settings.strict => {
                self.settings.slice_idle_ns = before.slice_idle_ns.max(STRICT_IDLE_NS);
            }
            "max_budget" if self.settings.max_budget > 0 => {
                self.max_budget = self.settings.max_budget;
            }
            "max_budget" | "timeout_sync" => self.follow_rate(),
            _ => {}
        }
    }
}
