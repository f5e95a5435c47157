//! A service tree: one class of entities below one parent, active and recently active ones, and
//! their virtual time.
//!
//! Kernel: `struct bfq_service_tree` in `block/bfq-wf2q.c`, Linux 6.1.

use super::super::red_black::{AFTER, BEFORE, Links, NIL, RedBlack};
use super::entity::{Entity, EntityId, Place};

#[derive(Debug, Clone)]
pub struct ServiceTree {
    /// Virtual time.
    pub now: u64,
    /// Weights of active and remembered entities.
    pub weights: u64,
    /// Active entities by finish; each node knows the least start below it.
    active: RedBlack,
    /// Remembered entities by finish, and the ends of that tree.
    idle: RedBlack,
    first_idle: u32,
    last_idle: u32,
    /// The last service and its virtual time.
    served: Served,
}

/// Requests of one size come in a row, with the same sum of weights, so the virtual time of their
/// service is kept.
#[derive(Debug, Clone, Default)]
struct Served {
    sectors: u64,
    weights: u64,
    virtual_time: u64,
}

impl Default for ServiceTree {
    fn default() -> Self {
        Self {
            now: 0,
            weights: 0,
            active: RedBlack::default(),
            idle: RedBlack::default(),
            first_idle: NIL,
            last_idle: NIL,
            served: Served::default(),
        }
    }
}

/// Sectors divided by a weight, in the fixed point of virtual time.
#[inline]
pub fn virtual_time(sectors: u64, weight: u64) -> u64 {
    const SHIFT: u32 = 22;
    (sectors << SHIFT) / weight.max(1)
}

impl ServiceTree {
    /// Moves virtual time on by the service of so many sectors.
    #[inline]
    pub fn serve(&mut self, sectors: u64) {
        let Served { sectors: before, weights, .. } = self.served;
        if (sectors, self.weights) != (before, weights) {
            let virtual_time = virtual_time(sectors, self.weights);
            self.served = Served { sectors, weights: self.weights, virtual_time };
        }
        self.now += self.served.virtual_time;
    }

    #[inline]
    pub fn has_active(&self) -> bool {
        !self.active.is_empty()
    }

    #[inline]
    pub fn has_idle(&self) -> bool {
        self.first_idle != NIL
    }

    /// Adds an entity, whose timestamps are set, to the active ones.
    pub fn insert(&mut self, entities: &mut [Entity], links: &mut [Links], id: EntityId) {
        let finish = entities[id as usize].finish;
        self.active.insert(links, id, |other| entities[other as usize].finish > finish);
        entities[id as usize].place = Place::Active;
        let [before, after] = links[id as usize].child;
        let lowest = [before, after, id].into_iter().find(|node| *node != NIL).unwrap_or(id);
        update_least_starts(entities, links, lowest);
    }

    /// Takes an active entity out.
    pub fn extract(&mut self, entities: &mut [Entity], links: &mut [Links], id: EntityId) {
        let lowest = lowest_touched(links, id);
        self.active.remove(links, id);
        entities[id as usize].place = Place::Out;
        if lowest != NIL {
            update_least_starts(entities, links, lowest);
        }
    }

    pub fn insert_idle(&mut self, entities: &mut [Entity], links: &mut [Links], id: EntityId) {
        let finish = entities[id as usize].finish;
        if self.first_idle == NIL || entities[self.first_idle as usize].finish > finish {
            self.first_idle = id;
        }
        if self.last_idle == NIL || finish > entities[self.last_idle as usize].finish {
            self.last_idle = id;
        }
        self.idle.insert(links, id, |other| entities[other as usize].finish > finish);
        entities[id as usize].place = Place::Idle;
    }

    pub fn extract_idle(&mut self, entities: &mut [Entity], links: &mut [Links], id: EntityId) {
        if self.first_idle == id {
            self.first_idle = RedBlack::neighbour(links, id, AFTER);
        }
        if self.last_idle == id {
            self.last_idle = RedBlack::neighbour(links, id, BEFORE);
        }
        self.idle.remove(links, id);
        entities[id as usize].place = Place::Out;
    }

    /// The next remembered entity to forget, if its finish has passed. With no active entity and
    /// all finishes passed, virtual time goes back to the last of them.
    pub fn outdated(&mut self, entities: &[Entity]) -> Option<EntityId> {
        if self.first_idle == NIL {
            return None;
        }
        if self.active.is_empty() && self.last_idle != NIL {
            self.now = self.now.min(entities[self.last_idle as usize].finish);
        }
        (entities[self.first_idle as usize].finish <= self.now).then_some(self.first_idle)
    }

    /// Virtual time, or the first start if no active entity has started.
    pub fn now_or_first_start(&self, entities: &[Entity]) -> u64 {
        match self.active.root {
            NIL => self.now,
            root => self.now.max(entities[root as usize].least_start),
        }
    }

    /// The entity with the least finish among those that have started, as far as the search goes:
    /// it does not turn to later finishes once it has found one (`bfq_first_active_entity`).
    pub fn first_started(
        &self,
        entities: &[Entity],
        links: &[Links],
        now: u64,
    ) -> Option<EntityId> {
        let mut first = None;
        let mut node = self.active.root;
        while node != NIL {
            if entities[node as usize].start <= now {
                first = Some(node);
            }
            let [before, after] = links[node as usize].child;
            if before != NIL && entities[before as usize].least_start <= now {
                node = before;
            } else if first.is_some() {
                break;
            } else {
                node = after;
            }
        }
        first
    }
}

/// The lowest node whose subtree changes when `id` is taken out.
fn lowest_touched(links: &[Links], id: EntityId) -> u32 {
    let Links { parent, child: [before, after], .. } = links[id as usize];
    match (before, after) {
        (NIL, NIL) => parent,
        (_, NIL) => before,
        (NIL, _) => after,
        _ => {
            let heir = RedBlack::neighbour(links, id, AFTER);
            let Links { parent, child, .. } = links[heir as usize];
            if child[AFTER] != NIL {
                child[AFTER]
            } else if parent != id {
                parent
            } else {
                heir
            }
        }
    }
}

/// Updates the least starts from a node to the root, and those of the siblings on its path, which
/// may have been rotated.
fn update_least_starts(entities: &mut [Entity], links: &[Links], lowest: u32) {
    let mut node = lowest;
    loop {
        update_least_start(entities, links, node);
        let parent = links[node as usize].parent;
        if parent == NIL {
            return;
        }
        let [before, after] = links[parent as usize].child;
        let sibling = if node == before { after } else { before };
        if sibling != NIL {
            update_least_start(entities, links, sibling);
        }
        node = parent;
    }
}

fn update_least_start(entities: &mut [Entity], links: &[Links], id: u32) {
    let own = entities[id as usize].start;
    let below = links[id as usize].child.into_iter().filter(|child| *child != NIL);
    let least = below.map(|child| entities[child as usize].least_start).fold(own, u64::min);
    entities[id as usize].least_start = least;
}
