//! The plan of a task: its I/Os in the order in which they were queued.

use std::sync::Arc;

use super::cursor::{Cursor, Turn};
use super::signals::SharedSignals;
use crate::core::record::Direction;
use crate::workload::own_priority::OwnPriority;

/// The memory that the data of an I/O lay in. It matters to hosts, as models have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Pieces that lie apart; 0 if their number is unknown.
    pub segments: u16,
    /// It was not in use lately, so that no processor's cache had it.
    pub cold: bool,
}

/// An I/O of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayIo {
    /// In bytes, within the job's region.
    pub offset: u64,
    /// 0 for a flush.
    pub bytes: u32,
    /// A read, a write, or a flush of the device's cache ([`Direction::Sync`]).
    pub direction: Direction,
    /// A write that is complete once it is durable (forced unit access).
    pub durable: bool,
    /// It is submitted together with the I/O before it: both were in one plug, where neighbours merge and a device that
    /// is idle waits until the last one is queued (`blk_start_plug` in block/blk-core.c, Linux 6.18).
    pub plugged: bool,
    pub memory: Memory,
    /// The number of the I/O context that it is queued in ([`TaskPlan::nr_contexts`]).
    pub context: u16,
    /// `None` for the task's own.
    pub priority: Option<OwnPriority>,
    /// It waits for so many of its task's I/Os, the first in the order in which they had completed
    /// ([`TaskPlan::waits_for_any`]: whichever).
    pub waits_for: u32,
    /// Its place in that order, from 0.
    pub rank: u32,
    /// Time from the last of the completions that it waits for; from the start if it waits for none. If the task
    /// [thinks in turn](TaskPlan::thinks_in_turn), from its I/O before this one if that was later, and if it is known how
    /// long [queueing took](TaskPlan::knows_submissions), from its end.
    pub think_ns: u64,
}

impl ReplayIo {
    /// A read, a write or a flush that waits for nothing, as tasks of one context and one priority queue it.
    pub fn plain(direction: Direction, offset: u64, bytes: u32) -> Self {
        Self {
            offset,
            bytes,
            direction,
            durable: false,
            plugged: false,
            memory: Memory::default(),
            context: 0,
            priority: None,
            waits_for: 0,
            rank: 0,
            think_ns: 0,
        }
    }
}

/// Most I/O contexts of a task.
pub const MAX_CONTEXTS: u16 = 256;

/// A signal between two tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal {
    /// The task that waits: the I/O that waits. The task that sets: the completions after which it does.
    pub at: u32,
    /// Its number in the job file; one task sets it, and one waits for it.
    pub number: u32,
}

/// The processor that a task was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    pub processor: u16,
    /// The processors of the recorded machine.
    pub of: u16,
}

/// The I/Os of a task, and what it waits for and gives to others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskPlan {
    pub ios: Vec<ReplayIo>,
    /// An I/O waits for as many of its task's I/Os as `waits_for` says, whichever they are.
    pub waits_for_any: bool,
    /// The task does one thing at a time: it begins to think about an I/O once it has queued the one before.
    pub thinks_in_turn: bool,
    /// Think times count from the end of the submission before, in which the task may have slept for a tag.
    pub knows_submissions: bool,
    /// If it mostly was on one; for hosts, since models place tasks themselves.
    pub home: Option<Home>,
    /// In the order of I/Os.
    pub awaits: Vec<Signal>,
    /// In the order of completions.
    pub sets: Vec<Signal>,
}

/// The reason why plans cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl PlanError {
    pub(super) fn of(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl TaskPlan {
    /// The first byte after all I/Os.
    pub fn end(&self) -> u64 {
        let end = |io: &ReplayIo| io.offset.saturating_add(u64::from(io.bytes));
        self.ios.iter().map(end).max().unwrap_or(0)
    }

    /// The largest I/O, in bytes.
    pub fn largest(&self) -> u32 {
        self.ios.iter().map(|io| io.bytes).max().unwrap_or(0)
    }

    /// Its I/O contexts: schedulers take the I/Os of each for another task's. A pool of kernel workers has one for each
    /// worker (`ioc_find_get_icq` in block/blk-ioc.c, Linux 6.18, gives it to the thread that submits), any other task one.
    pub fn nr_contexts(&self) -> u16 {
        self.ios.iter().map(|io| io.context).max().map_or(1, |last| last + 1)
    }

    /// Most I/Os that can be in flight at a time.
    pub fn depth(&self) -> u32 {
        let in_flight = |(index, io): (usize, &ReplayIo)| index as u32 + 1 - io.waits_for;
        self.ios.iter().enumerate().map(in_flight).max().unwrap_or(1)
    }

    /// Whether an I/O has all before it complete, and all after it wait for it.
    pub fn is_alone(&self, index: usize) -> bool {
        let waits_for_all =
            |at: usize| self.ios.get(at).is_none_or(|io| io.waits_for as usize == at);
        waits_for_all(index) && waits_for_all(index + 1)
    }

    /// Checks that an I/O waits only for those before it, and that every rank is given once.
    pub fn check(&self) -> Result<(), PlanError> {
        let count = self.ios.len();
        let mut by_rank = vec![u32::MAX; count];
        for (index, io) in self.ios.iter().enumerate() {
            match by_rank.get_mut(io.rank as usize) {
                Some(place) if *place == u32::MAX => *place = index as u32,
                _ => return Err(PlanError::of(format!("I/O {index} has a wrong rank"))),
            }
            if (io.bytes == 0) != (io.direction == Direction::Sync) {
                return Err(PlanError::of(format!("I/O {index} has {} bytes", io.bytes)));
            }
            if io.context >= MAX_CONTEXTS {
                let message =
                    format!("I/O {index} is in context {}, not below {MAX_CONTEXTS}", io.context);
                return Err(PlanError::of(message));
            }
            if io.bytes % 512 != 0 || io.offset % 512 != 0 {
                return Err(PlanError::of(format!("I/O {index} is not in whole sectors")));
            }
        }
        // The latest I/O among the first to complete.
        let (mut taken, mut latest) = (0, 0);
        for (index, io) in self.ios.iter().enumerate() {
            while taken < io.waits_for as usize {
                let Some(earlier) = by_rank.get(taken) else { break };
                latest = latest.max(*earlier as usize + 1);
                taken += 1;
            }
            if latest > index || taken < io.waits_for as usize {
                return Err(PlanError::of(format!("I/O {index} waits for one after it")));
            }
        }
        if self.home.is_some_and(|home| home.processor >= home.of) {
            return Err(PlanError::of("its processor is none of its machine's"));
        }
        for (signals, what) in [(&self.awaits, "waits for"), (&self.sets, "sets")] {
            if !signals.is_sorted_by_key(|signal| signal.at) {
                return Err(PlanError::of(format!("signals that it {what} are out of order")));
            }
        }
        let most = count as u32;
        if self.awaits.iter().any(|signal| signal.at >= most)
            || self.sets.iter().any(|signal| signal.at == 0 || signal.at > most)
        {
            return Err(PlanError::of("a signal is not at one of its I/Os"));
        }
        self.check_plugs()
    }

    /// Checks that nothing has to happen between the I/Os of a plug; expects signals in order.
    fn check_plugs(&self) -> Result<(), PlanError> {
        let can_be_plugged = |io: &ReplayIo| io.direction != Direction::Sync && !io.durable;
        for (index, io) in self.ios.iter().enumerate().filter(|(_, io)| io.plugged) {
            let before = index.checked_sub(1).map(|before| &self.ios[before]);
            let fits = before.is_some_and(|before| {
                can_be_plugged(before)
                    && can_be_plugged(io)
                    && before.waits_for == io.waits_for
                    && before.context == io.context
            });
            let awaits =
                || self.awaits.binary_search_by_key(&(index as u32), |signal| signal.at).is_ok();
            if !fits || awaits() {
                let message = format!("I/O {index} cannot be in one plug with the one before it");
                return Err(PlanError::of(message));
            }
        }
        Ok(())
    }
}

/// The number of signals of plans together.
fn count_signals<'a>(plans: impl IntoIterator<Item = &'a TaskPlan>) -> usize {
    plans.into_iter().map(|plan| plan.awaits.len()).sum()
}

/// Checks that plans come to their end together: each signal is set and awaited once, and no task waits for
/// itself through others. Returns the number of signals.
pub fn check_together(plans: &[&TaskPlan]) -> Result<usize, PlanError> {
    let count = count_signals(plans.iter().copied());
    let mut seen = vec![(false, false); count];
    for plan in plans {
        let awaits = plan.awaits.iter().map(|signal| (signal, true));
        let sets = plan.sets.iter().map(|signal| (signal, false));
        for (signal, awaited) in awaits.chain(sets) {
            let Some(uses) = seen.get_mut(signal.number as usize) else {
                return Err(PlanError::of(format!("there is no signal {}", signal.number)));
            };
            let used = if awaited { &mut uses.0 } else { &mut uses.1 };
            if std::mem::replace(used, true) {
                return Err(PlanError::of(format!("signal {} occurs twice", signal.number)));
            }
        }
    }
    if seen.iter().any(|uses| *uses != (true, true)) {
        return Err(PlanError::of("a signal is awaited and never set"));
    }
    if count == 0 {
        return Ok(0);
    }
    // Carries all plans out in no time: a task that cannot go on then waits for ever.
    let signals = SharedSignals::owned(count);
    let cursor = |plan: &&TaskPlan| Cursor::new(Arc::new((*plan).clone()), signals.clone());
    let mut cursors: Vec<Cursor> = plans.iter().map(cursor).collect();
    let waiters = waiters_of_signals(plans.iter().copied());
    let mut ready: Vec<usize> = (0..cursors.len()).collect();
    let mut ended = vec![false; cursors.len()];
    while let Some(task) = ready.pop() {
        let cursor = &mut cursors[task];
        ended[task] = loop {
            match cursor.turn(u64::MAX) {
                Turn::Issue(_) => {
                    let index = cursor.submitted();
                    for place in cursor.completed(index, 0) {
                        ready.push(waiters[cursor.signal_set(place) as usize] as usize);
                    }
                }
                turn => break turn == Turn::Finished,
            }
        };
    }
    if ended.contains(&false) {
        return Err(PlanError::of("tasks wait for each other"));
    }
    Ok(count)
}

/// The task that waits for each signal.
fn waiters_of_signals<'a>(plans: impl IntoIterator<Item = &'a TaskPlan>) -> Vec<u32> {
    let mut waits: Vec<(u32, u32)> = Vec::new();
    for (task, plan) in plans.into_iter().enumerate() {
        waits.extend(plan.awaits.iter().map(|signal| (signal.number, task as u32)));
    }
    waits.sort_unstable();
    waits.into_iter().map(|(_, task)| task).collect()
}
