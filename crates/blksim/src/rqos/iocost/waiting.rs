//! Waiting for budget.
//!
//! Kernel: `iocg_kick_waitq` and `adjust_inuse_and_calc_cost` in `block/blk-iocost.c`, Linux 6.1. A
//! waiter's timer has a slack of a hundredth of a period and fires a slack late: with the first
//! timer interrupt from then on, or after another slack with its own. The device's interrupts do
//! not count.

use super::{IoCost, LOW_PERCENT, MICROSECOND, SLACK_PERCENT};
use crate::rqos::policy::PolicyContext;

impl IoCost {
    /// A group that lends and runs low, lower than when it last did so, takes back a quarter of its
    /// weight at a time until its budget suffices.
    pub(super) fn take_back(&mut self, group: usize, cost_vtime: u64, clock_vtime: u64) {
        let entry = &self.groups[group];
        if entry.debt_vtime > 0 || entry.in_use >= entry.weight {
            return;
        }
        let margin_vtime = self.left_vtime(group, cost_vtime, clock_vtime);
        if margin_vtime >= self.groups[group].saved_margin_vtime
            || margin_vtime >= self.margin_vtime(LOW_PERCENT) as i64
        {
            return;
        }
        loop {
            let entry = &self.groups[group];
            let in_use = entry.in_use + entry.weight.div_ceil(4);
            self.use_weight(group, in_use, clock_vtime);
            self.share_out();
            if self.left_vtime(group, cost_vtime, clock_vtime) >= 0
                || self.groups[group].in_use >= self.groups[group].weight
            {
                return;
            }
        }
    }

    /// A group's lag behind the clock after paying.
    fn left_vtime(&self, group: usize, cost_vtime: u64, clock_vtime: u64) -> i64 {
        let charged_vtime = i64::try_from(self.charged(group, cost_vtime)).unwrap_or(i64::MAX);
        self.behind_vtime(group, clock_vtime).saturating_sub(charged_vtime)
    }

    /// Checks the groups whose time has come, in the order of their times (`__hrtimer_run_queues`).
    pub(super) fn look_after_all(&mut self, cx: &mut PolicyContext) {
        let due = |&&(from_ns, ..): &&(u64, u64, usize)| from_ns <= cx.now_ns();
        let ringing: Vec<_> = self.timers.iter().take_while(due).copied().collect();
        for (from_ns, number, group) in ringing {
            if self.groups[group].look_at == Some((from_ns, number)) {
                self.stop_timer(group);
                self.look_after(cx, group);
            }
        }
    }

    fn stop_timer(&mut self, group: usize) {
        if let Some((from_ns, number)) = self.groups[group].look_at.take() {
            self.timers.remove(&(from_ns, number, group));
        }
    }

    /// Pays a group's debt, lets waiters go that the budget covers, and sets the timer for the
    /// others (`iocg_kick_waitq`).
    pub(super) fn look_after(&mut self, cx: &mut PolicyContext, group: usize) {
        let clock_vtime = self.now(cx.now_ns());
        self.pay_debt(group, clock_vtime);
        while let Some(&(bio, cost_vtime)) = self.groups[group].waiting.front() {
            let charged_vtime = self.charged(group, cost_vtime);
            let free_at_vtime = self.out_of_debt_vtime(group, clock_vtime);
            let due_vtime = free_at_vtime.saturating_add(charged_vtime);
            if due_vtime > clock_vtime {
                let wait_us = (due_vtime - clock_vtime).div_ceil(self.rate);
                self.look_again(cx, group, wait_us.saturating_mul(MICROSECOND));
                return;
            }
            self.groups[group].waiting.pop_front();
            self.pay(cx, group, bio, cost_vtime);
            cx.release(bio);
        }
    }

    fn look_again(&mut self, cx: &mut PolicyContext, group: usize, wait_ns: u64) {
        let slack_ns = self.period_ns * SLACK_PERCENT / 100;
        let from_ns = cx.now_ns().saturating_add(wait_ns).saturating_add(slack_ns);
        let former = self.groups[group].look_at;
        if former.is_some_and(|(former_ns, _)| former_ns.abs_diff(from_ns) <= slack_ns) {
            return;
        }
        self.stop_timer(group);
        self.nr_timers += 1;
        self.groups[group].look_at = Some((from_ns, self.nr_timers));
        self.timers.insert((from_ns, self.nr_timers, group));
        cx.timer_at(from_ns.saturating_add(slack_ns));
    }
}
