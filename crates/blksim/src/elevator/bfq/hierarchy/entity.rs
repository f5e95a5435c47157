//! An entity: a queue or a control group in the order of service.
//!
//! Kernel: `struct bfq_entity` in `block/bfq-iosched.h`, Linux 6.1.

use super::super::red_black::NIL;
use super::service_tree::virtual_time;
use crate::block::request::PriorityClass;

pub type EntityId = u32;
pub type GroupId = u16;
pub type QueueId = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Queue(QueueId),
    Group(GroupId),
}

/// The tree of its parent that an entity is in. A queue in service is in none; a group in service
/// may be in the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Out,
    Active,
    Idle,
}

#[derive(Debug, Clone)]
pub struct Entity {
    pub owner: Owner,
    pub parent: GroupId,
    /// The entity of the parent; [`NIL`] below the root.
    pub(super) above: EntityId,
    /// Its class and weight, current and new: a change takes effect when the entity is next
    /// entered.
    pub class: PriorityClass,
    pub weight: u64,
    pub new_class: PriorityClass,
    /// Weight without weight raising.
    pub base_weight: u64,
    pub new_weight: u64,
    pub changed: bool,
    /// The factor of weight raising (`wr_coeff`).
    pub wr_coeff: u64,
    pub start: u64,
    pub finish: u64,
    /// The least start of the active entities below it in the tree, and its own.
    pub least_start: u64,
    /// Its budget in sectors, and the service that it has had.
    pub budget: u64,
    pub service: u64,
    pub place: Place,
    /// Its weight is included in the tree's sum.
    pub counted: bool,
    /// Requests that have tags.
    pub allocated: u32,
    /// For a group: an entity below it has requests.
    pub(super) pending: bool,
    /// For a queue: the weight under which it is counted among those with requests.
    pub(super) counted_weight: Option<u64>,
    /// Neighbours among the active queues.
    pub(super) list_previous: u32,
    pub list_next: u32,
}

impl Entity {
    pub fn new(owner: Owner, parent: GroupId, class: PriorityClass, weight: u64) -> Self {
        Self {
            owner,
            parent,
            above: NIL,
            class,
            weight,
            new_class: class,
            base_weight: weight,
            new_weight: weight,
            changed: false,
            wr_coeff: 1,
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

    /// The entity of its parent; none below the root.
    #[inline]
    pub fn above(&self) -> Option<EntityId> {
        (self.above != NIL).then_some(self.above)
    }

    /// Nothing refers to it.
    pub fn is_unused(&self) -> bool {
        !self.counted && self.allocated == 0 && self.counted_weight.is_none()
    }

    pub(super) fn is_queue(&self) -> bool {
        matches!(self.owner, Owner::Queue(_))
    }

    /// Sets its finish: the virtual time after this many sectors from its start
    /// (`bfq_calc_finish`).
    pub(super) fn set_finish(&mut self, sectors: u64) {
        self.finish = self.start + virtual_time(sectors, self.weight);
    }
}
