//! One run: the disks, their settings, the clones, the answer.

use std::fs;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use blksim::core::params::Values;
use blksim::core::record::JobRecord;
use blksim::machine_parameters::MACHINE;
use blksim::task::slots::SlotRecord;
use blksim::workload::Job;
use blksim::workload::flow::{flow_ids, flow_weight};
use blksim::workload::job::nr_signals;
use blksim::workload::layout::Region;
use blksim::workload::order::JobOrder;
use serde_json::Value;

use crate::answer::{self, Counters, Findings};
use crate::cgroups::{self, Groups};
use crate::changes::{self, Subjects};
use crate::clock;
use crate::clock_page;
use crate::command;
use crate::command_log::MAX_COMMANDS;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::filesystem::{self, Filesystem};
use crate::fio;
use crate::load::{self, JobProcess, Place, Timing};
use crate::memory;
use crate::process;
use crate::processor_time;
use crate::progress;
use crate::queue;
use crate::recording;
use crate::request::{Load, Request, TimeKind};
use crate::shared_memory::SharedMemory;
use crate::switchback;
use crate::transport::{Served, transport_of};

/// Least time between the end of the preparation and the first I/O: all clones sleep by then, and timeouts that
/// a scheduler starts when it is selected have expired, as on any host (200 ms,
/// `BFQ_CL_IDLE_TIMEOUT` in `block/bfq-iosched.c`, Linux 6.1). In virtual time the wait is free.
const START_MARGIN_NS: u64 = 250_000_000;
/// The first I/O comes at a multiple of this, which is a multiple of the tick's period at 100, 250, 300 and
/// 1000 Hz: ticks fall at multiples of their period (`tick_init_jiffy_update()` of
/// `kernel/time/tick-sched.c`, Linux 6.1). Otherwise times that schedulers count in ticks would depend on how
/// long the preparation took, and differ from the simulator, whose first tick is the start.
const START_GRID_NS: u64 = 100_000_000;

/// Runs a request.
pub fn run(request: &Request) -> Result<Value, Failure> {
    let order = request.order();
    let mut clones_of_phases = vec![0; order.nr_phases()];
    for (job, phase) in request.jobs.iter().zip(&order.phases) {
        clones_of_phases[*phase] += job.numjobs;
    }
    let clones_of_jobs: Vec<u32> = request.jobs.iter().map(|job| job.numjobs).collect();
    let flows: Vec<u64> =
        flow_ids(&request.jobs).iter().map(|id| flow_weight(&request.jobs, *id)).collect();
    let nr_commands = if request.options.recording { MAX_COMMANDS } else { 0 };
    let nr_signals = nr_signals(&request.jobs);
    let shared =
        SharedMemory::new(&clones_of_phases, &clones_of_jobs, &flows, nr_signals, nr_commands)?;
    let outcome = run_on(request, &order, shared);
    // The first failure is the cause; this process's own error is its consequence.
    match (shared.failure(), outcome) {
        (Some(text), Err(failure)) => serde_json::from_str(&text).map_err(|_| failure),
        (_, outcome) => outcome,
    }
}

fn run_on(request: &Request, order: &JobOrder, shared: SharedMemory) -> Result<Value, Failure> {
    let machine = answer::machine(request)?;
    if request.setup.costly_processors().is_some() {
        clock_page::map();
    }
    let served = transport_of(request.options.driver).start(request, shared)?;
    let disks = &served.disks;
    let setup = &request.setup;
    cgroups::mount_version_1(request)?;
    for disk in disks {
        queue::set(disk, setup)?;
    }
    // Each member of an array draws its own hint.
    let alone = if let [disk] = &disks[..] { Some(disk) } else { None };
    if let Some(disk) = alone {
        queue::draw_first_tag(disk, setup)?;
    }
    // After the members' settings, whose limits the array inherits.
    let disk = match &request.array {
        None => disks[0].clone(),
        Some(array) => array.assemble(disks)?,
    };
    if !disks.contains(&disk) {
        queue::set_read_ahead(&disk, &setup.queue)?;
    }
    let groups = Groups::create(request, disks)?;
    let before_changes = request.changes.as_ref().map(|_| queue::read_all(disks)).transpose()?;
    set_writeback(request, &SHARES_AND_TIMES)?;
    progress::report(disks, shared)?;
    if let Some(kind) = request.options.filesystem {
        let array = request.array.as_ref();
        let filesystem = Filesystem::create(kind, array, disks, &disk)?;
        filesystem::lay_out(&request.layout.files)?;
        if let Some(command) = &request.command {
            command::prepare(command, &filesystem, request.options.time, shared)?;
        }
    }
    let first_tag = alone.and_then(queue::first_tag);
    let memory_bytes = memory::shared_bytes(machine.get("dirty_ratio"));
    // They replace the share by which the kernel has just told the memory.
    set_writeback(request, &LIMITS_IN_BYTES)?;
    let before = Counters::read_all(disks)?;
    if let Some(turns) = &request.turns {
        process::spawn("the switches", shared, || {
            switchback::take_turns(request, turns, disks, shared)
        })?;
    }
    let (ran, fio_exit_code) = match request.options.generator {
        Load::Blkguest => {
            let subjects = request.changes.as_ref().map(|_| Subjects {
                request,
                disks,
                groups: groups.clone(),
                processes: Vec::new(),
            });
            let grounds =
                Grounds { disks, disk: &disk, served: &served, machine: &machine, subjects };
            (run_clones(request, order, grounds, shared)?, None)
        }
        Load::Fio => {
            if let Some(table) = setup.costly_processors() {
                processor_time::begin(table)?;
            }
            (Ran::default(), Some(fio::run(&disk, shared)?))
        }
    };
    let processors = setup.costly_processors().map(|_| processor_time::figures()).transpose()?;
    if request.turns.is_some() || request.changes.is_some() {
        shared.wait_for(&shared.turns_taken, 1, || process::look(shared))?;
    }
    let findings = Findings {
        in_force: before_changes.map_or_else(|| queue::read_all(disks), Ok)?,
        cgroups: groups.read(),
        first_tag,
        memory_bytes: ran.memory_bytes.or(memory_bytes),
        machine,
        records: ran.records,
        fio_exit_code,
        before,
        after: Counters::read_all(disks)?,
    };
    let mut answer = answer::answer(request, shared, findings);
    if let Some(processors) = processors {
        answer["engine"]["processors"] = processors;
    }
    if request.turns.is_some() {
        answer["slots"] = switchback::answer(&ran.slots)?;
    }
    if request.changes.is_some() {
        answer["changes_made_ns"] = changes::answer()?;
        answer["phases"] = blksim_json::phases(&ran.slots);
    }
    if request.command.is_some() {
        answer["command"] = command::answer()?;
    }
    if let Some(recording) = ran.recording {
        answer["recording"] = recording;
    }
    Ok(answer)
}

/// The disk that clones work on, and all that they need beside it.
struct Grounds<'a> {
    /// All disks of the guest.
    disks: &'a [Disk],
    disk: &'a Disk,
    served: &'a Served,
    machine: &'a Values,
    /// For planned changes, if there are any.
    subjects: Option<Subjects<'a>>,
}

/// The outcome of all clones.
#[derive(Debug, Default)]
struct Ran {
    /// Of the jobs.
    records: Vec<JobRecord>,
    /// Of the jobs in each slot.
    slots: Vec<SlotRecord>,
    /// Their I/Os, if the request asks for them.
    recording: Option<Value>,
    /// Memory that free pages and the page cache share when they start; None where limits in bytes hide it.
    memory_bytes: Option<u64>,
}

/// Runs all clones.
fn run_clones(
    request: &Request,
    order: &JobOrder,
    grounds: Grounds,
    shared: SharedMemory,
) -> Result<Ran, Failure> {
    let setup = &request.setup;
    let Grounds { disks, disk, served, machine, subjects } = grounds;
    let virtual_time = request.options.time == TimeKind::Virtual;
    // These put tasks to sleep on timers of their own.
    let policies = ["io.cost.qos", "io.latency"];
    let slept_by_timers = setup.cgroups.iter().any(|(_, attributes)| {
        attributes.iter().any(|(name, _)| policies.contains(&name.as_str()))
    });
    let timing = |direct: bool| Timing {
        device: served.clock.filter(|_| {
            virtual_time
                && direct
                && !slept_by_timers
                && setup.costly_processors().is_none()
                && request.turns.is_none()
                && request.changes.is_none()
                && request.array.is_none()
                && request.options.filesystem.is_none()
        }),
        call_ns: machine.get("system_call"),
        // Under a cost table the kernel pays.
        bytes_per_second: if virtual_time && setup.costly_processors().is_none() {
            machine.get("copy_bandwidth")
        } else {
            0
        },
    };
    let nr_clones: usize = request.layout.regions.iter().map(Vec::len).sum();
    // The last is a command's.
    let delays_ns = setup.arrangement.map_or_else(
        || vec![0; nr_clones + 1],
        |arrangement| arrangement.start_delays_ns(nr_clones + 1),
    );
    let group_file = |job: &Job| job.cgroup.as_deref().map(cgroups::processes_file);
    let group_files: Vec<Option<String>> = request.jobs.iter().map(group_file).collect();
    let mut clones: Vec<JobProcess> = Vec::new();
    let flows = flow_ids(&request.jobs);
    for (job_index, job) in request.jobs.iter().enumerate() {
        let flow = job.flow.and_then(|flow| flows.iter().position(|id| *id == flow.id));
        for (index, files) in request.layout.regions[job_index].iter().enumerate() {
            clones.push(JobProcess {
                number: clones.len() as u32,
                job,
                job_index,
                index: index as u32,
                order,
                flow,
                regions: files,
                seed: setup.seed,
                start_delay_ns: delays_ns[clones.len()],
                timing: timing(job.direct),
                slots: request.slots.as_ref(),
                closes_slots: request.changes.is_some(),
                beside_command: request.command.is_some(),
                group_file: group_files[job_index].as_deref(),
                processor: None,
                real_replay: None,
            });
        }
    }
    let lines_ended = shared.lines_ended.load(SeqCst);
    if let Some(command) = &request.command {
        let counted = if disks.contains(disk) { disks } else { std::slice::from_ref(disk) };
        let delay_ns = command.lead_ns + delays_ns[nr_clones];
        command::start(command, counted, delay_ns, setup.costly_processors().is_some(), shared)?;
    }
    let memory_bytes =
        start_clones(request, disk, &clones, subjects, machine, served.least_start_ns, shared)?;
    if request.command.is_some() {
        wait_for_end(request, &shared.lines_ended, lines_ended + 1, shared)?;
    }
    wait_for_end(request, &shared.clones_ended, clones.len() as u32, shared)?;
    let mut records: Vec<JobRecord> =
        request.jobs.iter().map(|job| JobRecord::new(&job.name, job.numjobs)).collect();
    let mut slots =
        request.slots.as_ref().map_or_else(Vec::new, |plan| load::empty_slots(plan, &records));
    let jobs = request
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(index, job)| (0..job.numjobs).map(move |_| index));
    for (clone, job) in clones.iter().zip(jobs) {
        load::collect_record(clone.number, &mut records[job])?;
        if request.slots.is_some() {
            load::collect_slots(clone.number, job, &mut slots)?;
        }
    }
    let recording = if request.options.recording {
        Some(recording::answer(&clones, shared.start_ns.load(SeqCst), shared)?)
    } else {
        None
    };
    Ok(Ran { records, slots, recording, memory_bytes })
}

/// Files of /proc/sys/vm: limits of dirty data in the page cache as a share of the memory, and its age.
const SHARES_AND_TIMES: [&str; 4] = [
    "dirty_background_ratio",
    "dirty_ratio",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
];
/// The limits in bytes.
const LIMITS_IN_BYTES: [&str; 2] = ["dirty_background_bytes", "dirty_bytes"];

/// Sets those of some files of /proc/sys/vm that the request has.
fn set_writeback(request: &Request, files: &[&str]) -> Result<(), Failure> {
    let given = request.setup.machine.iter().filter(|(name, _)| files.contains(&name.as_str()));
    for (name, text) in given {
        fs::write(format!("/proc/sys/vm/{name}"), queue::kernel_text(MACHINE, name, text))
            .map_err(|error| Failure::kernel(format!("setting vm.{name}"), error))?;
    }
    Ok(())
}

/// Makes the clones' processes one after another, and starts them all at one time.
fn start_clones(
    request: &Request,
    disk: &Disk,
    clones: &[JobProcess],
    subjects: Option<Subjects>,
    machine: &Values,
    least_start_ns: u64,
    shared: SharedMemory,
) -> Result<Option<u64>, Failure> {
    let mut processes = vec![Vec::new(); request.jobs.len()];
    for clone in clones {
        let place = |region: &Region| {
            let file = region.file as usize;
            match request.options.filesystem {
                None => Place { path: disk.path(), start: 0 },
                Some(_) => Place {
                    path: filesystem::file_path(file),
                    start: request.layout.files[file].start,
                },
            }
        };
        let places: Vec<Place> = clone.regions.iter().map(place).collect();
        let work = move || load::run_clone(clone, &places, shared);
        processes[clone.job_index].push(process::spawn("a clone", shared, work)?);
        // One by one, so that they wait for the start in order.
        shared.wait_for(&shared.clones_ready, clone.number + 1, || process::look(shared))?;
    }
    if let (Some(subjects), Some(planned)) = (subjects, &request.changes) {
        let subjects = Subjects { processes, ..subjects };
        process::spawn("the changes", shared, || changes::make(subjects, planned, shared))?;
    }
    // The processes have taken theirs, and computing takes no time yet.
    let memory_bytes = match machine.get("dirty_bytes") {
        0 => memory::shared_bytes(machine.get("dirty_ratio")),
        _ => None,
    };
    if let Some(table) = request.setup.costly_processors() {
        processor_time::begin(table)?;
    }
    let earliest_ns = least_start_ns.max(clock::now_ns() + START_MARGIN_NS);
    let start_ns = earliest_ns.next_multiple_of(START_GRID_NS);
    shared.start_ns.store(start_ns, SeqCst);
    shared.modelled.store(1, SeqCst);
    shared.open_phase(0);
    Ok(memory_bytes)
}

/// Waits until `word` has reached `value`, at most as long as the request says.
fn wait_for_end(
    request: &Request,
    word: &AtomicU32,
    value: u32,
    shared: SharedMemory,
) -> Result<(), Failure> {
    let limit_ns = request.setup.limits.simulated_ns;
    shared.wait_for(word, value, || {
        process::look(shared)?;
        let passed_ns = clock::now_ns().saturating_sub(shared.start_ns.load(SeqCst));
        if passed_ns > limit_ns {
            let message = format!(
                "the limit of {limit_ns} ns of simulated time was reached; give the jobs a runtime or a \
                 smaller size, or raise the limit simulated_ns"
            );
            return Err(Failure::of(blksim::core::error::ErrorKind::Limit, "simulated_ns", message));
        }
        Ok(())
    })
}
