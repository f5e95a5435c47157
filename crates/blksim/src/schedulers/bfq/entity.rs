//! The tree of entities (queues and control groups) and B-WF2Q+, by which the
//! next queue is chosen: worst-case fair weighted fair queueing with budgets.
//!
//! Each parent shares service, counted in sectors, among its children in
//! proportion to weight, separately for each class; RT goes before BE, BE
//! before IDLE, but IDLE entities get a turn once in 200 ms. A group is of
//! class BE, and its budget is that of its next child.
//!
//! Who is next below a parent is worked out when entities come and go, not
//! when the next is wanted: one that starts in virtual time meanwhile, or
//! whose 200 ms are over, waits for the next occasion.
//!
//! Kernel: `block/bfq-wf2q.c`, Linux 6.1.

use std::collections::BTreeMap;

use super::red_black::{Links, NIL};
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
/// Before anything that is looked back to.
const LONG_AGO_NS: i64 = i64::MIN / 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Queue(QueueId),
    Group(GroupId),
}

/// On which tree of its parent an entity is. A queue in service is on none, a
/// group in service may be on the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Out,
    Active,
    Idle,
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
    /// Without weight raising.
    pub base_weight: u64,
    pub new_weight: u64,
    pub changed: bool,
    /// Weight raising.
    pub coefficient: u64,
    pub start: u64,
    pub finish: u64,
    /// Of the active entities below it in the tree, and its own.
    pub least_start: u64,
    /// Sectors that it may be served for, and was served of that.
    pub budget: u64,
    pub service: u64,
    pub place: Place,
    /// Its weight is in the sum.
    pub counted: bool,
    /// Requests that have tags.
    pub allocated: u32,
    /// Of a group: something below it has requests.
    pending: bool,
    /// Of a queue: as which weight it counts among those with requests.
    counted_weight: Option<u64>,
    /// Neighbours among the active queues.
    list_previous: u32,
    pub list_next: u32,
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
            new_weight: weight,
            changed: false,
            coefficient: 1,
            start: 0,
            finish: 0,
            least_start: 0,
            budget: 0,
            service: 0,
            place: Place::Out,
            counted: false,
            allocated: 0,
            pending: false,
            counted_weight: None,
            list_previous: NIL,
            list_next: NIL,
        }
    }

    #[inline]
    pub fn budget_left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }

    /// Nothing refers to it any more.
    pub fn is_unused(&self) -> bool {
        !self.counted && self.allocated == 0 && self.counted_weight.is_none()
    }

    fn is_queue(&self) -> bool {
        matches!(self.owner, Owner::Queue(_))
    }

    fn set_finish(&mut self, sectors: u64) {
        self.finish = self.start + virtual_time(sectors, self.weight);
    }
}

#[derive(Debug)]
pub(super) struct Group {
    pub entity: Option<EntityId>,
    trees: [ServiceTree; NR_CLASSES],
    next: Option<EntityId>,
    in_service: Option<EntityId>,
    idle_served_ns: i64,
    nr_active: u32,
}

impl Group {
    fn new(entity: Option<EntityId>) -> Self {
        Self {
            entity,
            trees: Default::default(),
            next: None,
            in_service: None,
            // The root's is the moment at which the scheduler was chosen.
            idle_served_ns: LONG_AGO_NS,
            nr_active: 0,
        }
    }
}

#[derive(Debug)]
pub(super) struct Hierarchy {
    pub entities: Vec<Entity>,
    links: Vec<Links>,
    groups: Vec<Group>,
    /// The moment of the last tick.
    pub tick_ns: i64,
    /// The queue that was made active last.
    pub list: u32,
    /// Queues that have requests, not raised, by weight.
    weights: BTreeMap<u64, u32>,
    nr_pending_groups: u32,
    /// Queues that are no longer remembered.
    pub forgotten: Vec<QueueId>,
}

impl Hierarchy {
    pub fn new() -> Self {
        Self {
            entities: Vec::new(),
            links: Vec::new(),
            groups: vec![Group::new(None)],
            tick_ns: 0,
            list: NIL,
            weights: BTreeMap::new(),
            nr_pending_groups: 0,
            forgotten: Vec::new(),
        }
    }

    /// Makes sure that a group exists and has this weight.
    pub fn group(&mut self, group: GroupId, parent: GroupId, weight: u64) {
        while self.groups.len() <= usize::from(group) {
            let id = self.groups.len() as GroupId;
            let class = PriorityClass::BestEffort as usize;
            let entity = self.add(Entity::new(Owner::Group(id), ROOT, class, 100));
            self.groups.push(Group::new(Some(entity)));
        }
        if let Some(id) = self.groups[usize::from(group)].entity {
            let entity = &mut self.entities[id as usize];
            entity.new_weight = weight;
            entity.changed = true;
            if !entity.counted {
                entity.parent = parent;
            }
        }
    }

    pub fn add(&mut self, entity: Entity) -> EntityId {
        self.entities.push(entity);
        self.links.push(Links::default());
        self.entities.len() as EntityId - 1
    }

    /// The entity of an entity's parent; none below the root.
    pub fn above(&self, id: EntityId) -> Option<EntityId> {
        self.groups[usize::from(self.entities[id as usize].parent)].entity
    }

    fn parent_of(&mut self, id: EntityId) -> &mut Group {
        &mut self.groups[usize::from(self.entities[id as usize].parent)]
    }

    fn tree_of(&mut self, id: EntityId) -> &mut ServiceTree {
        let entity = &self.entities[id as usize];
        &mut self.groups[usize::from(entity.parent)].trees[entity.class]
    }

    /// Works out anew who is next below a parent, after `changed` was entered,
    /// or anything. At the end of a slot virtual time may jump to the first
    /// start. True if the parent's own place may change.
    fn update_next(&mut self, group: GroupId, changed: Option<EntityId>, at_end: bool) -> bool {
        let node = &self.groups[usize::from(group)];
        let before = node.next;
        let undisputed = changed.filter(|&id| {
            before.is_none_or(|next| {
                let (new, next_) = (&self.entities[id as usize], &self.entities[next as usize]);
                id != next
                    && new.class == next_.class
                    && new.start <= node.trees[new.class].now
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
        for class in first..NR_CLASSES {
            let tree = &mut self.groups[usize::from(group)].trees[class];
            if !tree.has_active() {
                continue;
            }
            let now = tree.now_or_first_start(&self.entities);
            if !fixed && now > tree.now {
                tree.now = now;
                self.forget_outdated(group, class);
            }
            let tree = &self.groups[usize::from(group)].trees[class];
            let found = tree.first_started(&self.entities, &self.links, now);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Forgets one entity of which virtual time has passed the finish.
    #[inline]
    fn forget_outdated(&mut self, group: GroupId, class: usize) {
        let node = &mut self.groups[usize::from(group)];
        let Some(id) = node.trees[class].outdated(&self.entities) else { return };
        node.trees[class].extract_idle(&mut self.entities, &mut self.links, id);
        let in_service = node.in_service == Some(id);
        self.forget(id, in_service);
    }

    /// An entity no longer counts.
    fn forget(&mut self, id: EntityId, in_service: bool) {
        let weight = self.entities[id as usize].weight;
        self.entities[id as usize].counted = false;
        self.tree_of(id).weights -= weight;
        if let (Owner::Queue(q), false) = (self.entities[id as usize].owner, in_service) {
            self.forgotten.push(q);
        }
    }

    fn insert_active(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let node = &mut self.groups[usize::from(parent)];
        node.trees[class].insert(&mut self.entities, &mut self.links, id);
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

    fn extract_active(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let node = &mut self.groups[usize::from(parent)];
        node.trees[class].extract(&mut self.entities, &mut self.links, id);
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

    fn extract_idle(&mut self, id: EntityId) {
        let entity = &self.entities[id as usize];
        let tree = &mut self.groups[usize::from(entity.parent)].trees[entity.class];
        tree.extract_idle(&mut self.entities, &mut self.links, id);
    }

    /// Class and weight become what they are to be.
    pub fn renew(&mut self, id: EntityId, class_too: bool) {
        let entity = &mut self.entities[id as usize];
        if !entity.changed {
            return;
        }
        let trees = &mut self.groups[usize::from(entity.parent)].trees;
        let old_class = entity.class;
        trees[old_class].weights -= entity.weight;
        entity.base_weight = entity.new_weight;
        if class_too {
            entity.class = entity.new_class;
        }
        entity.changed = entity.class != entity.new_class;
        let old_weight = entity.weight;
        entity.weight = entity.base_weight * entity.coefficient;
        trees[entity.class].weights += entity.weight;
        if entity.class != old_class {
            entity.start = trees[entity.class].now;
        }
        if entity.is_queue() && entity.weight != old_weight {
            let raised = entity.coefficient > 1;
            self.uncount_weight(id);
            if !raised {
                self.count_weight(id);
            }
        }
    }

    /// Enters an entity, whose start is set, for its budget.
    fn enter(&mut self, id: EntityId, shifted_back: bool) {
        self.renew(id, true);
        let entity = &mut self.entities[id as usize];
        entity.set_finish(entity.budget);
        let now = self.groups[usize::from(entity.parent)].trees[entity.class].now;
        if shifted_back && now > entity.finish {
            // Too far back would let it monopolise the device.
            let shift = (now - entity.finish) / entity.coefficient;
            entity.start += shift;
            entity.finish += shift;
        }
        self.insert_active(id);
    }

    /// An entity that was not active is. With `in_time` it came back so soon
    /// that its start may lie before virtual time.
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
        if !entity.is_queue() && !std::mem::replace(&mut entity.pending, true) {
            self.nr_pending_groups += 1;
        }
        self.enter(id, shifted_back);
    }

    /// An active entity, or the one in service, is entered again.
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

    /// A queue has something to do again.
    pub fn activate(&mut self, id: EntityId, in_time: bool) {
        self.activate_upwards(id, in_time, false, false);
    }

    /// A queue goes back to its tree: after its slot, or with another budget.
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

    /// Takes an entity out that has nothing more to do; it is remembered
    /// until virtual time has passed its finish. False if it was not there.
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
        let tree = &mut self.groups[usize::from(entity.parent)].trees[entity.class];
        if entity.finish > tree.now {
            tree.insert_idle(&mut self.entities, &mut self.links, id);
        } else {
            self.forget(id, in_service);
        }
        true
    }

    /// A queue has nothing more to do; neither have groups without others.
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

    /// Nobody is in service any longer.
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

    /// The groups above a queue begin a new slot.
    pub fn reset_service_above(&mut self, id: EntityId) {
        let mut id = id;
        while let Some(above) = self.above(id) {
            self.entities[above as usize].service = 0;
            id = above;
        }
    }

    /// Charges a queue and the groups above it.
    #[inline]
    pub fn serve(&mut self, id: EntityId, sectors: u64) {
        let mut id = id;
        loop {
            let entity = &mut self.entities[id as usize];
            entity.service += sectors;
            let (parent, class) = (entity.parent, entity.class);
            let tree = &mut self.groups[usize::from(parent)].trees[class];
            tree.now += virtual_time(sectors, tree.weights);
            self.forget_outdated(parent, class);
            match self.groups[usize::from(parent)].entity {
                Some(above) => id = above,
                None => return,
            }
        }
    }

    /// Is another child of the root than the one in service to be next?
    pub fn root_would_switch(&self) -> bool {
        let root = &self.groups[usize::from(ROOT)];
        root.next != root.in_service
    }

    /// Counts a queue's weight among those with requests.
    pub fn count_weight(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if entity.counted_weight.is_none() {
            entity.counted_weight = Some(entity.weight);
            *self.weights.entry(entity.weight).or_default() += 1;
        }
    }

    fn uncount_weight(&mut self, id: EntityId) {
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
            let queue = hierarchy.select().unwrap() as usize;
            hierarchy.serve(ids[queue], 100);
            served[queue] += 100;
            hierarchy.requeue(ids[queue], true, true);
            hierarchy.end_service(ids[queue]);
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
        assert_eq!(hierarchy.select(), Some(0));
        hierarchy.serve(ids[0], 100);
        hierarchy.deactivate(ids[0], true);
        hierarchy.end_service(ids[0]);
        hierarchy.entities[ids[0] as usize].service = 0;
        hierarchy.activate(ids[0], false);
        assert_eq!(hierarchy.select(), Some(1));
    }
}
