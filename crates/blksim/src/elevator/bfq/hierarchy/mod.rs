//! The tree of entities (queues and control groups), and B-WF2Q+, which chooses the next queue:
//! worst-case fair weighted fair queueing with budgets.
//!
//! Each parent shares service, counted in sectors, among its children in
//! proportion to weight, separately for each class; RT goes before BE, BE
//! before IDLE, but IDLE entities get a turn once in 200 ms. A group is of
//! class BE, and its budget is that of its next child.
//!
//! * [`entity`]: a queue or group, its weight and timestamps.
//! * [`service_tree`], [`trees`]: the children of a parent in order.
//! * [`activation`]: entities come and go.
//! * [`next`]: the next entity, and the one in service.
//! * [`symmetry`]: the conditions under which the order of service does not matter.
//! * [`tags`]: shares of tags.
//!
//! Kernel: `block/bfq-wf2q.c`, Linux 6.1.

mod activation;
mod entity;
mod next;
mod service_tree;
mod symmetry;
mod tags;
mod trees;

pub use self::entity::{Entity, EntityId, GroupId, Owner, Place, QueueId};
use self::service_tree::ServiceTree;
use self::symmetry::WeightCounts;
use super::queue::LONG_AGO_NS;
use super::red_black::{Links, NIL};
use crate::block::request::PriorityClass;

pub const ROOT: GroupId = 0;
/// Classes in order of service.
const CLASSES: [PriorityClass; 3] =
    [PriorityClass::RealTime, PriorityClass::BestEffort, PriorityClass::Idle];

#[derive(Debug, Clone)]
pub struct Group {
    pub entity: Option<EntityId>,
    trees: [ServiceTree; CLASSES.len()],
    next: Option<EntityId>,
    in_service: Option<EntityId>,
    idle_served_ns: i64,
    nr_active: u32,
    /// Queues of its own with requests.
    nr_pending_queues: u32,
}

impl Group {
    fn new(entity: Option<EntityId>) -> Self {
        Self {
            entity,
            trees: Default::default(),
            next: None,
            in_service: None,
            // For the root, the time at which the scheduler was chosen.
            idle_served_ns: LONG_AGO_NS,
            nr_active: 0,
            nr_pending_queues: 0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Hierarchy {
    pub entities: Vec<Entity>,
    links: Vec<Links>,
    groups: Vec<Group>,
    /// The time of the last tick.
    pub tick_ns: i64,
    /// The queue that was activated last.
    pub list: u32,
    /// Queues with requests that are not raised.
    weights: WeightCounts,
    nr_pending_groups: u32,
    /// One group of queues with requests is no reason to keep queues apart.
    one_busy_group_is_symmetric: bool,
    /// Queues that no tree remembers.
    pub forgotten: Vec<QueueId>,
}

impl Hierarchy {
    pub fn new(one_busy_group_is_symmetric: bool) -> Self {
        Self {
            entities: Vec::new(),
            links: Vec::new(),
            groups: vec![Group::new(None)],
            tick_ns: 0,
            list: NIL,
            weights: WeightCounts::default(),
            nr_pending_groups: 0,
            one_busy_group_is_symmetric,
            forgotten: Vec::new(),
        }
    }

    /// Creates the next group, with its weight; its parent exists (`bfq_pd_init`, `bfq_group_set_parent`).
    pub fn add_group(&mut self, parent: GroupId, weight: u64) {
        let id = self.nr_groups();
        debug_assert!(parent < id, "groups are numbered after their parents");
        let entity = Entity::new(Owner::Group(id), parent, PriorityClass::BestEffort, weight);
        let entity = self.add(entity);
        self.groups.push(Group::new(Some(entity)));
    }

    /// Number of groups, the root included.
    pub fn nr_groups(&self) -> GroupId {
        self.groups.len() as GroupId
    }

    /// Changes the weight of a group that exists.
    pub fn set_weight(&mut self, group: GroupId, weight: u64) {
        if let Some(id) = self.groups[usize::from(group)].entity {
            let entity = &mut self.entities[id as usize];
            if entity.new_weight != weight {
                entity.new_weight = weight;
                entity.changed = true;
            }
        }
    }

    pub fn add(&mut self, mut entity: Entity) -> EntityId {
        let id = self.entities.len() as EntityId;
        self.links.push(Links::default());
        entity.above = self.entity_of(entity.parent);
        self.entities.push(entity);
        id
    }

    /// Reuses the slot of an unused entity.
    pub fn replace(&mut self, id: EntityId, mut entity: Entity) {
        entity.above = self.entity_of(entity.parent);
        self.entities[id as usize] = entity;
    }

    fn entity_of(&self, group: GroupId) -> EntityId {
        self.groups[usize::from(group)].entity.unwrap_or(NIL)
    }

    /// Virtual time and sum of weights of a class below a group.
    pub fn tree_facts(&self, group: GroupId, class: PriorityClass) -> (u64, u64) {
        let tree = &self.groups[usize::from(group)].trees[class as usize];
        (tree.now, tree.weights)
    }

    /// The entity of an entity's parent; none below the root.
    #[inline]
    pub fn above(&self, id: EntityId) -> Option<EntityId> {
        self.entities[id as usize].above()
    }

    fn parent_of(&mut self, id: EntityId) -> &mut Group {
        &mut self.groups[usize::from(self.entities[id as usize].parent)]
    }

    fn tree_of(&mut self, id: EntityId) -> &mut ServiceTree {
        let entity = &self.entities[id as usize];
        &mut self.groups[usize::from(entity.parent)].trees[entity.class as usize]
    }

    /// Begins a new slot of the groups above a queue.
    pub fn reset_service_above(&mut self, id: EntityId) {
        let mut id = id;
        while let Some(above) = self.above(id) {
            self.entities[above as usize].service = 0;
            id = above;
        }
    }

    /// Charges a queue and the groups above it.
    #[inline(always)]
    pub fn serve(&mut self, id: EntityId, sectors: u64) {
        let mut id = id;
        loop {
            let entity = &mut self.entities[id as usize];
            entity.service += sectors;
            let (parent, class, above) = (entity.parent, entity.class, entity.above());
            let tree = &mut self.groups[usize::from(parent)].trees[class as usize];
            tree.serve(sectors);
            if tree.has_idle() {
                self.forget_outdated(parent, class);
            }
            let Some(above) = above else { return };
            id = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sectors that each of always busy entities gets in `turns` slots.
    fn shares(weights: &[(GroupId, u64)], groups: &[u64], turns: u32) -> Vec<u64> {
        let mut hierarchy = Hierarchy::new(false);
        for &weight in groups {
            hierarchy.add_group(ROOT, weight);
        }
        let mut ids = Vec::new();
        for (queue, &(group, weight)) in weights.iter().enumerate() {
            let mut entity = Entity::new(
                Owner::Queue(queue as QueueId),
                group,
                PriorityClass::BestEffort,
                weight,
            );
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
        let served = shares(&[(1, 40), (2, 80), (2, 10), (3, 40)], &[100, 300, 600], 1000);
        assert_eq!((served[0], served[1] + served[2], served[3]), (10_000, 30_000, 60_000));
        assert!(served[1] > 7 * served[2] && served[1] < 9 * served[2], "{served:?}");
    }

    #[test]
    fn a_short_absence_gains_nothing() {
        let mut hierarchy = Hierarchy::new(false);
        let mut ids = Vec::new();
        for queue in 0..2 {
            let mut entity = Entity::new(Owner::Queue(queue), ROOT, PriorityClass::BestEffort, 10);
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
