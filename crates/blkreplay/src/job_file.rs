//! Plans as a job file: a section for each kind of task.

use std::fmt::Write;

use blkrecord::names::UNKNOWN_NAME;
use blksim::core::quantity::format_bytes;
use blksim::core::record::Direction;
use blksim::workload::own_priority::OwnPriority;
use blksim::workload::replay::{KEY, TaskPlan, encode};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::Workload;
use crate::addresses::Addresses;
use crate::options::{self, Options};
use crate::plans::Plans;
use crate::recorded::Recorded;
use crate::tasks::{Task, Tasks};

/// Figures and notes of a recording that became a workload.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// `closed` or `open`.
    pub replay: &'static str,
    pub ios: u64,
    pub tasks: u64,
    /// Dependencies between tasks.
    pub signals: u64,
    pub file_bytes: u64,
    pub touched_bytes: u64,
    /// From the first queueing to the last completion or queueing, at the replay's speed.
    pub recorded_ns: u64,
    /// Deviations from the recording, for people.
    pub notes: Vec<String>,
}

/// The tasks of a section.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    command: String,
    group: Option<String>,
    priority: Option<(u8, u8)>,
}

/// Most I/Os of a task in flight: kernels have room for 65,536 of all tasks (`fs.aio-max-nr`).
const MOST_IN_FLIGHT: u32 = 4096;
/// Most clones of a section (`numjobs`).
const MOST_CLONES: usize = 65_536;

/// Writes the job file.
pub fn write(
    recorded: &Recorded,
    tasks: &Tasks,
    addresses: &Addresses,
    plans: &Plans,
    options: &Options,
) -> Workload {
    let mut kinds: Vec<(Kind, Vec<u32>)> = Vec::new();
    let groups = group_names(recorded, &tasks.tasks);
    for (number, task) in (0..).zip(&tasks.tasks) {
        let priority = plans.priorities[number as usize];
        let kind = Kind {
            command: section_name(recorded.name(task.command)),
            group: groups.get(&task.cgroup).cloned().flatten(),
            priority: priority.map(|OwnPriority { class, level }| (class, level)),
        };
        match kinds
            .iter_mut()
            .find(|(known, members)| *known == kind && members.len() < MOST_CLONES)
        {
            Some((_, members)) => members.push(number),
            None => kinds.push((kind, vec![number])),
        }
    }
    let replay = if recorded.open { "open" } else { "closed" };
    let decide_by = if recorded.open { "latency_mean" } else { "makespan" };
    let mut text = format!(
        "; purpose: {replay} replay of {}: {} I/Os of {} tasks\n; decide-by: {decide_by}\n\n[global]\n\
         direct=1\nioengine=libaio\nfilename=replay\nsize={}\n",
        printable(&options.source),
        recorded.ios.len(),
        tasks.tasks.len(),
        addresses.file_bytes(),
    );
    let mut names: FxHashSet<String> = FxHashSet::default();
    for (kind, members) in &kinds {
        let name = unused(&kind.command, &mut names);
        let of_kind: Vec<TaskPlan> =
            members.iter().map(|task| plans.plans[*task as usize].clone()).collect();
        let depth = of_kind.iter().map(TaskPlan::depth).max().unwrap_or(1).min(MOST_IN_FLIGHT);
        // The formatting of a String never fails.
        let _ = write!(text, "\n[{name}]\nrw={}\niodepth={depth}\n", mode(&of_kind));
        if let Some(largest) = of_kind.iter().map(TaskPlan::largest).max().filter(|most| *most > 0)
        {
            let _ = writeln!(text, "bs={largest}");
        }
        if members.len() > 1 {
            let _ = writeln!(text, "numjobs={}", members.len());
        }
        if let Some((class, level)) = kind.priority {
            let _ = writeln!(text, "prioclass={class}\nprio={level}");
        }
        if let Some(group) = &kind.group {
            let _ = writeln!(text, "cgroup={group}");
        }
        let _ = writeln!(text, "{KEY}={}", encode(&of_kind));
    }
    let recorded_ns = recorded
        .ios
        .iter()
        .map(|io| if io.completed_ns == u64::MAX { io.queued_ns } else { io.completed_ns })
        .max()
        .unwrap_or(0);
    let summary = Summary {
        replay,
        ios: recorded.ios.len() as u64,
        tasks: tasks.tasks.len() as u64,
        signals: u64::from(plans.nr_signals),
        file_bytes: addresses.file_bytes(),
        touched_bytes: addresses.touched_bytes(),
        recorded_ns: options.paced_ns(recorded_ns),
        notes: notes(recorded, tasks, plans, addresses, options),
    };
    Workload { job_file: text, summary }
}

fn mode(plans: &[TaskPlan]) -> &'static str {
    let any = |wanted: fn(Direction) -> bool| {
        plans.iter().flat_map(|plan| &plan.ios).any(|io| wanted(io.direction))
    };
    let reads = any(|direction| direction == Direction::Read);
    match (reads, any(|direction| direction != Direction::Read)) {
        (true, true) => "randrw",
        (false, true) => "randwrite",
        _ => "randread",
    }
}

/// The names of control groups in the job file, by their number in the recording; none if all tasks are in
/// one group, which then makes no difference.
fn group_names(recorded: &Recorded, tasks: &[Task]) -> FxHashMap<u32, Option<String>> {
    let mut numbers: Vec<u32> = tasks.iter().map(|task| task.cgroup).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut names: FxHashMap<u32, Option<String>> = FxHashMap::default();
    if numbers.len() < 2 {
        return names;
    }
    let mut used: FxHashSet<String> = FxHashSet::default();
    for number in numbers {
        let path = recorded.name(number);
        if number == UNKNOWN_NAME || path.trim_matches('/').is_empty() {
            names.insert(number, None);
            continue;
        }
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
        let allowed =
            |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
        let name: String = last.chars().take(64).map(allowed).collect();
        names.insert(number, Some(unused(&name, &mut used)));
    }
    names
}

/// A name that was not used before, by a number behind it.
fn unused(name: &str, used: &mut FxHashSet<String>) -> String {
    let mut chosen = name.to_owned();
    let mut number = 1;
    while !used.insert(chosen.clone()) {
        number += 1;
        chosen = format!("{name}.{number}");
    }
    chosen
}

/// A command as the name of a section.
fn section_name(command: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || "_-.+@:/".contains(c) { c } else { '_' }
    };
    let name: String = command.trim().chars().take(64).map(allowed).collect();
    match name.as_str() {
        "" => "task".to_owned(),
        // For fio every section that begins so is one for all jobs.
        _ if name.starts_with("global") => format!("_{name}"),
        _ => name,
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn notes(
    recorded: &Recorded,
    tasks: &Tasks,
    plans: &Plans,
    addresses: &Addresses,
    options: &Options,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(if recorded.open {
        let why = if options.kind == options::Kind::Open { "as asked" } else { "for want of completions" };
        format!(
            "open, {why}: I/Os are issued at recorded times, so that only latencies count; throughput and \
             duration are the recording's"
        )
    } else {
        "closed: an I/O waits for those of its task that had completed before it, and for the recorded think \
         time"
            .to_owned()
    });
    let pools = tasks.tasks.iter().filter(|task| task.is_pool).count();
    let wait_for_any = plans.plans.iter().filter(|plan| plan.waits_for_any).count();
    let keep_depth = wait_for_any - pools;
    if keep_depth > 0 {
        notes.push(format!(
            "{keep_depth} of {} tasks kept their depth: their I/Os wait for a free place, whichever I/O has left it",
            tasks.tasks.len()
        ));
    }
    if pools > 0 {
        notes.push(format!(
            "{pools} of {} tasks are pools of kernel workers: their I/Os wait for as many as had completed until the one \
             that each followed, whichever; schedulers take each worker for a task",
            tasks.tasks.len()
        ));
    }
    let plugged = plans.plans.iter().flat_map(|plan| &plan.ios).filter(|io| io.plugged).count();
    if plugged > 0 {
        notes.push(format!("{plugged} I/Os are submitted together with the one before them, as they were in one plug"));
    }
    let at_home = plans.plans.iter().filter(|plan| plan.home.is_some()).count();
    if at_home > 0 {
        notes.push(format!(
            "{at_home} of {} tasks stayed on one of {} processors; a replay on a host that has as many keeps them there",
            tasks.tasks.len(),
            recorded.processors
        ));
    }
    if (options.speed - 1.0).abs() > f64::EPSILON {
        notes.push(format!("recorded times are divided by {}", options.speed));
    }
    notes.push(
        "what the page cache wrote or read is replayed as direct I/O of the task that submitted it"
            .to_owned(),
    );
    if addresses.file_bytes() < addresses.span_bytes() {
        notes.push(format!(
            "places: {} touched within {} go into {}; gaps shrink alike, what was touched stays whole and in \
             order",
            format_bytes(addresses.touched_bytes()),
            format_bytes(addresses.span_bytes()),
            format_bytes(addresses.file_bytes()),
        ));
    }
    if recorded.united > 0 {
        notes.push(format!(
            "{} parts are one I/O again with those before them, from which the recorded disk's limits had split them",
            recorded.united
        ));
    }
    if recorded.preflushes > 0 {
        notes.push(format!(
            "{} writes with a flush before them become a flush and a write",
            recorded.preflushes
        ));
    }
    if !recorded.left_out.is_empty() {
        let counts: Vec<String> =
            recorded.left_out.iter().map(|(name, count)| format!("{count} {name}")).collect();
        notes.push(format!("left out: {}", counts.join(", ")));
    }
    let known = recorded.ios.iter().filter(|io| io.completed_ns == u64::MAX).count();
    if !recorded.open && known > 0 {
        notes.push(format!("{known} I/Os have no completion; no other waits for them"));
    }
    let (lost, unmatched) = (recorded.tally.lost, recorded.tally.unmatched);
    if lost > 0 || unmatched > 0 {
        notes.push(format!("the recording lost {lost} events and could not match {unmatched}"));
    }
    let unknown = blkrecord::io::UNKNOWN_TASK;
    if tasks.tasks.len() == 1 && recorded.ios[0].tid == unknown {
        notes.push("the recording names no tasks: all I/Os are one task's".to_owned());
    }
    notes.extend(recorded.warnings.iter().cloned());
    notes
}
