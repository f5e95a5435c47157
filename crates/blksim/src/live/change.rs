//! A change of a running simulation, as a user makes it.

use crate::simulate::Given;

/// One change: a write to a file of sysfs or of a control group, or a call of `ionice`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another scheduler (`queue/scheduler`), with its tunables. The queue is emptied first.
    Scheduler { name: String, tunables: Given },
    /// A tunable of the scheduler in force (`queue/iosched/NAME`).
    Tunable { name: String, value: String },
    /// An attribute of the queue (`queue/NAME`).
    Queue { name: String, value: String },
    /// The I/O priority of a job's processes (`ionice -c CLASS -n LEVEL -p …`), for the I/Os that they
    /// issue from then on.
    Priority {
        job: String,
        /// 1 real time, 2 best effort, 3 idle.
        class: u8,
        /// 0 (best) to 7; 4 if not given, and of no meaning for class idle.
        level: Option<u8>,
    },
    /// A file of a control group: a weight, a limit, or a controller's parameters.
    Group { group: String, attribute: String, value: String },
}
