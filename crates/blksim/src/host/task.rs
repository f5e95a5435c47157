//! A task: a simulated process or kernel thread that submits I/O and may sleep.

use super::buffered::BufferedCall;
use crate::request::{NONE, RequestId, Requests};

/// Index of a task.
pub type TaskId = u32;

/// A list of bios through their `next` links, free while they are on no FIFO.
#[derive(Debug, Clone, Copy)]
pub struct Chain {
    head: RequestId,
    tail: RequestId,
    len: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl Chain {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn head(&self) -> Option<RequestId> {
        (self.head != NONE).then_some(self.head)
    }

    pub fn tail(&self) -> Option<RequestId> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        requests[id].next = NONE;
        if self.tail == NONE {
            self.head = id;
        } else {
            requests[self.tail].next = id;
        }
        self.tail = id;
        self.len += 1;
    }

    pub fn push_front(&mut self, requests: &mut Requests, id: RequestId) {
        requests[id].next = self.head;
        if self.tail == NONE {
            self.tail = id;
        }
        self.head = id;
        self.len += 1;
    }

    pub fn pop_front(&mut self, requests: &Requests) -> Option<RequestId> {
        let id = self.head()?;
        self.head = requests[id].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        self.len -= 1;
        Some(id)
    }
}

/// What runs as this task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A clone of a job, by index.
    Clone(u32),
    /// Writes dirty pages back.
    Flusher,
    /// Passes on what a policy released.
    Worker,
}

#[derive(Debug)]
pub struct Task {
    pub role: Role,
    /// Sleeps in the submission of `pending`'s head.
    pub blocked: bool,
    /// It sleeps for a tag of this disk.
    pub waits_for_tag: Option<u8>,
    /// Bios still to submit.
    pub pending: Chain,
    /// Requests collected while it plugs.
    pub plug: Chain,
    pub plugging: bool,
    /// It stops plugging once it has submitted all of `pending`.
    pub unplug_after: bool,
    /// The buffered read, write or fsync that it is in.
    pub call: Option<BufferedCall>,
}

impl Task {
    pub fn new(role: Role) -> Self {
        Self {
            role,
            blocked: false,
            waits_for_tag: None,
            pending: Chain::default(),
            plug: Chain::default(),
            plugging: false,
            unplug_after: false,
            call: None,
        }
    }
}
