//! The issue loop of a job's process, from its start to its end.

use crate::core::branch::{cold_path, likely, unlikely};
use crate::core::event::Class;
use crate::machine::Machine;
use crate::workload::generator::Step;

use crate::task::job_process::{IssueStage, SecondOfBatch};

impl Machine {
    /// Starts the processes of the current phase, apart from those that wait for another job.
    pub(crate) fn start_phase(&mut self) {
        let now_ns = self.block.events.now_ns();
        for index in 0..self.tasks.processes.len() {
            if self.tasks.may_start(index) {
                let process = &mut self.tasks.processes[index];
                let start_ns = now_ns.saturating_add(process.startdelay_ns);
                process.wake_ns = Some(start_ns);
                self.block.events.at(start_ns, Class::Issue, index as u32);
            }
        }
    }

    /// The time has come at which a process starts or issues.
    pub(crate) fn issue_timer(&mut self, index: u32) {
        let now_ns = self.block.events.now_ns();
        let process = &mut self.tasks.processes[index as usize];
        if matches!(process.stage, IssueStage::Ended) {
            return;
        }
        if process.wake_ns.is_some_and(|wake_ns| wake_ns <= now_ns) {
            process.wake_ns = None;
        }
        if matches!(process.stage, IssueStage::Waiting) {
            process.stage = IssueStage::Issuing;
            process.generator.start(now_ns);
            for (region, _) in &process.files {
                if process.invalidate {
                    self.mm.cache.invalidate(region.start, region.bytes);
                }
                if process.pre_read {
                    self.mm.cache.load(region.start, region.bytes);
                }
            }
        }
        self.wake_process(index);
    }

    /// Runs a process: it fills its queue, batch by batch, collects completions, and begins again.
    /// While it sleeps in a submission it collects none, as with libaio.
    #[inline(always)]
    pub(crate) fn drive(&mut self, index: u32) {
        if self.tasks.sleeps(index) || !self.issue_second_of_batch(index) {
            return;
        }
        loop {
            if self.tasks.processes[index as usize].may_issue() && !self.fill(index) {
                return;
            }
            let process = &self.tasks.processes[index as usize];
            if process.done.is_empty() {
                if unlikely(matches!(process.stage, IssueStage::Draining)) && process.in_flight == 0
                {
                    self.end_process(index);
                }
                return;
            }
            if unlikely(self.processors.is_some()) && !self.collect_on_processor(index) {
                return;
            }
            let now_ns = self.block.events.now_ns();
            self.tasks.collect_done(index, now_ns, &mut self.block.recorder);
        }
    }

    /// The same, apart from the usual path of a request.
    #[inline(never)]
    pub(crate) fn drive_cold(&mut self, index: u32) {
        self.drive(index);
    }

    /// Issues at least one I/O, as many as depth and generator allow. Returns false if the process
    /// sleeps or lets others go first.
    #[inline(always)]
    fn fill(&mut self, index: u32) -> bool {
        loop {
            let process = &self.tasks.processes[index as usize];
            let wanted = process.batch.min(process.depth - process.in_flight);
            let process = &mut self.tasks.processes[index as usize];
            let now_ns = self.block.events.now_ns();
            let single = if likely(wanted == 1) { process.next_granted(now_ns) } else { None };
            let awake = if let Some(transfer) = single {
                process.in_flight += 1;
                self.compute_issue(index, 1);
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

    /// Issues up to `wanted` transfers, checking the job's limits. Returns a step that is not a
    /// direct transfer, if one came.
    #[inline(never)]
    fn fill_cold(&mut self, index: u32, wanted: u32) -> Option<Step> {
        if wanted > 1 {
            return self.fill_batch(index, wanted);
        }
        let now_ns = self.block.events.now_ns();
        let process = &mut self.tasks.processes[index as usize];
        if unlikely(process.generator.replay().is_some()) {
            return self.fill_replayed(index);
        }
        match process.next_direct(now_ns) {
            Ok(transfer) => {
                process.in_flight += 1;
                self.compute_issue(index, 1);
                self.issue_direct(index, transfer, false, now_ns);
                None
            }
            Err(step) => Some(step),
        }
    }

    /// Issues up to `wanted` direct transfers together. Returns the step that ended the batch
    /// early, if one did. More than two are plugged (`AIO_PLUG_THRESHOLD` in `fs/aio.c`).
    #[inline(never)]
    fn fill_batch(&mut self, index: u32, wanted: u32) -> Option<Step> {
        let process = &mut self.tasks.processes[index as usize];
        let mut last = None;
        let mut batch = std::mem::take(&mut self.tasks.batch);
        let now_ns = self.block.events.now_ns();
        while last.is_none() && (batch.len() as u32) < wanted {
            match process.next_direct(now_ns) {
                Ok(transfer) => batch.push(transfer),
                Err(step) => last = Some(step),
            }
        }
        process.in_flight += batch.len() as u32;
        if !batch.is_empty() {
            self.compute_issue(index, batch.len() as u32);
        }
        let process = &mut self.tasks.processes[index as usize];
        match *batch {
            [first, transfer] => {
                let second = SecondOfBatch { transfer, start_ns: now_ns, then: last.take() };
                process.stage = IssueStage::BetweenTwo(second);
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

    /// Issues the rest of a batch. Returns false if the process sleeps or lets others go first.
    #[inline]
    fn issue_second_of_batch(&mut self, index: u32) -> bool {
        let process = &mut self.tasks.processes[index as usize];
        let IssueStage::BetweenTwo(second) = process.stage else { return true };
        cold_path();
        process.stage = IssueStage::Issuing;
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

    /// Takes a step that is not a direct transfer. Returns false if there is no more to issue for
    /// now.
    #[inline(never)]
    fn take_step(&mut self, index: u32, step: Step) -> bool {
        let start_ns = self.block.events.now_ns();
        let process = &mut self.tasks.processes[index as usize];
        match step {
            Step::Transfer(transfer) => {
                process.in_flight += 1;
                process.turn_to(transfer.offset);
                self.compute_issue(index, 1);
                self.tasks.calling = Some(index);
                self.start_buffered(index, transfer, start_ns);
                self.has_called(index)
            }
            Step::Sync => {
                process.in_flight += 1;
                process.turn_to(process.generator.byte_of_file());
                self.compute_issue(index, 1);
                self.tasks.calling = Some(index);
                self.start_sync(index, start_ns);
                self.has_called(index)
            }
            Step::Wait { until_ns } => {
                if process.wake_ns.is_none_or(|wake_ns| wake_ns > until_ns) {
                    process.wake_ns = Some(until_ns);
                    self.block.events.at(until_ns, Class::Issue, index);
                }
                false
            }
            Step::AwaitCompletion | Step::AwaitSignal(_) => false,
            Step::Finished => {
                process.stage = IssueStage::Draining;
                false
            }
        }
    }

    /// A call has begun, and perhaps ended. Returns whether the process continues.
    fn has_called(&mut self, index: u32) -> bool {
        self.tasks.calling = None;
        // Without a cost table a call that ends at once took no time, in which nothing else happened.
        self.processors.is_none() || self.tasks.sleeps(index) || self.goes_on(index)
    }

    #[cold]
    fn end_process(&mut self, index: u32) {
        let now_ns = self.block.events.now_ns();
        let process = &mut self.tasks.processes[index as usize];
        process.stage = IssueStage::Ended;
        let record = &mut self.tasks.records[process.job];
        let runtime_ns = process.generator.close(now_ns, record);
        record.runtime_ns = record.runtime_ns.max(runtime_ns);
        let job = process.job;
        for context in self.tasks.contexts_of(index) {
            self.block.tell_schedulers_of_end(context);
        }
        self.tasks.count_end(index as usize);
        if self.tasks.order.exitall {
            self.terminate_others(index as usize, job);
        }
        if self.tasks.next_phase() || self.tasks.order.waits() {
            self.start_phase();
        }
    }

    /// Ends the jobs that `exitall` ends with a process of `job`.
    #[cold]
    fn terminate_others(&mut self, ended: usize, job: usize) {
        let now_ns = self.block.events.now_ns();
        for index in 0..self.tasks.processes.len() {
            let process = &mut self.tasks.processes[index];
            let waiting = matches!(process.stage, IssueStage::Waiting);
            let over = matches!(process.stage, IssueStage::Ended);
            if index == ended || over || !self.tasks.order.ends_with(process.job, job, !waiting) {
                continue;
            }
            if waiting {
                process.stage = IssueStage::Ended;
                process.generator.abandon();
                self.tasks.count_end(index);
            } else {
                process.generator.terminate();
                self.block.events.at(now_ns, Class::Issue, index as u32);
            }
        }
    }
}
