//! When the server runs among others that could: after them.
//!
//! Whom an answer wakes then runs before the server goes on, which finds in one go what came of
//! it: fewer system calls, each of which is dear. No guest time passes meanwhile, and the order of
//! commands stays that of their arrival.

use libc::c_int;

use crate::request::Request;

/// How the server becomes the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// From the start on it is of the least policy. That puts it before the process that is made last,
    /// and the system calls saved are those for the others.
    Early,
    /// It is real-time until the experiment begins, and of the least policy then. Linux 6.1 lets whoever
    /// comes back from real time join at the end of the time that its run queue has passed
    /// (`min_vruntime`; `attach_task_cfs_rq()` of `kernel/sched/fair.c`), which is where a new
    /// process begins. In virtual time nobody moves afterwards, since computing takes no time. But
    /// this moves others together who would have had an order, so that it is for a single one.
    Late,
}

impl Turn {
    /// What suits an experiment.
    pub fn of(request: &Request) -> Self {
        let bare = request.options.filesystem.is_none() && request.array.is_none();
        match &request.jobs[..] {
            [job] if bare && job.direct && job.numjobs == 1 => Self::Late,
            _ => Self::Early,
        }
    }

    /// Before the processes are made that shall come first.
    pub fn prepare(self) {
        match self {
            Self::Early => set_policy(libc::SCHED_IDLE, 0),
            Self::Late => set_policy(libc::SCHED_FIFO, 1),
        }
    }
}

/// Once they have been made.
pub fn take_last() {
    set_policy(libc::SCHED_IDLE, 0);
}

fn set_policy(policy: c_int, priority: c_int) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is valid for the call. Without it everything is slower, no more.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}
