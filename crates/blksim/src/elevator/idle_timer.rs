//! A deadline that moves often, built on timers that cannot be cancelled.
//!
//! At most one event is in the event queue. If it comes before the current deadline, it is entered
//! again.

use crate::elevator::scheduler::Context;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdleTimer {
    /// The deadline, if one is set.
    deadline_ns: Option<u64>,
    /// The time of the event in the queue, if there is one.
    entered_ns: Option<u64>,
}

impl IdleTimer {
    #[inline]
    pub fn set(&mut self, cx: &mut Context, deadline_ns: u64) {
        self.deadline_ns = Some(deadline_ns);
        if self.entered_ns.is_none_or(|entered_ns| entered_ns > deadline_ns) {
            self.entered_ns = Some(deadline_ns);
            cx.timer_at(deadline_ns);
        }
    }

    #[inline]
    pub fn cancel(&mut self) {
        self.deadline_ns = None;
    }

    /// The deadline, if one is set.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.deadline_ns.is_some()
    }

    /// The event is due. Returns true, once, if the deadline is reached.
    #[inline]
    pub fn rings(&mut self, cx: &mut Context) -> bool {
        let now_ns = cx.now_ns();
        if self.entered_ns.is_some_and(|entered_ns| entered_ns <= now_ns) {
            self.entered_ns = None;
        }
        match self.deadline_ns {
            Some(deadline_ns) if deadline_ns <= now_ns => {
                self.deadline_ns = None;
                true
            }
            Some(deadline_ns) => {
                self.set(cx, deadline_ns);
                false
            }
            None => false,
        }
    }
}
