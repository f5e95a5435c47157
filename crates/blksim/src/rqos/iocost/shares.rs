//! Shares of the device (hweights), by weight and by weight in use.
//!
//! Kernel: `__propagate_weights`, `current_hweight` and `current_hweight_max` in
//! `block/blk-iocost.c`, Linux 6.1.

use super::{CostGroup, IoCost};

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
        let in_use = in_use.clamp(1, self.groups[group].weight);
        self.put_in_use(group, in_use);
        self.groups[group].saved_margin_vtime = margin_vtime;
    }

    /// Sets a group's weight in use, also in the sum of its parent.
    pub(super) fn put_in_use(&mut self, group: usize, in_use: u64) {
        let entry = &mut self.groups[group];
        let before = std::mem::replace(&mut entry.in_use, in_use);
        if entry.counted {
            let parent = entry.parent;
            let sum = &mut self.groups[parent].in_use_of_children;
            *sum = *sum - before + in_use;
        }
    }

    /// The same for its weight.
    pub(super) fn put_weight(&mut self, group: usize, weight: u64) {
        let entry = &mut self.groups[group];
        let before = std::mem::replace(&mut entry.weight, weight);
        if entry.counted {
            let parent = entry.parent;
            let sum = &mut self.groups[parent].weight_of_children;
            *sum = *sum - before + weight;
        }
    }

    /// Computes all shares from the weights of active groups.
    pub(super) fn share_out(&mut self) {
        if std::mem::take(&mut self.activity_changed) {
            self.count_groups();
        }
        for place in 0..self.counted.len() {
            let index = self.counted[place];
            let parent = self.groups[index].parent;
            let (total, in_use) = self.siblings(parent);
            let entry = &self.groups[index];
            let share = part(self.groups[parent].share, entry.weight, total);
            let used = part(self.groups[parent].share_in_use, entry.in_use, in_use);
            self.groups[index].share = share;
            self.groups[index].share_in_use = used.max(1);
        }
    }

    /// Finds the groups that count, and the sums of their weights.
    fn count_groups(&mut self) {
        for group in &mut self.groups {
            group.counted = group.active;
            group.weight_of_children = 0;
            group.in_use_of_children = 0;
        }
        self.counted.clear();
        // Children come after their parents.
        for index in (1..self.groups.len()).rev() {
            let CostGroup { parent, counted, weight, in_use, .. } = self.groups[index];
            if counted {
                let above = &mut self.groups[parent];
                above.counted = true;
                above.weight_of_children += weight;
                above.in_use_of_children += in_use;
                self.counted.push(index);
            }
        }
        self.counted.reverse();
        self.groups[0].share = WHOLE;
        self.groups[0].share_in_use = WHOLE;
    }

    /// Sums of the weights, and of the weights in use, of a parent's active children; an active
    /// parent competes with them.
    pub(super) fn siblings(&self, parent: usize) -> (u64, u64) {
        let above = &self.groups[parent];
        (above.weight_of_children, above.in_use_of_children)
    }

    /// The share of a group with all of its weight in use.
    pub(super) fn largest_share(&self, group: usize) -> u64 {
        let entry = &self.groups[group];
        let (_, in_use) = self.siblings(entry.parent);
        let whole = self.groups[entry.parent].share_in_use;
        part(whole, entry.weight, in_use + entry.weight - entry.in_use).max(1)
    }
}
