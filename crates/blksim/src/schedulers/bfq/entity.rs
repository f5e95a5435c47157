//! The tree of entities (queues and control groups) and B-WF2Q+, by which the
//! next queue is chosen: worst-case fair weighted fair queueing with budgets.
//!
//! Each parent shares service, counted in sectors, among its children in
//! proportion to weight, separately for each class; RT goes before BE, BE
//! before IDLE, but IDLE entities get a turn once in 200 ms. A group is of
//! class BE, and its budget is that of its next child.
//!
//! Kernel: `block/bfq-wf2q.c`, Linux 6.1.
//!
//! Simplified: a group in service is never left in its parent's tree; whether
//! it would be next again is worked out when preemption asks.

use super::service_tree::{ServiceTree, virtual_time};
use crate::request::PriorityClass;

pub(super) type EntityId = u32;
pub(super) type GroupId = u16;
pub(super) type QueueId = u32;

pub(super) const ROOT: GroupId = 0;
const NR_CLASSES: usize = 3;
/// I/O priority levels of a class.
const LEVELS: u64 = 8;
const IDLE: usize = PriorityClass::Idle as usize;
/// How long the IDLE class may be passed over.
const IDLE_TIMEOUT_NS: i64 = 200_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Queue(QueueId),
    Group(GroupId),
}

/// On which set of its parent an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Out,
    Waiting,
    Eligible,
    Idle,
    InService,
}

#[derive(Debug, Clone)]
pub(super) struct Entity {
    pub owner: Owner,
    pub parent: GroupId,
    /// Class and weight as they count now, and as they are to be: a change
    /// takes effect when the entity is next entered.
    pub class: usize,
    pub weight: u64,
    pub new_class: usize,
    pub base_weight: u64,
    /// Weight raising.
    pub coefficient: u64,
    pub start: u64,
    pub finish: u64,
    pub order: u64,
    /// Sectors that it may be served for, and was served of that.
    pub budget: u64,
    pub service: u64,
    pub place: Place,
    /// Its weight is in the sum.
    pub counted: bool,
    /// Requests that have tags.
    pub allocated: u32,
}

impl Entity {
    pub fn new(owner: Owner, parent: GroupId, class: usize, weight: u64) -> Self {
        Self {
            owner,
            parent,
            class,
            weight,
            new_class: class,
            base_weight: weight,
            coefficient: 1,
            start: 0,
            finish: 0,
            order: 0,
            budget: 0,
            service: 0,
            place: Place::Out,
            counted: false,
            allocated: 0,
        }
    }

    #[inline]
    pub fn budget_left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }

    fn is_active(&self) -> bool {
        matches!(self.place, Place::Waiting | Place::Eligible)
    }

    /// Start moves past the service received.
    fn account(&mut self) {
        self.start += virtual_time(self.service, self.weight);
    }

    fn set_finish(&mut self) {
        self.finish = self.start + virtual_time(self.budget, self.weight);
    }
}

#[derive(Debug)]
pub(super) struct Group {
    pub entity: Option<EntityId>,
    trees: [ServiceTree; NR_CLASSES],
    in_service: Option<EntityId>,
    idle_served_ns: i64,
}

impl Group {
    fn new(entity: Option<EntityId>) -> Self {
        Self { entity, trees: Default::default(), in_service: None, idle_served_ns: 0 }
    }

    fn has_active(&self) -> bool {
        self.trees.iter().any(ServiceTree::has_active)
    }
}

#[derive(Debug)]
pub(super) struct Hierarchy {
    pub entities: Vec<Entity>,
    groups: Vec<Group>,
    order: u64,
}

impl Hierarchy {
    pub fn new() -> Self {
        Self { entities: Vec::new(), groups: vec![Group::new(None)], order: 0 }
    }

    /// Makes sure that a group exists and has this weight.
    pub fn group(&mut self, group: GroupId, parent: GroupId, weight: u64) {
        while self.groups.len() <= usize::from(group) {
            let id = self.groups.len() as GroupId;
            let entity =
                Entity::new(Owner::Group(id), ROOT, PriorityClass::BestEffort as usize, 100);
            self.entities.push(entity);
            self.groups.push(Group::new(Some(self.entities.len() as EntityId - 1)));
        }
        if let Some(id) = self.groups[usize::from(group)].entity {
            let entity = &mut self.entities[id as usize];
            entity.base_weight = weight;
            if entity.place == Place::Out {
                entity.parent = parent;
            }
        }
    }

    pub fn add(&mut self, entity: Entity) -> EntityId {
        self.entities.push(entity);
        self.entities.len() as EntityId - 1
    }

    /// Takes an entity out for good.
    pub fn remove(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let (parent, class) = (usize::from(entity.parent), entity.class);
        let tree = &mut self.groups[parent].trees[class];
        tree.remove(&mut self.entities, id);
        tree.forget(&mut self.entities[id as usize]);
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// The entity of an entity's parent; none below the root.
    pub fn above(&self, id: EntityId) -> Option<EntityId> {
        self.groups[usize::from(self.entities[id as usize].parent)].entity
    }

    /// An entity has something to do (again). With `backshift` it came back
    /// in time and its start may lie before virtual time.
    pub fn activate(&mut self, id: EntityId, backshift: bool) {
        let mut id = id;
        loop {
            match self.entities[id as usize].place {
                Place::InService => return,
                Place::Waiting | Place::Eligible => self.reposition(id),
                Place::Out | Place::Idle => self.enter(id, backshift),
            }
            let Some(above) = self.above(id) else { return };
            let budget = self.next_budget(self.entities[id as usize].parent);
            let entity = &mut self.entities[above as usize];
            if entity.is_active() && entity.budget == budget {
                return;
            }
            entity.budget = budget;
            id = above;
        }
    }

    /// The budget of an active entity that is not in service has changed.
    fn reposition(&mut self, id: EntityId) {
        let order = self.next_order();
        let entity = &self.entities[id as usize];
        let (parent, class) = (usize::from(entity.parent), entity.class);
        self.groups[parent].trees[class].remove(&mut self.entities, id);
        self.renew(id);
        self.entities[id as usize].set_finish();
        let class = self.entities[id as usize].class;
        self.groups[parent].trees[class].insert(&mut self.entities, id, order);
    }

    fn enter(&mut self, id: EntityId, backshift: bool) {
        let order = self.next_order();
        let entity = &self.entities[id as usize];
        let (parent, class) = (usize::from(entity.parent), entity.class);
        let remembered = entity.place == Place::Idle;
        let tree = &mut self.groups[parent].trees[class];
        tree.remove(&mut self.entities, id);
        let now = tree.now;
        let entity = &mut self.entities[id as usize];
        let backshift = backshift && now > entity.finish;
        let earliest = if backshift { entity.finish } else { now };
        entity.start = if remembered { earliest.max(entity.finish) } else { earliest };
        self.renew(id);
        let entity = &mut self.entities[id as usize];
        let class = entity.class;
        let tree = &mut self.groups[parent].trees[class];
        if !entity.counted {
            entity.counted = true;
            tree.weights += entity.weight;
        }
        entity.set_finish();
        if backshift && entity.finish < tree.now {
            // Too far back would let it monopolise the device.
            let shift = (tree.now - entity.finish) / entity.coefficient;
            entity.start += shift;
            entity.finish += shift;
        }
        tree.insert(&mut self.entities, id, order);
    }

    /// Class and weight become what they are to be.
    fn renew(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        let weight = entity.base_weight * entity.coefficient;
        if entity.weight == weight && entity.class == entity.new_class {
            return;
        }
        let trees = &mut self.groups[usize::from(entity.parent)].trees;
        if entity.counted {
            trees[entity.class].weights -= entity.weight;
            trees[entity.new_class].weights += weight;
        }
        if entity.class != entity.new_class {
            entity.start = trees[entity.new_class].now;
        }
        entity.weight = weight;
        entity.class = entity.new_class;
    }

    /// Applies a change of weight at once to an entity in service.
    pub fn renew_in_service(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        if entity.place == Place::InService && entity.class == entity.new_class {
            self.renew(id);
        }
    }

    /// Takes an entity out that has nothing more to do; it is remembered
    /// until virtual time has passed its finish.
    fn leave(&mut self, id: EntityId) {
        let order = self.next_order();
        let entity = &self.entities[id as usize];
        let (parent, class) = (usize::from(entity.parent), entity.class);
        let tree = &mut self.groups[parent].trees[class];
        tree.remove(&mut self.entities, id);
        let entity = &mut self.entities[id as usize];
        entity.finish = entity.start + virtual_time(entity.service, entity.weight);
        if entity.finish > tree.now {
            tree.insert_idle(&mut self.entities, id, order);
        } else {
            tree.forget(entity);
        }
    }

    /// A queue that is not in service has nothing more to do.
    pub fn deactivate(&mut self, id: EntityId) {
        let mut id = id;
        loop {
            self.leave(id);
            self.entities[id as usize].service = 0;
            let parent = self.entities[id as usize].parent;
            let Some(above) = self.above(id) else { return };
            if self.entities[above as usize].place == Place::InService {
                return;
            }
            if self.groups[usize::from(parent)].has_active() {
                self.entities[above as usize].budget = self.next_budget(parent);
                self.activate(above, false);
                return;
            }
            id = above;
        }
    }

    /// The queue in service is no longer; `busy` if it has more to do. The
    /// groups above it go back as well.
    pub fn end_service(&mut self, id: EntityId, busy: bool) {
        let mut busy = busy;
        let mut id = id;
        loop {
            let parent = self.entities[id as usize].parent;
            self.groups[usize::from(parent)].in_service = None;
            if busy {
                self.entities[id as usize].account();
                self.entities[id as usize].place = Place::Out;
                self.reposition(id);
            } else {
                self.leave(id);
            }
            let Some(above) = self.above(id) else { return };
            busy = self.groups[usize::from(parent)].has_active();
            if busy {
                self.entities[above as usize].budget = self.next_budget(parent);
            }
            id = above;
        }
    }

    /// The groups above a queue begin a new slot.
    pub fn reset_service_above(&mut self, id: EntityId) {
        let mut id = id;
        while let Some(above) = self.above(id) {
            self.entities[above as usize].service = 0;
            id = above;
        }
    }

    fn next_budget(&mut self, group: GroupId) -> u64 {
        let trees = &mut self.groups[usize::from(group)].trees;
        let next = trees.iter_mut().find_map(|tree| tree.peek(&mut self.entities));
        next.map_or(0, |id| self.entities[id as usize].budget)
    }

    /// Chooses the next queue and puts it and its groups in service.
    pub fn select(&mut self, now_ns: i64) -> Option<QueueId> {
        let mut group = ROOT;
        loop {
            let node = &mut self.groups[usize::from(group)];
            let mut first = 0;
            if node.idle_served_ns + IDLE_TIMEOUT_NS < now_ns {
                if node.trees[IDLE].has_active() {
                    first = IDLE;
                }
                node.idle_served_ns = now_ns;
            }
            let entities = &mut self.entities;
            let id = node.trees[first..].iter_mut().find_map(|tree| tree.next(entities))?;
            let class = self.entities[id as usize].class;
            node.trees[class].remove(&mut self.entities, id);
            node.in_service = Some(id);
            self.entities[id as usize].place = Place::InService;
            match self.entities[id as usize].owner {
                Owner::Queue(queue) => return Some(queue),
                Owner::Group(child) => group = child,
            }
        }
    }

    /// Charges a queue and the groups above it.
    #[inline]
    pub fn serve(&mut self, id: EntityId, sectors: u64) {
        let mut id = id;
        loop {
            let entity = &mut self.entities[id as usize];
            entity.service += sectors;
            let (parent, class) = (usize::from(entity.parent), entity.class);
            self.groups[parent].trees[class].advance(&mut self.entities, sectors);
            match self.groups[parent].entity {
                Some(above) => id = above,
                None => return,
            }
        }
    }

    /// Would another child of the root than the one in service be next?
    pub fn root_would_switch(&mut self) -> bool {
        let root = &mut self.groups[usize::from(ROOT)];
        let Some(current) = root.in_service else { return true };
        let entities = &mut self.entities;
        let Some(next) = root.trees.iter_mut().find_map(|tree| tree.peek(entities)) else {
            // Only a group in service can be next again.
            return matches!(self.entities[current as usize].owner, Owner::Queue(_));
        };
        let Owner::Group(group) = self.entities[current as usize].owner else { return true };
        if !self.groups[usize::from(group)].has_active() {
            return true;
        }
        let budget = self.next_budget(group);
        let (current, next) = (&self.entities[current as usize], &self.entities[next as usize]);
        let start = current.start + virtual_time(current.service, current.weight);
        let finish = start + virtual_time(budget, current.weight);
        let now = self.groups[usize::from(ROOT)].trees[current.class].now;
        next.class < current.class || start > now || next.finish < finish
    }

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
            let allocated = &mut self.entities[id as usize].allocated;
            *allocated = if more { *allocated + 1 } else { allocated.saturating_sub(1) };
            at = self.above(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sectors that each of always busy entities gets in `turns` slots.
    fn shares(weights: &[(GroupId, u64)], groups: &[(GroupId, u64)], turns: u32) -> Vec<u64> {
        let mut hierarchy = Hierarchy::new();
        for &(group, weight) in groups {
            hierarchy.group(group, ROOT, weight);
        }
        let mut ids = Vec::new();
        for (queue, &(group, weight)) in weights.iter().enumerate() {
            let mut entity = Entity::new(Owner::Queue(queue as QueueId), group, 1, weight);
            entity.budget = 100;
            ids.push(hierarchy.add(entity));
            hierarchy.activate(ids[queue], false);
        }
        let mut served = vec![0; weights.len()];
        for _ in 0..turns {
            let queue = hierarchy.select(0).unwrap() as usize;
            hierarchy.serve(ids[queue], 100);
            served[queue] += 100;
            hierarchy.end_service(ids[queue], true);
            hierarchy.entities[ids[queue] as usize].service = 0;
            hierarchy.reset_service_above(ids[queue]);
        }
        served
    }

    #[test]
    fn service_follows_weight() {
        assert_eq!(shares(&[(0, 80), (0, 10)], &[], 900), [80_000, 10_000]);
        assert_eq!(shares(&[(0, 40), (0, 40), (0, 20)], &[], 500), [20_000, 20_000, 10_000]);
    }

    #[test]
    fn groups_share_by_weight_whatever_is_in_them() {
        let served =
            shares(&[(1, 40), (2, 80), (2, 10), (3, 40)], &[(1, 100), (2, 300), (3, 600)], 1000);
        assert_eq!((served[0], served[1] + served[2], served[3]), (10_000, 30_000, 60_000));
        assert!(served[1] > 7 * served[2] && served[1] < 9 * served[2], "{served:?}");
    }

    #[test]
    fn a_short_absence_gains_nothing() {
        let mut hierarchy = Hierarchy::new();
        let mut ids = Vec::new();
        for queue in 0..2 {
            let mut entity = Entity::new(Owner::Queue(queue), ROOT, 1, 10);
            entity.budget = 100;
            ids.push(hierarchy.add(entity));
            hierarchy.activate(ids[queue as usize], false);
        }
        // The first is served, leaves and comes back: it must not go again
        // before the second.
        assert_eq!(hierarchy.select(0), Some(0));
        hierarchy.serve(ids[0], 100);
        hierarchy.end_service(ids[0], false);
        hierarchy.entities[ids[0] as usize].service = 0;
        hierarchy.activate(ids[0], false);
        assert_eq!(hierarchy.select(0), Some(1));
    }
}
