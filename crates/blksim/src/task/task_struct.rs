//! A task (`struct task_struct`): a simulated process or kernel thread that submits I/O and may
//! sleep.

use crate::block::hw_queue::HwQueueId;
use crate::block::plug::PlugFlush;
use std::collections::VecDeque;

use crate::block::request::Fifo;
use crate::mm::dirty_throttle::Dirtier;
use crate::task::buffered_call::BufferedCall;

/// The role of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A process of a job, by index.
    Process(u32),
    /// The flusher, which writes dirty pages back.
    Flusher,
    /// The worker that submits the bios that a policy released.
    Worker,
    /// A worker of the ring of a job's process, by index.
    IoWorker(u32),
}

#[derive(Debug, Clone)]
pub struct Task {
    pub role: Role,
    /// Sleeps in the submission of `pending`'s head.
    pub blocked: bool,
    /// The hardware queue for whose tag it sleeps.
    pub(crate) waits_for_tag: Option<HwQueueId>,
    /// Bios still to submit.
    pub pending: Fifo,
    /// Requests collected while it plugs (`current->plug`).
    pub plug: Fifo,
    pub plugging: bool,
    /// It stops plugging once it has submitted all of `pending`.
    pub unplug_after: Option<PlugFlush>,
    /// The buffered read, write or fsync that it is in.
    pub call: Option<BufferedCall>,
    /// Its dirtied pages.
    pub dirtier: Dirtier,
    /// Pages that fsync looked up and has yet to visit.
    pub looked_up: VecDeque<u64>,
}

impl Task {
    pub fn new(role: Role) -> Self {
        Self {
            role,
            blocked: false,
            waits_for_tag: None,
            pending: Fifo::default(),
            plug: Fifo::default(),
            plugging: false,
            unplug_after: None,
            call: None,
            dirtier: Dirtier::default(),
            looked_up: VecDeque::new(),
        }
    }
}
