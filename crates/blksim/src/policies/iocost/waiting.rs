//! Who waits for budget, and when it is let go.
//!
//! Kernel: `iocg_kick_waitq` and `adjust_inuse_and_calc_cost` in
//! `block/blk-iocost.c`, Linux 6.1. A waiter's timer has a slack of a hundredth
//! of a period, and rings a slack late: with the first interrupt of a timer from
//! then on, or another slack later of its own. The device's completions count
//! as such.

use super::{IoCost, LOW_PERCENT, NORMAL_RATE, SLACK_PERCENT};
use crate::policy::PolicyContext;

impl IoCost {
    /// A group that lends takes a quarter of its weight back at a time, until
    /// its budget suffices, if it runs low and lower than when it last did.
    pub(super) fn take_back(&mut self, group: usize, cost_ns: u64, clock_ns: u64) {
        if self.groups[group].in_use >= self.groups[group].weight {
            return;
        }
        let margin_ns = self.left_ns(group, cost_ns, clock_ns);
        if margin_ns >= self.groups[group].saved_margin_ns
            || margin_ns >= self.margin_ns(LOW_PERCENT) as i64
        {
            return;
        }
        loop {
            let entry = &self.groups[group];
            let in_use = entry.in_use + entry.weight.div_ceil(4);
            self.use_weight(group, in_use, clock_ns);
            self.share_out();
            if self.left_ns(group, cost_ns, clock_ns) >= 0
                || self.groups[group].in_use >= self.groups[group].weight
            {
                return;
            }
        }
    }

    /// How far a group is behind the clock once it has paid.
    fn left_ns(&self, group: usize, cost_ns: u64, clock_ns: u64) -> i64 {
        let charged_ns = i64::try_from(self.charged(group, cost_ns)).unwrap_or(i64::MAX);
        self.behind_ns(group, clock_ns).saturating_sub(charged_ns)
    }

    /// Looks after the groups whose moment has come.
    pub(super) fn look_after_all(&mut self, cx: &mut PolicyContext) {
        for group in 1..self.groups.len() {
            if self.groups[group].look_at_ns.is_some_and(|from_ns| from_ns <= cx.now_ns()) {
                self.groups[group].look_at_ns = None;
                self.look_after(cx, group);
            }
        }
    }

    /// Lets those of a group's waiters go for whom it has the budget, and sees
    /// to it that the rest is looked after in time.
    pub(super) fn look_after(&mut self, cx: &mut PolicyContext, group: usize) {
        let clock_ns = self.now(cx.now_ns());
        while let Some(&(bio, cost_ns)) = self.groups[group].waiting.front() {
            let charged_ns = self.charged(group, cost_ns);
            let due_ns = self.groups[group].vtime_ns.saturating_add(charged_ns);
            if due_ns > clock_ns {
                let wait = u128::from(due_ns - clock_ns) * u128::from(NORMAL_RATE);
                let wait_ns = wait.div_ceil(u128::from(self.rate));
                self.look_again(cx, group, u64::try_from(wait_ns).unwrap_or(u64::MAX));
                return;
            }
            self.groups[group].waiting.pop_front();
            self.pay(cx, group, bio, cost_ns);
            cx.release(bio);
        }
    }

    fn look_again(&mut self, cx: &mut PolicyContext, group: usize, wait_ns: u64) {
        let slack_ns = self.period_ns * SLACK_PERCENT / 100;
        let from_ns = cx.now_ns().saturating_add(wait_ns).saturating_add(slack_ns);
        let entry = &mut self.groups[group];
        if entry.look_at_ns.is_some_and(|former_ns| former_ns.abs_diff(from_ns) <= slack_ns) {
            return;
        }
        entry.look_at_ns = Some(from_ns);
        cx.timer_at(from_ns.saturating_add(slack_ns));
    }
}
