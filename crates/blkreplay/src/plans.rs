//! Plans of tasks, out of times, addresses and dependencies.

use blkrecord::io::UNKNOWN_IOPRIO;
use blksim::core::record::Direction;
use blksim::workload::own_priority::OwnPriority;
use blksim::workload::replay::{ReplayIo, Signal, TaskPlan};

use crate::addresses::Addresses;
use crate::completions::Completions;
use crate::dependencies::{Dependency, between_tasks};
use crate::options::Options;
use crate::recorded::{Action, Recorded};
use crate::tasks::{Task, Tasks};

/// The part of its sleep that a task which keeps its depth may have with fewer I/Os in flight, and of its I/Os that
/// exceed its usual depth.
const LESS_DEEP: f64 = 0.1;

/// The plans of all tasks.
#[derive(Debug)]
pub struct Plans {
    /// In the order of tasks.
    pub plans: Vec<TaskPlan>,
    /// The usual priority of each task.
    pub priorities: Vec<Option<OwnPriority>>,
    /// Signals between tasks.
    pub nr_signals: u32,
}

impl Plans {
    pub fn new(
        recorded: &Recorded,
        tasks: &Tasks,
        addresses: &Addresses,
        options: &Options,
    ) -> Self {
        let completions: Vec<Completions> =
            tasks.tasks.iter().map(|task| Completions::of(task, recorded)).collect();
        let dependencies =
            if recorded.open { Vec::new() } else { between_tasks(recorded, tasks, &completions) };
        let priorities: Vec<_> = tasks.tasks.iter().map(|task| usual(task, recorded)).collect();
        let mut plans: Vec<TaskPlan> = Vec::with_capacity(tasks.tasks.len());
        for (number, task) in (0..).zip(&tasks.tasks) {
            let first = dependencies.partition_point(|one| one.waiter < number);
            let last = dependencies.partition_point(|one| one.waiter <= number);
            let context = Context { recorded, addresses, options, completions: &completions };
            let awaited = (first as u32, &dependencies[first..last]);
            plans.push(context.plan(number, task, priorities[number as usize], awaited));
        }
        for (number, dependency) in (0..).zip(&dependencies) {
            let sets = &mut plans[dependency.other as usize].sets;
            sets.push(Signal { at: dependency.completions, number });
        }
        for plan in &mut plans {
            plan.sets.sort_unstable();
        }
        Self { plans, priorities, nr_signals: dependencies.len() as u32 }
    }
}

struct Context<'a> {
    recorded: &'a Recorded,
    addresses: &'a Addresses,
    options: &'a Options,
    completions: &'a [Completions],
}

impl Context<'_> {
    fn plan(
        &self,
        number: u32,
        task: &Task,
        usual: Option<OwnPriority>,
        (first_signal, dependencies): (u32, &[Dependency]),
    ) -> TaskPlan {
        let own = &self.completions[number as usize];
        let mut plan = TaskPlan {
            thinks_in_turn: !self.recorded.open,
            knows_submissions: !self.recorded.open && self.recorded.knows_submissions,
            ..TaskPlan::default()
        };
        // Of the I/O before.
        let (mut queued_ns, mut submitted_ns) = (0, 0);
        let mut dependencies = (first_signal..).zip(dependencies).peekable();
        // When the others that it waits for had completed.
        let mut released_ns = 0;
        for (place, io) in (0..).zip(&task.ios) {
            let io = &self.recorded.ios[*io as usize];
            while let Some((number, dependency)) =
                dependencies.next_if(|(_, dependency)| dependency.place == place)
            {
                let other = &self.completions[dependency.other as usize];
                released_ns = released_ns.max(other.time_ns(dependency.completions).unwrap_or(0));
                plan.awaits.push(Signal { at: place, number });
            }
            let waits_for = if self.recorded.open { 0 } else { own.until(io.queued_ns) };
            let mut from_ns = own.time_ns(waits_for).unwrap_or(0).max(released_ns);
            if plan.thinks_in_turn {
                // Requests in a plug are inserted after others were queued, and do not hold up their task.
                let went_on_ns =
                    if submitted_ns <= io.queued_ns { submitted_ns } else { queued_ns };
                from_ns = from_ns.max(went_on_ns);
                (queued_ns, submitted_ns) = (io.queued_ns, io.submitted_ns);
            }
            let priority = priority(io.ioprio);
            plan.ios.push(ReplayIo {
                offset: self.addresses.byte(io.sector) * u64::from(io.action != Action::Flush),
                bytes: io.sectors * 512,
                direction: match io.action {
                    Action::Read => Direction::Read,
                    Action::Write => Direction::Write,
                    Action::Flush => Direction::Sync,
                },
                durable: io.durable,
                priority: priority.filter(|_| priority != usual),
                waits_for,
                rank: own.ranks[place as usize],
                think_ns: self.options.paced_ns(io.queued_ns.saturating_sub(from_ns)),
            });
        }
        plan.waits_for_any = self.keeps_its_depth(task, &plan, own);
        plan
    }

    /// Whether a task sleeps only while most of its usual I/Os are in flight, but for `LESS_DEEP` of the time. Which
    /// of them it sleeps for makes no difference then, or it sleeps for all. That some complete together, and it has
    /// few in flight until it has queued others, does not count: it is not asleep.
    fn keeps_its_depth(&self, task: &Task, plan: &TaskPlan, own: &Completions) -> bool {
        let mut depths: Vec<u32> =
            (1..).zip(&plan.ios).map(|(count, io)| count - io.waits_for).collect();
        let usual = usual_depth(&mut depths);
        if usual < 2 || plan.ios.len() <= 2 * usual as usize {
            return false;
        }
        let (mut asleep_ns, mut less_deep_ns) = (0, 0);
        for (index, pair) in plan.ios.windows(2).enumerate() {
            let slept_for = pair[0].waits_for + 1;
            if pair[1].waits_for < slept_for {
                continue;
            }
            let queued_ns = self.recorded.ios[task.ios[index] as usize].queued_ns;
            let slept_ns = own.time_ns(slept_for).unwrap_or(0).saturating_sub(queued_ns);
            asleep_ns += slept_ns;
            if 2 * (index as u32 + 1 - pair[0].waits_for) <= usual {
                less_deep_ns += slept_ns;
            }
        }
        less_deep_ns as f64 <= LESS_DEEP * asleep_ns as f64
    }
}

/// The depth that only a few I/Os exceed: a program is read in by more at a time than it queues itself later.
fn usual_depth(depths: &mut [u32]) -> u32 {
    let usual = (depths.len() as f64 * (1.0 - LESS_DEEP)) as usize;
    if usual == 0 { 1 } else { *depths.select_nth_unstable(usual.min(depths.len() - 1)).1 }
}

/// The priority that most of a task's I/Os have.
fn usual(task: &Task, recorded: &Recorded) -> Option<OwnPriority> {
    let mut counts: Vec<(u16, u32)> = Vec::new();
    for io in &task.ios {
        let ioprio = recorded.ios[*io as usize].ioprio;
        match counts.iter_mut().find(|(known, _)| *known == ioprio) {
            Some((_, count)) => *count += 1,
            None => counts.push((ioprio, 1)),
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).and_then(|(ioprio, _)| priority(ioprio))
}

/// A priority in the kernel's encoding (`include/uapi/linux/ioprio.h`); `None` for none, or an unknown one.
fn priority(ioprio: u16) -> Option<OwnPriority> {
    let (class, level) = ((ioprio >> 13) as u8, (ioprio & 7) as u8);
    let known = ioprio != UNKNOWN_IOPRIO && (1..=3).contains(&class);
    known.then_some(OwnPriority { class, level: if class == 3 { 0 } else { level } })
}
