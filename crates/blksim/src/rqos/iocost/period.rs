//! The end of a period: idle groups retire, unused shares are lent, and the clock's rate follows
//! the device.
//!
//! Kernel: `ioc_timer_fn` and what it calls, `block/blk-iocost.c`, Linux 6.1.

use std::collections::BTreeMap;

use super::model::{SSD, SSD_FAST};
use super::shares::{WHOLE, part, part_up};
use super::{IoCost, LEAST_PERCENT, LOW_PERCENT, MICROSECOND, NORMAL_RATE, SECOND, TARGET_PERCENT};
use crate::rqos::policy::PolicyContext;

/// Periods for which unfinished I/O of an earlier period keeps the rate from rising.
const LAGGING_PERIODS: u64 = 10;
/// Step by which the rate approaches the bounds from outside.
const CLAMP_PERCENT: u64 = 4;
/// Time for which a device must not fit its profile before it gets another.
const PROFILE_CYCLE_NS: u64 = 10 * SECOND;

/// The result of a check of all groups.
#[derive(Debug, Clone, Default)]
struct Found {
    /// A group is short of budget.
    short: bool,
    lagging: bool,
    /// Groups with a surplus, and the shares that would suffice for them.
    surplus: Vec<(usize, u64)>,
}

impl IoCost {
    pub(super) fn end_period(&mut self, cx: &mut PolicyContext) {
        let clock_vtime = self.now(cx.now_ns());
        self.retire(cx, clock_vtime);
        let found = self.look_over(cx.now_ns(), clock_vtime);
        let used_vtime = self.active.iter().map(|group| self.groups[*group].used_vtime);
        let used_ns = used_vtime.sum::<u64>() / self.rate * MICROSECOND;
        if found.short && !found.surplus.is_empty() {
            self.lend(&found.surplus, clock_vtime);
        }
        self.share_out();
        self.adjust_rate(&found);
        self.choose_profile(cx);
        self.forgive(cx, used_ns);
        for group in &mut self.groups {
            group.used_vtime = 0;
            group.seen = false;
        }
        self.tag_wait_ns = 0;
        self.latencies = [[0; 2]; 2];
        self.period_end_ns = None;
        if self.active.is_empty() {
            self.clock_vtime = clock_vtime;
            self.clock_at_us = cx.now_ns() / MICROSECOND;
            self.busy_level = 0;
            self.clock_error_vtime = 0;
        } else {
            self.begin_period(cx, clock_vtime);
        }
        self.make_up();
    }

    /// Length of the period so far in device time.
    fn passed_vtime(&self, clock_vtime: u64) -> u64 {
        (clock_vtime - self.clock_vtime).max(1)
    }

    /// Active groups in the kernel's order: the one that became so last goes first.
    pub(super) fn active_groups(&self) -> Vec<usize> {
        self.active.iter().rev().copied().collect()
    }

    /// Retires idle groups and checks groups with waiters.
    fn retire(&mut self, cx: &mut PolicyContext, clock_vtime: u64) {
        for group in self.active_groups() {
            let entry = &self.groups[group];
            if !entry.waiting.is_empty() || entry.debt_vtime > 0 {
                self.look_after(cx, group);
            } else if !entry.seen && entry.done_vtime == entry.vtime {
                self.throw_away(group, clock_vtime);
                self.groups[group].active = false;
                self.activity_changed = true;
            }
        }
        let groups = &self.groups;
        self.active.retain(|group| groups[*group].active);
        self.share_out();
    }

    /// Discards a group's credit beyond its target.
    fn throw_away(&mut self, group: usize, clock_vtime: u64) {
        let excess_vtime =
            self.behind_vtime(group, clock_vtime) - self.margin_vtime(TARGET_PERCENT) as i64;
        if excess_vtime <= 0 {
            return;
        }
        let entry = &mut self.groups[group];
        entry.vtime += excess_vtime as u64;
        entry.done_vtime += excess_vtime as u64;
        self.clock_error_vtime -= part(excess_vtime as u64, entry.share_in_use, WHOLE) as i64;
    }

    fn look_over(&mut self, now_ns: u64, clock_vtime: u64) -> Found {
        let mut found = Found::default();
        let (percentiles, _) = self.latency_targets();
        let low_vtime = self.margin_vtime(LOW_PERCENT) as i64;
        let period_vtime = self.passed_vtime(clock_vtime);
        for group in self.active_groups() {
            let entry = &self.groups[group];
            let oldest_vtime = clock_vtime.saturating_sub(LAGGING_PERIODS * period_vtime);
            found.lagging |= percentiles != [0; 2]
                && entry.vtime > entry.done_vtime
                && entry.vtime > oldest_vtime
                && entry.done_vtime < clock_vtime - period_vtime;
            let waits = !entry.waiting.is_empty();
            let lends = entry.share_in_use < entry.share;
            if !lends && (waits || self.behind_vtime(group, clock_vtime) <= low_vtime) {
                found.short = true;
                continue;
            }
            let usage = self.usage(group, now_ns);
            let most = self.largest_share(group);
            let enough = self.enough(group, most, usage, clock_vtime);
            if enough < most && self.groups[group].share >= 2 {
                found.surplus.push((group, enough));
            } else if self.groups[group].debt_vtime == 0 {
                self.use_weight(group, u64::MAX, clock_vtime);
                found.short = true;
            }
        }
        found
    }

    /// A group's usage of the device, including I/O in flight.
    fn usage(&self, group: usize, now_ns: u64) -> u64 {
        let entry = &self.groups[group];
        let under_way_vtime = part_up(entry.vtime - entry.done_vtime, entry.share_in_use, WHOLE);
        let used_us = (entry.used_vtime / self.rate).max(under_way_vtime.div_ceil(self.rate));
        let since_us = (entry.activated_at_ns / MICROSECOND).max(self.clock_at_us);
        let passed_us = (now_ns / MICROSECOND - since_us).max(1);
        part_up(used_us, WHOLE, passed_us).clamp(1, WHOLE)
    }

    /// The share with which a group ends the next period half a period behind the clock; credit
    /// beyond that is discarded (`hweight_after_donation`).
    fn enough(&mut self, group: usize, most: u64, usage: u64, clock_vtime: u64) -> u64 {
        if self.groups[group].debt_vtime > 0 {
            return 1;
        }
        let waits = !self.groups[group].waiting.is_empty();
        let least_vtime = self.margin_vtime(LEAST_PERCENT) as i64;
        if waits || self.behind_vtime(group, clock_vtime) < least_vtime {
            return most;
        }
        self.throw_away(group, clock_vtime);
        let behind_vtime = self.behind_vtime(group, clock_vtime) as u64;
        let leftover = part(WHOLE, behind_vtime, self.passed_vtime(clock_vtime));
        let target = WHOLE * TARGET_PERCENT / 100;
        // The kernel's product has 32 bits: it overflows to 0 for a group that used the whole
        // device, which then seems to need next to nothing.
        let product = u64::from((WHOLE * usage) as u32);
        part(product, 1, WHOLE - target + leftover).clamp(1, most)
    }

    /// Groups that need less lend the rest for a period (`transfer_surpluses`).
    fn lend(&mut self, surplus: &[(usize, u64)], clock_vtime: u64) {
        let mut of_parents: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        for &(group, share) in surplus {
            of_parents.entry(self.groups[group].parent).or_default().push((group, share));
        }
        for (parent, lenders) in of_parents {
            let whole = self.groups[parent].share;
            let lent: u64 = lenders.iter().map(|(group, _)| self.groups[*group].share).sum();
            let kept: u64 = lenders.iter().map(|(_, share)| share).sum();
            if lent >= whole || kept >= whole {
                continue;
            }
            let total = part_up(self.siblings(parent).0, whole - lent, whole - kept);
            for (group, share) in lenders {
                // A debtor keeps its weight until its debt is paid.
                if self.groups[group].debt_vtime == 0 {
                    self.use_weight(group, part_up(total, share, whole), clock_vtime);
                }
            }
        }
    }

    fn adjust_rate(&mut self, found: &Found) {
        let (percentiles, _) = self.latency_targets();
        let wait_percent = self.tag_wait_ns * 100 / self.period_ns.max(1);
        let mut missed = false;
        let mut fine = wait_percent <= 5 * 75 / 100;
        for (direction, percentile) in percentiles.iter().enumerate() {
            let [met, over] = self.latencies[direction];
            let share = if over == 0 { 0 } else { (over * 1_000_000).div_ceil(met + over) };
            let threshold = 1_000_000 - percentile * 10_000;
            missed |= share > threshold;
            fine &= share <= threshold * 75 / 100;
        }
        if wait_percent > 5 || missed {
            self.busy_level = self.busy_level.max(0) + 1;
        } else if fine && found.short {
            self.busy_level = self.busy_level.min(0) - i32::from(!found.lagging);
        } else {
            self.busy_level = 0;
        }
        self.busy_level = self.busy_level.clamp(-1000, 1000);
        if self.busy_level == 0 || self.busy_level < 0 && found.lagging {
            return;
        }
        // A rate outside the bounds approaches them in small steps.
        let (low, high) = self.rate_limits;
        if self.rate < low {
            self.rate = (self.rate * (100 + CLAMP_PERCENT) / 100).min(low);
            return;
        }
        if self.rate > high {
            self.rate = (self.rate * (100 - CLAMP_PERCENT) / 100).max(high);
            return;
        }
        let percent = match self.busy_level.unsigned_abs() {
            0..=3 => 0,
            4..=19 => 1,
            20..=35 => 2,
            36..=43 => 4,
            44..=51 => 8,
            _ => 16,
        };
        let factor = if self.busy_level > 0 { 100 - percent } else { 100 + percent };
        self.rate = (self.rate * factor).div_ceil(100).clamp(low, high);
    }

    /// Speeds the clock up in the coming period to make up for discarded credit.
    fn make_up(&mut self) {
        let period_us = (self.period_ns / MICROSECOND) as i64;
        let rate = self.rate as i64;
        if self.period_end_ns.is_some() {
            let more = (-(self.clock_error_vtime / period_us)).clamp(-(rate / 2), rate);
            self.clock_error_vtime += more * period_us;
            self.clock_rate = (rate + more) as u64;
        }
        let bound = period_us * rate;
        self.clock_error_vtime = self.clock_error_vtime.clamp(-bound, bound);
    }

    /// Moves an SSD to the fast profile after outrunning its own for ten seconds, and back. The
    /// rate stays: Linux 6.1 resets only the rate of the current period, which is over.
    fn choose_profile(&mut self, cx: &PolicyContext) {
        let user = self.user_model.is_some() || self.user_qos;
        if self.rotational || self.device_depth == 1 || user {
            return;
        }
        let (unfit, other) = if self.stepped {
            (self.rate <= NORMAL_RATE / 10, SSD)
        } else {
            (self.rate >= 5 * NORMAL_RATE, SSD_FAST)
        };
        if !unfit {
            self.unfit_since_ns = None;
            return;
        }
        let since_ns = *self.unfit_since_ns.get_or_insert(cx.now_ns());
        if cx.now_ns().saturating_sub(since_ns) >= PROFILE_CYCLE_NS {
            self.stepped = !self.stepped;
            self.unfit_since_ns = None;
            self.adopt(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The computation of `block/blk-iocost.c` of Linux 6.1 for a group with a quarter of the
    /// device and a credit of half a period; only the last value exceeds its 32 bits.
    #[test]
    fn who_used_the_whole_device_is_taken_for_one_that_needs_nothing() {
        let mut cost = IoCost::of_two_groups();
        let period_vtime = 2 * cost.margin_vtime(TARGET_PERCENT);
        let clock_vtime = cost.clock_vtime + period_vtime;
        cost.groups[1].vtime = clock_vtime - period_vtime / 2;
        let most = cost.largest_share(1);
        let mut enough = |usage: u64| cost.enough(1, most, usage, clock_vtime);
        assert_eq!(enough(WHOLE / 10), WHOLE / 10);
        assert_eq!(enough(WHOLE - 1), most);
        assert_eq!(enough(WHOLE), 1);
    }
}
