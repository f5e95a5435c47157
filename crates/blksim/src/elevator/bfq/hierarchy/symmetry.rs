//! Symmetry: if all busy queues weigh the same, and no group has busy queues, serving requests in
//! order of arrival gives every queue its share.
//!
//! Kernel: `bfq_weights_tree_add`, `bfq_weights_tree_remove`,
//! `bfq_asymmetric_scenario` in `block/bfq-iosched.c`, Linux 6.1.

use super::{EntityId, Hierarchy, Owner};

/// The number of queues of each weight (`queue_weights_tree`). There are as many weights as levels
/// of priority, and hardly ever more than one in use.
#[derive(Debug, Clone, Default)]
pub struct WeightCounts(Vec<(u64, u32)>);

impl WeightCounts {
    fn add(&mut self, weight: u64) {
        match self.0.binary_search_by_key(&weight, |entry| entry.0) {
            Ok(place) => self.0[place].1 += 1,
            Err(place) => self.0.insert(place, (weight, 1)),
        }
    }

    fn remove(&mut self, weight: u64) {
        if let Ok(place) = self.0.binary_search_by_key(&weight, |entry| entry.0) {
            self.0[place].1 -= 1;
            if self.0[place].1 == 0 {
                self.0.remove(place);
            }
        }
    }

    /// True if weights differ, unless a queue of weight `own` has the least.
    #[inline]
    fn differ(&self, own: Option<u64>) -> bool {
        self.0.len() > 1 && own != Some(self.0[0].0)
    }
}

impl Hierarchy {
    /// Counts the weight of a queue with requests.
    pub fn count_weight(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if entity.counted_weight.is_none() {
            entity.counted_weight = Some(entity.weight);
            self.weights.add(entity.weight);
        }
    }

    pub(super) fn uncount_weight(&mut self, id: EntityId) {
        if let Some(weight) = self.entities[id as usize].counted_weight.take() {
            self.weights.remove(weight);
        }
    }

    /// A queue has requests, and had none, in the device either.
    pub fn something_pending(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if self.one_busy_group_is_symmetric && !std::mem::replace(&mut entity.pending, true) {
            let group = &mut self.groups[usize::from(entity.parent)];
            group.nr_pending_queues += 1;
            self.nr_pending_groups += u32::from(group.nr_pending_queues == 1);
        }
    }

    /// The reverse, for the queue's own group.
    fn none_pending_in_queue(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if std::mem::take(&mut entity.pending) {
            let group = &mut self.groups[usize::from(entity.parent)];
            group.nr_pending_queues -= 1;
            self.nr_pending_groups -= u32::from(group.nr_pending_queues == 0);
        }
    }

    /// A queue has no requests, in the device either; groups above it may have none.
    pub fn nothing_pending(&mut self, id: EntityId) {
        if self.one_busy_group_is_symmetric {
            self.none_pending_in_queue(id);
            self.uncount_weight(id);
            return;
        }
        let mut at = self.above(id);
        while let Some(above) = at {
            let entity = &mut self.entities[above as usize];
            let Owner::Group(group) = entity.owner else { break };
            let node = &self.groups[usize::from(group)];
            if node.next.is_some() || node.in_service.is_some() {
                break;
            }
            if std::mem::take(&mut entity.pending) {
                self.nr_pending_groups -= 1;
            }
            at = self.above(above);
        }
        self.uncount_weight(id);
    }

    /// True if weights differ, unless this queue has the least, or if a group has requests.
    #[inline]
    pub fn is_varied(&self, id: EntityId) -> bool {
        self.nr_pending_groups > u32::from(self.one_busy_group_is_symmetric)
            || self.weights.differ(self.entities[id as usize].counted_weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_differ_but_for_the_least() {
        let mut weights = WeightCounts::default();
        assert!(!weights.differ(None));
        for weight in [40, 40, 10] {
            weights.add(weight);
        }
        assert!(weights.differ(None) && weights.differ(Some(40)));
        assert!(!weights.differ(Some(10)));
        weights.remove(40);
        assert!(weights.differ(Some(40)));
        weights.remove(40);
        assert!(!weights.differ(Some(10)) && !weights.differ(None));
    }
}
