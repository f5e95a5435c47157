//! Debts: the costs of bios that joined a request of a group without the budget for them.
//!
//! Kernel: `iocg_incur_debt`, `iocg_pay_debt` and `ioc_forgive_debts` in
//! `block/blk-iocost.c`, Linux 6.1.

use super::IoCost;
use super::shares::{WHOLE, by_share, part_up};
use crate::rqos::policy::PolicyContext;

/// Time for which the device must be mostly idle before debts are halved.
const CYCLE_NS: u64 = 100_000_000;
/// Utilisation up to which the device counts as mostly idle.
const IDLE_PERCENT: u64 = 50;

/// Utilisation since the last check of debts.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "the postfix is the unit")]
pub(super) struct Forgiving {
    since_ns: u64,
    /// Utilisation in the last cycle that counts.
    rest_ns: u64,
    used_ns: u64,
}

impl Forgiving {
    pub fn since(now_ns: u64) -> Self {
        Self { since_ns: now_ns, ..Self::default() }
    }
}

impl IoCost {
    /// Adds a cost to a group's debt. Until it is paid, the group lends all of its weight.
    pub(super) fn incur(&mut self, group: usize, cost_vtime: u64) {
        let entry = &mut self.groups[group];
        entry.used_vtime += cost_vtime;
        let first = entry.debt_vtime == 0 && cost_vtime > 0;
        entry.debt_vtime += cost_vtime;
        if first {
            entry.in_use_before_debt = entry.in_use;
            self.put_in_use(group, 1);
            self.share_out();
        }
    }

    /// Pays the debt from the budget of the group's whole weight.
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
            let in_use = entry.in_use_before_debt;
            self.put_in_use(group, in_use);
            self.share_out();
        }
    }

    /// The device time from which a group's budget is its own again.
    pub(super) fn out_of_debt_vtime(&self, group: usize, clock_vtime: u64) -> u64 {
        let entry = &self.groups[group];
        if entry.debt_vtime == 0 {
            return entry.vtime;
        }
        entry.vtime.saturating_add(by_share(entry.debt_vtime, entry.share)).max(clock_vtime)
    }

    /// Halves debts if the device does little but wait for debtors.
    pub(super) fn forgive(&mut self, cx: &mut PolicyContext, used_ns: u64) {
        let now_ns = cx.now_ns();
        if self.groups.iter().all(|group| group.debt_vtime == 0) {
            self.forgiving = Forgiving::since(now_ns);
            return;
        }
        let busy = self.busy_level > 0;
        self.forgiving.used_ns += if busy { used_ns.max(self.period_ns) } else { used_ns };
        let passed_ns = now_ns.saturating_sub(self.forgiving.since_ns);
        if passed_ns < CYCLE_NS {
            return;
        }
        let percent = 100 * self.forgiving.used_ns / passed_ns;
        let cycles_ns = passed_ns + self.forgiving.rest_ns;
        self.forgiving = Forgiving::since(now_ns);
        if percent > IDLE_PERCENT {
            return;
        }
        self.forgiving.rest_ns = cycles_ns % CYCLE_NS;
        let halvings = (cycles_ns / CYCLE_NS).min(63);
        for group in self.active_groups() {
            if self.groups[group].debt_vtime > 0 {
                let entry = &mut self.groups[group];
                entry.debt_vtime = (entry.debt_vtime >> halvings).max(1);
                self.look_after(cx, group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::queue_usage::QueueUsage;
    use crate::block::request::Requests;
    use crate::core::event::{Class, EventQueue};

    const DEBTOR: usize = 1;

    /// Calls `forgive` at a moment.
    fn forgive_at(cost: &mut IoCost, now_ns: u64, used_ns: u64) {
        let mut events = EventQueue::new();
        events.at(now_ns, Class::Task, 0);
        events.advance();
        let mut cx = PolicyContext {
            requests: &mut Requests::new(),
            in_flight: 0,
            waiting_for_tag: 0,
            device_depth: 32,
            nr_requests: 64,
            volatile_cache: false,
            dirtier_paused_ns: None,
            rotational: true,
            usage: &mut QueueUsage::default(),
            events: &mut events,
            disk: 0,
            released: &mut Vec::new(),
        };
        cost.forgive(&mut cx, used_ns);
    }

    #[test]
    fn a_debtor_lends_all_it_has_until_it_has_paid_from_its_whole_share() {
        let mut cost = IoCost::of_two_groups();
        let clock_vtime = 1_000_000;
        cost.groups[DEBTOR].vtime = clock_vtime;
        cost.put_in_use(DEBTOR, 70);
        cost.incur(DEBTOR, 1000);
        cost.incur(DEBTOR, 500);
        let entry = &cost.groups[DEBTOR];
        assert_eq!((entry.in_use, entry.debt_vtime, entry.share), (1, 1500, WHOLE / 4));
        assert!(cost.groups[2].share_in_use > WHOLE * 99 / 100);
        // A quarter of the device: of 4 units of its time the group pays 1.
        assert_eq!(cost.out_of_debt_vtime(DEBTOR, clock_vtime), clock_vtime + 6000);
        cost.pay_debt(DEBTOR, clock_vtime + 4000);
        let entry = &cost.groups[DEBTOR];
        assert_eq!((entry.debt_vtime, entry.vtime, entry.in_use), (500, clock_vtime + 4000, 1));
        cost.pay_debt(DEBTOR, clock_vtime + 9000);
        let entry = &cost.groups[DEBTOR];
        assert_eq!((entry.debt_vtime, entry.vtime, entry.in_use), (0, clock_vtime + 6000, 70));
    }

    #[test]
    fn what_is_ahead_of_the_clock_pays_nothing() {
        let mut cost = IoCost::of_two_groups();
        cost.groups[DEBTOR].vtime = 5000;
        cost.incur(DEBTOR, 1000);
        cost.pay_debt(DEBTOR, 5000);
        assert_eq!((cost.groups[DEBTOR].debt_vtime, cost.groups[DEBTOR].vtime), (1000, 5000));
    }

    #[test]
    fn debts_are_halved_every_100_ms_in_which_the_device_is_idle_half_the_time() {
        const MS: u64 = 1_000_000;
        let mut cost = IoCost::of_two_groups();
        // Ahead of the clock, so that nothing is paid meanwhile.
        cost.groups[DEBTOR].vtime = u64::MAX / 4;
        cost.incur(DEBTOR, 1000);
        let mut after = |now_ns: u64, used_ns: u64| {
            forgive_at(&mut cost, now_ns, used_ns);
            cost.groups[DEBTOR].debt_vtime
        };
        assert_eq!(after(60 * MS, 0), 1000);
        assert_eq!(after(120 * MS, 60 * MS), 500);
        // 180 ms and the 20 left over are two cycles.
        assert_eq!(after(300 * MS, 0), 125);
        // 62 of 120 ms is too much, and what was left over is gone.
        assert_eq!(after(420 * MS, 62 * MS), 125);
        assert_eq!(after(600 * MS, 0), 62);
        assert_eq!(after(5_000 * MS, 0), 1);
    }

    #[test]
    fn while_latencies_are_missed_nothing_is_forgiven() {
        let mut cost = IoCost::of_two_groups();
        cost.groups[DEBTOR].vtime = u64::MAX / 4;
        cost.incur(DEBTOR, 1000);
        cost.busy_level = 1;
        forgive_at(&mut cost, 100_000_000, 0);
        assert_eq!(cost.groups[DEBTOR].debt_vtime, 1000);
    }
}
