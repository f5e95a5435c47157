//! From a request to a result: checks the request, builds the machine, runs it.

use crate::block::attributes::{default_nr_requests, nr_scheduler_tags, queue_values, rq_affinity};
use crate::block::cgroup::{Cgroups, GivenGroups};
use crate::block::disk::{CompletionAffinity, Disk};
use crate::block::disks::Disks;
use crate::block::kernel_version::{Behaviours, KERNEL};
use crate::block::queue_facts::QueueFacts;
use crate::block::raid::{Raid, array};
use crate::block::sbitmap::bits_per_word;
use crate::core::error::{Error, ErrorKind, SimulationError};
use crate::core::jiffies::jiffy_ns;
use crate::core::params::{Problem, Values, unknown};
use crate::core::processor_table::ProcessorTable;
use crate::core::record::JobRecord;
use crate::devices::Profile;
use crate::devices::device::{Device, Facts};
use crate::elevator::scheduler::{Family, Info};
use crate::engine::{Engine, Limits, Stop};
use crate::machine::Machine;
use crate::machine_parameters::MACHINE;
use crate::rqos::policy::Policy;
use crate::timeline::Timeline;
use crate::workload::arrangement::Arrangement;
use crate::workload::layout::{Layout, lay_out};
use crate::workload::{Job, JobFile};
use crate::{elevator, rqos};

/// Options as the user gave them.
pub type Given = Vec<(String, String)>;

/// The complete input of a simulation.
#[derive(Debug, Clone)]
pub struct Setup {
    pub profile: Profile,
    pub scheduler: String,
    pub tunables: Given,
    /// Queue attributes, with sysfs names and units.
    pub queue: Given,
    /// Parameters of the machine, [`MACHINE`].
    pub machine: Given,
    /// Control groups with their settings; the root is `/`.
    pub cgroups: GivenGroups,
    pub jobs: JobFile,
    /// Overrides the runtime of time-based jobs.
    pub runtime_ns: Option<u64>,
    pub seed: u64,
    /// Draws what nobody controls; `None` for files one behind the other from the device's start, all
    /// processes starting at time 0, and the machine's `first_tag`.
    pub arrangement: Option<Arrangement>,
    /// Processors and what computing costs; `None` if it costs nothing.
    pub processors: Option<ProcessorTable>,
    pub limits: Limits,
}

impl Setup {
    /// The jobs; time-based ones have the setup's runtime, if it has one.
    pub fn timed_jobs(&self) -> Result<Vec<Job>, SimulationError> {
        let mut jobs = self.jobs.jobs.clone();
        if let Some(runtime_ns) = self.runtime_ns {
            if runtime_ns == 0 {
                let message = "runtime_ns must be larger than 0";
                return Err(SimulationError::of(ErrorKind::OutOfRange, "runtime_ns", message));
            }
            for job in &mut jobs {
                job.run_for(runtime_ns);
            }
        }
        Ok(jobs)
    }

    /// The processors, if computing on them costs anything.
    pub fn costly_processors(&self) -> Option<&ProcessorTable> {
        self.processors.as_ref().filter(|table| !table.is_free())
    }
}

/// The counters of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskFigures {
    pub requests: u64,
    pub merges: u64,
    pub flushes: u64,
    /// At most the length of the simulation.
    pub busy_ns: u64,
    pub peak_in_flight: u32,
}

/// The result of a simulation.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub scheduler: &'static Info,
    pub tunables: Values,
    pub queue: Values,
    pub machine: Values,
    pub facts: Facts,
    pub jobs: Vec<JobRecord>,
    pub events: u64,
    pub requests: u64,
    pub merges: u64,
    pub flushes: u64,
    pub simulated_ns: u64,
    /// Mean of the members, for an array.
    pub device_busy_ns: u64,
    /// Most tags in use and most commands in the device at any moment.
    pub peak_tags: u32,
    pub peak_in_flight: u32,
    /// Of each disk; more than one for an array.
    pub disks: Vec<DiskFigures>,
    /// `None` if computing costs nothing.
    pub processors: Option<ProcessorFigures>,
}

/// Processor time of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorFigures {
    /// Of each processor.
    pub busy_ns: Vec<u64>,
    /// Of the schedulers of all disks, without waiting for their locks.
    pub scheduler_ns: u64,
}

/// Runs a simulation.
pub fn simulate(setup: &Setup) -> Result<Outcome, Error> {
    simulate_with(setup, Vec::new())
}

/// The settled values of a checked request.
#[derive(Debug, Clone)]
pub struct Checked {
    pub tunables: Values,
    pub queue: Values,
    pub machine: Values,
    pub facts: Facts,
}

/// Checks a request as `simulate` would, without simulating.
pub fn check(setup: &Setup) -> Result<Checked, Error> {
    let prepared = prepare(setup)?;
    Ok(Checked {
        tunables: prepared.tunables,
        queue: prepared.queue,
        machine: prepared.machine,
        facts: prepared.facts,
    })
}

/// A checked and settled request.
struct Prepared {
    info: &'static Info,
    tunables: Values,
    queue: Values,
    affinity: CompletionAffinity,
    machine: Values,
    facts: Facts,
    jobs: Vec<Job>,
    layout: Layout,
    cgroups: Cgroups,
    disks: Disks,
    raid: Option<Raid>,
}

fn prepare(setup: &Setup) -> Result<Prepared, Error> {
    if let Some(remark) = setup.jobs.host_only.first() {
        let message = format!(
            "{}:{}: option {} of job {} is honoured by the host backend only; the simulator refuses it",
            setup.jobs.source, remark.line, remark.option, remark.job
        );
        return Err(SimulationError::of(ErrorKind::HostOnly, &remark.option, message).into());
    }
    let info = find_scheduler(&setup.scheduler)?;
    let device = setup.profile.build_member(setup.seed, 0)?;
    let mut facts = device.facts().clone();
    let raid = array(&setup.profile, &facts)?;
    if let Some(raid) = &raid {
        raid.describe(&mut facts);
    }
    if facts.bio_based && !info.bypass {
        let message = format!(
            "a {} has no request queue, so nothing is scheduled there; take the scheduler none",
            setup.profile.kind.name
        );
        let kind = ErrorKind::UnknownScheduler;
        return Err(SimulationError::of(kind, "scheduler", message).into());
    }
    let machine = machine_values(&setup.machine)?;
    let queue = queue_values(&setup.queue, &facts, info, behaviours(&machine, info))?;
    let affinity = CompletionAffinity::of_number(rq_affinity(&setup.queue)?);
    let jobs = setup.timed_jobs()?;
    check_trims(&jobs, &facts)?;
    let layout = lay_out(&jobs, facts.capacity_bytes, setup.arrangement)?;
    let processors = setup.costly_processors();
    let queue_facts = queue_facts(&facts, &queue, &machine, info, processors);
    let mut tunables = tunable_values(info, queue_facts, &setup.tunables)?;
    let cgroups = Cgroups::new(&setup.cgroups, &jobs)?;
    let mut build_disk = |index, device| -> Result<Disk, Error> {
        let scheduler = elevator::build(info.name, &tunables, queue_facts)
            .ok_or_else(|| unknown_scheduler(info.name))?;
        if index == 0 {
            scheduler.effective_tunables(&mut tunables);
        }
        let mut disk = Disk::new(index as u8, device, scheduler, info, queue_facts, &queue);
        disk.view.groups = cgroups.weights();
        for policy in rqos::build(&cgroups, &queue, queue_facts, &jobs, setup.seed) {
            disk.add_policy(policy);
        }
        Ok(disk)
    };
    let first = build_disk(0, device)?;
    let members = 1..raid.as_ref().map_or(1, Raid::nr_members);
    let others = members
        .map(|index| build_disk(index, setup.profile.build_member(setup.seed, index)?))
        .collect::<Result<_, _>>()?;
    let disks = Disks::new(first, others);
    Ok(Prepared {
        info,
        tunables,
        queue,
        affinity,
        machine,
        facts,
        jobs,
        layout,
        cgroups,
        disks,
        raid,
    })
}

/// Fails if a job trims a device that takes no discards.
pub fn check_trims(jobs: &[Job], facts: &Facts) -> Result<(), SimulationError> {
    let Some(job) = jobs.iter().find(|job| job.mode.trims && !facts.discards) else {
        return Ok(());
    };
    let message = format!(
        "job {} trims, but disks of kind hdd and ramdisk and arrays with parity take no discards; take another device",
        job.name
    );
    Err(SimulationError::of(ErrorKind::OutOfRange, "readwrite", message))
}

/// Runs a simulation with policies above or beside the scheduler.
pub fn simulate_with(setup: &Setup, policies: Vec<Box<dyn Policy>>) -> Result<Outcome, Error> {
    let mut simulation = Simulation::new(setup, policies)?;
    simulation.advance(u64::MAX)?;
    Ok(simulation.outcome())
}

/// A running simulation, for a caller that wants to do something now and then. A clone of it is a
/// snapshot, which continues by itself to the same bits.
#[derive(Debug, Clone)]
pub struct Simulation {
    pub(crate) engine: Engine,
    pub(crate) info: &'static Info,
    pub(crate) tunables: Values,
    pub(crate) queue: Values,
    pub(crate) machine: Values,
    pub(crate) facts: Facts,
}

impl Simulation {
    /// Checks a request and builds its machine. The policies stand before the first disk.
    pub fn new(setup: &Setup, policies: Vec<Box<dyn Policy>>) -> Result<Self, Error> {
        let mut policies = Some(policies);
        Self::with_policies(setup, |_| policies.take().unwrap_or_default())
    }

    /// The same with policies for each disk, by its index in the array.
    pub fn with_policies(
        setup: &Setup,
        mut policies: impl FnMut(usize) -> Vec<Box<dyn Policy>>,
    ) -> Result<Self, Error> {
        let Prepared {
            info,
            tunables,
            queue,
            affinity,
            machine,
            facts,
            jobs,
            layout,
            cgroups,
            mut disks,
            raid,
        } = prepare(setup)?;
        for (index, disk) in disks.iter_mut().enumerate() {
            for policy in policies(index) {
                disk.add_policy(policy);
            }
        }
        let mut host = Machine::new(&jobs, &layout, setup.seed, disks, &queue, &machine);
        if let Some(raid) = raid {
            host.set_array(raid);
        }
        let of_jobs: Vec<_> = jobs.iter().map(|job| cgroups.of_job(job)).collect();
        host.set_groups(&of_jobs);
        if let Some(arrangement) = setup.arrangement {
            host.arrange(arrangement);
        }
        if let Some(table) = setup.costly_processors() {
            host.compute_on(table, info.name, affinity);
        }
        let engine = Engine::new(host, setup.limits);
        Ok(Self { engine, info, tunables, queue, machine, facts })
    }

    /// Writes a timeline of up to about `limit_bytes`; more is an error of [`Self::advance`].
    pub fn record(&mut self, limit_bytes: u64) {
        self.engine.machine_mut().record(limit_bytes);
    }

    /// Goes on for up to `events` events. Returns whether all jobs have ended.
    pub fn advance(&mut self, events: u64) -> Result<bool, Error> {
        self.advance_within(events, u64::MAX).map(|stop| stop == Stop::Ended)
    }

    /// Goes on for up to `events` events, and with none after `until_ns`.
    pub(crate) fn advance_within(&mut self, events: u64, until_ns: u64) -> Result<Stop, Error> {
        let stop = self.engine.advance_within(events, until_ns)?;
        if self.engine.machine().timeline_is_full() {
            let message = "the timeline has outgrown its limit; give the jobs a shorter runtime, \
                           or raise the limit timeline_bytes";
            let error = SimulationError::of(ErrorKind::Limit, "timeline_bytes", message);
            return Err(error.into());
        }
        let disks = &self.engine.machine().block.disks;
        if let Some(reason) = disks.iter().find_map(|disk| disk.scheduler.failure()) {
            return Err(SimulationError::of(ErrorKind::Scheduler, "scheduler", reason).into());
        }
        Ok(stop)
    }

    /// Goes on until all events up to and including `time_ns` are handled; then the clock shows
    /// `time_ns`. Returns whether all jobs have ended. The steps that a run is divided into do not
    /// change it.
    pub fn advance_until(&mut self, time_ns: u64) -> Result<bool, Error> {
        self.advance_within(u64::MAX, time_ns).map(|stop| stop == Stop::Ended)
    }

    /// The time that the simulation has reached.
    pub fn now_ns(&self) -> u64 {
        self.engine.now_ns()
    }

    /// The timeline's rows since it began or was last drained. [`Self::record`]'s limit applies to
    /// what is yet to be drained.
    pub fn drain_timeline(&mut self) -> Option<Timeline> {
        self.engine.machine_mut().drain_timeline()
    }

    /// The timeline, if one was recorded.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.engine.machine_mut().take_timeline()
    }

    /// The results so far.
    pub fn outcome(&self) -> Outcome {
        let host = self.engine.machine();
        let mut now_ns = host.block.events.now_ns();
        if let Some(processors) = &host.processors {
            now_ns = now_ns.max(processors.latest_ns());
        }
        let sum = |figure: fn(&Disk) -> u64| host.block.disks.iter().map(figure).sum::<u64>();
        let most =
            |figure: fn(&Disk) -> u32| host.block.disks.iter().map(figure).max().unwrap_or(0);
        let busy_ns = sum(|disk| disk.device.busy_ns()) / host.block.disks.count() as u64;
        let mut jobs = host.records();
        for (index, job) in jobs.iter_mut().enumerate() {
            job.cpu = host.cpu_of_job(index);
        }
        Outcome {
            scheduler: self.info,
            tunables: self.tunables.clone(),
            queue: self.queue.clone(),
            machine: self.machine.clone(),
            facts: self.facts.clone(),
            jobs,
            events: self.engine.events(),
            requests: sum(|disk| disk.counters.requests),
            merges: sum(|disk| disk.counters.merges),
            flushes: sum(|disk| disk.counters.flushes),
            simulated_ns: now_ns,
            device_busy_ns: busy_ns.min(now_ns),
            peak_tags: most(|disk| disk.counters.peak_tags),
            peak_in_flight: most(|disk| disk.counters.peak_in_flight),
            disks: host.block.disks.iter().map(|disk| figures_of(disk, now_ns)).collect(),
            processors: host.processors.as_ref().map(|processors| ProcessorFigures {
                busy_ns: processors.busy_ns().collect(),
                scheduler_ns: sum(|disk| disk.counters.scheduler_ns),
            }),
        }
    }
}

fn figures_of(disk: &Disk, now_ns: u64) -> DiskFigures {
    let counters = &disk.counters;
    DiskFigures {
        requests: counters.requests,
        merges: counters.merges,
        flushes: counters.flushes,
        busy_ns: disk.device.busy_ns().min(now_ns),
        peak_in_flight: counters.peak_in_flight,
    }
}

/// The changes that the machine's release has. No release beyond the first has schedulers of the legacy path.
pub(crate) fn behaviours(machine: &Values, info: &Info) -> Behaviours {
    match info.family {
        Family::Legacy => Behaviours::V6_1,
        Family::MultiQueue => Behaviours::of(machine.word(KERNEL)),
    }
}

/// The queue of a disk under a scheduler.
pub(crate) fn queue_facts(
    facts: &Facts,
    queue: &Values,
    machine: &Values,
    info: &Info,
    processors: Option<&ProcessorTable>,
) -> QueueFacts {
    let initial_requests = default_nr_requests(facts, info) as u32;
    let nr_requests = queue.get("nr_requests") as u32;
    QueueFacts {
        rotational: facts.rotational,
        device_depth: facts.queue_depth,
        reported_depth: if machine.flag("hide_queue_depth") {
            nr_scheduler_tags(facts) as u32
        } else {
            facts.queue_depth
        },
        nr_requests,
        // A map that is made smaller keeps its words.
        bits_per_word: bits_per_word(nr_requests.max(initial_requests)),
        initial_requests,
        jiffy_ns: jiffy_ns(machine.get("hz")),
        zero_cpu_time: machine.flag("zero_cpu_time"),
        nr_hctxs: match (info.family, processors) {
            (Family::MultiQueue, Some(table)) => facts.nr_hw_queues.min(table.cpus).max(1),
            _ => 1,
        },
        shares_tags: facts.shares_tags,
        behaviours: behaviours(machine, info),
    }
}

fn unknown_scheduler(name: &str) -> SimulationError {
    let names: Vec<_> = elevator::all().iter().map(|info| info.name).collect();
    let message = format!("scheduler {name:?} is not simulated; there are {}", names.join(", "));
    SimulationError::of(ErrorKind::UnknownScheduler, "scheduler", message)
}

pub(crate) fn find_scheduler(name: &str) -> Result<&'static Info, SimulationError> {
    elevator::info(name).ok_or_else(|| unknown_scheduler(name))
}

pub(crate) fn tunable_values(
    info: &Info,
    queue: QueueFacts,
    given: &Given,
) -> Result<Values, SimulationError> {
    let mut values = elevator::defaults(info, queue);
    for (name, text) in given {
        set_tunable(&mut values, info, name, text)?;
    }
    Ok(values)
}

/// Sets a tunable as the user gave it.
pub(crate) fn set_tunable(
    values: &mut Values,
    info: &Info,
    name: &str,
    text: &str,
) -> Result<(), SimulationError> {
    values.set(name, text).map_err(|error| {
        if error.problem == Problem::Unknown {
            let hint = unknown(name, info.tunables.iter().map(|p| p.name));
            let message = format!("tunable {name} of {}: {hint}", info.name);
            return SimulationError::of(ErrorKind::UnknownTunable, name, message);
        }
        let message = format!("tunable of {}: {}", info.name, error.message);
        SimulationError::of(ErrorKind::OutOfRange, name, message)
    })
}

fn machine_values(given: &Given) -> Result<Values, SimulationError> {
    let mut values = Values::defaults(MACHINE);
    for (name, text) in given {
        values.set(name, text).map_err(|error| {
            let kind = match error.problem {
                Problem::Unknown => ErrorKind::Request,
                _ => ErrorKind::OutOfRange,
            };
            SimulationError::of(kind, name, format!("machine: {}", error.message))
        })?;
    }
    Ok(values)
}
