//! Dirty throttling: the pauses of tasks that dirty pages, which follow the device's speed.
//!
//! Kernel: `balance_dirty_pages` and what it calls in `mm/page-writeback.c`, Linux 6.1. Rates are
//! in pages a second, times in ticks.
//!
//! Simplified: one device, whose share of all writeback is 0 before its first page is written and 1
//! afterwards; counters are exact (the kernel's are per processor).

use crate::core::jiffies::{jiffies, jiffy_ns, timer_ns};
use crate::mm::page_cache::PAGE_BYTES;

/// The kernel's first estimate: 100 MiB/s (`INIT_BW`).
const INITIAL_BANDWIDTH: u64 = (100 << 20) / PAGE_BYTES;
/// Least number of pages between two checks of a task that must slow down.
const POLL_PAGES: u64 = 32;
/// Pages between two checks once the limit is exceeded.
const POLL_PAGES_BEYOND: u64 = 8;
/// The factor 1.
const ONE: i64 = 1 << 10;

/// The dirtying of a task (`struct task_struct`).
#[derive(Debug, Clone, Copy)]
pub struct Dirtier {
    /// Pages since the last check.
    nr_dirtied: u64,
    /// Pages until the next check (`nr_dirtied_pause`).
    poll_pages: u64,
    /// Tick up to which its pauses have paid for its pages.
    paused_when: u64,
    /// It must be checked before it continues.
    pub must_balance: bool,
}

impl Default for Dirtier {
    fn default() -> Self {
        Self { nr_dirtied: 0, poll_pages: POLL_PAGES, paused_when: 0, must_balance: false }
    }
}

/// Dirty pages, including those under writeback, and their thresholds.
#[derive(Debug, Clone, Copy)]
pub struct Level {
    pub dirty: u64,
    pub background: u64,
    pub limit: u64,
    /// At least `limit`, which it follows slowly where that shrinks (`hard_dirty_limit`).
    pub hard_limit: u64,
}

impl Level {
    /// Below this number no task is held back (`dirty_freerun_ceiling`).
    fn free_run(self) -> u64 {
        u64::midpoint(self.background, self.limit)
    }

    fn set_point(self) -> u64 {
        u64::midpoint(self.free_run(), self.hard_limit)
    }

    /// Pages between two checks while no task is held back (`dirty_poll_interval`).
    fn poll_interval(self) -> u64 {
        match self.limit.saturating_sub(self.dirty) {
            0 => 1,
            room => 1 << (room.ilog2() / 2),
        }
    }
}

/// The estimated writeback of the device (`struct bdi_writeback`).
#[derive(Debug, Clone)]
pub struct DirtyThrottle {
    /// Ticks a second.
    hz: u64,
    bandwidth: u64,
    average_bandwidth: u64,
    /// The rate of one dirtier, and the rate at which all would balance.
    rate: u64,
    balanced_rate: u64,
    /// Time of the last estimate, and the counters at that time.
    stamp: u64,
    dirtied_stamp: u64,
    written_stamp: u64,
    dirtied: u64,
    written: u64,
    exceeded: bool,
    /// The limit that the rates follow, and the time of its last change (`update_dirty_limit`).
    hard_limit: u64,
    hard_limit_stamp: u64,
    /// Pages that all tasks dirtied since the last check.
    since_any_asked: u64,
}

impl DirtyThrottle {
    pub fn new(hz: u64, limit_pages: u64) -> Self {
        Self {
            hz,
            bandwidth: INITIAL_BANDWIDTH,
            average_bandwidth: INITIAL_BANDWIDTH,
            rate: INITIAL_BANDWIDTH,
            balanced_rate: INITIAL_BANDWIDTH,
            stamp: 0,
            dirtied_stamp: 0,
            written_stamp: 0,
            dirtied: 0,
            written: 0,
            exceeded: false,
            hard_limit: limit_pages,
            hard_limit_stamp: 0,
            since_any_asked: 0,
        }
    }

    pub(crate) fn hard_limit(&self) -> u64 {
        self.hard_limit
    }

    /// Pages that the device writes in a second, smoothed.
    pub fn average_bandwidth(&self) -> u64 {
        self.average_bandwidth
    }

    /// Whether a page was ever written.
    pub(crate) fn has_written(&self) -> bool {
        self.written > 0
    }

    pub fn note_written(&mut self, pages: u64) {
        self.written += pages;
    }

    /// A task dirtied a page, which was clean or dirty before (`balance_dirty_pages_ratelimited`).
    pub fn note_touched(&mut self, task: &mut Dirtier, was_clean: bool, limit_pages: u64) {
        if was_clean {
            self.dirtied += 1;
            task.nr_dirtied += 1;
            self.since_any_asked += 1;
        }
        let mut poll_pages = task.poll_pages;
        if self.exceeded {
            poll_pages = poll_pages.min(POLL_PAGES_BEYOND);
        }
        if task.nr_dirtied >= poll_pages {
            self.since_any_asked = 0;
        } else if self.since_any_asked >= (limit_pages / 32).max(16) {
            self.since_any_asked = 0;
            poll_pages = 0;
        }
        task.must_balance = task.nr_dirtied >= poll_pages;
    }

    /// The time until which a task must pause, if it must. It must be checked again afterwards if
    /// [`Dirtier::must_balance`] is still set.
    pub fn balance(&mut self, task: &mut Dirtier, level: Level, now_ns: u64) -> Option<u64> {
        let now = self.ticks(now_ns);
        let pages = task.nr_dirtied;
        task.must_balance = false;
        if level.dirty <= level.free_run() {
            task.paused_when = now;
            task.nr_dirtied = 0;
            task.poll_pages = level.poll_interval();
            return None;
        }
        self.exceeded = level.dirty > level.limit;
        let ratio = self.position_ratio(level);
        if self.stamp + self.interval() < now {
            self.update_hard_limit(level, now);
            self.update_rate(level, ratio, now);
            self.update_bandwidth(now);
        }
        let task_rate = ((u128::from(self.rate) * ratio as u128) >> 10) as u64;
        let max_pause = self.max_pause(level.dirty);
        let (min_pause, poll_pages) = self.min_pause(max_pause, task_rate);
        let mut paused_from = now;
        let mut pause = max_pause as i64;
        if let Some(period) = (self.hz * pages).checked_div(task_rate) {
            pause = period as i64;
            if task.paused_when > 0 {
                // Pauses made in advance shorten this one, pauses owed lengthen it.
                pause -= now as i64 - task.paused_when as i64;
            }
            if pause < min_pause as i64 {
                if pause < -(self.hz as i64) {
                    task.paused_when = now;
                    task.nr_dirtied = 0;
                } else if period > 0 {
                    task.paused_when += period;
                    task.nr_dirtied = 0;
                } else if task.poll_pages <= pages {
                    task.poll_pages += pages;
                }
                return None;
            }
            if pause > max_pause as i64 {
                paused_from += (pause as u64 - max_pause).min(max_pause);
                pause = max_pause as i64;
            }
        }
        task.paused_when = paused_from + pause as u64;
        task.nr_dirtied = 0;
        task.poll_pages = poll_pages;
        task.must_balance = task_rate == 0;
        Some(timer_ns(now_ns, pause as u64, jiffy_ns(self.hz)))
    }

    fn ticks(&self, now_ns: u64) -> u64 {
        jiffies(now_ns, jiffy_ns(self.hz))
    }

    /// A fifth of a second in ticks: the period of the estimates, and the longest pause.
    fn interval(&self) -> u64 {
        (self.hz / 5).max(1)
    }

    /// The factor for the rate, in 1024ths, by the distance of the dirty pages from their set point
    /// (`wb_position_ratio`).
    fn position_ratio(&self, level: Level) -> i64 {
        let (dirty, limit) = (level.dirty as i64, level.limit as i64);
        let hard_limit = level.hard_limit as i64;
        if dirty >= hard_limit {
            return 0;
        }
        let set_point = level.set_point() as i64;
        let x = (set_point - dirty) * ONE / ((hard_limit - set_point) | 1);
        let mut ratio = ((((x * x) >> 10) * x) >> 10) + ONE;
        ratio = ratio.clamp(0, 2 * ONE);
        // The device's share.
        let share = if self.written == 0 { (hard_limit - dirty) / 8 } else { limit };
        let part = (share << 16) / (limit | 1);
        let own_set_point = (set_point * part) >> 16;
        let span = ((limit - share + 8 * self.average_bandwidth as i64) * part) >> 16;
        let intercept = own_set_point + span;
        if dirty < intercept - span / 4 {
            ratio = ratio * (intercept - dirty) / ((intercept - own_set_point) | 1);
        } else {
            ratio /= 4;
        }
        let reserve = share / 2;
        if dirty < reserve {
            ratio = if dirty > reserve / 8 { ratio * reserve / dirty } else { ratio * 8 };
        }
        ratio
    }

    /// `domain_update_dirty_limit`.
    fn update_hard_limit(&mut self, level: Level, now: u64) {
        if now < self.hard_limit_stamp + self.interval() {
            return;
        }
        let least = level.limit.max(level.dirty);
        if self.hard_limit < level.limit {
            self.hard_limit = level.limit;
        } else if self.hard_limit > least {
            self.hard_limit -= (self.hard_limit - least) >> 5;
        }
        self.hard_limit_stamp = now;
    }

    /// `wb_update_dirty_ratelimit`.
    fn update_rate(&mut self, level: Level, ratio: i64, now: u64) {
        let elapsed = (now - self.stamp).max(1);
        let dirty_rate = (self.dirtied - self.dirtied_stamp) * self.hz / elapsed;
        let task_rate = ((u128::from(self.rate) * ratio as u128) >> 10) as u64 + 1;
        let balanced = (u128::from(task_rate) * u128::from(self.average_bandwidth)
            / u128::from(dirty_rate | 1)) as u64;
        let balanced = balanced.min(self.average_bandwidth);
        let step = if level.dirty < level.set_point() {
            self.balanced_rate.min(balanced).min(task_rate).saturating_sub(self.rate)
        } else {
            self.rate.saturating_sub(self.balanced_rate.max(balanced).max(task_rate))
        };
        // Small steps are not worthwhile.
        let shift = self.rate / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.rate =
            if self.rate < balanced { self.rate + step } else { self.rate.saturating_sub(step) }
                .max(1);
        self.balanced_rate = balanced;
    }

    /// `wb_update_write_bandwidth`: smoothed over about three seconds.
    fn update_bandwidth(&mut self, now: u64) {
        let elapsed = (now - self.stamp).max(1);
        let period = (3 * self.hz).next_power_of_two();
        let old = self.bandwidth;
        let mut average = self.average_bandwidth;
        let done = (self.written - self.written_stamp) * self.hz;
        if elapsed > period {
            self.bandwidth = done / elapsed;
            average = self.bandwidth;
        } else {
            let new = (done + old * (period - elapsed)) >> period.ilog2();
            if average > old && old >= new {
                average -= (average - old) >> 3;
            }
            if average < old && old <= new {
                average += (old - average) >> 3;
            }
            self.bandwidth = new;
        }
        self.average_bandwidth = average.max(1);
        self.stamp = now;
        self.dirtied_stamp = self.dirtied;
        self.written_stamp = self.written;
    }

    /// Writeback begins. If none is under way, the time since the last estimate says nothing about
    /// the device and is dropped; otherwise the speed is estimated (`wb_bandwidth_estimate_start`).
    pub fn writeback_begins(&mut self, now_ns: u64, under_way: bool) {
        let now = self.ticks(now_ns);
        if self.stamp + self.interval() >= now {
            return;
        }
        if under_way {
            self.update_bandwidth(now);
        } else {
            self.stamp = now;
            self.dirtied_stamp = self.dirtied;
            self.written_stamp = self.written;
        }
    }

    /// `wb_max_pause`.
    fn max_pause(&self, dirty: u64) -> u64 {
        let per_pause = self.average_bandwidth / (1 + self.hz / 8).next_power_of_two();
        (dirty / (1 + per_pause) + 1).min(self.interval())
    }

    /// The shortest useful pause, and the pages until the next (`wb_min_pause`).
    fn min_pause(&self, max_pause: u64, task_rate: u64) -> (u64, u64) {
        let (high, low) = (self.average_bandwidth.ilog2(), self.rate.ilog2());
        let second = self.hz.next_power_of_two();
        let mut wanted = (self.hz / 100).max(1);
        if high > low {
            wanted += u64::from(high - low) * (10 * self.hz) / 1024;
        }
        wanted = wanted.min(1 + max_pause / 2);
        let mut pages = self.rate * wanted / second;
        if pages < POLL_PAGES {
            wanted = max_pause;
            pages = self.rate * wanted / second;
            if pages > POLL_PAGES {
                pages = POLL_PAGES;
                wanted = self.hz * POLL_PAGES / self.rate;
            }
        }
        if self.hz * pages / (task_rate + 1) > max_pause {
            wanted = max_pause;
            pages = task_rate * wanted / second;
        }
        (if pages >= POLL_PAGES { 1 + wanted / 2 } else { wanted }, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Level = Level { dirty: 0, background: 10_000, limit: 20_000, hard_limit: 20_000 };

    fn at(dirty: u64) -> Level {
        Level { dirty, ..BOUNDS }
    }

    /// A task that dirtied so many pages, before a device that wrote some.
    fn dirtied(pages: u64) -> (DirtyThrottle, Dirtier) {
        let (mut throttle, mut task) = (DirtyThrottle::new(100, BOUNDS.limit), Dirtier::default());
        throttle.note_written(1);
        for _ in 0..pages {
            throttle.note_touched(&mut task, true, BOUNDS.limit);
        }
        (throttle, task)
    }

    #[test]
    fn nobody_pauses_halfway_between_the_thresholds() {
        let (mut throttle, mut task) = dirtied(32);
        assert!(task.must_balance);
        assert_eq!(throttle.balance(&mut task, at(15_000), 0), None);
        // 5,000 pages of room: asked again after 2⁶.
        assert_eq!((task.nr_dirtied, task.poll_pages), (0, 64));
        // One more page is one too many.
        let (mut throttle, mut task) = dirtied(10_000);
        assert!(throttle.balance(&mut task, at(15_001), 0).is_some());
    }

    #[test]
    fn pauses_are_of_whole_ticks_and_make_up_for_each_other() {
        let (mut throttle, mut task) = dirtied(10_000);
        let until_ns = throttle.balance(&mut task, at(17_500), 3_000_000).unwrap();
        assert_eq!(until_ns % 10_000_000, 0);
        assert!((10_000_000..=210_000_000).contains(&until_ns), "{until_ns}");
        // A few pages cause no pause yet; they are owed.
        let (mut throttle, mut task) = dirtied(8);
        assert_eq!(throttle.balance(&mut task, at(17_500), 3_000_000), None);
    }

    #[test]
    fn at_the_limit_a_task_waits_until_something_is_written() {
        let (mut throttle, mut task) = dirtied(32);
        assert!(throttle.balance(&mut task, at(20_000), 0).is_some());
        assert!(task.must_balance);
        assert_eq!(throttle.position_ratio(at(20_000)), 0);
    }

    #[test]
    fn the_rate_falls_as_dirty_pages_rise() {
        let (throttle, _) = dirtied(0);
        let ratios = [15_500, 17_500, 19_500].map(|dirty| throttle.position_ratio(at(dirty)));
        assert!(ratios[0] > ratios[1] && ratios[1] > ratios[2] && ratios[2] > 0, "{ratios:?}");
        // At the set point a device with the whole share writes at its own speed.
        assert!((ratios[1] - ONE).abs() <= 2, "{ratios:?}");
    }

    #[test]
    fn only_pages_that_were_clean_count() {
        let (mut throttle, mut task) = dirtied(0);
        for _ in 0..1000 {
            throttle.note_touched(&mut task, false, BOUNDS.limit);
        }
        assert!(!task.must_balance);
    }
}
