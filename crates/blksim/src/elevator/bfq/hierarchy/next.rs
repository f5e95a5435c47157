//! The next entity of each parent, and the one in service.
//!
//! The next entity is computed when entities come and go, not when it is needed: one that starts in
//! virtual time meanwhile, or whose 200 ms are over, waits for the next change.
//!
//! Kernel: `bfq_update_next_in_service`, `bfq_lookup_next_entity`,
//! `bfq_get_next_queue`, `__bfq_bfqd_reset_in_service` in `block/bfq-wf2q.c`,
//! Linux 6.1.

use super::{CLASSES, EntityId, GroupId, Hierarchy, Owner, Place, QueueId, ROOT};
use crate::block::request::PriorityClass;

const IDLE: usize = PriorityClass::Idle as usize;
/// Longest time for which the IDLE class is passed over.
const IDLE_TIMEOUT_NS: i64 = 200_000_000;

impl Hierarchy {
    /// Computes the next entity of a parent, after `changed` was entered, or any. At the end of a
    /// slot virtual time may jump to the first start. Returns true if the parent's own place may
    /// change (`bfq_update_next_in_service`).
    pub(super) fn update_next(
        &mut self,
        group: GroupId,
        changed: Option<EntityId>,
        at_end: bool,
    ) -> bool {
        let node = &self.groups[usize::from(group)];
        let before = node.next;
        let undisputed = changed.filter(|&id| {
            before.is_none_or(|next| {
                let (new, next_) = (&self.entities[id as usize], &self.entities[next as usize]);
                id != next
                    && new.class == next_.class
                    && new.start <= node.trees[new.class as usize].now
                    && next_.finish > new.finish
            })
        });
        let next = match undisputed {
            Some(id) => Some(id),
            None => self.look_up_next(group, at_end),
        };
        let mut may_change = false;
        if let Some(next) = next {
            may_change = before.is_none();
            let budget = self.entities[next as usize].budget;
            if let Some(above) = self.groups[usize::from(group)].entity {
                let above = &mut self.entities[above as usize];
                may_change |= above.budget > budget;
                above.budget = budget;
            }
        }
        self.groups[usize::from(group)].next = next;
        may_change
    }

    fn look_up_next(&mut self, group: GroupId, at_end: bool) -> Option<EntityId> {
        let node = &mut self.groups[usize::from(group)];
        let mut first = 0;
        if node.idle_served_ns + IDLE_TIMEOUT_NS < self.tick_ns {
            if node.trees[IDLE].has_active() {
                first = IDLE;
            }
            node.idle_served_ns = self.tick_ns;
        }
        let fixed = node.in_service.is_some() && !at_end;
        for &class in &CLASSES[first..] {
            let tree = &mut self.groups[usize::from(group)].trees[class as usize];
            if !tree.has_active() {
                continue;
            }
            let now = tree.now_or_first_start(&self.entities);
            if !fixed && now > tree.now {
                tree.now = now;
                self.forget_outdated(group, class);
            }
            let tree = &self.groups[usize::from(group)].trees[class as usize];
            let found = tree.first_started(&self.entities, &self.links, now);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Puts the next queue and its groups in service.
    pub fn select(&mut self) -> Option<QueueId> {
        let mut group = ROOT;
        let (id, queue) = loop {
            let id = self.groups[usize::from(group)].next?;
            self.groups[usize::from(group)].in_service = Some(id);
            let owner = self.entities[id as usize].owner;
            // A group with several active children stays where it is.
            let alone = match owner {
                Owner::Queue(_) => true,
                Owner::Group(child) => self.groups[usize::from(child)].nr_active == 1,
            };
            if alone && self.entities[id as usize].place == Place::Active {
                self.extract_active(id);
            }
            match owner {
                Owner::Queue(queue) => break (id, queue),
                Owner::Group(child) => group = child,
            }
        };
        let mut at = Some(id);
        while let Some(id) = at {
            let parent = self.entities[id as usize].parent;
            if !self.update_next(parent, None, false) {
                break;
            }
            at = self.above(id);
        }
        Some(queue)
    }

    /// Takes the entity in service out of service.
    pub fn end_service(&mut self, id: EntityId) {
        let mut at = Some(id);
        while let Some(id) = at {
            self.parent_of(id).in_service = None;
            at = self.above(id);
        }
        let entity = &self.entities[id as usize];
        if let (Owner::Queue(q), false) = (entity.owner, entity.counted) {
            self.forgotten.push(q);
        }
    }

    /// True if the root's next child is another than the one in service.
    pub fn root_would_switch(&self) -> bool {
        let root = &self.groups[usize::from(ROOT)];
        root.next != root.in_service
    }
}
