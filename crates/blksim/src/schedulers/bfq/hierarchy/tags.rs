//! Tags in proportion to weight.
//!
//! Kernel: `bfqq_request_over_limit` in `block/bfq-iosched.c`, Linux 6.1.

use super::{EntityId, Hierarchy};

/// I/O priority levels of a class.
const LEVELS: u64 = 8;

impl Hierarchy {
    /// Of `limit` tags, has this queue or a group above it its share by weight?
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
        // Of the queue itself: higher classes count many times.
        let trees = &self.groups[usize::from(entity.parent)].trees;
        let weights =
            trees[..=entity.class as usize].iter().fold(0, |sum, tree| sum * LEVELS + tree.weights);
        // At least the quotient of the two, rounded: without the division.
        let share = limit * entity.weight + weights / 2;
        weights > 0 && (u64::from(entity.allocated) + 1) * weights > share
    }

    fn all_counted(&self, id: EntityId) -> bool {
        let entity = &self.entities[id as usize];
        entity.counted && entity.above().is_none_or(|above| self.all_counted(above))
    }

    /// What a group may have of `limit` tags; `None` if it, or one above it, has it all.
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

    /// A request of a queue has got or given back its tag.
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
