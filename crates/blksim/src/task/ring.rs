//! The rings of `io_uring`, as far as their workers go (`io_uring/io-wq.c`, Linux 6.1).

use std::ops::{Index, IndexMut};

use crate::block::request::{Fifo, TaskId};

/// Most workers of a ring that do I/O on files and block devices, for each processor; no more than the ring
/// has entries (`io_wq_create`).
const WORKERS_PER_CPU: u32 = 4;

/// Number of workers of a process's ring.
pub(crate) fn nr_workers(depth: u32, cpus: u32) -> u32 {
    depth.min(WORKERS_PER_CPU * cpus)
}

/// The workers of one process; none if it has no ring.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    /// Bios that no worker has taken yet.
    pub work: Fifo,
    /// Workers without work; the last one has slept least and is woken first.
    pub idle: Vec<TaskId>,
    has_workers: bool,
}

impl Ring {
    /// A ring whose workers all exist. The kernel creates them one by one, each when the others sleep.
    pub(crate) fn new(workers: impl Iterator<Item = TaskId>) -> Self {
        Self { work: Fifo::default(), idle: workers.collect(), has_workers: true }
    }
}

/// The rings of all processes; none if giving work to their workers takes no time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rings(Vec<Ring>);

impl Rings {
    /// One for each process.
    pub(crate) fn new(rings: Vec<Ring>) -> Self {
        Self(rings)
    }

    /// Whether a task is a process whose ring has workers.
    pub(crate) fn has(&self, task: TaskId) -> bool {
        self.0.get(task as usize).is_some_and(|ring| ring.has_workers)
    }
}

impl Index<TaskId> for Rings {
    type Output = Ring;

    fn index(&self, process: TaskId) -> &Ring {
        &self.0[process as usize]
    }
}

impl IndexMut<TaskId> for Rings {
    fn index_mut(&mut self, process: TaskId) -> &mut Ring {
        &mut self.0[process as usize]
    }
}
