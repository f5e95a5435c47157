//! The server's place among the guest's processes.
//!
//! Where computing takes no time, it runs after every other runnable process. A process woken by a
//! completion then runs before the server does, and the server collects all resulting commands at once:
//! fewer system calls, each of which is expensive. No guest time passes meanwhile, and commands keep their
//! order of arrival.
//!
//! Where computing takes time, it runs before all others, as an interrupt does.

use crate::request::Request;
use crate::scheduling;

/// When the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTurn {
    /// `SCHED_IDLE` from the start. The server then runs before the process made last, so only the
    /// system calls for the others are saved.
    Early,
    /// Real-time until the experiment begins, `SCHED_IDLE` from then on. Linux 6.1 places a task that
    /// returns from real-time at the end of its run queue's virtual time
    /// (`min_vruntime`; `attach_task_cfs_rq()` of `kernel/sched/fair.c`), which is where a new
    /// process begins. In virtual time no task moves afterwards, since computing takes no time. But
    /// this merges positions that would have been ordered, so it suits a single process only.
    Late,
    /// Real-time throughout.
    First,
}

impl ServerTurn {
    /// The way that suits an experiment.
    pub fn of(request: &Request) -> Self {
        let bare = request.options.filesystem.is_none() && request.array.is_none();
        match &request.jobs[..] {
            _ if request.setup.costly_processors().is_some() => Self::First,
            [job] if bare && job.direct && job.numjobs == 1 => Self::Late,
            _ => Self::Early,
        }
    }

    /// Call before the processes of the load are made.
    pub fn prepare(self) {
        match self {
            Self::Early => scheduling::go_last(),
            Self::Late | Self::First => scheduling::go_first(),
        }
    }

    /// Call when the experiment begins.
    pub fn begin(self) {
        if self == Self::Late {
            scheduling::go_last();
        }
    }
}
