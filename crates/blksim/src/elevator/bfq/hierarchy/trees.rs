//! Insertion of entities into the trees of their parents, and removal.
//!
//! Kernel: `bfq_active_insert`, `bfq_active_extract`, `bfq_forget_entity`,
//! `bfq_forget_idle` in `block/bfq-wf2q.c`, Linux 6.1.

use super::super::red_black::NIL;
use super::{Entity, EntityId, GroupId, Hierarchy, Owner};
use crate::block::request::PriorityClass;

impl Hierarchy {
    /// Forgets one entity whose finish has passed.
    pub(super) fn forget_outdated(&mut self, group: GroupId, class: PriorityClass) {
        let node = &mut self.groups[usize::from(group)];
        let Some(id) = node.trees[class as usize].outdated(&self.entities) else { return };
        node.trees[class as usize].extract_idle(&mut self.entities, &mut self.links, id);
        let in_service = node.in_service == Some(id);
        self.forget(id, in_service);
    }

    /// Forgets an entity.
    pub(super) fn forget(&mut self, id: EntityId, in_service: bool) {
        let weight = self.entities[id as usize].weight;
        self.entities[id as usize].counted = false;
        self.tree_of(id).weights -= weight;
        if let (Owner::Queue(q), false) = (self.entities[id as usize].owner, in_service) {
            self.forgotten.push(q);
        }
    }

    pub(super) fn insert_active(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let node = &mut self.groups[usize::from(parent)];
        node.trees[class as usize].insert(&mut self.entities, &mut self.links, id);
        node.nr_active += 1;
        if is_queue {
            let head = std::mem::replace(&mut self.list, id);
            self.entities[id as usize].list_previous = NIL;
            self.entities[id as usize].list_next = head;
            if head != NIL {
                self.entities[head as usize].list_previous = id;
            }
        }
    }

    pub(super) fn extract_active(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let node = &mut self.groups[usize::from(parent)];
        node.trees[class as usize].extract(&mut self.entities, &mut self.links, id);
        node.nr_active -= 1;
        if is_queue {
            let Entity { list_previous: previous, list_next: next, .. } =
                self.entities[id as usize];
            match previous {
                NIL => self.list = next,
                previous => self.entities[previous as usize].list_next = next,
            }
            if next != NIL {
                self.entities[next as usize].list_previous = previous;
            }
        }
    }

    pub(super) fn extract_idle(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let tree = &mut self.groups[usize::from(entity.parent)].trees[entity.class as usize];
        tree.extract_idle(&mut self.entities, &mut self.links, id);
    }
}
