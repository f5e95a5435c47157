//! The loop in which a job's process issues its I/O, from its start to its end.

use crate::core::branch::{cold_path, likely, unlikely};
use crate::core::event::Class;
use crate::machine::Machine;
use crate::workload::generator::Step;

use crate::task::job_process::{IssueStage, SecondOfBatch};

impl Machine {
    /// Starts the clones of the current phase; empty phases cannot occur.
    pub(crate) fn start_phase(&mut self) {
        let now_ns = self.block.events.now_ns();
        for index in 0..self.tasks.processes.len() {
            let clone = &mut self.tasks.processes[index];
            if clone.phase == self.tasks.phase {
                let start_ns = now_ns.saturating_add(clone.startdelay_ns);
                clone.wake_ns = Some(start_ns);
                self.block.events.at(start_ns, Class::Issue, index as u32);
            }
        }
    }

    /// The moment has come at which a clone wanted to start or to issue.
    pub(crate) fn issue_timer(&mut self, index: u32) {
        let now_ns = self.block.events.now_ns();
        let clone = &mut self.tasks.processes[index as usize];
        if clone.wake_ns.is_some_and(|wake_ns| wake_ns <= now_ns) {
            clone.wake_ns = None;
        }
        if matches!(clone.stage, IssueStage::Waiting) {
            clone.stage = IssueStage::Issuing;
            clone.generator.start(now_ns);
            let (invalidate, pre_read, region) = (clone.invalidate, clone.pre_read, clone.region);
            if invalidate {
                self.mm.cache.invalidate(region.start, region.bytes);
            }
            if pre_read {
                self.mm.cache.load(region.start, region.bytes);
            }
        }
        self.wake_clone(index);
    }

    /// Lets a clone go on: it fills its queue, batch by batch, then learns of
    /// what is done, and begins again. One that sleeps in a submission learns
    /// of nothing meanwhile, as with libaio.
    #[inline(always)]
    pub(crate) fn drive(&mut self, index: u32) {
        if self.tasks.sleeps(index) || !self.issue_second_of_batch(index) {
            return;
        }
        loop {
            if self.tasks.processes[index as usize].may_issue() && !self.fill(index) {
                return;
            }
            let clone = &self.tasks.processes[index as usize];
            if clone.done.is_empty() {
                if unlikely(matches!(clone.stage, IssueStage::Draining)) && clone.in_flight == 0 {
                    self.end_clone(index);
                }
                return;
            }
            let now_ns = self.block.events.now_ns();
            self.tasks.collect_done(index, now_ns, &mut self.block.recorder);
        }
    }

    /// The same where it is not the usual way of a request.
    #[inline(never)]
    pub(crate) fn drive_cold(&mut self, index: u32) {
        self.drive(index);
    }

    /// Issues as much as the depth and the generator allow, which must be
    /// something. False if the clone sleeps in that, or lets others go first.
    #[inline(always)]
    fn fill(&mut self, index: u32) -> bool {
        loop {
            let clone = &mut self.tasks.processes[index as usize];
            let wanted = clone.batch.min(clone.depth - clone.in_flight);
            let now_ns = self.block.events.now_ns();
            let single = if likely(wanted == 1) { clone.next_granted(now_ns) } else { None };
            let awake = if let Some(transfer) = single {
                clone.in_flight += 1;
                let awake = self.issue_direct(index, transfer, false, now_ns);
                self.goes_on(index) && awake
            } else if let Some(last) = self.fill_cold(index, wanted) {
                if !self.take_step(index, last) {
                    return true;
                }
                !self.tasks.sleeps(index)
            } else {
                self.goes_on(index) && !self.tasks.sleeps(index)
            };
            if !awake {
                return false;
            }
            if !self.tasks.processes[index as usize].may_issue() {
                return true;
            }
        }
    }

    /// Issues up to `wanted` transfers of which some may need a look at the job's limits; gives what
    /// came instead of a direct one.
    #[inline(never)]
    fn fill_cold(&mut self, index: u32, wanted: u32) -> Option<Step> {
        if wanted > 1 {
            return self.fill_batch(index, wanted);
        }
        let now_ns = self.block.events.now_ns();
        let clone = &mut self.tasks.processes[index as usize];
        match clone.next_direct(now_ns) {
            Ok(transfer) => {
                clone.in_flight += 1;
                self.issue_direct(index, transfer, false, now_ns);
                None
            }
            Err(step) => Some(step),
        }
    }

    /// Issues up to `wanted` direct transfers together; gives what came before as many were found.
    /// More than two are plugged (`AIO_PLUG_THRESHOLD` in `fs/aio.c`).
    #[inline(never)]
    fn fill_batch(&mut self, index: u32, wanted: u32) -> Option<Step> {
        let clone = &mut self.tasks.processes[index as usize];
        let mut last = None;
        let mut batch = std::mem::take(&mut self.tasks.batch);
        let now_ns = self.block.events.now_ns();
        while last.is_none() && (batch.len() as u32) < wanted {
            match clone.next_direct(now_ns) {
                Ok(transfer) => batch.push(transfer),
                Err(step) => last = Some(step),
            }
        }
        clone.in_flight += batch.len() as u32;
        match *batch {
            [first, transfer] => {
                let second = SecondOfBatch { transfer, start_ns: now_ns, then: last.take() };
                clone.stage = IssueStage::BetweenTwo(second);
                if self.issue_direct(index, first, false, now_ns) && self.goes_on(index) {
                    self.issue_second_of_batch(index);
                }
            }
            [single] => {
                self.issue_direct(index, single, false, now_ns);
            }
            _ => {
                self.plug(index);
                for &transfer in &batch {
                    self.issue_direct(index, transfer, true, now_ns);
                }
                self.unplug(index);
            }
        }
        batch.clear();
        self.tasks.batch = batch;
        last
    }

    /// Issues what is left of a batch. False if the clone sleeps in that, or lets others go first.
    #[inline]
    fn issue_second_of_batch(&mut self, index: u32) -> bool {
        let clone = &mut self.tasks.processes[index as usize];
        let IssueStage::BetweenTwo(second) = clone.stage else { return true };
        cold_path();
        clone.stage = IssueStage::Issuing;
        self.issue_second(index, second)
    }

    #[inline(never)]
    fn issue_second(&mut self, index: u32, second: SecondOfBatch) -> bool {
        let SecondOfBatch { transfer, start_ns, then } = second;
        self.issue_direct(index, transfer, false, start_ns);
        if let Some(step) = then {
            self.take_step(index, step);
        } else if !self.goes_on(index) {
            return false;
        }
        !self.tasks.sleeps(index)
    }

    /// Does what is not a direct transfer. False if there is nothing to issue for now.
    #[inline(never)]
    fn take_step(&mut self, index: u32, step: Step) -> bool {
        let clone = &mut self.tasks.processes[index as usize];
        match step {
            Step::Transfer(transfer) => {
                clone.in_flight += 1;
                self.start_buffered(index, transfer);
                true
            }
            Step::Sync => {
                clone.in_flight += 1;
                self.start_sync(index);
                true
            }
            Step::Wait { until_ns } => {
                if clone.wake_ns.is_none_or(|wake_ns| wake_ns > until_ns) {
                    clone.wake_ns = Some(until_ns);
                    self.block.events.at(until_ns, Class::Issue, index);
                }
                false
            }
            Step::Finished => {
                clone.stage = IssueStage::Draining;
                false
            }
        }
    }

    #[cold]
    fn end_clone(&mut self, index: u32) {
        let now_ns = self.block.events.now_ns();
        let clone = &mut self.tasks.processes[index as usize];
        clone.stage = IssueStage::Ended;
        let runtime_ns = now_ns.saturating_sub(clone.generator.measure_ns());
        let record = &mut self.tasks.records[clone.job];
        record.runtime_ns = record.runtime_ns.max(runtime_ns);
        let phase = clone.phase;
        self.block.tell_schedulers_of_end(index);
        self.tasks.left_in_phase[phase] -= 1;
        if phase == self.tasks.phase && self.tasks.left_in_phase[phase] == 0 {
            self.tasks.phase += 1;
            if !self.tasks.finished() {
                self.start_phase();
            }
        }
    }
}
