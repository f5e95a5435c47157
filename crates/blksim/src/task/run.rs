//! Running what is in the run queue: woken tasks, and workers of request queues.

use crate::block::hw_queue::HwQueueId;
use crate::core::branch::{likely, unlikely};
use crate::machine::Machine;
use crate::task::ready::{GIVES_WAY, Ready};

impl Machine {
    /// Called after a process has submitted. Returns whether it continues: a ready task may take
    /// the processor, and then the process is entered again. If only a queue's worker is ready,
    /// which is usual, it runs in between.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, process: u32) -> bool {
        if unlikely(self.processors.is_some()) {
            return self.stays_on_processor(process);
        }
        self.block.ready.is_empty() || self.keeps_processor(process)
    }

    #[inline(always)]
    fn keeps_processor(&mut self, process: u32) -> bool {
        let rank = self.tasks.processes[process as usize].rank;
        if rank < GIVES_WAY {
            return true;
        }
        loop {
            match self.block.ready.first() {
                Some((first, Ready::Queue(queue)))
                    if first < rank && self.block.released.is_empty() =>
                {
                    self.block.ready.pop();
                    self.block.run_worker(HwQueueId(queue));
                    // Bios that policies have released are passed on before any task runs.
                    if !self.block.released.is_empty() {
                        break;
                    }
                }
                Some((first, _)) if first < rank => break,
                _ => return true,
            }
        }
        self.wake_process(process);
        false
    }

    /// The same, apart from the usual path of a request.
    #[inline(never)]
    pub(crate) fn run_ready_cold(&mut self) {
        self.run_ready();
    }

    /// Runs everything in the run queue.
    #[inline(always)]
    pub(crate) fn run_ready(&mut self) {
        loop {
            if unlikely(!self.block.released.is_empty()) {
                self.pass_on_released();
            }
            let Some(next) = self.block.ready.pop() else { break };
            match next {
                Ready::Process(index) => {
                    self.tasks.processes[index as usize].woken = false;
                    self.drive(index);
                }
                Ready::Queue(queue) => self.block.run_worker(HwQueueId(queue)),
                other => self.run_other(other),
            }
        }
    }

    /// Runs what is rarely ready.
    #[inline(never)]
    pub(crate) fn run_other(&mut self, ready: Ready) {
        match ready {
            Ready::Submission(task) => self.resume(task),
            Ready::Process(index) => self.drive_cold(index),
            Ready::Call(task) => self.advance_call(task),
            Ready::CacheFlush(disk) => self.block.queue_flush(disk as usize),
            Ready::Queue(queue) => self.block.run_worker(HwQueueId(queue)),
            Ready::Device(disk) => self.serve(disk),
            Ready::Softirq(disk) => self.complete_served(disk),
        }
    }

    /// Enters a process into the run queue.
    #[inline]
    pub(crate) fn wake_process(&mut self, index: u32) {
        let process = &mut self.tasks.processes[index as usize];
        if likely(!std::mem::replace(&mut process.woken, true)) {
            self.block.ready.insert(process.rank, Ready::Process(index));
        }
    }
}
