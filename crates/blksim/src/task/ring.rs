//! The ring of a process that submits by `io_uring`, as far as its workers go (`io_uring/io-wq.c`, Linux 6.1).

use crate::block::request::{Fifo, TaskId};

/// Most workers of a ring that do I/O on files and block devices, for each processor; no more than the ring
/// has entries (`io_wq_create`).
const WORKERS_PER_CPU: u32 = 4;

/// Number of workers of a process's ring.
pub(crate) fn nr_workers(depth: u32, cpus: u32) -> u32 {
    depth.min(WORKERS_PER_CPU * cpus)
}

/// The workers of one process. All exist from the beginning; the kernel creates them one by one, each when the
/// others sleep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    /// Bios that no worker has taken yet.
    pub work: Fifo,
    /// Workers without work; the last one has slept least and is woken first.
    pub idle: Vec<TaskId>,
}
