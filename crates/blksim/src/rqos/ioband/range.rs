//! Policy `range-bw`: each group gets at least `min` KB/s and at most `max`.
//!
//! Periods of a second, with two tokens for each KB. Groups below their minimum go first, in order
//! of their lack, in turns whose length follows their range. Groups without a minimum come next,
//! then those that have reached theirs; one that has reached its maximum waits for the next period.
//! Once all minima are met, turns are drawn by lot. Minima beyond the device's speed are not
//! enforced.

use crate::block::cgroup::Group;
use crate::core::rng::Stream;

const PERIOD_NS: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const TOKENS_PER_KB: u64 = 2;

#[derive(Debug, Clone)]
struct Account {
    /// Tokens of a period; 0: none set.
    min: u64,
    max: u64,
    used: u64,
}

impl Account {
    fn is_met(&self) -> bool {
        self.used >= self.min
    }
}

#[derive(Debug, Clone)]
pub struct RangeBandwidth {
    accounts: Vec<Account>,
    /// Accounts that have used less than their minimum.
    nr_unmet: usize,
    total_min: u64,
    period_start_ns: u64,
    current: Option<usize>,
    turn_end_ns: u64,
    lots: Stream,
}

fn nr_unmet(accounts: &[Account]) -> usize {
    accounts.iter().filter(|account| !account.is_met()).count()
}

impl RangeBandwidth {
    pub fn new(groups: &[Group], seed: u64) -> Self {
        let accounts: Vec<_> = groups
            .iter()
            .map(|group| Account {
                min: group.band.get("min") * TOKENS_PER_KB,
                max: group.band.get("max") * TOKENS_PER_KB,
                used: 0,
            })
            .collect();
        Self {
            total_min: accounts.iter().map(|account| account.min).sum(),
            nr_unmet: nr_unmet(&accounts),
            accounts,
            period_start_ns: 0,
            current: None,
            turn_end_ns: 0,
            lots: Stream::named(seed, "policy/ioband"),
        }
    }

    /// Takes over changed ranges, for the rest of the period.
    pub fn set_ranges(&mut self, groups: &[Group]) {
        for (account, group) in self.accounts.iter_mut().zip(groups) {
            account.min = group.band.get("min") * TOKENS_PER_KB;
            account.max = group.band.get("max") * TOKENS_PER_KB;
        }
        self.total_min = self.accounts.iter().map(|account| account.min).sum();
        self.nr_unmet = nr_unmet(&self.accounts);
    }

    pub fn period_end_ns(&self) -> u64 {
        self.period_start_ns + PERIOD_NS
    }

    fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.period_end_ns() {
            self.period_start_ns = now_ns / PERIOD_NS * PERIOD_NS;
            self.current = None;
            for account in &mut self.accounts {
                // An overdraft carries over as debt.
                let allowed = if account.max > 0 { account.max } else { account.used };
                account.used = account.used.saturating_sub(allowed);
            }
            self.nr_unmet = nr_unmet(&self.accounts);
        }
    }

    pub fn may_submit(&mut self, now_ns: u64, group: usize) -> u64 {
        self.advance(now_ns);
        let account = &self.accounts[group];
        if account.max > 0 && account.used >= account.max {
            return 0;
        }
        if self.current == Some(group) && now_ns < self.turn_end_ns {
            return u64::MAX;
        }
        if !account.is_met() {
            return 10 + 10 * (account.min - account.used);
        }
        if self.nr_unmet == 0 {
            return 1 + self.lots.below(9);
        }
        if account.min == 0 { 10 } else { 5 }
    }

    fn turn_ns(&self, group: usize) -> u64 {
        let account = &self.accounts[group];
        if account.min == 0 {
            100 * MS
        } else if account.used >= account.min {
            20 * MS
        } else {
            let middle = u64::midpoint(account.min, account.max.max(account.min));
            100 * MS + 100 * MS * middle / self.total_min.max(1)
        }
    }

    /// Takes a bio's tokens. Returns false if the group's turn is over.
    pub fn consume(&mut self, now_ns: u64, group: usize, sectors: u64) -> bool {
        if self.current != Some(group) || now_ns >= self.turn_end_ns {
            self.current = Some(group);
            self.turn_end_ns = now_ns + self.turn_ns(group);
        }
        let account = &mut self.accounts[group];
        let was_met = account.is_met();
        account.used += sectors * 512 * TOKENS_PER_KB / 1024;
        self.nr_unmet -= usize::from(!was_met && account.is_met());
        now_ns < self.turn_end_ns
    }
}
