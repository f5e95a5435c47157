//! A trace's own clock, turned into nanoseconds since its first line.

use crate::io::Moment;

/// Counts from the first time that it sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    first: Option<u64>,
    /// The latest moment.
    pub latest_ns: u64,
    /// Times before the first one, which count as the first one.
    pub early: u64,
}

impl Clock {
    /// The moment of a time, in ticks of `tick_ns` nanoseconds.
    #[inline]
    pub fn at(&mut self, ticks: u64, tick_ns: u64) -> Moment {
        let first = *self.first.get_or_insert(ticks);
        if ticks < first {
            self.early += 1;
            return Moment::at(0);
        }
        let ns = (ticks - first).saturating_mul(tick_ns).min(Moment::MAX_NS);
        self.latest_ns = self.latest_ns.max(ns);
        Moment::at(ns)
    }

    /// The moment `after_ns` nanoseconds after another one.
    #[inline]
    pub fn after(&mut self, moment: Moment, after_ns: u64) -> Moment {
        let ns = moment.ns().unwrap_or(0).saturating_add(after_ns).min(Moment::MAX_NS);
        self.latest_ns = self.latest_ns.max(ns);
        Moment::at(ns)
    }
}
