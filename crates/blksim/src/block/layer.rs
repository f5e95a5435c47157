//! The state of the block layer: disks with their queues, requests, and the lists between them.

use super::disks::Disks;
use super::per_hctx::Hctx;
use super::queue_change::QueueChanges;
use super::raid::Raid;
use super::request::{Fifo, Operation, RequestId, Requests, SECTOR_BYTES, TaskId};
use crate::core::branch::unlikely;
use crate::core::event::EventQueue;
use crate::core::processor_table::StepCosts;
use crate::devices::device::{Device, Outbox};
use crate::elevator::AnyScheduler;
use crate::elevator::scheduler::Family;
use crate::rqos::policy::{Admission, Placement, Policy, PolicyContext};
use crate::task::ready::{Ready, ReadyList};
use crate::timeline::Recorder;

/// The block layer: everything below the submitters, which it knows by number only.
#[derive(Debug, Clone)]
pub struct BlockLayer {
    /// The clock and the events still to come.
    pub events: EventQueue,
    pub requests: Requests,
    pub disks: Disks,
    pub(crate) raid: Option<Raid>,
    /// Capacity of the disk or the array.
    pub(crate) capacity_sectors: u64,
    /// The tasks and workers that run next, in order of waking.
    pub(crate) ready: ReadyList,
    /// The processor that computes; 0 if computing takes no time.
    pub(crate) cpu: u16,
    /// Largest direct read that is one bio without a plug; 0 if all reads are plugged.
    pub(crate) unplugged_sectors: u32,
    /// A direct write has no plug either where a read of its size has none.
    pub(crate) writes_as_reads: bool,
    /// Processor time of the steps of an I/O.
    pub(crate) steps: StepCosts,
    /// In addition for an I/O of `io_uring` that finds no tag.
    pub(crate) punt_ns: u64,
    /// In addition for each page of a request beyond its first.
    pub(crate) map_page_ns: u64,
    /// Bios that policies let go, to be submitted at the end of the event.
    pub(crate) released: Vec<RequestId>,
    pub(crate) woken: Vec<TaskId>,
    /// Bios that tasks have copied themselves, and that are yet to be completed.
    pub(crate) copied: Vec<RequestId>,
    pub(crate) scratch: Vec<RequestId>,
    /// Records the timeline, if the user asked for one.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// The changes of queues, if they may be changed.
    pub(crate) changes: Option<Box<QueueChanges>>,
}

impl BlockLayer {
    pub fn new(disks: Disks, nr_processes: u32) -> Self {
        Self {
            events: EventQueue::new(),
            requests: Requests::new(),
            capacity_sectors: disks[0].device.facts().capacity_bytes / SECTOR_BYTES,
            unplugged_sectors: disks[0].max_sectors,
            writes_as_reads: false,
            disks,
            raid: None,
            ready: ReadyList::new(nr_processes),
            cpu: 0,
            steps: StepCosts::default(),
            punt_ns: 0,
            map_page_ns: 0,
            released: Vec::new(),
            woken: Vec::new(),
            copied: Vec::new(),
            scratch: Vec::new(),
            recorder: None,
            changes: None,
        }
    }

    /// Whether a direct transfer has a plug of its own.
    #[inline]
    pub(crate) fn plugs(&self, operation: Operation, nr_sectors: u32) -> bool {
        let as_read = match operation {
            Operation::Read | Operation::Flush => true,
            Operation::Write => self.writes_as_reads,
            Operation::Discard => false,
        };
        !as_read || nr_sectors > self.unplugged_sectors
    }

    /// Puts a single request into the scheduler and has the queue run.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        match self.disks[disk].family {
            Family::Legacy => self.insert_and_run(disk, hctx, id),
            Family::MultiQueue if self.disks[disk].direct => self.issue_directly(disk, hctx, id),
            Family::MultiQueue => {
                self.insert_or_merge(disk, hctx, id);
                self.run_soon(disk, hctx);
            }
        }
    }

    /// Asks the policies above, tries to merge, asks the policies beside. Returns `None` if the bio
    /// proceeds to its tag, otherwise whether the submitter may continue.
    #[inline(never)]
    pub(crate) fn ask_policies(&mut self, plug: Fifo, disk: usize, id: RequestId) -> Option<bool> {
        let nr_above = self.disks[disk].nr_above();
        loop {
            let passed = self.requests[id].progress.policies_passed();
            let progress = &mut self.requests[id].progress;
            if passed == nr_above && !progress.merge_tried() {
                progress.set_merge_tried();
                if self.try_merge(plug, disk, id) {
                    return Some(true);
                }
            }
            if passed >= self.disks[disk].policies.len() {
                return None;
            }
            let mut released = std::mem::take(&mut self.released);
            let admission = self.disks[disk].with_policy(
                passed,
                &mut self.requests,
                &mut self.events,
                &mut released,
                |policy, cx| {
                    debug_assert!(policy.placement() == Placement::Above || passed >= nr_above);
                    policy.admit(cx, id)
                },
            );
            self.released = released;
            match admission {
                Admission::Pass => self.requests[id].progress.pass(),
                Admission::Hold => return Some(true),
                Admission::Sleep => return Some(false),
            }
        }
    }

    pub(crate) fn give_tag_back(&mut self, disk: usize, id: RequestId) {
        self.disks[disk].give_tag_back(&mut self.requests, id, &mut self.woken);
        self.wake_submissions();
    }

    /// Calls every policy of a disk. The bios that they release are submitted at the end of the
    /// event.
    #[inline(never)]
    pub(crate) fn tell_policies(
        &mut self,
        disk: usize,
        call: impl FnMut(&mut dyn Policy, &mut PolicyContext),
    ) {
        let Self { disks, requests, events, released, .. } = self;
        disks[disk].tell_policies(requests, events, released, call);
    }

    pub(crate) fn scheduler_timer(&mut self, disk: usize) {
        let queue = &mut self.disks[disk];
        let ((), kicked) =
            queue.schedule(0, &mut self.requests, &mut self.events, AnyScheduler::timer);
        match self.disks[disk].family {
            Family::Legacy => self.run_queue(disk, 0),
            Family::MultiQueue if kicked => self.run_kicked(disk),
            Family::MultiQueue => {}
        }
    }

    pub(crate) fn policy_timer(&mut self, disk: usize) {
        self.tell_policies(disk, |policy, cx| policy.timer(cx));
        self.make_changes(disk);
    }

    /// A device's own timer is due.
    pub(crate) fn wake_device(&mut self, subject: u32) {
        let (disk, number) = Outbox::split_wake(subject);
        let queue = &mut self.disks[disk as usize];
        queue.device.wake(number, &mut Outbox::new(&mut self.events, disk));
    }

    /// True if something is ready to run.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !(self.released.is_empty() && self.ready.is_empty())
    }

    /// Lets the tasks in `woken`, which slept for a tag, try again.
    #[inline]
    pub(crate) fn wake_submissions(&mut self) {
        if unlikely(!self.woken.is_empty()) {
            self.wake_sleepers();
        }
    }

    #[inline(never)]
    pub(crate) fn wake_sleepers(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        for task in woken.drain(..) {
            self.ready.make_ready(Ready::Submission(task));
        }
        self.woken = woken;
    }

    /// Tells the schedulers that the task of an I/O context has ended: none waits for its next request any longer.
    pub(crate) fn tell_schedulers_of_end(&mut self, context: u32) {
        for disk in 0..self.disks.count() {
            let (requests, events) = (&mut self.requests, &mut self.events);
            let ((), kicked) =
                self.disks[disk].schedule(0, requests, events, |s, cx| s.exit_task(cx, context));
            if kicked {
                self.run_queue(disk, self.local_hctx(disk));
            }
        }
    }
}
