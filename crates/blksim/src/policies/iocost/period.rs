//! What happens at the end of each period: idle groups retire, the clock's rate
//! follows the device, and unused shares are lent.

use super::model::{SSD, SSD_FAST};
use super::{IoCost, NORMAL_RATE, SECOND, WHOLE};
use crate::policy::PolicyContext;

impl IoCost {
    pub(super) fn end_period(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        self.clock_ns = self.now(now_ns);
        self.clock_at_ns = now_ns;
        let short = self.settle_groups();
        self.adjust_rate(cx, short);
        self.lend(short);
        for group in &mut self.groups {
            group.used_ns = 0;
        }
        self.tag_wait_ns = 0;
        self.latencies = [[0; 2]; 2];
        self.period_end_ns = None;
        if self.groups.iter().any(|group| group.active) {
            self.begin_period(cx);
        }
        self.wake(cx);
    }

    /// Retires idle groups and cuts credit; is any group short of budget?
    fn settle_groups(&mut self) -> bool {
        let target_ns = self.margin_ns(50);
        let clock_ns = self.clock_ns;
        let low_ns = self.margin_ns(20);
        let mut short = false;
        for group in self.groups.iter_mut().filter(|group| group.active) {
            if group.waiting.is_empty() && group.used_ns == 0 {
                group.idle_periods += 1;
                if group.idle_periods >= 1 && group.vtime_ns <= clock_ns {
                    group.active = false;
                    continue;
                }
            }
            group.vtime_ns = group.vtime_ns.max(clock_ns.saturating_sub(target_ns));
            // No budget to speak of is left.
            short |= !group.waiting.is_empty() || group.vtime_ns + low_ns / 4 > clock_ns;
        }
        self.share_out();
        short
    }

    fn adjust_rate(&mut self, cx: &PolicyContext, short: bool) {
        let (percentiles, _) = self.latency_targets();
        let wait_percent = self.tag_wait_ns * 100 / self.period_ns.max(1);
        let mut missed = false;
        let mut fine = wait_percent * 100 <= 5 * 75;
        for (direction, percentile) in percentiles.iter().enumerate() {
            let [met, over] = self.latencies[direction];
            if *percentile == 0 || met + over == 0 {
                continue;
            }
            let share = over * 1_000_000 / (met + over);
            let threshold = (100 - percentile) * 10_000;
            missed |= share > threshold;
            fine &= share * 100 <= threshold * 75;
        }
        self.busy_level = if wait_percent > 5 || missed {
            self.busy_level.max(0) + 1
        } else if fine && short {
            self.busy_level.min(0) - 1
        } else {
            0
        };
        let percent = match self.busy_level.unsigned_abs() {
            0..=3 => 0,
            4..=15 => 1,
            16..=31 => 2,
            32..=39 => 4,
            40..=47 => 8,
            _ => 16,
        };
        let factor = if self.busy_level > 0 { 100 - percent } else { 100 + percent };
        let (low, high) = self.rate_limits;
        self.rate = (self.rate * factor / 100).clamp(low.max(1), high);
        self.choose_profile(cx);
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

    /// Groups that lag behind the clock give up what they did not use.
    fn lend(&mut self, short: bool) {
        for index in 1..self.groups.len() {
            self.groups[index].in_use = self.groups[index].weight;
        }
        self.share_out();
        if !short {
            return;
        }
        let period = u128::from(self.margin_ns(100).max(1));
        for parent in 0..self.groups.len() {
            let whole = self.groups[parent].share.max(1);
            // Shares that lenders keep, relative to their parent's, and the weight of the rest.
            let (mut kept, mut rest) = (0_u64, 0_u64);
            let mut keeps = Vec::new();
            for index in 1..self.groups.len() {
                let entry = &self.groups[index];
                if entry.parent != parent || !entry.counted {
                    continue;
                }
                let lag = u128::from(self.clock_ns.saturating_sub(entry.vtime_ns));
                if !entry.active || !entry.waiting.is_empty() || lag * 5 < period {
                    rest += entry.weight;
                    continue;
                }
                let used = u128::from(entry.used_ns) * u128::from(WHOLE) / period;
                let keep = (used * period / (period / 2 + lag).max(1)) as u64;
                let keep = keep.clamp(1, entry.share);
                let relative = (u128::from(keep) * u128::from(WHOLE) / u128::from(whole)) as u64;
                kept += relative;
                keeps.push((index, relative));
            }
            if rest == 0 || kept >= WHOLE {
                continue;
            }
            let total = u128::from(rest) * u128::from(WHOLE) / u128::from(WHOLE - kept);
            for (index, relative) in keeps {
                let in_use = (u128::from(relative) * total / u128::from(WHOLE)) as u64;
                let entry = &mut self.groups[index];
                entry.in_use = in_use.clamp(1, entry.weight);
            }
        }
        self.share_out();
    }
}
