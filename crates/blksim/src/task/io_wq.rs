//! io-wq: the workers of a ring of `io_uring` sleep for a tag in place of the program
//! (`io_uring/io-wq.c`, Linux 6.1). They are modelled only where giving an I/O to them takes time.

use crate::block::request::{Operation, RequestId, TaskId};
use crate::elevator::scheduler::Family;
use crate::machine::Machine;
use crate::task::ready::Ready;

impl Machine {
    /// A bio of a process's ring found no tag: the attempt without sleeping is given up, and a worker repeats
    /// it (`io_queue_iowq` of `io_uring/io_uring.c`). Returns false if the task has no ring and must
    /// sleep itself. The schedulers of `Family::Legacy` are older than `io_uring`.
    #[cold]
    pub(crate) fn punt(&mut self, task: TaskId, disk: usize, id: RequestId) -> bool {
        let request = &self.block.requests[id];
        if !self.tasks.has_io_workers(task)
            || request.operation == Operation::Flush
            || self.block.disks[disk].family == Family::Legacy
        {
            return false;
        }
        self.block.events.compute(self.block.punt_ns);
        let ring = &mut self.tasks.rings[task as usize];
        ring.work.push_back(&mut self.block.requests, id);
        self.wake_io_worker(task);
        true
    }

    /// Wakes a worker of a process's ring if one has no work (`io_wq_activate_free_worker`).
    fn wake_io_worker(&mut self, process: TaskId) {
        if let Some(worker) = self.tasks.rings[process as usize].idle.pop() {
            self.block.ready.make_ready(Ready::Submission(worker));
        }
    }

    /// A worker sleeps for a tag: another takes over what is left (`io_wq_worker_sleeping`).
    pub(crate) fn io_worker_sleeps(&mut self, process: TaskId) {
        if !self.tasks.rings[process as usize].work.is_empty() {
            self.wake_io_worker(process);
        }
    }

    /// A worker does what its ring has for it (`io_worker_handle_work`).
    pub(crate) fn run_io_worker(&mut self, worker: TaskId, process: TaskId) {
        loop {
            let ring = &mut self.tasks.rings[process as usize];
            let Some(id) = ring.work.pop_front(&mut self.block.requests) else {
                ring.idle.push(worker);
                return;
            };
            if !self.submit_for_ring(worker, id) {
                return;
            }
            self.place_woken();
            let Some(processors) = &mut self.processors else { continue };
            if !processors.goes_on(Ready::Submission(worker), &self.block.events) {
                return;
            }
        }
    }

    /// Submits a bio within the plug that it would have had in its program. Returns false if the worker
    /// sleeps.
    fn submit_for_ring(&mut self, worker: TaskId, id: RequestId) -> bool {
        let request = &self.block.requests[id];
        let disk = usize::from(request.disk);
        let plugged = self.block.plugs(request.operation, request.nr_sectors);
        if plugged {
            self.plug(worker);
        }
        self.submit_to_disk(worker, disk, id);
        if plugged {
            self.unplug(worker);
        }
        !self.tasks[worker].blocked
    }
}
