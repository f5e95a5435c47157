//! Policies `weight` (a token for each bio) and `weight-iosize` (one for each
//! sector).
//!
//! Each epoch gives every configured group its ration of tokens, by weight. A new epoch begins when
//! no group that holds bios has tokens left, unless a group that mattered in this epoch still has
//! many. Idle groups therefore block no others, and save tokens for a few epochs at most. A group
//! may overdraw; the debt stays.

use crate::block::cgroup::Group;
use crate::core::params::Values;

/// Tokens of a turn, in bios' worth.
const TURN: i64 = 20;

#[derive(Debug, Clone)]
struct Account {
    ration: i64,
    tokens: i64,
    epoch: u64,
    used: i64,
    yield_mark: i64,
}

#[derive(Debug, Clone)]
pub struct Weighted {
    accounts: Vec<Account>,
    by_size: bool,
    unit: i64,
    base: i64,
    carryover: u64,
    epoch: u64,
    /// Tokens of this epoch that nobody took, and those of the last one.
    left: i64,
    leftover: i64,
    dominant: Option<usize>,
    current: Option<usize>,
}

/// Tokens of each group in an epoch.
fn rations(groups: &[Group], base: i64) -> impl Iterator<Item = i64> + '_ {
    let total: i64 = groups.iter().map(|g| g.band.get("weight") as i64).sum();
    groups.iter().map(move |group| (base * group.band.get("weight") as i64 / total).max(1))
}

impl Weighted {
    pub fn new(groups: &[Group], band: &Values, by_size: bool) -> Self {
        let unit = if by_size { 8 } else { 1 };
        let base = match band.get("token") as i64 {
            0 => 4 * band.get("io_limit") as i64 * unit,
            given => given,
        };
        let accounts = rations(groups, base).map(|ration| Account {
            ration,
            tokens: ration,
            epoch: 0,
            used: 0,
            yield_mark: 0,
        });
        Self {
            accounts: accounts.collect(),
            by_size,
            unit,
            base,
            carryover: band.get("carryover"),
            epoch: 0,
            left: base,
            leftover: 0,
            dominant: None,
            current: None,
        }
    }

    /// Takes over changed weights. Tokens that a group has, it keeps.
    pub fn set_weights(&mut self, groups: &[Group]) {
        for (account, ration) in self.accounts.iter_mut().zip(rations(groups, self.base)) {
            account.ration = ration;
        }
    }

    fn epochs_due(&self, group: usize) -> i64 {
        (self.epoch - self.accounts[group].epoch).min(self.carryover) as i64
    }

    /// Tokens with those that are still to be collected.
    fn effective(&self, group: usize) -> i64 {
        self.accounts[group].tokens + self.accounts[group].ration * self.epochs_due(group)
    }

    fn priority(&self, group: usize) -> u64 {
        (100 * self.effective(group) / self.accounts[group].ration + 1).max(1) as u64
    }

    pub fn may_submit(&mut self, group: usize) -> u64 {
        if self.accounts[group].tokens > 0 {
            return self.priority(group);
        }
        let epochs = self.epochs_due(group);
        let account = &mut self.accounts[group];
        account.epoch = self.epoch;
        if epochs == 0 {
            return 0;
        }
        let bonus = self.leftover * account.ration / (self.base - self.leftover / 2).max(1);
        account.tokens += epochs * account.ration + bonus;
        account.used = 0;
        self.left -= epochs * account.ration;
        if self.accounts[group].tokens > 0 { self.priority(group) } else { 0 }
    }

    /// Takes a bio's tokens. Returns false if the group's turn is over.
    pub fn consume(&mut self, group: usize, sectors: u64) -> bool {
        let tokens = if self.by_size { sectors as i64 } else { 1 };
        let heavy = {
            let account = &self.accounts[group];
            account.used + tokens >= account.ration / 8 || account.used + tokens >= self.base / 16
        };
        if heavy {
            let most = self.dominant.map(|other| self.effective(other));
            if most.is_none_or(|most| self.effective(group) > most) {
                self.dominant = Some(group);
            }
        }
        if self.current != Some(group) {
            self.current = Some(group);
            let account = &mut self.accounts[group];
            account.yield_mark = account.tokens - TURN * self.unit;
        }
        let account = &mut self.accounts[group];
        account.tokens -= tokens;
        account.used += tokens;
        let (dry, turn_over) = (account.tokens <= 0, account.tokens <= account.yield_mark);
        if dry && account.epoch == self.epoch && self.dominant == Some(group) {
            self.dominant = None;
        }
        if turn_over {
            self.current = None;
        }
        !turn_over
    }

    /// Begins an epoch, unless the device is busy enough to wait for a group that matters and has
    /// tokens left.
    pub fn new_epoch(&mut self, device_is_busy: bool) -> bool {
        if device_is_busy && self.dominant.is_some_and(|group| self.priority(group) > 12) {
            return false;
        }
        self.epoch += 1;
        self.leftover = self.left.max(0);
        self.left = self.base;
        self.dominant = None;
        true
    }
}
