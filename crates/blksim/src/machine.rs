//! The machine: the block layer, memory management and the tasks above them.
//!
//! A [`Machine`] reacts to events; only the engine takes them off the event queue.

use crate::block::disk::CompletionAffinity;
use crate::block::disks::Disks;
use crate::block::hw_queue::HwQueueId;
use crate::block::layer::BlockLayer;
use crate::block::request::TaskId;
use crate::core::branch::likely;
use crate::core::event::Class;
use crate::core::params::Values;
use crate::core::processor_table::ProcessorTable;
use crate::core::record::JobRecord;
use crate::devices::device::Device;
use crate::elevator::scheduler::Family;
use crate::mm::memory::{Costs, Memory};
use crate::mm::page_cache::PAGE_SECTORS;
use crate::task::processors::Processors;
use crate::task::ready::Ranks;
use crate::task::slots::{SlotPlan, SlotRecord, SlotRecorder};
use crate::task::task_struct::Role;
use crate::task::tasks::Tasks;
use crate::timeline::{Recorder, Timeline};
use crate::workload::Job;
use crate::workload::arrangement::Arrangement;
use crate::workload::layout::{File, Layout};

/// Most segments of a request to a guest's disk (`BLK_MAX_SEGMENTS` in `include/linux/blkdev.h`, Linux 6.1). Each
/// merged bio is at least one segment, so this limits requests made of bios of one page.
const MAX_SEGMENTS: u32 = 128;

/// A simulated machine, in parts that can be borrowed apart.
///
/// A method belongs to the part whose state it needs; methods of `Machine` cross parts. They are in
/// the rooms of their subjects: `block/{submit,complete,array}.rs`, `mm/{flusher,page_reads}.rs`,
/// `task/{issue,run,direct,buffered,sync}.rs`.
#[derive(Debug, Clone)]
pub struct Machine {
    pub block: BlockLayer,
    pub mm: Memory,
    pub tasks: Tasks,
    /// `None` if computing takes no time.
    pub(crate) processors: Option<Box<Processors>>,
}

impl Machine {
    /// Puts jobs, disks and machine together. The machine is idle until [`Machine::start`].
    pub fn new(
        jobs: &[Job],
        layout: &Layout,
        seed: u64,
        mut disks: Disks,
        queue: &Values,
        machine: &Values,
    ) -> Self {
        let behaviours = disks[0].view.facts.behaviours;
        for disk in disks.iter_mut() {
            disk.begin_tags_at(machine.get("first_tag") as u32);
            if machine.flag("raw_device") && behaviours.guests_disk_limits_segments {
                disk.max_segments_sectors = MAX_SEGMENTS * PAGE_SECTORS as u32;
                disk.limit_sectors(disk.max_sectors);
            }
        }
        let mut tasks = Tasks::new(jobs, layout, seed);
        let mut files = layout.files.clone();
        if machine.flag("raw_device") {
            files = vec![File { start: 0, bytes: disks[0].device.facts().capacity_bytes }];
            for process in &mut tasks.processes {
                process.region.file = 0;
                process.files.iter_mut().for_each(|(region, _)| region.file = 0);
            }
        }
        // Legacy schedulers are the same under each release.
        let follows_release = disks[0].family == Family::MultiQueue;
        let mut block = BlockLayer::new(disks, tasks.processes.len() as u32);
        if machine.flag("plug_reads") || (behaviours.plugs_each_bio && follows_release) {
            block.unplugged_sectors = 0;
        }
        block.writes_as_reads = !behaviours.plugs_device_writes && follows_release;
        let mm = Memory::new(files, queue, machine, behaviours);
        let mut host = Self { block, mm, tasks, processors: None };
        if behaviours.workers_go_first {
            host.set_ranks(Ranks::BehindWorkers);
        }
        host
    }

    fn set_ranks(&mut self, ranks: Ranks) {
        self.tasks.set_ranks(ranks);
        self.block.ready.set_ranks(ranks);
    }

    /// Puts every job into its control group, by index.
    pub fn set_groups(&mut self, of_jobs: &[u16]) {
        for process in &mut self.tasks.processes {
            process.group = of_jobs.get(process.job).copied().unwrap_or(0);
        }
    }

    /// Lets computing take time on processors.
    pub fn compute_on(
        &mut self,
        table: &ProcessorTable,
        scheduler: &str,
        affinity: CompletionAffinity,
    ) {
        if table.punt_ns > 0 {
            self.tasks.add_io_workers(table.cpus);
        }
        if table.cpus > 1 {
            // Several processors run what is woken in that order.
            self.set_ranks(Ranks::None);
        }
        let (nr_processes, nr_tasks) = (self.tasks.processes.len() as u32, self.tasks.count());
        let nr_hctxs: Vec<_> = self.block.disks.iter().map(|disk| disk.hctxs.count()).collect();
        let processors =
            Processors::new(table, nr_processes, self.block.ready.ranks(), nr_tasks, &nr_hctxs);
        self.processors = Some(Box::new(processors));
        self.block.steps = table.steps;
        self.block.punt_ns = table.punt_ns;
        self.block.map_page_ns = table.map_page_ns;
        self.mm.costs = Costs::NONE;
        self.block.events.split_clocks(table.cpus.max(1) as usize);
        for disk in self.block.disks.iter_mut() {
            disk.costs = Some(table.of_scheduler(scheduler));
            disk.lock_handover_ns = (table.cpus > 1).then_some(table.steps.lock_handover_ns);
            disk.affinity = affinity;
        }
    }

    /// Draws first tags, and when the processes start.
    pub fn arrange(&mut self, arrangement: Arrangement) {
        for (index, disk) in self.block.disks.iter_mut().enumerate() {
            let nr_tags = disk.view.facts.nr_requests;
            disk.begin_tags_at(arrangement.first_tag(index, 0, nr_tags));
        }
        let delays_ns = arrangement.start_delays_ns(self.tasks.processes.len());
        for (process, delay_ns) in self.tasks.processes.iter_mut().zip(delays_ns) {
            process.startdelay_ns = process.startdelay_ns.saturating_add(delay_ns);
        }
    }

    /// Writes a timeline of up to about `limit_bytes` from now on.
    pub fn record(&mut self, limit_bytes: u64) {
        let recorder = Recorder::new(self.tasks.jobs_of_contexts(), limit_bytes);
        self.block.recorder = Some(Box::new(recorder));
    }

    /// True if the timeline exceeds its limit.
    pub fn timeline_is_full(&self) -> bool {
        self.block.recorder.as_ref().is_some_and(|recorder| recorder.is_full())
    }

    /// The timeline's rows since it began or was last drained; recording continues.
    pub fn drain_timeline(&mut self) -> Option<Timeline> {
        self.block.recorder.as_mut().map(|recorder| recorder.drain())
    }

    /// Ends the timeline and hands it over.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.block.recorder.take().map(|recorder| recorder.into_timeline())
    }

    /// Starts the first jobs and the flusher's clock.
    pub fn start(&mut self) {
        self.start_phase();
        let period_ns = self.mm.writeback.period_ns();
        self.block.events.at(period_ns, Class::Writeback, 0);
    }

    /// All jobs have ended.
    pub fn finished(&self) -> bool {
        self.tasks.finished()
    }

    /// The records of the jobs.
    pub fn records(&self) -> Vec<JobRecord> {
        let records = &self.tasks.records;
        self.tasks.slots.as_ref().map_or_else(|| records.clone(), |slots| slots.whole(records))
    }

    /// Records these slots, each divided into windows, which count the I/Os of the jobs in `focus`.
    pub fn record_slots(&mut self, plan: &SlotPlan) {
        self.tasks.slots = Some(Box::new(SlotRecorder::new(plan)));
        self.await_slot_edge();
    }

    /// The slots that have ended.
    pub fn ended_slots(&self) -> &[SlotRecord] {
        self.tasks.slots.as_ref().map_or(&[], |slots| slots.ended())
    }

    /// All slots, as they are if nothing more is done.
    pub fn closed_slots(&self) -> Vec<SlotRecord> {
        let Some(slots) = &self.tasks.slots else { return Vec::new() };
        let mut slots = (**slots).clone();
        slots.close(&mut self.tasks.records.clone());
        slots.ended().to_vec()
    }

    /// An edge of a slot is reached.
    fn pass_slot_edge(&mut self) {
        let now_ns = self.block.events.now_ns();
        if let Some(slots) = &mut self.tasks.slots {
            slots.advance(now_ns, &mut self.tasks.records);
        }
        self.await_slot_edge();
    }

    fn await_slot_edge(&mut self) {
        if let Some(edge_ns) = self.tasks.slots.as_ref().and_then(|slots| slots.next_ns()) {
            self.block.events.at(edge_ns, Class::Slot, 0);
        }
    }

    /// Reacts to one event; the clock already shows its time.
    #[inline]
    pub(crate) fn react(&mut self, class: Class, subject: u32) {
        if likely(class == Class::Complete) {
            self.complete(subject);
            // All completions at one moment are handled before any task runs.
            if self.block.has_ready() && !self.block.events.more_now(Class::Complete) {
                self.run_ready();
            }
        } else {
            self.handle_event_cold(class, subject);
        }
    }

    /// Handles an event that is not the end of a command. With all in one `match`, which becomes a
    /// jump table, the legacy schedulers do some 7 % fewer requests a second.
    #[inline(never)]
    fn handle_event_cold(&mut self, class: Class, subject: u32) {
        self.handle_event_of(class, subject);
        // So are all processes whose think time ends at that moment.
        let more = class == Class::Issue && self.block.events.more_now(class);
        if self.block.has_ready() && !more {
            self.run_ready_cold();
        }
    }

    pub(crate) fn handle_event_of(&mut self, class: Class, subject: u32) {
        match class {
            Class::Complete => self.complete(subject),
            Class::DeviceWake => self.block.wake_device(subject),
            Class::SchedulerTimer => self.block.scheduler_timer(subject as usize),
            Class::PolicyTimer => self.block.policy_timer(subject as usize),
            Class::Writeback => self.writeback_tick(),
            Class::Task => self.task_goes_on(subject),
            Class::Issue => self.issue_timer(subject),
            Class::QueueRun => self.block.run_delayed(HwQueueId(subject)),
            Class::Slot => self.pass_slot_edge(),
            // Only where computing takes time, which is handled apart.
            Class::Interrupt | Class::Processor => {}
        }
    }

    /// A task's submission is complete: the task continues.
    pub(crate) fn unblocked(&mut self, task: TaskId) {
        match self.tasks[task].role {
            Role::Process(_) if self.tasks[task].call.is_some() => self.advance_call(task),
            Role::Process(process) => self.drive_cold(process),
            Role::Flusher => self.run_flusher(),
            Role::Worker => {}
            Role::IoWorker(process) => self.run_io_worker(task, process),
        }
    }

    /// A task has computed or slept for its time.
    pub(crate) fn task_goes_on(&mut self, task: TaskId) {
        if self.tasks[task].call.is_some() {
            self.advance_call(task);
        }
    }
}
