//! Activation and deactivation of entities: their timestamps, and the changes in the groups above a
//! queue.
//!
//! Kernel: `bfq_activate_requeue_entity`, `bfq_deactivate_entity`,
//! `bfq_update_fin_time_enqueue`, `__bfq_entity_update_weight_prio` in
//! `block/bfq-wf2q.c`, Linux 6.1.

use super::{EntityId, Hierarchy, Place};

impl Hierarchy {
    /// Brings class and weight up to date.
    pub fn renew(&mut self, id: EntityId, class_too: bool) {
        let entity = &mut self.entities[id as usize];
        if !entity.changed {
            return;
        }
        let trees = &mut self.groups[usize::from(entity.parent)].trees;
        let old_class = entity.class;
        debug_assert!(trees[old_class as usize].weights >= entity.weight, "the sum of weights");
        trees[old_class as usize].weights -= entity.weight;
        entity.base_weight = entity.new_weight;
        if class_too {
            entity.class = entity.new_class;
        }
        entity.changed = entity.class != entity.new_class;
        let old_weight = entity.weight;
        debug_assert!(entity.new_weight > 0 && entity.wr_coeff > 0, "an entity without weight");
        entity.weight = entity.base_weight * entity.wr_coeff;
        trees[entity.class as usize].weights += entity.weight;
        if entity.class != old_class {
            entity.start = trees[entity.class as usize].now;
        }
        if entity.is_queue() && entity.weight != old_weight {
            let raised = entity.wr_coeff > 1;
            self.uncount_weight(id);
            if !raised {
                self.count_weight(id);
            }
        }
    }

    /// Enters an entity whose start is set, with its budget.
    fn enter(&mut self, id: EntityId, shifted_back: bool) {
        self.renew(id, true);
        let entity = &mut self.entities[id as usize];
        entity.set_finish(entity.budget);
        let now = self.groups[usize::from(entity.parent)].trees[entity.class as usize].now;
        if shifted_back && now > entity.finish {
            // Too far back would let it monopolise the device.
            let shift = (now - entity.finish) / entity.wr_coeff;
            entity.start += shift;
            entity.finish += shift;
        }
        self.insert_active(id);
    }

    /// Activates an inactive entity. With `in_time` it came back soon enough that its start may lie
    /// before virtual time.
    fn begin(&mut self, id: EntityId, in_time: bool) {
        let now = self.tree_of(id).now;
        let entity = &self.entities[id as usize];
        let shifted_back = in_time && now > entity.finish;
        let earliest = if shifted_back { entity.finish } else { now };
        if entity.place == Place::Idle {
            self.extract_idle(id);
            let entity = &mut self.entities[id as usize];
            entity.start = earliest.max(entity.finish);
        } else {
            let entity = &mut self.entities[id as usize];
            entity.start = earliest;
            entity.counted = true;
            let weight = entity.weight;
            self.tree_of(id).weights += weight;
        }
        let entity = &mut self.entities[id as usize];
        if !self.one_busy_group_is_symmetric
            && !entity.is_queue()
            && !std::mem::replace(&mut entity.pending, true)
        {
            self.nr_pending_groups += 1;
        }
        self.enter(id, shifted_back);
    }

    /// Enters an active entity, or the one in service, again.
    fn enter_again(&mut self, id: EntityId) {
        let in_service = self.parent_of(id).in_service == Some(id);
        let entity = &mut self.entities[id as usize];
        if in_service {
            entity.set_finish(entity.service);
            entity.start = entity.finish;
        }
        if entity.place == Place::Active {
            self.extract_active(id);
        }
        self.enter(id, false);
    }

    fn begin_or_enter_again(&mut self, id: EntityId, in_time: bool) {
        let in_service = self.parent_of(id).in_service == Some(id);
        if in_service || self.entities[id as usize].place == Place::Active {
            self.enter_again(id);
        } else {
            self.begin(id, in_time);
        }
    }

    /// Activates a queue.
    pub fn activate(&mut self, id: EntityId, in_time: bool) {
        self.activate_upwards(id, in_time, false, false);
    }

    /// Puts a queue back into its tree: after its slot, or with another budget.
    pub fn requeue(&mut self, id: EntityId, in_service: bool, at_end: bool) {
        self.activate_upwards(id, false, in_service, at_end);
    }

    fn activate_upwards(&mut self, id: EntityId, in_time: bool, all: bool, at_end: bool) {
        let mut at = Some(id);
        while let Some(id) = at {
            self.begin_or_enter_again(id, in_time);
            let parent = self.entities[id as usize].parent;
            if !self.update_next(parent, Some(id), at_end) && !all {
                return;
            }
            at = self.above(id);
        }
    }

    /// Deactivates an entity without requests. It is remembered until virtual time has passed its
    /// finish. Returns false if it was not in a tree.
    fn leave(&mut self, id: EntityId) -> bool {
        let node = self.parent_of(id);
        let in_service = node.in_service == Some(id);
        if !self.entities[id as usize].counted {
            return false;
        }
        let entity = &mut self.entities[id as usize];
        entity.set_finish(entity.service);
        if in_service {
            self.parent_of(id).in_service = None;
        } else {
            self.entities[id as usize].service = 0;
        }
        match self.entities[id as usize].place {
            Place::Active => self.extract_active(id),
            Place::Idle if !in_service => self.extract_idle(id),
            _ => {}
        }
        let entity = &self.entities[id as usize];
        let tree = &mut self.groups[usize::from(entity.parent)].trees[entity.class as usize];
        if entity.finish > tree.now {
            tree.insert_idle(&mut self.entities, &mut self.links, id);
        } else {
            self.forget(id, in_service);
        }
        true
    }

    /// Deactivates a queue, and groups that have no other.
    pub fn deactivate(&mut self, id: EntityId, at_end: bool) {
        let mut at = Some(id);
        while let Some(id) = at {
            let (group, above) = (self.entities[id as usize].parent, self.above(id));
            if !self.leave(id) {
                return;
            }
            if self.groups[usize::from(group)].next == Some(id) {
                self.update_next(group, None, at_end);
            }
            at = above;
            let node = &self.groups[usize::from(group)];
            if node.next.is_some() || node.in_service.is_some() {
                break;
            }
        }
        while let Some(id) = at {
            self.enter_again(id);
            let group = self.entities[id as usize].parent;
            if !self.update_next(group, Some(id), at_end) && !at_end {
                return;
            }
            at = self.above(id);
        }
    }
}
