//! What happens at the end of each period: idle groups retire, unused shares are
//! lent, and the clock's rate follows the device.
//!
//! Kernel: `ioc_timer_fn` and what it calls, `block/blk-iocost.c`, Linux 6.1.

use super::model::{SSD, SSD_FAST};
use super::{IoCost, LEAST_PERCENT, LOW_PERCENT, NORMAL_RATE, SECOND, TARGET_PERCENT, WHOLE};
use crate::policy::PolicyContext;

/// The rate does not rise while I/O of an earlier period is under way, up to so many periods.
const LAGGING_PERIODS: u64 = 10;

/// What a look at all groups finds.
#[derive(Debug, Default)]
struct Found {
    /// A group has no budget to spare.
    short: bool,
    lagging: bool,
    /// Groups that have, and the share with which they would get by.
    surplus: Vec<(usize, u64)>,
}

fn part(whole: u64, of: u64, total: u64) -> u64 {
    let result = u128::from(whole) * u128::from(of) / u128::from(total.max(1));
    u64::try_from(result).unwrap_or(u64::MAX)
}

impl IoCost {
    pub(super) fn end_period(&mut self, cx: &mut PolicyContext) {
        let clock_ns = self.now(cx.now_ns());
        self.retire(cx, clock_ns);
        let found = self.look_over(cx.now_ns(), clock_ns);
        if found.short && !found.surplus.is_empty() {
            self.lend(&found.surplus, clock_ns);
        }
        self.share_out();
        self.adjust_rate(&found);
        self.choose_profile(cx);
        for group in &mut self.groups {
            group.used_ns = 0;
            group.seen = false;
        }
        self.tag_wait_ns = 0;
        self.latencies = [[0; 2]; 2];
        self.period_end_ns = None;
        if self.groups.iter().any(|group| group.active) {
            self.begin_period(cx, clock_ns);
        } else {
            self.clock_ns = clock_ns;
            self.clock_at_ns = cx.now_ns();
            self.busy_level = 0;
            self.clock_error_ns = 0;
        }
        self.make_up();
    }

    /// Length of the period so far by the device's clock.
    fn passed_ns(&self, clock_ns: u64) -> u64 {
        (clock_ns - self.clock_ns).max(1)
    }

    /// Retires groups that do nothing; looks after those that wait.
    fn retire(&mut self, cx: &mut PolicyContext, clock_ns: u64) {
        for group in 1..self.groups.len() {
            if !self.groups[group].active {
                continue;
            }
            let entry = &self.groups[group];
            if !entry.waiting.is_empty() {
                self.look_after(cx, group);
            } else if !entry.seen && entry.done_ns == entry.vtime_ns {
                self.throw_away(group, clock_ns);
                self.groups[group].active = false;
            }
        }
        self.share_out();
    }

    /// Throws a group's credit away as far as it is more than it is to have.
    fn throw_away(&mut self, group: usize, clock_ns: u64) {
        let excess_ns = self.behind_ns(group, clock_ns) - self.margin_ns(TARGET_PERCENT) as i64;
        if excess_ns <= 0 {
            return;
        }
        let entry = &mut self.groups[group];
        entry.vtime_ns += excess_ns as u64;
        entry.done_ns += excess_ns as u64;
        self.clock_error_ns -= part(excess_ns as u64, entry.share_in_use, WHOLE) as i64;
    }

    fn look_over(&mut self, now_ns: u64, clock_ns: u64) -> Found {
        let mut found = Found::default();
        let (percentiles, _) = self.latency_targets();
        let low_ns = self.margin_ns(LOW_PERCENT) as i64;
        let period_ns = self.passed_ns(clock_ns);
        for group in 1..self.groups.len() {
            let entry = &self.groups[group];
            if !entry.active {
                continue;
            }
            let oldest_ns = clock_ns.saturating_sub(LAGGING_PERIODS * period_ns);
            found.lagging |= percentiles != [0; 2]
                && entry.vtime_ns > entry.done_ns
                && entry.vtime_ns > oldest_ns
                && entry.done_ns < clock_ns - period_ns;
            let waits = !entry.waiting.is_empty();
            let lends = entry.share_in_use < entry.share;
            if !lends && (waits || self.behind_ns(group, clock_ns) <= low_ns) {
                found.short = true;
                continue;
            }
            let usage = self.usage(group, now_ns);
            let most = self.largest_share(group);
            let enough = self.enough(group, most, usage, clock_ns);
            if enough < most && self.groups[group].share >= 2 {
                found.surplus.push((group, enough));
            } else {
                self.use_weight(group, u64::MAX, clock_ns);
                found.short = true;
            }
        }
        found
    }

    /// Which part of the device a group used, with what is still under way.
    fn usage(&self, group: usize, now_ns: u64) -> u64 {
        let entry = &self.groups[group];
        let under_way_ns = part(entry.vtime_ns - entry.done_ns, entry.share_in_use, WHOLE);
        let used_ns = part(entry.used_ns.max(under_way_ns), NORMAL_RATE, self.rate);
        let since_ns = entry.activated_at_ns.max(self.clock_at_ns);
        part(used_ns, WHOLE, now_ns - since_ns).clamp(1, WHOLE)
    }

    /// The share that a group would have with all of its weight in use.
    fn largest_share(&self, group: usize) -> u64 {
        let entry = &self.groups[group];
        let (_, in_use) = self.siblings(entry.parent);
        let whole = self.groups[entry.parent].share_in_use;
        part(whole, entry.weight, in_use + entry.weight - entry.in_use).max(1)
    }

    /// The share with which a group comes out half a period behind the clock at
    /// the end of the next period; credit beyond that is thrown away.
    fn enough(&mut self, group: usize, most: u64, usage: u64, clock_ns: u64) -> u64 {
        let waits = !self.groups[group].waiting.is_empty();
        let least_ns = self.margin_ns(LEAST_PERCENT) as i64;
        if waits || self.behind_ns(group, clock_ns) < least_ns {
            return most;
        }
        self.throw_away(group, clock_ns);
        let behind_ns = self.behind_ns(group, clock_ns) as u64;
        let leftover = part(WHOLE, behind_ns, self.passed_ns(clock_ns));
        let target = WHOLE * TARGET_PERCENT / 100;
        part(WHOLE, usage, WHOLE - target + leftover).clamp(1, most)
    }

    /// Groups that would get by with less give up the rest for a period.
    fn lend(&mut self, surplus: &[(usize, u64)], clock_ns: u64) {
        for parent in 0..self.groups.len() {
            let whole = self.groups[parent].share.max(1);
            let kept: Vec<(usize, u64)> = surplus
                .iter()
                .filter(|(group, _)| self.groups[*group].parent == parent)
                .map(|&(group, share)| (group, part(WHOLE, share, whole)))
                .collect();
            let keep: u64 = kept.iter().map(|(_, share)| share).sum();
            let lenders: u64 = kept.iter().map(|(group, _)| self.groups[*group].weight).sum();
            let rest = self.siblings(parent).0.saturating_sub(lenders);
            if kept.is_empty() || rest == 0 || keep >= WHOLE {
                continue;
            }
            let total = part(rest, WHOLE, WHOLE - keep);
            for (group, share) in kept {
                self.use_weight(group, part(total, share, WHOLE), clock_ns);
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
        if self.busy_level < 0 && found.lagging {
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
        let (low, high) = self.rate_limits;
        self.rate = (self.rate * factor).div_ceil(100).clamp(low.max(1), high);
    }

    /// Lets the clock run faster for the coming period, by what was thrown away.
    fn make_up(&mut self) {
        let period_ns = i128::from(self.period_ns.max(1));
        let normal = i128::from(NORMAL_RATE);
        let rate = i128::from(self.rate);
        let more = -i128::from(self.clock_error_ns) * normal / period_ns;
        let more = if self.period_end_ns.is_some() { more.clamp(-rate / 2, rate) } else { 0 };
        let bound = period_ns * rate / normal;
        let error = i128::from(self.clock_error_ns) + more * period_ns / normal;
        self.clock_error_ns = error.clamp(-bound, bound) as i64;
        self.clock_rate = (rate + more) as u64;
    }

    /// An SSD that outruns its profile for ten seconds gets the fast one, and back.
    fn choose_profile(&mut self, cx: &PolicyContext) {
        if self.rotational || self.device_depth == 1 || self.user_model.is_some() {
            return;
        }
        if !self.stepped && self.rate >= 5 * NORMAL_RATE {
            let since_ns = *self.fast_since_ns.get_or_insert(cx.now_ns());
            if cx.now_ns() - since_ns >= 10 * SECOND {
                self.stepped = true;
                self.rate = NORMAL_RATE.clamp(self.rate_limits.0.max(1), self.rate_limits.1);
                self.adopt(SSD_FAST);
            }
        } else if self.stepped && self.rate <= NORMAL_RATE / 10 {
            self.stepped = false;
            self.rate = NORMAL_RATE.clamp(self.rate_limits.0.max(1), self.rate_limits.1);
            self.adopt(SSD);
        } else {
            self.fast_since_ns = None;
        }
    }
}
