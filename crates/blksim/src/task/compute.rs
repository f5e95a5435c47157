//! A machine whose computing takes time: every event is handled by a processor, when that is free.

use crate::block::disk::CompletionAffinity;
use crate::block::hw_queue::HwQueueId;
use crate::block::request::{RequestId, SECTOR_BYTES, TaskId};
use crate::core::branch::unlikely;
use crate::core::event::{Class, Event};
use crate::core::record::CpuTime;
use crate::devices::device::Device;
use crate::machine::Machine;
use crate::mm::page_cache::PAGE_BYTES;
use crate::task::ready::Ready;

impl Machine {
    /// The next event, of the only processor or of anything else. The clock moves to it.
    #[inline]
    pub(crate) fn next_on_processors(&mut self) -> Option<Event> {
        let events = &mut self.block.events;
        match self.processors.as_ref().and_then(|processors| processors.own_event()) {
            Some((time_ns, class)) if !events.is_before(time_ns, class) => {
                events.advance_to(time_ns);
                Some(Event { time_ns, class, subject: 0 })
            }
            _ => events.advance_any(),
        }
    }

    /// The event that was taken last happens later after all; the clock goes back to a moment before it.
    #[cold]
    pub(crate) fn put_back(&mut self, event: Event, now_ns: u64) {
        let own = self.processors.as_ref().and_then(|processors| processors.own_event());
        if own == Some((event.time_ns, event.class)) {
            self.block.events.advance_to(now_ns);
        } else {
            self.block.events.put_back(event, now_ns);
        }
    }

    /// Reacts to one event on the processor that it needs, or later if that computes.
    #[inline(never)]
    pub(crate) fn react_on_processor(&mut self, event: Event) {
        let Event { time_ns, class, subject } = event;
        let cpu = match class {
            Class::DeviceWake | Class::Slot => {
                self.handle_event_of(class, subject);
                return;
            }
            Class::Processor | Class::Interrupt => subject as usize,
            Class::Complete => {
                // The device goes on, however long the processor takes to notice.
                self.tell_device(subject);
                let cpu = self.interrupted_by(subject);
                let Some(processors) = &mut self.processors else { return };
                if processors.defers(cpu, subject, &mut self.block.events) {
                    return;
                }
                cpu
            }
            Class::Issue | Class::Task => self.processor_of(subject),
            Class::QueueRun => HwQueueId(subject).hctx(),
            Class::SchedulerTimer | Class::PolicyTimer | Class::Writeback => 0,
        };
        let Some(processors) = &mut self.processors else { return };
        let runs_task = class == Class::Processor;
        if let Err(free_ns) = processors.begin(cpu, runs_task, &mut self.block.events) {
            processors.postpone(cpu, free_ns, class, subject, &mut self.block.events);
            return;
        }
        self.block.cpu = cpu as u16;
        match class {
            Class::Processor => self.run_next(),
            Class::Interrupt => {
                if let Some(id) = processors.take_interrupt(cpu) {
                    self.complete_or_send(id);
                }
            }
            Class::Complete => self.complete_or_send(subject),
            _ => self.handle_event_of(class, subject),
        }
        if !self.block.released.is_empty() {
            self.pass_on_released();
        }
        self.place_woken();
        let Some(processors) = &mut self.processors else { return };
        let task = processors.end(time_ns, &mut self.block.events);
        let process = task.and_then(|task| self.tasks.processes.get_mut(task as usize));
        if let Some(process) = process.filter(|process| process.is_measured(time_ns)) {
            process.cpu.system_ns += self.block.events.now_ns() - time_ns;
        }
    }

    /// A program prepares I/Os and calls the kernel once for all of them.
    #[inline(always)]
    pub(crate) fn compute_issue(&mut self, index: u32, ios: u32) {
        if unlikely(self.processors.is_some()) {
            self.compute_calls(index, ios);
        }
    }

    #[inline(never)]
    fn compute_calls(&mut self, index: u32, ios: u32) {
        self.compute_user(index, u64::from(ios) * self.block.steps.prepare_ns);
        self.block.events.compute(self.block.steps.system_call_ns);
    }

    /// A program collects its completed I/Os. Returns false if others go first.
    ///
    /// On the only processor and from 6.12 on, an interrupt that is due when a synchronous call ends is handled
    /// before the program continues, and then the task goes behind those that wait: in a guest the server of the
    /// disk takes its place (`put_prev_task_fair` of `kernel/sched/fair.c`).
    #[inline(never)]
    pub(crate) fn collect_on_processor(&mut self, index: u32) -> bool {
        let process = &mut self.tasks.processes[index as usize];
        if std::mem::take(&mut process.returns) {
            return true;
        }
        let (collected, asynchronous) = (process.done.len() as u64, process.asynchronous);
        self.compute_user(index, collected * self.block.steps.collect_ns);
        let Some(processors) = &mut self.processors else { return true };
        if asynchronous || !processors.interrupted(Ready::Process(index), &self.block.events) {
            return true;
        }
        let process = &mut self.tasks.processes[index as usize];
        process.returns = true;
        process.woken = true;
        false
    }

    /// The kernel copies the bytes of a buffered call, all at its beginning.
    pub(crate) fn compute_copying(&mut self, bytes: u32) {
        let pages = u64::from(bytes).div_ceil(PAGE_BYTES);
        self.block.events.compute(pages * self.block.steps.copy_page_ns);
    }

    /// A program collects what a call returned.
    pub(crate) fn compute_end_of_call(&mut self, index: u32) {
        if unlikely(self.processors.is_some()) {
            self.compute_user(index, self.block.steps.collect_ns);
        }
    }

    fn compute_user(&mut self, index: u32, cost_ns: u64) {
        let process = &mut self.tasks.processes[index as usize];
        if process.is_measured(self.block.events.now_ns()) {
            process.cpu.user_ns += cost_ns;
        }
        self.block.events.compute(cost_ns);
    }

    /// Processor time of a job.
    pub(crate) fn cpu_of_job(&self, job: usize) -> Option<CpuTime> {
        self.processors.as_ref()?;
        let mut sum = CpuTime::default();
        for process in self.tasks.processes.iter().filter(|process| process.job == job) {
            sum.user_ns += process.cpu.user_ns;
            // What a task took, less what its program did.
            sum.system_ns += process.cpu.system_ns.saturating_sub(process.cpu.user_ns);
        }
        Some(sum)
    }

    /// The processor that the device interrupts for a request: the first that the hardware queue serves.
    fn interrupted_by(&self, id: RequestId) -> usize {
        let request = &self.block.requests[id];
        self.block.disks[usize::from(request.disk)].hctx_of(request)
    }

    /// A processor learns that a request is done, and completes it or has another complete it.
    fn complete_or_send(&mut self, id: RequestId) {
        match (self.completing_processor(id), &mut self.processors) {
            (Some(cpu), Some(processors)) => {
                processors.send_interrupt(cpu, id, &mut self.block.events);
            }
            _ => self.complete(id),
        }
    }

    /// The processor that completes a request if it is not this one (`blk_mq_complete_request_remote`
    /// and `blk_mq_complete_need_ipi` of `block/blk-mq.c`, Linux 6.1). All processors share their last
    /// cache.
    fn completing_processor(&self, id: RequestId) -> Option<usize> {
        let request = &self.block.requests[id];
        let queue = &self.block.disks[usize::from(request.disk)];
        let sent = queue.affinity == CompletionAffinity::Submitter && request.cpu != self.block.cpu;
        // With a hardware queue for each processor the two are always the same.
        sent.then_some(usize::from(request.cpu))
    }

    fn processor_of(&self, task: TaskId) -> usize {
        self.processors.as_ref().map_or(0, |processors| processors.of_task(task))
    }

    /// Runs what is ready on the current processor.
    #[inline]
    fn run_next(&mut self) {
        let Some(processors) = &mut self.processors else { return };
        match processors.next(&mut self.block.events) {
            None => {}
            Some(Ready::Process(index)) => {
                self.tasks.processes[index as usize].woken = false;
                self.drive_cold(index);
            }
            Some(other) => self.run_other(other),
        }
    }

    /// Distributes what was woken over the processors.
    #[inline(always)]
    pub(crate) fn place_woken(&mut self) {
        if !self.block.ready.is_empty() || !self.block.copied.is_empty() {
            self.place_all_woken();
        }
    }

    #[inline(never)]
    fn place_all_woken(&mut self) {
        self.complete_copied();
        let Some(processors) = &mut self.processors else { return };
        while let Some(ready) = self.block.ready.pop() {
            processors.place(ready, &mut self.block.events);
        }
    }

    /// Completes the bios that a task has copied itself. Returns whether there was one.
    #[inline(always)]
    fn complete_copied(&mut self) -> bool {
        !self.block.copied.is_empty() && self.complete_all_copied()
    }

    #[cold]
    fn complete_all_copied(&mut self) -> bool {
        let mut copied = std::mem::take(&mut self.block.copied);
        for id in copied.drain(..) {
            self.complete(id);
        }
        self.block.copied = copied;
        true
    }

    /// A process has issued an I/O. Returns whether it continues at once.
    #[inline(never)]
    pub(crate) fn stays_on_processor(&mut self, process: u32) -> bool {
        if self.complete_copied() {
            // What ends in its own submission wakes nobody.
            self.block.ready.remove_process(process);
            self.tasks.processes[process as usize].woken = false;
        }
        self.place_woken();
        let woken = self.tasks.processes[process as usize].woken;
        let Some(processors) = &mut self.processors else { return true };
        if woken {
            // It is in a queue already.
            return false;
        }
        if processors.interrupted_go_last() && !self.tasks.processes[process as usize].asynchronous
        {
            // It sleeps until its I/O is done.
            return true;
        }
        let stays = processors.goes_on(Ready::Process(process), &self.block.events);
        self.tasks.processes[process as usize].woken = !stays;
        stays
    }

    /// The thread that serves a disk takes a request. It completes none itself unless the submitter's
    /// processor has to (`rq_affinity`): raising the softirq
    /// outside an interrupt wakes `ksoftirqd` (`blk_mq_raise_softirq` of `block/blk-mq.c`,
    /// `raise_softirq_irqoff` of `kernel/softirq.c`, Linux 6.1), which waits for its processor.
    pub(crate) fn serve(&mut self, disk: u32) {
        let queue = &mut self.block.disks[disk as usize];
        let Some(id) = queue.thread.waiting.pop_front() else {
            queue.thread.woken = false;
            return;
        };
        let request = &self.block.requests[id];
        let bytes = u64::from(request.nr_sectors) * SECTOR_BYTES;
        let steps = &self.block.steps;
        let copying_ns = bytes.div_ceil(PAGE_BYTES) * steps.copy_page_ns;
        // Every command takes time.
        let work_ns = queue
            .device
            .thread_work_ns(request.operation, steps.thread_command_ns, copying_ns)
            .max(1);
        self.block.events.move_to(request.dispatched_ns);
        self.block.events.compute(work_ns);
        queue.device.worked(work_ns);
        let more = !queue.thread.waiting.is_empty();
        queue.thread.woken = more;
        if let (Some(cpu), Some(processors)) = (self.completing_processor(id), &mut self.processors)
        {
            processors.send_interrupt(cpu, id, &mut self.block.events);
        } else {
            let served = &mut self.block.disks[disk as usize].thread.served;
            if served.is_empty() {
                self.block.ready.make_ready(Ready::Softirq(disk));
            }
            served.push_back(id);
        }
        self.place_woken();
        if let (true, Some(processors)) = (more, &mut self.processors) {
            processors.requeue(Ready::Device(disk), &self.block.events);
        }
    }

    /// Completes what a thread has served.
    pub(crate) fn complete_served(&mut self, disk: u32) {
        let mut served = std::mem::take(&mut self.block.disks[disk as usize].thread.served);
        for id in served.drain(..) {
            self.tell_device(id);
            self.complete(id);
        }
        self.block.disks[disk as usize].thread.served = served;
    }
}
