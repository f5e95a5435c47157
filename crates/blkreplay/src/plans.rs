//! Plans of tasks, out of times, addresses and dependencies.

use blkrecord::io::{UNKNOWN_IOPRIO, UNKNOWN_PROCESSOR};
use blksim::core::record::Direction;
use blksim::workload::own_priority::OwnPriority;
use blksim::workload::replay::{Home, ReplayIo, Signal, TaskPlan};

use crate::addresses::Addresses;
use crate::completions::Completions;
use crate::dependencies::{Dependency, between_tasks};
use crate::followed::followed;
use crate::options::Options;
use crate::plugs::plugged;
use crate::recorded::{Action, Recorded};
use crate::tasks::{Task, Tasks};

/// The part of its sleep that a task which keeps its depth may have with less than half of its I/Os in flight.
const LESS_DEEP: f64 = 0.1;
/// The part with more of them: programs are read in by more at a time than they queue themselves later.
const DEEPER: f64 = 0.05;
/// The part of its I/Os that a task has queued on one processor, if it has stayed there.
const AT_HOME: f64 = 0.9;

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
        // Of its I/Os, those that were complete when it queued each; of a pool's, those until the one that it follows.
        let done: Vec<u32> = task.ios.iter().map(|io| self.done_before(*io, own)).collect();
        let kept_depth = self.kept_depth(task, &done, own);
        let follows_one = task.is_pool && kept_depth.is_none() && !self.recorded.open;
        let done = if follows_one {
            let queued_ns = task.ios.iter().map(|io| self.recorded.ios[*io as usize].queued_ns);
            followed(&queued_ns.collect::<Vec<_>>(), &done, own)
        } else {
            done
        };
        // The tasks behind a pool compute beside each other.
        let thinks_in_turn = !self.recorded.open && !follows_one;
        let mut plan = TaskPlan {
            // Which worker's I/O completes next says nothing about the one that goes on.
            waits_for_any: kept_depth.is_some() || task.is_pool,
            thinks_in_turn,
            knows_submissions: thinks_in_turn && self.recorded.knows_submissions,
            home: home(task, self.recorded),
            ..TaskPlan::default()
        };
        let plugged = if self.recorded.open {
            vec![false; task.ios.len()]
        } else {
            plugged(task, self.recorded)
        };
        let contexts = task.contexts(self.recorded);
        // Of the I/O before, and the last one of its plug.
        let (mut queued_ns, mut submitted_ns) = (0, 0);
        let mut dependencies = (first_signal..).zip(dependencies).peekable();
        // When the others that it waits for had completed.
        let mut released_ns = 0;
        let mut waits_for = 0;
        for (place, io) in (0..).zip(&task.ios) {
            let io = &self.recorded.ios[*io as usize];
            while let Some((number, dependency)) =
                dependencies.next_if(|(_, dependency)| dependency.place == place)
            {
                let other = &self.completions[dependency.other as usize];
                released_ns = released_ns.max(other.time_ns(dependency.completions).unwrap_or(0));
                plan.awaits.push(Signal { at: place, number });
            }
            let awaits = plan.awaits.last().is_some_and(|signal| signal.at == place);
            let plugged = plugged[place as usize] && !awaits;
            waits_for = match kept_depth {
                // What completes while a plug fills up changes nothing.
                _ if plugged => waits_for,
                Some(depth) => waits_for.max(waits_at_depth(&done, place as usize, depth)),
                None => done[place as usize],
            };
            let mut from_ns = own.time_ns(waits_for).unwrap_or(0).max(released_ns);
            if plan.thinks_in_turn {
                // Requests in a plug are inserted after others were queued, and do not hold up their task.
                let went_on_ns =
                    if submitted_ns <= io.queued_ns { submitted_ns } else { queued_ns };
                from_ns = from_ns.max(went_on_ns);
                queued_ns = io.queued_ns;
                submitted_ns =
                    if plugged { submitted_ns.max(io.submitted_ns) } else { io.submitted_ns };
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
                plugged,
                memory: io.memory,
                context: contexts[place as usize],
                priority: priority.filter(|_| priority != usual),
                waits_for,
                rank: own.ranks[place as usize],
                think_ns: self.options.paced_ns(io.queued_ns.saturating_sub(from_ns)),
            });
        }
        plan
    }

    fn done_before(&self, io: u32, own: &Completions) -> u32 {
        if self.recorded.open { 0 } else { own.until(self.recorded.ios[io as usize].queued_ns) }
    }

    /// The number of I/Os that a task keeps in flight; `None` if it does not.
    ///
    /// It does if it sleeps only while most of its usual I/Os are in flight, but for `LESS_DEEP` of the time. Which of
    /// them it sleeps for makes no difference then. That some complete together, and it has few in flight until it has
    /// queued others, does not count: it is not asleep. One that mostly wakes up with none in flight sends batches.
    fn kept_depth(&self, task: &Task, done: &[u32], own: &Completions) -> Option<u32> {
        // How many I/Os were in flight while it slept, and for how long.
        let mut sleeps: Vec<(u32, u64)> = Vec::new();
        let mut drained = 0;
        for (index, pair) in done.windows(2).enumerate() {
            if pair[1] > pair[0] {
                let queued_ns = self.recorded.ios[task.ios[index] as usize].queued_ns;
                let ended_ns = own.time_ns(pair[0] + 1).unwrap_or(0);
                sleeps.push((in_flight(done, index), ended_ns.saturating_sub(queued_ns)));
                drained += usize::from(in_flight(done, index + 1) == 1);
            }
        }
        sleeps.sort_unstable();
        let asleep_ns: u64 = sleeps.iter().map(|(_, slept_ns)| slept_ns).sum();
        let depth = in_flight_after(&sleeps, (1.0 - DEEPER) * asleep_ns as f64);
        let less_deep = sleeps.iter().filter(|(in_flight, _)| 2 * in_flight <= depth);
        let less_deep_ns: u64 = less_deep.map(|(_, slept_ns)| slept_ns).sum();
        let keeps = asleep_ns > 0
            && depth >= 2
            && 2 * drained <= sleeps.len()
            && done.len() > 2 * depth as usize
            && less_deep_ns as f64 <= LESS_DEEP * asleep_ns as f64;
        keeps.then_some(depth)
    }
}

/// I/Os in flight once that at an index was queued.
fn in_flight(done: &[u32], index: usize) -> u32 {
    index as u32 + 1 - done[index]
}

/// The number in flight during the sleep in which the time slept reaches so much, with the fewest in flight first.
fn in_flight_after(sleeps: &[(u32, u64)], until_ns: f64) -> u32 {
    let mut slept_ns = 0;
    let reached = sleeps.iter().find(|(_, added_ns)| {
        slept_ns += added_ns;
        slept_ns as f64 >= until_ns
    });
    reached.map_or(1, |(in_flight, _)| *in_flight)
}

/// The completions that an I/O waits for, of a task that keeps a depth: until it has a place. If the task had slept
/// with few in flight, it had waited for certain I/Os, and if none was left, perhaps for all of a batch.
fn waits_at_depth(done: &[u32], index: usize, depth: u32) -> u32 {
    let slept = index > 0 && done[index] > done[index - 1];
    let has_waited =
        slept && (2 * in_flight(done, index - 1) <= depth || in_flight(done, index) == 1);
    if has_waited { done[index] } else { done[index].min((index as u32 + 1).saturating_sub(depth)) }
}

/// The priority that most of a task's I/Os have.
fn usual(task: &Task, recorded: &Recorded) -> Option<OwnPriority> {
    let (ioprio, _) = most_frequent(task.ios.iter().map(|io| recorded.ios[*io as usize].ioprio))?;
    priority(ioprio)
}

/// The processor that a task has stayed on. I/Os of unknown processors count as queued elsewhere.
fn home(task: &Task, recorded: &Recorded) -> Option<Home> {
    let numbers = task.ios.iter().map(|io| recorded.ios[*io as usize].processor);
    let (processor, count) = most_frequent(numbers)?;
    let stayed = f64::from(count) >= AT_HOME * task.ios.len() as f64;
    let of = recorded.processors;
    (stayed && processor != UNKNOWN_PROCESSOR && of > 0).then_some(Home { processor, of })
}

/// The value that occurs most often, and how often.
fn most_frequent(values: impl Iterator<Item = u16>) -> Option<(u16, u32)> {
    let mut counts: Vec<(u16, u32)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// A priority in the kernel's encoding (`include/uapi/linux/ioprio.h`); `None` for none, or an unknown one.
fn priority(ioprio: u16) -> Option<OwnPriority> {
    let (class, level) = ((ioprio >> 13) as u8, (ioprio & 7) as u8);
    let known = ioprio != UNKNOWN_IOPRIO && (1..=3).contains(&class);
    known.then_some(OwnPriority { class, level: if class == 3 { 0 } else { level } })
}
