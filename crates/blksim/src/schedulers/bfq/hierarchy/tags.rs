//! Tags in proportion to weight.
//!
//! Kernel: `bfqq_request_over_limit` in `block/bfq-iosched.c`, Linux 6.1.

use super::{EntityId, Hierarchy};

/// I/O priority levels of a class.
const LEVELS: u64 = 8;

impl Hierarchy {
    /// Of `limit` tags, has this queue or a group above it its share by weight?
    pub fn over_share(&self, id: EntityId, limit: u32) -> bool {
        let mut chain = [0; 16];
        let mut len = 0;
        let mut at = Some(id);
        while let Some(id) = at {
            if !self.entities[id as usize].counted || len == chain.len() {
                return false;
            }
            chain[len] = id;
            len += 1;
            at = self.above(id);
        }
        let mut limit = u64::from(limit);
        for (level, &id) in chain[..len].iter().enumerate().rev() {
            let entity = &self.entities[id as usize];
            let trees = &self.groups[usize::from(entity.parent)].trees;
            let weights = if level > 0 {
                trees[entity.class].weights
            } else {
                // Of the queue itself: higher classes count many times.
                trees[..=entity.class].iter().fold(0, |sum, tree| sum * LEVELS + tree.weights)
            };
            if weights == 0 {
                continue;
            }
            limit = (limit * entity.weight + weights / 2) / weights;
            if u64::from(entity.allocated) >= limit {
                return true;
            }
        }
        false
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
