//! Changes that are planned before a run begins, and what is known of them after it.

use super::LiveSimulation;
use super::change::Change;
use crate::core::error::Error;
use crate::simulate::Setup;
use crate::task::slots::{SlotPlan, SlotRecord};

/// The changes of a run, and the phases between them.
#[derive(Debug, Clone, Default)]
pub struct PlannedChanges {
    /// With their times; those of one moment are made in their order.
    pub changes: Vec<(u64, Change)>,
    /// Parts of the run that are recorded apart; empty if only the whole matters.
    pub phases: SlotPlan,
    /// Least time for which a change keeps the queue frozen where the kernel freezes it.
    pub freeze_ns: u64,
}

/// A change that was begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at_ns: u64,
    /// The last of the queue's changes that it consists of; `None` if it concerns no queue.
    last_of_queue: Option<usize>,
}

impl LiveSimulation {
    /// Builds a run whose changes are planned.
    ///
    /// # Errors
    ///
    /// A request or a change that is not possible, or phases that overlap.
    pub fn planned(setup: &Setup, planned: &PlannedChanges) -> Result<Self, Error> {
        let mut live = Self::new(setup, Vec::new(), planned.freeze_ns)?;
        for (at_ns, change) in &planned.changes {
            live.schedule(*at_ns, change.clone())?;
        }
        if !planned.phases.times.is_empty() {
            planned.phases.check()?;
            live.simulation.engine.machine_mut().record_slots(&planned.phases);
        }
        Ok(live)
    }

    /// Takes note of a change that begins now; `queue_changes` were asked for before it.
    pub(super) fn note(&mut self, queue_changes: usize) {
        let now = self.nr_queue_changes();
        let last_of_queue = (now > queue_changes).then(|| now - 1);
        self.begun.push(Begun { at_ns: self.now_ns(), last_of_queue });
    }

    pub(super) fn nr_queue_changes(&self) -> usize {
        let changes = &self.simulation.engine.machine().block.changes;
        changes.as_ref().map_or(0, |changes| changes.count())
    }

    /// When each change that was begun was in force on every disk, in order; `None` if it is not yet.
    pub fn changes_made_ns(&self) -> Vec<Option<u64>> {
        let made_ns = |begun: &Begun| match begun.last_of_queue {
            None => Some(begun.at_ns),
            Some(change) => {
                self.simulation.engine.machine().block.changes.as_ref()?.done_ns(change)
            }
        };
        self.begun.iter().map(made_ns).collect()
    }

    /// The planned phases; what is yet to come counts as without I/O.
    pub fn phases(&self) -> Vec<SlotRecord> {
        self.simulation.engine.machine().closed_slots()
    }
}
