//! Do all busy queues weigh the same? If so, and nothing is busy in groups,
//! serving requests as they come gives every queue its share.
//!
//! Kernel: `bfq_weights_tree_add`, `bfq_weights_tree_remove`,
//! `bfq_asymmetric_scenario` in `block/bfq-iosched.c`, Linux 6.1.

use super::{EntityId, Hierarchy, Owner};

impl Hierarchy {
    /// Counts a queue's weight among those with requests.
    pub fn count_weight(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if entity.counted_weight.is_none() {
            entity.counted_weight = Some(entity.weight);
            *self.weights.entry(entity.weight).or_default() += 1;
        }
    }

    pub(super) fn uncount_weight(&mut self, id: EntityId) {
        if let Some(weight) = self.entities[id as usize].counted_weight.take() {
            if let Some(count) = self.weights.get_mut(&weight) {
                *count -= 1;
                if *count == 0 {
                    self.weights.remove(&weight);
                }
            }
        }
    }

    /// A queue has no requests, in the device either, and so may groups above it.
    pub fn nothing_pending(&mut self, id: EntityId) {
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

    /// Do weights differ, other than that this queue has the least, or are
    /// there requests in groups?
    pub fn is_varied(&self, id: Option<EntityId>) -> bool {
        let least = self.weights.first_key_value().map(|(weight, _)| *weight);
        let counted = id.and_then(|id| self.entities[id as usize].counted_weight);
        let is_least = counted.is_some() && counted == least;
        (!is_least && self.weights.len() > 1) || self.nr_pending_groups > 0
    }
}
