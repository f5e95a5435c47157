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

use super::disk::Disk;
use super::queue_facts::QueueFacts;
use crate::core::params::Values;
use crate::core::processor_table::SchedulerCosts;
use crate::elevator;
use crate::elevator::scheduler::Info;

/// One switch.
#[derive(Debug, Clone)]
pub struct ElevatorSwitch {
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

impl Disk {
    /// Gives an empty queue its new scheduler.
    pub(super) fn switch_elevator(&mut self, switch: &ElevatorSwitch) {
        let facts = switch.facts;
        let Some(scheduler) = elevator::build(switch.info.name, &switch.tunables, facts) else {
            return;
        };
        self.set_scheduler(scheduler, switch.info, facts);
        self.costs = switch.costs;
        self.begin_tags_at(switch.first_tag);
        self.set_wbt(switch.wbt_target_ns);
    }
}
