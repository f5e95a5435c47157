//! Changes of a queue in use, one after the other.
//!
//! Those that the kernel makes on an empty queue only (another scheduler, another number of tags, a
//! controller that comes or goes) freeze it: new bios sleep before it until those inside are done
//! (`blk_mq_freeze_queue`, `blk_mq_quiesce_queue`). The others are made at once. A change waits until
//! those before it are made, as writers of sysfs wait for each other.
//!
//! * Freezing takes at least a fixed time, in which the queue may run dry: the kernel waits for RCU
//!   grace periods (`percpu_ref_kill`, `blk_mq_quiesce_queue`).
//! * The members of an array freeze together, and each continues once it is done.

use super::disk::{CompletionAffinity, Merging};
use super::elevator_switch::ElevatorSwitch;
use super::layer::BlockLayer;
use super::queue_enter::QueueEnter;
use super::queue_facts::QueueFacts;
use crate::core::event::Class;
use crate::core::params::Values;
use crate::elevator::AnyScheduler;
use crate::elevator::scheduler::Family;
use crate::rqos::policy::{GroupChange, Policy};

/// The part of a queue that changes, and its new state.
#[derive(Debug, Clone)]
pub enum Action {
    Elevator(Box<ElevatorSwitch>),
    /// A tunable of the scheduler was stored: all values, and its name.
    Tunable(Values, String),
    /// `nr_requests`: the facts of the queue with it, and the tag at which the first search begins if
    /// the tags are new ones.
    Depth(QueueFacts, Option<u32>),
    /// A control group's file was written.
    Group(GroupChange),
    AddPolicy(Box<dyn Policy>),
    RemovePolicy(&'static str),
    /// Writeback throttling with another target; 0: off.
    Wbt(u64),
    Merging(Merging),
    MaxSectors(u32),
    Affinity(CompletionAffinity),
}

impl Action {
    fn freezes(&self, family: Family) -> bool {
        match self {
            Self::Elevator(_) | Self::AddPolicy(_) | Self::RemovePolicy(_) | Self::Wbt(_) => true,
            // Before blk-mq, pools had no tags.
            Self::Depth(..) => family == Family::MultiQueue,
            _ => false,
        }
    }
}

/// A change, and the time from which it is wanted.
#[derive(Debug, Clone)]
pub struct QueueChange {
    pub at_ns: u64,
    pub action: Action,
}

/// All changes of a run, and how far each disk has come.
#[derive(Debug, Clone)]
pub(crate) struct QueueChanges {
    changes: Vec<QueueChange>,
    freeze_ns: u64,
    /// By disk: when each change was made, and until when the queue stays frozen for the next.
    done_ns: Vec<Vec<u64>>,
    thawed_ns: Vec<u64>,
}

impl QueueChanges {
    /// Number of the changes that were asked for.
    pub fn count(&self) -> usize {
        self.changes.len()
    }

    /// The time at which a change was made on the last disk; `None` if not yet on all.
    pub fn done_ns(&self, change: usize) -> Option<u64> {
        let times = self.done_ns.iter().map(|done_ns| done_ns.get(change).copied());
        times.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

impl BlockLayer {
    /// Lets queues be changed while they are used, freezing for at least `freeze_ns` where the kernel
    /// freezes. Called before the run begins: from then on the gate counts who is inside.
    pub(crate) fn allow_changes(&mut self, freeze_ns: u64) {
        for disk in self.disks.iter_mut() {
            disk.add_policy(Box::new(QueueEnter::default()));
        }
        let nr_disks = self.disks.count();
        self.changes = Some(Box::new(QueueChanges {
            changes: Vec::new(),
            freeze_ns,
            done_ns: vec![Vec::new(); nr_disks],
            thawed_ns: vec![0; nr_disks],
        }));
    }

    /// Has every disk make a change, behind those that were asked for before. Without
    /// [`Self::allow_changes`] nothing changes.
    pub(crate) fn change_queues(&mut self, change: QueueChange) {
        let Some(changes) = &mut self.changes else { return };
        for (disk, done_ns) in changes.done_ns.iter().enumerate() {
            // The change before wakes the next.
            if done_ns.len() == changes.changes.len() {
                self.events.at(change.at_ns, Class::PolicyTimer, disk as u32);
            }
        }
        changes.changes.push(change);
    }

    /// Makes the changes of a disk that are due.
    pub(crate) fn make_changes(&mut self, disk: usize) {
        if let Some(mut changes) = self.changes.take() {
            self.make_due(disk, &mut changes);
            self.changes = Some(changes);
        }
    }

    #[inline(never)]
    fn make_due(&mut self, disk: usize, changes: &mut QueueChanges) {
        let now_ns = self.events.now_ns();
        while let Some(change) = changes.changes.get(changes.done_ns[disk].len()) {
            if now_ns < change.at_ns {
                return;
            }
            let freezes = change.action.freezes(self.disks[disk].family);
            if freezes
                && !self.freeze(disk, change.at_ns, changes.freeze_ns, &mut changes.thawed_ns)
            {
                return;
            }
            self.make(disk, &change.action);
            changes.done_ns[disk].push(now_ns);
            let next = changes.changes.get(changes.done_ns[disk].len());
            if freezes {
                self.disks[disk].usage.frozen = false;
                // This lets the sleepers go on; only then comes the next change.
                self.events.at(now_ns, Class::PolicyTimer, disk as u32);
            }
            if let Some(next) = next.filter(|next| freezes || next.at_ns > now_ns) {
                self.events.at(next.at_ns, Class::PolicyTimer, disk as u32);
                return;
            }
        }
    }

    /// Freezes a queue. Returns whether it has been so for long enough and is empty.
    fn freeze(&mut self, disk: usize, at_ns: u64, freeze_ns: u64, thawed_ns: &mut [u64]) -> bool {
        let now_ns = self.events.now_ns();
        if !std::mem::replace(&mut self.disks[disk].usage.frozen, true) {
            thawed_ns[disk] = at_ns.saturating_add(freeze_ns);
            self.events.at(thawed_ns[disk], Class::PolicyTimer, disk as u32);
            for hctx in 0..self.disks[disk].hctxs.count() {
                self.run_queue_soon(disk, hctx);
            }
        }
        now_ns >= thawed_ns[disk] && self.disks[disk].is_drained()
    }

    fn make(&mut self, disk: usize, action: &Action) {
        let queue = &mut self.disks[disk];
        match action {
            Action::Elevator(switch) => queue.switch_elevator(switch),
            Action::Tunable(tunables, name) => {
                let (requests, events) = (&mut self.requests, &mut self.events);
                queue.schedule(0, requests, events, |s, cx| s.retune(cx, tunables, name));
            }
            Action::Depth(facts, new_tags_at) => self.set_depth(disk, *facts, *new_tags_at),
            Action::Group(change) => {
                queue.view.groups = change.cgroups.weights();
                let (requests, events) = (&mut self.requests, &mut self.events);
                queue.schedule(0, requests, events, AnyScheduler::regroup);
                self.tell_policies(disk, |policy, cx| policy.group_changed(cx, change));
            }
            Action::AddPolicy(policy) => {
                let mut policy = policy.clone();
                policy.begin(self.events.now_ns());
                queue.add_policy(policy);
            }
            Action::RemovePolicy(name) => queue.policies.retain(|policy| policy.name() != *name),
            Action::Wbt(target_ns) => {
                queue.set_wbt(0);
                queue.set_wbt(*target_ns);
            }
            Action::Merging(merging) => queue.merging = *merging,
            Action::MaxSectors(sectors) => {
                queue.limit_sectors(*sectors);
                if self.unplugged_sectors > 0 && disk == 0 {
                    self.unplugged_sectors = *sectors;
                }
            }
            Action::Affinity(affinity) => queue.affinity = *affinity,
        }
    }

    fn set_depth(&mut self, disk: usize, facts: QueueFacts, new_tags_at: Option<u32>) {
        let queue = &mut self.disks[disk];
        let before = queue.view.facts;
        if queue.family == Family::Legacy {
            // Nobody waits for an empty queue; one sleeper of each pool is woken
            // (`blk_update_nr_requests`).
            queue.view.facts = facts;
            queue.lists.resize(facts.nr_requests, &mut self.woken);
        } else {
            queue.set_depth(facts, new_tags_at);
        }
        let (requests, events) = (&mut self.requests, &mut self.events);
        queue.schedule(0, requests, events, |s, cx| s.depth_updated(cx, before));
        self.wake_submissions();
    }
}
