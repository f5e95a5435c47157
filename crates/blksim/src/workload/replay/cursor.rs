//! A task that carries out its plan.

use std::ops::Range;
use std::sync::Arc;

use super::plan::{ReplayIo, TaskPlan};
use super::signals::SharedSignals;
use crate::core::record::Direction;

/// The next thing that a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Issue(ReplayIo),
    /// It thinks until this time.
    Until(u64),
    /// It waits for one of its I/Os in flight.
    AwaitCompletion,
    /// It waits for another task, by the number of the signal.
    AwaitSignal(u32),
    /// All I/Os are issued.
    Finished,
}

/// The time that a replay itself takes between a completion and its next I/O, by what has completed. A flush counts
/// as a read: its caller has no data to look after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnPath {
    pub read: PathOfSize,
    pub write: PathOfSize,
}

/// A time that grows with the data, whose pages are pinned and let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathOfSize {
    pub fixed_ns: u64,
    pub per_mib_ns: u64,
}

impl OwnPath {
    fn ns(&self, direction: Direction, bytes: u32) -> u64 {
        let path = if direction == Direction::Write { self.write } else { self.read };
        path.fixed_ns.saturating_add(path.per_mib_ns.saturating_mul(u64::from(bytes)) >> 20)
    }
}

/// An I/O that is not complete.
const PENDING: u64 = u64::MAX;

/// A task that carries out its plan: [`Cursor::turn`] says what comes next; the caller says what was
/// submitted, and what has completed.
#[derive(Debug, Clone)]
pub struct Cursor {
    plan: Arc<TaskPlan>,
    signals: SharedSignals,
    start_ns: u64,
    path: OwnPath,
    /// It may be so much late and make up for it later.
    most_late_ns: u64,
    late_ns: u64,
    /// When it handed out the last I/O, or if that is to count, when it had submitted it.
    issued_ns: u64,
    /// The last I/O is handed out, and the task has not come back since.
    submits: bool,
    /// I/Os that were handed out, and those of them that were submitted.
    next: usize,
    submitted: u32,
    /// By rank: the time of the completion, its own path before it was told; below `contiguous`, the time by which
    /// all up to this one were complete.
    completed_ns: Vec<u64>,
    /// I/Os that are complete without a gap, in the order of ranks.
    contiguous: usize,
    next_await: usize,
    next_set: usize,
    /// The latest of the signals that were waited for.
    released_ns: u64,
}

impl Cursor {
    pub fn new(plan: Arc<TaskPlan>, signals: SharedSignals) -> Self {
        let completed_ns = vec![PENDING; plan.ios.len()];
        Self {
            plan,
            signals,
            start_ns: 0,
            path: OwnPath::default(),
            most_late_ns: 0,
            late_ns: 0,
            issued_ns: 0,
            submits: false,
            next: 0,
            submitted: 0,
            completed_ns,
            contiguous: 0,
            next_await: 0,
            next_set: 0,
            released_ns: 0,
        }
    }

    /// Makes the task share signals with others.
    pub fn share(&mut self, signals: SharedSignals) {
        self.signals = signals;
    }

    /// Takes so much off the think times that follow a completion. A recorded think time contains the program's way
    /// from the interrupt to the next I/O: waking up, collecting, a system call. A replay on real processors has
    /// such a way of its own, and would take both. Holds for the completions that follow.
    pub fn take_off(&mut self, path: OwnPath) {
        self.path = path;
    }

    /// Has later think times make up for I/Os that came late, by so much at most. On real processors each wake-up
    /// takes another time, and so it did in the recording: a task that is late by chance and never early is too slow
    /// in all.
    pub fn make_up(&mut self, most_late_ns: u64) {
        self.most_late_ns = most_late_ns;
    }

    /// Starts the task's clock.
    pub fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    /// The state of a signal that the task waits for.
    pub fn signals(&self) -> &SharedSignals {
        &self.signals
    }

    /// The task's turn at this time. An I/O that it issues counts as handed out; the turn after it comes once that is
    /// submitted, so that the task has slept for a tag if it had to.
    #[inline]
    pub fn turn(&mut self, now_ns: u64) -> Turn {
        self.went_on(now_ns);
        let Some(io) = self.plan.ios.get(self.next) else { return Turn::Finished };
        if io.waits_for as usize > self.contiguous {
            return Turn::AwaitCompletion;
        }
        while let Some(signal) = self.plan.awaits.get(self.next_await) {
            if signal.at as usize != self.next {
                break;
            }
            let Some(time_ns) = self.signals.time_ns(signal.number) else {
                return Turn::AwaitSignal(signal.number);
            };
            self.released_ns = self.released_ns.max(time_ns);
            self.next_await += 1;
        }
        let own_ns = match io.waits_for {
            0 => self.start_ns,
            count => self.completed_ns[count as usize - 1],
        };
        let mut from_ns = own_ns.max(self.released_ns);
        if self.plan.thinks_in_turn {
            from_ns = from_ns.max(self.issued_ns);
        }
        let due_ns = from_ns.saturating_add(io.think_ns);
        let earliest_ns = due_ns.saturating_sub(self.late_ns);
        if earliest_ns > now_ns {
            return Turn::Until(earliest_ns);
        }
        self.late_ns = (now_ns - earliest_ns).min(self.most_late_ns);
        self.issued_ns = now_ns;
        // On a real processor, a call takes time also if the task does not sleep in it.
        self.next += 1;
        self.submits = self.plan.knows_submissions && !self.next_is_plugged();
        Turn::Issue(*io)
    }

    /// Takes note that the task has come back from the submission of what it was handed out last.
    #[inline]
    pub fn went_on(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.submits) {
            // A call that took longer than its own way has slept.
            let io = &self.plan.ios[self.next - 1];
            let awake_ns = self.path.ns(io.direction, io.bytes);
            self.issued_ns = self.issued_ns.max(now_ns.saturating_sub(awake_ns));
        }
    }

    /// The I/O context of the I/O to come, if there is one.
    #[inline]
    pub fn next_context(&self) -> Option<u16> {
        self.plan.ios.get(self.next).map(|io| io.context)
    }

    /// Takes note that the next I/O was submitted; returns its index.
    #[inline]
    pub fn submitted(&mut self) -> u32 {
        self.submitted += 1;
        self.submitted - 1
    }

    /// Whether the I/O to come is to be submitted together with the last one, which is held back until then.
    #[inline]
    pub fn next_is_plugged(&self) -> bool {
        self.plan.ios.get(self.next).is_some_and(|io| io.plugged)
    }

    /// Whether nothing else is in flight while the next I/O to be submitted is.
    #[inline]
    pub fn next_is_alone(&self) -> bool {
        self.plan.is_alone(self.submitted as usize)
    }

    /// The I/O of that index.
    #[inline]
    pub fn io(&self, index: u32) -> &ReplayIo {
        &self.plan.ios[index as usize]
    }

    /// Takes note that an I/O has completed; returns the places of the signals that this has set.
    #[inline]
    pub fn completed(&mut self, index: u32, now_ns: u64) -> Range<usize> {
        // Whichever completes now takes the place of the one that had completed then.
        let rank =
            if self.plan.waits_for_any { self.contiguous } else { self.io(index).rank as usize };
        let io = self.io(index);
        let path_ns = self.path.ns(io.direction, io.bytes);
        self.completed_ns[rank] = now_ns.saturating_sub(path_ns);
        if self.path != OwnPath::default() {
            // The task slept for the completion, and its own way from there is not to count again.
            self.submits = false;
        }
        if rank == self.contiguous {
            let mut latest_ns = match rank {
                0 => 0,
                rank => self.completed_ns[rank - 1],
            };
            while let Some(time_ns) = self.completed_ns.get_mut(self.contiguous) {
                if *time_ns == PENDING {
                    break;
                }
                latest_ns = latest_ns.max(*time_ns);
                *time_ns = latest_ns;
                self.contiguous += 1;
            }
        }
        let first = self.next_set;
        while let Some(signal) = self.plan.sets.get(self.next_set) {
            if signal.at as usize > self.contiguous {
                break;
            }
            self.signals.set(signal.number, self.completed_ns[signal.at as usize - 1]);
            self.next_set += 1;
        }
        first..self.next_set
    }

    /// The number of the signal at a place that [`Self::completed`] returned.
    pub fn signal_set(&self, place: usize) -> u32 {
        self.plan.sets[place].number
    }
}
