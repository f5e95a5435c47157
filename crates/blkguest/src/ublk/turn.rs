//! Scheduling policy of the server: it runs after every other runnable process.
//!
//! A process woken by a completion then runs before the server does, and the server collects all
//! resulting commands at once: fewer system calls, each of which is expensive. No guest time passes
//! meanwhile, and commands keep their order of arrival.

use libc::c_int;

use crate::request::Request;

/// Ways to make the server run last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// `SCHED_IDLE` from the start. The server then runs before the process made last, so only the
    /// system calls for the others are saved.
    Early,
    /// Real-time until the experiment begins, `SCHED_IDLE` from then on. Linux 6.1 places a task that
    /// returns from real-time at the end of its run queue's virtual time
    /// (`min_vruntime`; `attach_task_cfs_rq()` of `kernel/sched/fair.c`), which is where a new
    /// process begins. In virtual time no task moves afterwards, since computing takes no time. But
    /// this merges positions that would have been ordered, so it suits a single process only.
    Late,
}

impl Turn {
    /// The way that suits an experiment.
    pub fn of(request: &Request) -> Self {
        let bare = request.options.filesystem.is_none() && request.array.is_none();
        match &request.jobs[..] {
            [job] if bare && job.direct && job.numjobs == 1 => Self::Late,
            _ => Self::Early,
        }
    }

    /// Call before the processes that must run first are made.
    pub fn prepare(self) {
        match self {
            Self::Early => set_policy(libc::SCHED_IDLE, 0),
            Self::Late => set_policy(libc::SCHED_FIFO, 1),
        }
    }
}

/// Call once they have been made.
pub fn take_last() {
    set_policy(libc::SCHED_IDLE, 0);
}

fn set_policy(policy: c_int, priority: c_int) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is valid for the call. If it fails, the guest is slower and otherwise unaffected.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}
