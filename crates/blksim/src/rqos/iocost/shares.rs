//! Shares of the device (hweights), by weight and by weight in use.
//!
//! Kernel: `__propagate_weights`, `current_hweight` and `current_hweight_max` in
//! `block/blk-iocost.c`, Linux 6.1.

use super::IoCost;

/// The share 1, as coarse as in the kernel, because a debtor gets the smallest share.
pub(super) const WHOLE: u64 = 1 << 16;

/// `whole * of / total`, rounded down.
pub(super) fn part(whole: u64, of: u64, total: u64) -> u64 {
    let result = u128::from(whole) * u128::from(of) / u128::from(total.max(1));
    u64::try_from(result).unwrap_or(u64::MAX)
}

/// The same, rounded up.
pub(super) fn part_up(whole: u64, of: u64, total: u64) -> u64 {
    let result = (u128::from(whole) * u128::from(of)).div_ceil(u128::from(total.max(1)));
    u64::try_from(result).unwrap_or(u64::MAX)
}

/// A cost as a group with this share pays it.
pub(super) fn by_share(cost_vtime: u64, share: u64) -> u64 {
    part_up(cost_vtime, WHOLE, share)
}

impl IoCost {
    /// A cost as a group pays it with its share in use.
    pub(super) fn charged(&self, group: usize, cost_vtime: u64) -> u64 {
        by_share(cost_vtime, self.groups[group].share_in_use)
    }

    /// Changes a group's weight in use.
    pub(super) fn use_weight(&mut self, group: usize, in_use: u64, clock_vtime: u64) {
        let margin_vtime = self.behind_vtime(group, clock_vtime);
        let entry = &mut self.groups[group];
        entry.in_use = in_use.clamp(1, entry.weight);
        entry.saved_margin_vtime = margin_vtime;
    }

    /// Computes all shares from the weights of active groups.
    pub(super) fn share_out(&mut self) {
        for group in &mut self.groups {
            group.counted = group.active;
        }
        // Children come after their parents.
        for index in (1..self.groups.len()).rev() {
            if self.groups[index].counted {
                let parent = self.groups[index].parent;
                self.groups[parent].counted = true;
            }
        }
        self.groups[0].share = WHOLE;
        self.groups[0].share_in_use = WHOLE;
        for index in 1..self.groups.len() {
            if !self.groups[index].counted {
                continue;
            }
            let parent = self.groups[index].parent;
            let (total, in_use) = self.siblings(parent);
            let entry = &self.groups[index];
            let share = part(self.groups[parent].share, entry.weight, total);
            let used = part(self.groups[parent].share_in_use, entry.in_use, in_use);
            self.groups[index].share = share;
            self.groups[index].share_in_use = used.max(1);
        }
    }

    /// Sums of the weights, and of the weights in use, of a parent's active children; an active
    /// parent competes with them.
    pub(super) fn siblings(&self, parent: usize) -> (u64, u64) {
        let counted = self.groups.iter().skip(1).filter(|g| g.parent == parent && g.counted);
        counted.fold((0, 0), |(total, used), g| (total + g.weight, used + g.in_use))
    }

    /// The share of a group with all of its weight in use.
    pub(super) fn largest_share(&self, group: usize) -> u64 {
        let entry = &self.groups[group];
        let (_, in_use) = self.siblings(entry.parent);
        let whole = self.groups[entry.parent].share_in_use;
        part(whole, entry.weight, in_use + entry.weight - entry.in_use).max(1)
    }
}
