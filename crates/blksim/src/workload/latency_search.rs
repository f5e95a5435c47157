//! The search for the highest depth with which I/Os meet a latency (`latency_target`), as in
//! `io_u.c` of fio 3.33.

use super::job::LatencyGoal;

/// Successes in a row after which the upper end of the search moves up.
const STABLE: u32 = 3;

#[derive(Debug, Clone)]
pub(super) struct LatencySearch {
    goal: LatencyGoal,
    iodepth: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable_count: u32,
    /// Start of the current window, and what it has seen.
    window_ns: u64,
    ios: u64,
    failed: u64,
    /// The depth is found and runs for one more window.
    last_window: bool,
    /// No further I/O.
    pub done: bool,
    /// I/Os in flight end before the next begins.
    pub drains: bool,
}

impl LatencySearch {
    pub fn new(goal: LatencyGoal, iodepth: u32) -> Self {
        Self {
            goal,
            iodepth,
            depth: 1,
            low: 1,
            high: iodepth,
            stable_count: 0,
            window_ns: 0,
            ios: 0,
            failed: 0,
            last_window: false,
            done: false,
            drains: false,
        }
    }

    pub fn start(&mut self, now_ns: u64) {
        self.window_ns = now_ns;
    }

    /// Most I/Os in flight.
    pub fn depth(&self) -> u64 {
        u64::from(self.depth)
    }

    /// Notes a completed I/O.
    pub fn completed(&mut self, latency_ns: u64, now_ns: u64) {
        self.ios += 1;
        if latency_ns > self.goal.target_ns {
            if self.goal.percentile >= 100.0 {
                self.lower(now_ns);
            } else {
                self.failed += 1;
            }
        }
    }

    /// Judges the depth once its window is over.
    pub fn check(&mut self, now_ns: u64) {
        if self.ios == 0 || now_ns.saturating_sub(self.window_ns) < self.goal.window_ns {
            return;
        }
        let met = (self.ios - self.failed.min(self.ios)) as f64 / self.ios as f64 * 100.0;
        if met >= self.goal.percentile {
            self.raise(now_ns);
        } else {
            self.lower(now_ns);
        }
    }

    fn lower(&mut self, now_ns: u64) {
        if self.depth == 1 {
            return;
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low).max(1);
        self.stable_count = 0;
        self.drains = true;
        self.new_window(now_ns);
    }

    fn raise(&mut self, now_ns: u64) {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            self.stable_count += 1;
            if self.stable_count >= STABLE {
                self.high += 1;
                self.stable_count = 0;
            }
        }
        self.depth = if self.high == self.iodepth {
            self.depth.saturating_mul(2)
        } else {
            u32::midpoint(self.depth, self.high)
        };
        self.depth = self.depth.min(self.iodepth);
        if !self.goal.run && self.depth == before {
            self.done = self.last_window;
            self.last_window = true;
        }
        self.new_window(now_ns);
    }

    fn new_window(&mut self, now_ns: u64) {
        self.window_ns = now_ns;
        self.ios = 0;
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a search on a device whose latency is `per_depth_ns` times the depth.
    fn found(iodepth: u32, per_depth_ns: u64) -> (u32, bool) {
        let goal = LatencyGoal { target_ns: 1000, window_ns: 10_000, percentile: 90.0, run: false };
        let mut search = LatencySearch::new(goal, iodepth);
        let mut now_ns = 0;
        for _ in 0..100_000 {
            if search.done {
                break;
            }
            let latency_ns = per_depth_ns * search.depth();
            now_ns += latency_ns;
            search.completed(latency_ns, now_ns);
            search.check(now_ns);
        }
        (search.depth, search.done)
    }

    #[test]
    fn the_highest_depth_that_meets_the_latency_is_found() {
        assert_eq!(found(128, 1), (128, true));
        assert_eq!(found(64, 100), (10, true));
        assert_eq!(found(64, 2000).0, 1);
    }
}
