//! The state of a running simulation as plain data, for pictures.

use crate::block::disk::{Disk, DiskCounters};
use crate::block::request::{NEVER_NS, Operation, Priority, Request, RequestId, Requests};
use crate::core::record::{Direction, JobRecord};
use crate::devices::device::{Device, UnitTimes};
use crate::elevator::holding::Holding;
use crate::simulate::Simulation;

/// A request that the scheduler holds or the device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestView {
    /// Its number, which another request has later.
    pub id: RequestId,
    pub operation: Operation,
    pub sector: u64,
    pub nr_sectors: u32,
    pub sync: bool,
    /// The task that submitted it, as in the timeline.
    pub task: u32,
    /// Index of the task's job; [`NO_JOB`] for kernel threads.
    pub job: u16,
    /// Control group; 0 is the root.
    pub group: u16,
    pub priority: Priority,
    pub submitted_ns: u64,
    pub inserted_ns: u64,
    /// Time by which the scheduler wants to dispatch it, if it sets one.
    pub deadline_ns: Option<u64>,
    /// `None` if the device does not have it yet.
    pub dispatched_ns: Option<u64>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskView {
    pub scheduler: &'static str,
    /// How the scheduler holds its requests. One that does not describe itself has the flat list,
    /// in the order of insertion.
    pub holding: Holding,
    /// The requests that the scheduler holds, in the order of insertion.
    pub held: Vec<RequestView>,
    /// Those that it has handed out and that wait for room in the device (`hctx->dispatch`).
    pub ahead: Vec<RequestView>,
    /// The requests in the device, in the order of dispatch.
    pub in_flight: Vec<RequestView>,
    /// Sector at which the head is or for which it is bound; `None` without a head.
    pub head_sector: Option<u64>,
    /// For each die of a flash drive: until when it reads, and until when it programs or erases.
    pub units: Vec<UnitTimes>,
    pub busy_ns: u64,
    pub nr_requests: u32,
    pub tags_used: u32,
    pub waiting_for_tag: u32,
    /// New bios sleep before the queue: its scheduler or a limit of it is being changed.
    pub frozen: bool,
    pub counters: DiskCounters,
}

/// The totals of a job since it began, ramp time left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionView {
    pub ios: u64,
    pub bytes: u64,
    pub latency_sum_ns: u64,
    pub latency_max_ns: u64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    pub name: String,
    pub priority: Priority,
    /// I/Os of its processes under way.
    pub in_flight: u32,
    /// All its processes have ended.
    pub ended: bool,
    pub read: DirectionView,
    pub write: DirectionView,
    pub trim: DirectionView,
    pub sync: DirectionView,
}

/// A simulation at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub now_ns: u64,
    pub events: u64,
    pub disks: Vec<DiskView>,
    pub jobs: Vec<JobView>,
}

impl Simulation {
    /// The state of this moment, for a picture.
    pub fn view(&self) -> View {
        let machine = self.engine.machine();
        let job_of = |context| machine.tasks.job_of_context(context);
        let requests = &machine.block.requests;
        let disks = machine.block.disks.iter().enumerate();
        View {
            now_ns: self.now_ns(),
            events: self.engine.events(),
            disks: disks.map(|(index, disk)| disk_view(index, disk, requests, &job_of)).collect(),
            jobs: self.job_views(),
        }
    }

    /// The records of the jobs so far, with the histograms of latency. Runtimes are those of
    /// processes that have ended.
    pub fn job_records(&self) -> Vec<JobRecord> {
        self.engine.machine().records()
    }

    fn job_views(&self) -> Vec<JobView> {
        let tasks = &self.engine.machine().tasks;
        let mut views: Vec<_> = tasks
            .records
            .iter()
            .map(|record| {
                let of = |direction: Direction| {
                    let record = record.direction(direction);
                    DirectionView {
                        ios: record.ios(),
                        bytes: record.bytes,
                        latency_sum_ns: record.latency.sum_ns(),
                        latency_max_ns: record.latency.max_ns(),
                    }
                };
                JobView {
                    name: record.name.clone(),
                    priority: Priority::DEFAULT,
                    in_flight: 0,
                    ended: true,
                    read: of(Direction::Read),
                    write: of(Direction::Write),
                    trim: of(Direction::Trim),
                    sync: of(Direction::Sync),
                }
            })
            .collect();
        for process in &tasks.processes {
            let view = &mut views[process.job];
            view.priority = process.priority;
            view.in_flight += process.in_flight;
            view.ended &= process.has_ended();
        }
        views
    }
}

fn disk_view(
    index: usize,
    disk: &Disk,
    requests: &Requests,
    job_of: &impl Fn(u32) -> u16,
) -> DiskView {
    let (mut held, mut ahead, mut in_flight) = (Vec::new(), Vec::new(), Vec::new());
    for (id, request) in requests.live().filter(|(_, request)| usize::from(request.disk) == index) {
        let view = request_view(id, request, job_of(request.context));
        let of_disk = disk.has_ahead(id);
        if request.is_in_flight() {
            in_flight.push(view);
        } else if of_disk {
            ahead.push(view);
        } else if request.is_held() {
            held.push(view);
        }
    }
    debug_assert_eq!(held.len(), disk.nr_held as usize, "the queue counts what is held");
    held.sort_by_key(|view| (view.inserted_ns, view.id));
    in_flight.sort_by_key(|view| (view.dispatched_ns, view.id));
    let flat = || Holding::new("list").requests(held.iter().map(|view| view.id));
    DiskView {
        scheduler: disk.scheduler.name(),
        holding: disk.scheduler.describe(requests).unwrap_or_else(flat),
        held,
        ahead,
        in_flight,
        head_sector: disk.device.head_sector(),
        units: disk.device.units(),
        busy_ns: disk.device.busy_ns(),
        nr_requests: disk.view.facts.nr_requests,
        tags_used: disk.nr_requests_used(),
        waiting_for_tag: disk.nr_waiting_for_tag(),
        frozen: disk.usage.frozen,
        counters: disk.counters,
    }
}

fn request_view(id: RequestId, request: &Request, job: u16) -> RequestView {
    RequestView {
        id,
        operation: request.operation,
        sector: request.sector,
        nr_sectors: request.nr_sectors,
        sync: request.flags.sync,
        task: request.context,
        job,
        group: request.group,
        priority: request.priority,
        submitted_ns: request.submitted_ns,
        inserted_ns: request.inserted_ns,
        deadline_ns: (request.deadline_ns > 0).then_some(request.deadline_ns),
        dispatched_ns: (request.dispatched_ns != NEVER_NS).then_some(request.dispatched_ns),
    }
}
