//! Running what is ready: tasks that were woken, and the workers that run queues.

use crate::core::branch::{likely, unlikely};
use crate::machine::Machine;
use crate::task::ready::{GIVES_WAY, Ready};

impl Machine {
    /// A process has submitted what it was about to. Whether it goes on: something that is ready may
    /// take the processor from it, and then its turn comes later. A queue's worker alone, which it
    /// mostly is, runs in between.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, process: u32) -> bool {
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
                Some((first, Ready::Queue(disk)))
                    if first < rank && self.block.released.is_empty() =>
                {
                    self.block.ready.pop();
                    self.block.run_worker(disk as usize);
                    // What policies have let go is passed on before any task runs.
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

    /// Runs what is ready where it is not the usual way of a request.
    #[inline(never)]
    pub(crate) fn run_ready_cold(&mut self) {
        self.run_ready();
    }

    /// Runs what is ready, until nothing is left.
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
                Ready::Queue(disk) => self.block.run_worker(disk as usize),
                other => self.run_other(other),
            }
        }
    }

    /// Runs what is seldom ready.
    #[inline(never)]
    fn run_other(&mut self, ready: Ready) {
        match ready {
            Ready::Submission(task) => self.resume(task),
            Ready::Process(index) => self.drive_cold(index),
            Ready::Call(task) => self.advance_call(task),
            Ready::Flush(disk) => self.block.queue_flush(disk as usize),
            Ready::Queue(disk) => self.block.run_worker(disk as usize),
        }
    }

    /// Lets a process go on once what is ready before it has run.
    #[inline]
    pub(crate) fn wake_process(&mut self, index: u32) {
        let process = &mut self.tasks.processes[index as usize];
        if likely(!std::mem::replace(&mut process.woken, true)) {
            self.block.ready.insert(process.rank, Ready::Process(index));
        }
    }
}
