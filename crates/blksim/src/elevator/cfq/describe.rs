//! The description of cfq for a picture: groups, their service trees, and the queues in the order of their
//! turns.

use super::Cfq;
use super::group::Workload;
use super::queue::QueueId;
use crate::block::request::{PriorityClass, Requests};
use crate::elevator::holding::Holding;

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::SyncNoIdle => "sync-noidle",
            Self::Sync => "sync",
        }
    }
}

impl<const TREES: bool> Cfq<TREES> {
    pub(super) fn description(&self, requests: &Requests) -> Holding {
        let mut scheduler = Holding::new("cfq")
            .fact_if("active_queue", self.active)
            .fact_if("active_task", self.active_task)
            .fact("idling", self.timer.is_set())
            .fact_if("idling_until_ns", self.timer.deadline_ns());
        if TREES {
            scheduler = scheduler
                .fact("serving_group", u32::from(self.serving_group))
                .fact("serving_class", self.serving_class.name())
                .fact("serving_kind", self.serving_workload.name())
                .fact("turn_end_ns", self.workload_end_ns);
        }
        scheduler.parts(self.groups.iter().enumerate().filter_map(|(number, group)| {
            let trees = group.trees.iter().enumerate();
            let trees: Vec<_> = trees
                .filter(|(_, tree)| tree.len() > 0)
                .map(|(number, tree)| {
                    let queues = tree
                        .queues()
                        .map(|(key, id)| self.describe_queue(requests, id).fact("key_ns", key));
                    Self::tree_named(number).parts(queues)
                })
                .collect();
            let group = Holding::new("group")
                .fact("group", number)
                .fact("weight", group.share.weight)
                .fact("fraction", group.fraction as f64 / super::group::WHOLE as f64)
                .fact("virtual_time", group.virtual_time() as f64);
            (!trees.is_empty()).then(|| group.parts(trees))
        }))
    }

    fn tree_named(number: usize) -> Holding {
        let tree = Holding::new("tree");
        if !TREES {
            return tree;
        }
        let class = PriorityClass::ALL[(number / Workload::ALL.len()).min(2)];
        let tree = tree.fact("class", class.name());
        match class {
            PriorityClass::Idle => tree,
            _ => tree.fact("kind", Workload::ALL[number % Workload::ALL.len()].name()),
        }
    }

    fn describe_queue(&self, requests: &Requests, id: QueueId) -> Holding {
        let queue = &self.queues[id];
        let task = queue.held.fifo.head().filter(|_| queue.sync).map(|id| requests[id].context);
        Holding::new("queue")
            .fact("queue", id)
            .fact_if("task", task)
            .fact("sync", queue.sync)
            .fact("class", queue.priority.class.name())
            .fact("level", u32::from(queue.priority.level))
            .fact("active", self.active == Some(id))
            .fact("in_device", queue.dispatched)
            .fact("slice_is_new", queue.slice_is_new)
            .fact("slice_start_ns", queue.slice_start_ns)
            .fact("slice_end_ns", queue.slice_end_ns)
            .fact("residual_ns", queue.residual_ns)
            .fact("idle_window", queue.idle_window)
            .fact("shared", queue.shared)
            .fact_if("next", queue.next)
            .part(Holding::new("sorted").requests(queue.held.tree.iter()))
            .part(Holding::new("fifo").requests(queue.held.fifo.iter()))
    }
}
