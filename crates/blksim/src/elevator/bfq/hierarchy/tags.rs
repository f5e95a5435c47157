//! Tags in proportion to weight.
//!
//! Kernel: `bfqq_request_over_limit` in `block/bfq-iosched.c`, Linux 6.1.

use super::{EntityId, Hierarchy};

/// I/O priority levels of a class.
const LEVELS: u64 = 8;

impl Hierarchy {
    /// True if this queue, or a group above it, has its share by weight of `limit` tags.
    #[inline]
    pub fn over_share(&self, id: EntityId, limit: u32) -> bool {
        let entity = &self.entities[id as usize];
        if !entity.counted {
            return false;
        }
        let limit = match entity.above() {
            None => u64::from(limit),
            Some(above) if !self.all_counted(above) => return false,
            Some(above) => match self.share_of_group(above, limit) {
                Some(limit) => limit,
                None => return true,
            },
        };
        // For the queue itself: higher classes count many times.
        let trees = &self.groups[usize::from(entity.parent)].trees;
        let weights =
            trees[..=entity.class as usize].iter().fold(0, |sum, tree| sum * LEVELS + tree.weights);
        // At least the rounded quotient of the two, without the division.
        let share = limit * entity.weight + weights / 2;
        weights > 0 && (u64::from(entity.allocated) + 1) * weights > share
    }

    fn all_counted(&self, id: EntityId) -> bool {
        let entity = &self.entities[id as usize];
        entity.counted && entity.above().is_none_or(|above| self.all_counted(above))
    }

    /// A group's share of `limit` tags; `None` if it, or one above it, has reached its share.
    fn share_of_group(&self, id: EntityId, limit: u32) -> Option<u64> {
        let entity = &self.entities[id as usize];
        let limit = match entity.above() {
            None => u64::from(limit),
            Some(above) => self.share_of_group(above, limit)?,
        };
        let weights = self.groups[usize::from(entity.parent)].trees[entity.class as usize].weights;
        if weights == 0 {
            return Some(limit);
        }
        let share = (limit * entity.weight + weights / 2) / weights;
        (u64::from(entity.allocated) < share).then_some(share)
    }

    /// A request of a queue takes or frees its tag.
    #[inline]
    pub fn allocated(&mut self, id: EntityId, more: bool) {
        let mut at = Some(id);
        while let Some(id) = at {
            let entity = &mut self.entities[id as usize];
            entity.allocated =
                if more { entity.allocated + 1 } else { entity.allocated.saturating_sub(1) };
            at = entity.above();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Entity, GroupId, Owner, ROOT};
    use super::*;
    use crate::block::request::PriorityClass;

    fn busy(hierarchy: &mut Hierarchy, group: GroupId, weight: u64) -> EntityId {
        let owner = Owner::Queue(hierarchy.entities.len() as u32);
        let mut entity = Entity::new(owner, group, PriorityClass::BestEffort, weight);
        entity.budget = 100;
        let id = hierarchy.add(entity);
        hierarchy.activate(id, false);
        id
    }

    /// A queue's share of `limit` tags.
    fn tags_until_over(hierarchy: &mut Hierarchy, id: EntityId, limit: u32) -> u32 {
        let mut tags = 0;
        while !hierarchy.over_share(id, limit) {
            hierarchy.allocated(id, true);
            tags += 1;
        }
        for _ in 0..tags {
            hierarchy.allocated(id, false);
        }
        tags
    }

    #[test]
    fn tags_are_shared_by_weight_and_rounded() {
        let mut hierarchy = Hierarchy::new(false);
        let (heavy, light) = (busy(&mut hierarchy, ROOT, 80), busy(&mut hierarchy, ROOT, 30));
        for limit in 0..300_u32 {
            // The quotient, half of the divisor added first.
            for (id, weight) in [(heavy, 80), (light, 30)] {
                let share = (limit * weight + 55) / 110;
                assert_eq!(tags_until_over(&mut hierarchy, id, limit), share, "of {limit}");
            }
        }
    }

    #[test]
    fn groups_share_first() {
        let mut hierarchy = Hierarchy::new(false);
        hierarchy.add_group(ROOT, 100);
        hierarchy.add_group(ROOT, 300);
        let alone = busy(&mut hierarchy, 1, 40);
        let (one, other) = (busy(&mut hierarchy, 2, 40), busy(&mut hierarchy, 2, 40));
        assert_eq!(tags_until_over(&mut hierarchy, alone, 64), 16);
        assert_eq!(tags_until_over(&mut hierarchy, one, 64), 24);
        // Once the group's 48 are taken, none of its queues gets more.
        for _ in 0..48 {
            hierarchy.allocated(other, true);
        }
        assert!(hierarchy.over_share(one, 64) && !hierarchy.over_share(alone, 64));
    }

    #[test]
    fn who_does_not_count_has_no_share() {
        let mut hierarchy = Hierarchy::new(false);
        let gone = Entity::new(Owner::Queue(0), ROOT, PriorityClass::BestEffort, 10);
        let gone = hierarchy.add(gone);
        busy(&mut hierarchy, ROOT, 1000);
        assert!(!hierarchy.over_share(gone, 1));
    }
}
