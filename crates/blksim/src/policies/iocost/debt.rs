//! Debts: what joined a request of a group that could not pay for it.
//!
//! Kernel: `iocg_incur_debt`, `iocg_pay_debt` and `ioc_forgive_debts` in
//! `block/blk-iocost.c`, Linux 6.1.

use super::period::part_up;
use super::{IoCost, WHOLE, by_share};
use crate::policy::PolicyContext;

/// How long the device must have been idle enough for debts to be halved.
const CYCLE_NS: u64 = 100_000_000;
/// Up to which part of the time in use it counts as idle enough.
const IDLE_PERCENT: u64 = 50;

/// How much of the device was used since debts were last looked at.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the postfix is the unit")]
pub(super) struct Forgiving {
    since_ns: u64,
    /// Of the last cycle that was counted.
    rest_ns: u64,
    used_ns: u64,
}

impl Forgiving {
    pub fn from(now_ns: u64) -> Self {
        Self { since_ns: now_ns, ..Self::default() }
    }
}

impl IoCost {
    /// Lets a group owe a cost: until it is paid the group lends all that it has.
    pub(super) fn incur(&mut self, group: usize, cost_vtime: u64) {
        let entry = &mut self.groups[group];
        entry.used_vtime += cost_vtime;
        let first = entry.debt_vtime == 0 && cost_vtime > 0;
        entry.debt_vtime += cost_vtime;
        if first {
            entry.in_use_before_debt = entry.in_use;
            entry.in_use = 1;
            self.share_out();
        }
    }

    /// Pays from the budget that a group has by its whole weight.
    pub(super) fn pay_debt(&mut self, group: usize, clock_vtime: u64) {
        let behind_vtime = u64::try_from(self.behind_vtime(group, clock_vtime)).unwrap_or(0);
        let entry = &mut self.groups[group];
        if entry.debt_vtime == 0 || behind_vtime == 0 {
            return;
        }
        let pays_vtime = part_up(behind_vtime, entry.share, WHOLE).min(entry.debt_vtime);
        let charged_vtime = by_share(pays_vtime, entry.share);
        entry.vtime += charged_vtime;
        entry.done_vtime += charged_vtime;
        entry.debt_vtime -= pays_vtime;
        if entry.debt_vtime == 0 {
            entry.in_use = entry.in_use_before_debt;
            self.share_out();
        }
    }

    /// From when on, by the device's clock, a group's budget is its own again.
    pub(super) fn out_of_debt_vtime(&self, group: usize, clock_vtime: u64) -> u64 {
        let entry = &self.groups[group];
        if entry.debt_vtime == 0 {
            return entry.vtime;
        }
        entry.vtime.saturating_add(by_share(entry.debt_vtime, entry.share)).max(clock_vtime)
    }

    /// Halves debts if the device has little to do but to wait for debtors.
    pub(super) fn forgive(&mut self, cx: &mut PolicyContext, used_ns: u64) {
        let now_ns = cx.now_ns();
        if self.groups.iter().all(|group| group.debt_vtime == 0) {
            self.forgiving = Forgiving::from(now_ns);
            return;
        }
        let busy = self.busy_level > 0;
        self.forgiving.used_ns += if busy { used_ns.max(self.period_ns) } else { used_ns };
        let passed_ns = now_ns - self.forgiving.since_ns;
        if passed_ns < CYCLE_NS {
            return;
        }
        let percent = 100 * self.forgiving.used_ns / passed_ns;
        let cycles_ns = passed_ns + self.forgiving.rest_ns;
        self.forgiving = Forgiving::from(now_ns);
        if percent > IDLE_PERCENT {
            return;
        }
        self.forgiving.rest_ns = cycles_ns % CYCLE_NS;
        let halvings = (cycles_ns / CYCLE_NS).min(63);
        for group in 1..self.groups.len() {
            if self.groups[group].debt_vtime > 0 {
                let entry = &mut self.groups[group];
                entry.debt_vtime = (entry.debt_vtime >> halvings).max(1);
                self.look_after(cx, group);
            }
        }
    }
}
