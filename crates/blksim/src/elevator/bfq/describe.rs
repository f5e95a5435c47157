//! The description of bfq for a picture: the groups, their service trees by class, and the queues in them by
//! finish.

use super::Bfq;
use super::hierarchy::{Entity, EntityId, GroupId, Owner, Place, QueueId, ROOT};
use crate::block::request::{PriorityClass, Requests};
use crate::elevator::holding::Holding;

impl Bfq {
    pub(super) fn description(&self, requests: &Requests) -> Holding {
        Holding::new("bfq")
            .fact_if("in_service", self.in_service)
            .fact("idling", self.waiting)
            .fact_if("idling_until_ns", self.idle_timer.deadline_ns().filter(|_| self.waiting))
            .fact("max_budget", self.max_budget)
            .fact("raised_queues", self.nr_raised)
            .part(self.describe_group(requests, ROOT, None))
    }

    fn describe_group(
        &self,
        requests: &Requests,
        group: GroupId,
        entity: Option<EntityId>,
    ) -> Holding {
        let mut part = Holding::new("group").fact("group", u32::from(group));
        if let Some(id) = entity {
            part = self.with_entity(part, id);
        }
        let entities = self.hierarchy.entities.iter().enumerate();
        let children: Vec<_> = entities
            .filter(|(_, entity)| entity.parent == group && self.is_shown(entity))
            .map(|(id, entity)| (id as EntityId, entity))
            .collect();
        for class in PriorityClass::ALL {
            let of_class = children.iter().filter(|(_, entity)| entity.class == class);
            let mut members: Vec<_> = of_class.copied().collect();
            if members.is_empty() {
                continue;
            }
            members.sort_by_key(|(id, entity)| (entity.place != Place::Out, entity.finish, *id));
            let (virtual_time, weights) = self.hierarchy.tree_facts(group, class);
            let tree = Holding::new("tree")
                .fact("class", class.name())
                .fact("virtual_time", virtual_time)
                .fact("weights", weights);
            part =
                part.part(tree.parts(members.into_iter().map(|(id, entity)| match entity.owner {
                    Owner::Queue(q) => self.describe_queue(requests, q, id),
                    Owner::Group(group) => self.describe_group(requests, group, Some(id)),
                })));
        }
        part
    }

    /// Queues that are busy or in service, and groups that have such.
    fn is_shown(&self, entity: &Entity) -> bool {
        match entity.owner {
            Owner::Queue(q) => {
                let queue = self.queue(q);
                !queue.freed && (queue.busy || !queue.is_empty() || self.in_service == Some(q))
            }
            Owner::Group(group) => {
                let children = self.hierarchy.entities.iter().filter(|e| e.parent == group);
                group != ROOT && children.into_iter().any(|child| self.is_shown(child))
            }
        }
    }

    fn with_entity(&self, part: Holding, id: EntityId) -> Holding {
        let entity = &self.hierarchy.entities[id as usize];
        let place = match entity.place {
            Place::Out => "out",
            Place::Active => "active",
            Place::Idle => "remembered",
        };
        part.fact("weight", entity.weight)
            .fact("place", place)
            .fact("start", entity.start)
            .fact("finish", entity.finish)
            .fact("budget", entity.budget)
            .fact("service", entity.service)
    }

    fn describe_queue(&self, requests: &Requests, q: QueueId, id: EntityId) -> Holding {
        let queue = self.queue(q);
        let raised = match (queue.wr_coeff > 1, queue.wr.is_soft_real_time()) {
            (false, _) => None,
            (true, true) => Some("soft real-time"),
            (true, false) => Some("interactive"),
        };
        // An abandoned or shared queue has no process of its own.
        let task = queue.fifo.head().filter(|_| queue.sync).map(|id| requests[id].context);
        let until_ns = queue.wr.started_ns.saturating_add(queue.wr.duration_ns);
        let part = Holding::new("queue")
            .fact("queue", q)
            .fact_if("task", queue.context.or(task))
            .fact("sync", queue.sync)
            .fact("class", queue.priority.class.name())
            .fact("level", u32::from(queue.priority.level))
            .fact("in_service", self.in_service == Some(q))
            .fact("in_device", queue.dispatched);
        self.with_entity(part, id)
            .fact("max_budget", queue.max_budget)
            .fact("wr_coeff", queue.wr_coeff)
            .fact_if("raised", raised)
            .fact_if("raised_until_ns", raised.map(|_| until_ns))
            .fact_if("slot_ends_ns", (self.in_service == Some(q)).then_some(queue.timeout_ns))
            .fact("shared", queue.shared)
            .fact("seeky", queue.is_seeky())
            .fact_if("next", queue.next)
            .part(Holding::new("sorted").requests(queue.tree.iter()))
            .part(Holding::new("fifo").requests(queue.fifo.iter()))
    }
}
