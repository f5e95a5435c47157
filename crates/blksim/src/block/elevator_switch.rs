//! Switching the scheduler under load (`elevator_switch` of `block/elevator.c`, Linux 6.1): new bios
//! sleep before the queue, those inside are completed, a fresh scheduler with its own tags takes
//! the place of the old one, and the sleepers continue in order.
//!
//! * Freezing takes at least a fixed time, in which the queue may run dry: the kernel waits for RCU
//!   grace periods (`percpu_ref_kill`, `blk_mq_quiesce_queue`).
//! * `nr_requests` and writeback throttling become the new scheduler's defaults unless the user set
//!   them (`blk_mq_init_sched`, `wbt_enable_default`).
//! * The members of an array freeze together, and each continues once it is done.
//!
//! Simplified: a cache flush that is wanted meanwhile is done before the switch. A scheduler that
//! takes its own place is a fresh one too; the kernel would leave it alone.

use super::layer::BlockLayer;
use super::queue_enter::QueueEnter;
use super::queue_facts::QueueFacts;
use crate::core::event::Class;
use crate::core::params::Values;
use crate::core::processor_table::SchedulerCosts;
use crate::elevator;
use crate::elevator::scheduler::Info;

/// One switch.
#[derive(Debug, Clone)]
pub struct ElevatorSwitch {
    pub at_ns: u64,
    pub info: &'static Info,
    pub tunables: Values,
    /// The queue under the new scheduler.
    pub facts: QueueFacts,
    /// Processor time of the new scheduler; `None` if computing takes none.
    pub costs: Option<SchedulerCosts>,
    /// Tag at which the first search begins.
    pub first_tag: u32,
    /// Target of writeback throttling under the new scheduler; 0: off.
    pub wbt_target_ns: u64,
}

/// All switches of a run, and how far each disk has come.
#[derive(Debug, Clone)]
pub(crate) struct Switching {
    switches: Vec<ElevatorSwitch>,
    freeze_ns: u64,
    /// By disk: when each switch was done.
    done_ns: Vec<Vec<u64>>,
}

impl Switching {
    /// The time at which the last disk had its new scheduler; `None` if not all have it.
    pub fn done_ns(&self, switch: usize) -> Option<u64> {
        let times = self.done_ns.iter().map(|done_ns| done_ns.get(switch).copied());
        times.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

impl BlockLayer {
    /// Has every disk switch its scheduler at these times, each freezing for at least `freeze_ns`.
    pub(crate) fn plan_switches(&mut self, switches: Vec<ElevatorSwitch>, freeze_ns: u64) {
        let nr_disks = self.disks.count();
        for (index, disk) in self.disks.iter_mut().enumerate() {
            disk.add_policy(Box::new(QueueEnter::default()));
            if let Some(first) = switches.first() {
                self.events.at(first.at_ns, Class::PolicyTimer, index as u32);
            }
        }
        let done_ns = vec![Vec::new(); nr_disks];
        self.switching = Some(Box::new(Switching { switches, freeze_ns, done_ns }));
    }

    /// Freezes a disk if its switch is due, and switches once it is drained.
    pub(crate) fn elevator_switch(&mut self, disk: usize) {
        if let Some(mut switching) = self.switching.take() {
            self.freeze_or_switch(disk, &mut switching);
            self.switching = Some(switching);
        }
    }

    #[inline(never)]
    fn freeze_or_switch(&mut self, disk: usize, switching: &mut Switching) {
        let now_ns = self.events.now_ns();
        let done_ns = &mut switching.done_ns[disk];
        let Some(switch) = switching.switches.get(done_ns.len()) else { return };
        if now_ns < switch.at_ns {
            return;
        }
        let queue = &mut self.disks[disk];
        let thawed_ns = switch.at_ns.saturating_add(switching.freeze_ns);
        if !std::mem::replace(&mut queue.usage.frozen, true) {
            self.events.at(thawed_ns, Class::PolicyTimer, disk as u32);
            for hctx in 0..self.disks[disk].hctxs.count() {
                self.run_queue_soon(disk, hctx);
            }
        }
        let queue = &mut self.disks[disk];
        if now_ns < thawed_ns || !queue.is_drained() {
            return;
        }
        let facts = switch.facts;
        let Some(scheduler) = elevator::build(switch.info.name, &switch.tunables, facts) else {
            return;
        };
        queue.set_scheduler(scheduler, switch.info, facts);
        queue.costs = switch.costs;
        queue.begin_tags_at(switch.first_tag);
        queue.set_wbt(switch.wbt_target_ns);
        queue.usage.frozen = false;
        done_ns.push(now_ns);
        // The first lets the sleepers go on.
        self.events.at(now_ns, Class::PolicyTimer, disk as u32);
        if let Some(next) = switching.switches.get(done_ns.len()) {
            self.events.at(next.at_ns, Class::PolicyTimer, disk as u32);
        }
    }
}
