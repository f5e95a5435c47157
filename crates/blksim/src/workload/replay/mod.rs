//! Replays of recorded I/O: the I/Os of tasks with what each of them waits for.
//!
//! ```text
//! recording ──▶ TaskPlan, one per task ──▶ text in a job file ──▶ Cursor ──▶ Step
//!  (blkreplay)                              (replay_plan=…)         ▲
//!                                                                   └── completions
//! ```
//!
//! An I/O waits for those of its task that had completed when the recorded task queued it, and then for the
//! time that passed from the latest of these completions, or from the queueing of the I/O before, to its own: the
//! task's think time. Where the recording tells it, the time in which the task slept for a tag is no part of that: the
//! replay sleeps for tags itself. So a task is as fast as its disk lets it be, as the program was. A task that kept a number of
//! I/Os in flight waits for a free place, whichever I/O has left it: it was held up by its depth, and not by what an I/O
//! returned. Tasks wait for each other only through [`SharedSignals`]: one task sets a signal once its first
//! completions are there, another does not go on before.
//!
//! A section of a job file with `replay_plan` has one plan for each of its clones. The key is blklab's own:
//! fio does not know it.

mod cursor;
mod plan;
mod signals;
mod text;

pub use cursor::{Cursor, OwnPath, PathOfSize, Turn};
pub use plan::{Home, MAX_CONTEXTS, Memory, PlanError, ReplayIo, Signal, TaskPlan, check_together};
pub use signals::{SharedSignals, SignalState};
pub use text::{decode, encode};

use std::sync::Arc;

/// The key of a section's plans in a job file.
pub const KEY: &str = "replay_plan";

/// The plans of a job.
#[derive(Debug, Clone)]
pub struct JobReplay {
    /// One for each clone.
    pub plans: Vec<Arc<TaskPlan>>,
    /// Signals of the whole job file.
    pub nr_signals: usize,
}

impl JobReplay {
    /// A clone at the beginning of its plan, with signals of its own.
    pub fn cursor(&self, clone: u32) -> Cursor {
        let plan = self.plans[clone as usize].clone();
        Cursor::new(plan, SharedSignals::owned(self.nr_signals))
    }
}
