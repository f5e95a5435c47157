//! A switchback: schedulers take turns within one run, and each turn has a record of its own.

use crate::block::attributes::queue_values;
use crate::block::elevator_switch::ElevatorSwitch;
use crate::block::queue_change::{Action, QueueChange};
use crate::core::error::{Error, ErrorKind, SimulationError};
use crate::core::params::Values;
use crate::rqos;
use crate::simulate::{
    Given, Setup, Simulation, behaviours, find_scheduler, queue_facts, tunable_values,
};
use crate::task::slots::{SlotPlan, SlotRecord, SlotTimes};
use crate::workload::Job;

/// One scheduler's turn. It begins with the switch to the scheduler.
#[derive(Debug, Clone)]
pub struct Slot {
    pub scheduler: String,
    pub tunables: Given,
    pub times: SlotTimes,
}

/// The turns of a run. The setup's scheduler is in force before the first.
#[derive(Debug, Clone, Default)]
pub struct Switchback {
    pub slots: Vec<Slot>,
    /// Length of the windows in which I/Os are counted.
    pub window_ns: u64,
    /// Jobs whose I/Os are counted there; empty for all.
    pub focus: Vec<String>,
    /// Least time for which a switch keeps the queue frozen.
    pub freeze_ns: u64,
}

impl Switchback {
    /// The slots as the recorder takes them.
    pub fn slot_plan(&self) -> SlotPlan {
        SlotPlan {
            times: self.slots.iter().map(|slot| slot.times).collect(),
            window_ns: self.window_ns,
            focus: self.focus.clone(),
        }
    }
}

/// The record of a slot that has ended.
#[derive(Debug, Clone)]
pub struct SlotOutcome {
    /// From the beginning of the slot until the scheduler was in force on every disk.
    pub switch_ns: u64,
    pub record: SlotRecord,
}

impl Simulation {
    /// Has schedulers take turns in a simulation that has not begun.
    pub fn take_turns(&mut self, setup: &Setup, turns: &Switchback) -> Result<(), Error> {
        let plan = turns.slot_plan();
        plan.check()?;
        let jobs = setup.timed_jobs()?;
        let mut changes = Vec::new();
        for (index, Slot { scheduler, tunables, times }) in turns.slots.iter().enumerate() {
            let given = &setup.queue;
            let switch = self.switch_to(setup, given, &jobs, (scheduler, tunables), index + 1)?;
            let action = Action::Elevator(Box::new(switch.0));
            changes.push(QueueChange { at_ns: times.start_ns, action });
        }
        let host = self.engine.machine_mut();
        host.block.allow_changes(turns.freeze_ns);
        for change in changes {
            host.block.change_queues(change);
        }
        host.record_slots(&plan);
        Ok(())
    }

    /// The switch to a scheduler with these tunables, the `number`th of the run, and the attributes of
    /// the queue with it.
    pub(crate) fn switch_to(
        &self,
        setup: &Setup,
        queue: &Given,
        jobs: &[Job],
        (scheduler, tunables): (&str, &Given),
        number: usize,
    ) -> Result<(ElevatorSwitch, Values), Error> {
        let info = find_scheduler(scheduler)?;
        if info.family != self.info.family {
            let message = format!(
                "{} cannot take turns with {}: no kernel has both",
                info.name, self.info.name
            );
            let error = SimulationError::of(ErrorKind::UnknownScheduler, "scheduler", message);
            return Err(error.into());
        }
        let processors = setup.costly_processors();
        let queue = queue_values(queue, &self.facts, info, behaviours(&self.machine, info))?;
        let facts = queue_facts(&self.facts, &queue, &self.machine, info, processors);
        let switch = ElevatorSwitch {
            info,
            tunables: tunable_values(info, facts, tunables)?,
            facts,
            costs: processors.map(|table| table.of_scheduler(info.name)),
            first_tag: self.first_tag(setup, number, facts.nr_requests),
            wbt_target_ns: rqos::wbt_target_ns(&queue, jobs),
        };
        Ok((switch, queue))
    }

    /// The tag at which the first search of the `number`th new map of tags begins.
    pub(crate) fn first_tag(&self, setup: &Setup, number: usize, nr_tags: u32) -> u32 {
        setup.arrangement.map_or_else(
            || self.machine.get("first_tag") as u32,
            |arrangement| arrangement.first_tag(0, number, nr_tags),
        )
    }

    /// The slots that have ended, with their schedulers in force.
    pub fn slots(&self) -> Vec<SlotOutcome> {
        let host = self.engine.machine();
        let Some(changes) = &host.block.changes else { return Vec::new() };
        let outcome = |(index, record): (usize, &SlotRecord)| {
            let switch_ns = changes.done_ns(index)? - record.times.start_ns;
            Some(SlotOutcome { switch_ns, record: record.clone() })
        };
        host.ended_slots().iter().enumerate().map_while(outcome).collect()
    }
}
