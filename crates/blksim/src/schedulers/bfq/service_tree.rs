//! One class of entities below one parent: who is active, who was active a
//! short while ago, and how far service has got in virtual time.
//!
//! Kernel: `struct bfq_service_tree` in `block/bfq-wf2q.c`, Linux 6.1. The
//! kernel searches one tree augmented with the least start; as virtual time
//! never goes back, two ordered sets do the same: those that have started in
//! virtual time, by finish, and those that have not, by start.

use std::collections::BTreeSet;

use super::entity::{Entity, EntityId, Place};

/// (virtual time, order of entry, entity).
type Key = (u64, u64, EntityId);

#[derive(Debug, Default)]
pub(super) struct ServiceTree {
    /// Virtual time.
    pub now: u64,
    /// Weights of active and remembered entities.
    pub weights: u64,
    eligible: BTreeSet<Key>,
    waiting: BTreeSet<Key>,
    idle: BTreeSet<Key>,
}

/// Sectors in the fixed point of virtual time, divided by a weight.
#[inline]
pub(super) fn virtual_time(sectors: u64, weight: u64) -> u64 {
    const SHIFT: u32 = 22;
    (sectors << SHIFT) / weight.max(1)
}

impl ServiceTree {
    pub fn has_active(&self) -> bool {
        !(self.eligible.is_empty() && self.waiting.is_empty())
    }

    /// Makes an entity, whose timestamps are set, active.
    pub fn insert(&mut self, entities: &mut [Entity], id: EntityId, order: u64) {
        let entity = &mut entities[id as usize];
        entity.order = order;
        if entity.start <= self.now {
            entity.place = Place::Eligible;
            self.eligible.insert((entity.finish, order, id));
        } else {
            entity.place = Place::Waiting;
            self.waiting.insert((entity.start, order, id));
        }
    }

    pub fn insert_idle(&mut self, entities: &mut [Entity], id: EntityId, order: u64) {
        let entity = &mut entities[id as usize];
        entity.order = order;
        entity.place = Place::Idle;
        self.idle.insert((entity.finish, order, id));
    }

    /// Takes an entity off whichever set it is on.
    pub fn remove(&mut self, entities: &mut [Entity], id: EntityId) {
        let entity = &mut entities[id as usize];
        match entity.place {
            Place::Eligible => self.eligible.remove(&(entity.finish, entity.order, id)),
            Place::Waiting => self.waiting.remove(&(entity.start, entity.order, id)),
            Place::Idle => self.idle.remove(&(entity.finish, entity.order, id)),
            Place::Out | Place::InService => true,
        };
        entity.place = Place::Out;
    }

    /// Lets those in whose start has come.
    fn admit(&mut self, entities: &mut [Entity]) {
        while let Some(&(start, order, id)) = self.waiting.first() {
            if start > self.now {
                break;
            }
            self.waiting.pop_first();
            let entity = &mut entities[id as usize];
            entity.place = Place::Eligible;
            self.eligible.insert((entity.finish, order, id));
        }
    }

    /// Who is next: the least finish of those that have started; if none has,
    /// virtual time jumps to the first start.
    pub fn next(&mut self, entities: &mut [Entity]) -> Option<EntityId> {
        self.admit(entities);
        if self.eligible.is_empty() {
            self.now = self.waiting.first()?.0;
            self.admit(entities);
        }
        self.eligible.first().map(|key| key.2)
    }

    /// Who would be next, if virtual time need not jump for it; else the first to start.
    pub fn peek(&mut self, entities: &mut [Entity]) -> Option<EntityId> {
        self.admit(entities);
        self.eligible.first().or(self.waiting.first()).map(|key| key.2)
    }

    /// Service was given; entities that are idle since before are forgotten.
    #[inline]
    pub fn advance(&mut self, entities: &mut [Entity], sectors: u64) {
        self.now += virtual_time(sectors, self.weights);
        while let Some(&(finish, _, id)) = self.idle.first() {
            if finish > self.now {
                break;
            }
            self.idle.pop_first();
            self.forget(&mut entities[id as usize]);
        }
    }

    /// An entity no longer counts.
    pub fn forget(&mut self, entity: &mut Entity) {
        entity.place = Place::Out;
        if std::mem::take(&mut entity.counted) {
            self.weights -= entity.weight;
        }
    }
}
