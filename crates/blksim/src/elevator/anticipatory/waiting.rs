//! Anticipation: the wait for a task's next read, its begin and its end.

use super::{Anticipatory, TICK_NS};
use crate::block::request::{Request, RequestId, Requests};
use crate::elevator::scheduler::Context;

/// Another request this near is as good as the awaited one; the distance doubles each tick.
const NEAR_SECTORS: u64 = 8192;
/// After this, everything is near.
const NEAR_TICKS: u64 = 20;

/// The state of the wait for a task's next read (`enum anticipation_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Off,
    /// Its last read is still in the device.
    ForCompletion,
    /// Its last read is done, and the time runs.
    ForNext,
    /// The wait is over: the next request goes, whichever task it belongs to.
    Finished,
}

impl Anticipatory {
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.wait, Wait::ForCompletion | Wait::ForNext)
    }

    #[inline]
    pub(super) fn should_wait(
        &mut self,
        requests: &Requests,
        now_ns: u64,
        next: Option<RequestId>,
    ) -> bool {
        self.awaited.is_some()
            && self.wait != Wait::Finished
            && !self.acceptable(requests, now_ns, next)
    }

    pub(super) fn start_waiting(&mut self, cx: &mut Context) {
        match self.awaited_done_ns {
            Some(done_ns) => self.wait_for_next(cx, done_ns),
            None => self.wait = Wait::ForCompletion,
        }
    }

    pub(super) fn wait_for_next(&mut self, cx: &mut Context, done_ns: u64) {
        self.wait = Wait::ForNext;
        self.timer.set(cx, done_ns.saturating_add(self.antic_expire_ns));
    }

    pub(super) fn stop_waiting(&mut self) {
        self.timer.cancel();
        self.wait = Wait::Finished;
    }

    /// True if `candidate` (or any request, if there is none) ends the wait for the awaited task.
    pub(super) fn acceptable(
        &mut self,
        requests: &Requests,
        now_ns: u64,
        candidate: Option<RequestId>,
    ) -> bool {
        let Some(index) = self.awaited else { return true };
        let candidate = candidate.map(|id| &requests[id]);
        if candidate.is_some_and(|request| request.context == index) {
            return true;
        }
        let antic_expire_ns = self.antic_expire_ns;
        if self.awaited_done_ns.is_some_and(|done_ns| now_ns >= done_ns + antic_expire_ns) {
            return true;
        }
        let near = candidate
            .is_some_and(|request| request.flags.sync && self.is_near(request, index, now_ns));
        let Self { tasks, newcomers, .. } = self;
        let task = &mut tasks[index as usize];
        if task.queued > 0 {
            return true;
        }
        if let (Some(request), true) = (candidate, near) {
            if !task.alive {
                if task.think.is_empty() {
                    newcomers.exits_again();
                }
                newcomers.successor_came();
            }
            // A neighbour's request counts as the task's own.
            task.learn(newcomers, now_ns, request.sector, request.end());
            return true;
        }
        if !task.alive {
            if task.think.is_empty() {
                newcomers.exits_again();
            }
            if newcomers.successor_unlikely() {
                return true;
            }
        }
        if task.think.is_empty() {
            newcomers.not_worth_waiting(antic_expire_ns)
        } else {
            task.think.mean() > antic_expire_ns
        }
    }

    /// True if another task's request is as near as the awaited one will probably be.
    fn is_near(&self, request: &Request, awaited: u32, now_ns: u64) -> bool {
        let waited_ns = match self.awaited_done_ns {
            Some(done_ns) if self.wait != Wait::Off => now_ns - done_ns,
            _ => 0,
        };
        let ticks = waited_ns / TICK_NS;
        if ticks > NEAR_TICKS || waited_ns > self.antic_expire_ns {
            return true;
        }
        let window = NEAR_SECTORS << ticks;
        let head = self.head[self.batch];
        if head <= request.sector + window / 2 && request.sector <= head + window {
            return true;
        }
        let expected = self.tasks[awaited as usize].expected_seek(&self.newcomers);
        head.abs_diff(request.sector) < expected
    }

    /// The awaited request has not come in time.
    pub(super) fn give_up(&mut self) {
        if let Some(task) = self.awaited.and_then(|index| self.tasks.get(index as usize)) {
            if task.think.is_empty() {
                self.newcomers.exits_again();
            }
            if !task.alive {
                self.newcomers.no_successor_again();
            }
        }
        self.wait = Wait::Finished;
    }
}
