//! Dependencies between tasks: forks, exits, and barriers.
//!
//! * The first I/O of a forked task waits for what its parent had completed before the fork.
//! * The next I/O of a parent after the exit of a child waits for what the child had completed.
//! * A thread that moves to another control group continues after itself.
//! * A task that had no I/O in flight while another's barrier (a flush, or a write that is durable) was under
//!   way, had written before, and went on within a millisecond of the barrier's end, is taken to have waited
//!   for it, as fsync does for a journal: its next I/O waits for the barrier, and the task of the barrier
//!   waits for what the first one had completed.

use blkrecord::task_event::TaskEventKind;

use crate::completions::Completions;
use crate::recorded::{Action, Recorded};
use crate::tasks::Tasks;

/// A task continues so soon after the end of its wait; hfplayer calls it the window.
const WINDOW_NS: u64 = 1_000_000;
/// Others that a task waits for at most at one time; more are implied by these, or nearly so.
const MOST_AT_ONCE: usize = 16;

/// An I/O waits for the first completions of another task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The task that waits, and the place of its I/O.
    pub waiter: u32,
    pub place: u32,
    /// The task that is waited for, and its completions.
    pub other: u32,
    pub completions: u32,
}

/// The dependencies between tasks, in the order of waiters and places.
pub fn between_tasks(
    recorded: &Recorded,
    tasks: &Tasks,
    completions: &[Completions],
) -> Vec<Dependency> {
    let mut found = kin(recorded, tasks, completions);
    barriers(recorded, tasks, completions, &mut found);
    found.sort_unstable();
    without_implied(found)
}

/// The completions of a task that something waits for, with their time.
#[derive(Debug, Clone, Copy)]
struct Earlier {
    time_ns: u64,
    task: u32,
    completions: u32,
}

/// Dependencies by forks, exits and changes of the control group.
fn kin(recorded: &Recorded, tasks: &Tasks, completions: &[Completions]) -> Vec<Dependency> {
    let mut found = Vec::new();
    // What the next I/O of each thread waits for.
    let mut pending: Vec<Vec<Earlier>> = vec![Vec::new(); tasks.threads.len()];
    let mut last_task: Vec<Option<u32>> = vec![None; tasks.threads.len()];
    let mut kinships = tasks.kinships.iter().peekable();
    let done = |task: u32, now_ns: u64| {
        let of_task = &completions[task as usize];
        let count = of_task.until(now_ns);
        let time_ns = of_task.time_ns(count)?;
        Some(Earlier { time_ns, task, completions: count })
    };
    for (io, (task, place)) in recorded.ios.iter().zip(&tasks.of_ios) {
        while let Some(kinship) = kinships.next_if(|kinship| kinship.at_ns <= io.queued_ns) {
            let (from, to) = match kinship.kind {
                TaskEventKind::Fork => (kinship.parent, kinship.thread),
                TaskEventKind::Exit => (kinship.thread, kinship.parent),
            };
            let own = tasks.threads[from as usize].tasks.iter();
            let mut passed: Vec<Earlier> =
                own.filter_map(|task| done(*task, kinship.at_ns)).collect();
            passed.extend_from_slice(&pending[from as usize]);
            let pending = &mut pending[to as usize];
            pending.append(&mut passed);
            keep_latest(pending);
        }
        let thread = tasks.tasks[*task as usize].thread as usize;
        let before = last_task[thread].replace(*task).filter(|before| before != task);
        let earlier = before.and_then(|before| done(before, io.queued_ns));
        for earlier in pending[thread].drain(..).chain(earlier) {
            if earlier.task != *task {
                let Earlier { task: other, completions, .. } = earlier;
                found.push(Dependency { waiter: *task, place: *place, other, completions });
            }
        }
    }
    found
}

fn keep_latest(pending: &mut Vec<Earlier>) {
    pending.sort_unstable_by_key(|earlier| (earlier.task, std::cmp::Reverse(earlier.completions)));
    pending.dedup_by_key(|earlier| earlier.task);
    if pending.len() > MOST_AT_ONCE {
        pending.sort_unstable_by_key(|earlier| std::cmp::Reverse((earlier.time_ns, earlier.task)));
        pending.truncate(MOST_AT_ONCE);
    }
}

/// Dependencies by barriers that a task has waited for.
fn barriers(
    recorded: &Recorded,
    tasks: &Tasks,
    completions: &[Completions],
    found: &mut Vec<Dependency>,
) {
    // Time of completion, and the I/O.
    let mut barriers: Vec<(u64, u32)> = (0..)
        .zip(&recorded.ios)
        .filter(|(_, io)| io.barrier && io.completed_ns != u64::MAX)
        .map(|(index, io)| (io.completed_ns, index))
        .collect();
    barriers.sort_unstable();
    for (number, task) in (0..).zip(&tasks.tasks) {
        let own = &completions[number as usize];
        let mut last_completed_write = vec![false; task.ios.len()];
        for (place, io) in task.ios.iter().enumerate() {
            let wrote = recorded.ios[*io as usize].action == Action::Write;
            last_completed_write[own.ranks[place] as usize] = wrote;
        }
        for (place, io) in task.ios.iter().enumerate().skip(1) {
            let queued_ns = recorded.ios[*io as usize].queued_ns;
            let done = own.until(queued_ns);
            if (done as usize) < place || !last_completed_write[done as usize - 1] {
                continue;
            }
            let idle_from_ns = own.time_ns(done).unwrap_or(0);
            let ended = barriers.partition_point(|(time_ns, _)| *time_ns <= queued_ns);
            let recent = barriers[..ended].iter().rev();
            let waited_for = recent
                .take_while(|(time_ns, _)| *time_ns + WINDOW_NS >= queued_ns)
                .map(|(_, barrier)| *barrier)
                .find(|barrier| {
                    let (other, _) = tasks.of_ios[*barrier as usize];
                    other != number && recorded.ios[*barrier as usize].queued_ns >= idle_from_ns
                });
            let Some(barrier) = waited_for else { continue };
            let (other, at) = tasks.of_ios[barrier as usize];
            let rank = completions[other as usize].ranks[at as usize];
            let place = place as u32;
            found.push(Dependency { waiter: number, place, other, completions: rank + 1 });
            // The other task began with what led to the barrier.
            let theirs = &tasks.tasks[other as usize].ios;
            let first =
                theirs.partition_point(|io| recorded.ios[*io as usize].queued_ns < idle_from_ns);
            let first = first as u32;
            found.push(Dependency {
                waiter: other,
                place: first,
                other: number,
                completions: done,
            });
        }
    }
}

/// Leaves out what an earlier I/O of the waiter has waited for.
fn without_implied(found: Vec<Dependency>) -> Vec<Dependency> {
    let mut most: rustc_hash::FxHashMap<(u32, u32), u32> = rustc_hash::FxHashMap::default();
    let mut kept: Vec<Dependency> = Vec::with_capacity(found.len());
    for dependency in found {
        let known = most.entry((dependency.waiter, dependency.other)).or_default();
        if dependency.completions <= *known {
            continue;
        }
        *known = dependency.completions;
        // Of several for one I/O, the last asks for most.
        match kept.last_mut() {
            Some(last)
                if (last.waiter, last.place, last.other)
                    == (dependency.waiter, dependency.place, dependency.other) =>
            {
                *last = dependency;
            }
            _ => kept.push(dependency),
        }
    }
    kept
}
