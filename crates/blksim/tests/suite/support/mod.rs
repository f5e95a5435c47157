//! Shared by the integration tests: setups, and an auditor that watches every request of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use blksim::block::request::{NONE, Operation, RequestId};
use blksim::core::processor_table::{ProcessorTable, SchedulerCosts, StepCosts};
use blksim::core::record::{Direction, JobRecord};
use blksim::devices::Profile;
use blksim::elevator::scheduler::Family;
use blksim::engine::Limits;
use blksim::rqos::policy::{Admission, Placement, Policy, PolicyContext};
use blksim::simulate::{Outcome, Setup, Simulation, simulate};
use blksim::switchback::{Slot, SlotOutcome, Switchback};
use blksim::task::slots::SlotTimes;
use blksim::workload::parse;

/// The schedulers that promise to keep the device busy while there is work.
pub const SCHEDULERS: [&str; 6] =
    ["none", "noop", "deadline", "mq-deadline", "kyber", "kyber-4.12"];
pub const PROFILES: [&str; 9] = [
    "emmc",
    "hdd-7200",
    "nvme-tlc",
    "optane",
    "samsung-980-pro",
    "sas-15k",
    "sd-card",
    "ssd-sata",
    "virtio-network",
];

/// A device: `fixed`, `loop`, `ramdisk`, `virtual`, or the name of a shipped profile.
pub fn profile(name: &str) -> Profile {
    if ["fixed", "loop", "ramdisk", "virtual"].contains(&name) {
        return Profile::of_kind(name, name).unwrap();
    }
    let path = format!("{}/../../devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Profile::parse(&std::fs::read_to_string(&path).unwrap(), name).unwrap()
}

pub fn setup(device: &str, scheduler: &str, jobs: &str) -> Setup {
    Setup {
        profile: profile(device),
        scheduler: scheduler.to_owned(),
        tunables: Vec::new(),
        queue: Vec::new(),
        machine: Vec::new(),
        cgroups: Vec::new(),
        jobs: parse(jobs, "test.fio").unwrap(),
        runtime_ns: None,
        seed: 1,
        arrangement: None,
        processors: None,
        limits: Limits::default(),
    }
}

/// Schedulers that take turns beneath one load: what each slot had, kept without its first part.
pub fn slots_of(setup: &Setup, from_ms: u64, cut_ms: u64, schedulers: &[&str]) -> Vec<SlotOutcome> {
    const MS: u64 = 1_000_000;
    let slot = |(number, scheduler): (usize, &&str)| {
        let start_ms = from_ms + 100 * number as u64;
        let end_ns = (start_ms + 100) * MS;
        let kept_from_ns = (start_ms + cut_ms) * MS;
        let times = SlotTimes { start_ns: start_ms * MS, end_ns, kept_from_ns, kept_to_ns: end_ns };
        Slot { scheduler: (*scheduler).to_owned(), tunables: Vec::new(), times }
    };
    let turns = Switchback {
        slots: schedulers.iter().enumerate().map(slot).collect(),
        window_ns: 10 * MS,
        focus: Vec::new(),
        freeze_ns: MS,
    };
    let mut simulation = Simulation::new(setup, Vec::new()).unwrap();
    simulation.take_turns(setup, &turns).unwrap();
    simulation.advance(u64::MAX).unwrap();
    simulation.slots()
}

/// A cost table of the usual size.
pub fn cost_table(cpus: u32) -> ProcessorTable {
    let steps = StepCosts {
        prepare_ns: 500,
        system_call_ns: 300,
        submit_ns: 900,
        issue_ns: 300,
        interrupt_ns: 800,
        ipi_ns: 200,
        end_ns: 400,
        wake_ns: 700,
        context_switch_ns: 900,
        idle_exit_ns: 1500,
        collect_ns: 300,
        thread_command_ns: 1200,
        copy_page_ns: 400,
        lock_handover_ns: 200,
    };
    let costs = |insert_ns, dispatch_ns, complete_ns| SchedulerCosts {
        insert_ns,
        dispatch_ns,
        complete_ns,
        merge_ns: 50,
        per_doubling_ns: 20,
        locked_percent: 90,
    };
    let schedulers = vec![
        ("mq-deadline".to_owned(), costs(250, 250, 60)),
        ("kyber".to_owned(), costs(200, 250, 150)),
        ("bfq".to_owned(), costs(1200, 900, 500)),
    ];
    ProcessorTable { cpus, slice_ns: 1_400_000, punt_ns: 0, map_page_ns: 0, steps, schedulers }
}

/// A device `fixed` with these parameters.
pub fn fixed(parameters: &[(&str, &str)], scheduler: &str, jobs: &str) -> Setup {
    let mut setup = setup("fixed", scheduler, jobs);
    for (name, text) in parameters {
        setup.profile.set(name, text).unwrap();
    }
    setup
}

pub fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Settings of control groups: group, attribute, value.
pub fn groups(settings: &[(&str, &str, &str)]) -> blksim::block::cgroup::GivenGroups {
    let mut given: blksim::block::cgroup::GivenGroups = Vec::new();
    for (group, attribute, value) in settings {
        let setting = ((*attribute).to_owned(), (*value).to_owned());
        match given.iter_mut().find(|(name, _)| name == group) {
            Some((_, attributes)) => attributes.push(setting),
            None => given.push(((*group).to_owned(), vec![setting])),
        }
    }
    given
}

pub fn run(setup: &Setup) -> Outcome {
    simulate(setup).unwrap_or_else(|error| panic!("{error}"))
}

pub fn job<'a>(outcome: &'a Outcome, name: &str) -> &'a JobRecord {
    outcome.jobs.iter().find(|job| job.name == name).unwrap()
}

/// All that a run produced, to compare runs bit by bit.
pub fn fingerprint(outcome: &Outcome) -> Vec<u64> {
    let mut words = vec![
        outcome.events,
        outcome.requests,
        outcome.merges,
        outcome.flushes,
        outcome.simulated_ns,
        outcome.device_busy_ns,
    ];
    for job in &outcome.jobs {
        words.push(job.runtime_ns);
        for direction in Direction::ALL {
            let record = job.direction(direction);
            words.extend([record.ios(), record.bytes, record.latency.sum_ns()]);
            words.extend(record.latency.bins().flat_map(|(ns, count)| [ns, count]));
        }
    }
    words
}

/// One bio as it was submitted.
#[derive(Debug, Clone, Copy)]
struct Bio {
    sector: u64,
    nr_sectors: u32,
    write: bool,
}

/// The auditor's observations.
#[derive(Debug, Default)]
pub struct Seen {
    live: BTreeMap<RequestId, Bio>,
    pub submitted: u64,
    pub completed: u64,
    pub issued: u64,
    /// Requests in the order in which they went to the device: (write, priority class, sectors).
    pub order: Vec<(bool, u8, u32)>,
    in_device: BTreeMap<RequestId, u64>,
    pub complaints: Vec<String>,
}

/// Watches a queue as a policy that lets everything pass.
#[derive(Debug, Clone, Default)]
pub struct Auditor {
    pub seen: Arc<Mutex<Seen>>,
}

impl Policy for Auditor {
    fn name(&self) -> &'static str {
        "auditor"
    }

    fn placement(&self) -> Placement {
        Placement::Above
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let mut seen = self.seen.lock().unwrap();
        let request = &cx.requests[bio];
        let entry = Bio {
            sector: request.sector,
            nr_sectors: request.nr_sectors,
            write: request.is_write(),
        };
        seen.submitted += 1;
        if seen.live.insert(bio, entry).is_some() {
            seen.complaints.push(format!("bio {bio} was submitted while it was under way"));
        }
        Admission::Pass
    }

    fn issued(&mut self, cx: &mut PolicyContext, id: RequestId) {
        let mut seen = self.seen.lock().unwrap();
        let request = &cx.requests[id];
        if cx.in_flight > cx.device_depth {
            seen.complaints.push(format!(
                "{} commands in a device of depth {}",
                cx.in_flight, cx.device_depth
            ));
        }
        if request.operation == Operation::Flush {
            return;
        }
        seen.issued += 1;
        if seen.in_device.insert(id, cx.now_ns()).is_some() {
            seen.complaints.push(format!("request {id} was dispatched twice"));
        }
        let waits = [request.submitted_ns, request.inserted_ns, request.dispatched_ns];
        if !waits.is_sorted() || request.dispatched_ns != cx.now_ns() {
            seen.complaints.push(format!("request {id} has impossible times {waits:?}"));
        }
        let entry = (request.is_write(), request.priority.class as u8, request.nr_sectors);
        seen.order.push(entry);
    }

    fn completed(&mut self, cx: &mut PolicyContext, id: RequestId) {
        let mut seen = self.seen.lock().unwrap();
        let Some(since) = seen.in_device.remove(&id) else {
            seen.complaints.push(format!("request {id} completed without having been dispatched"));
            return;
        };
        if since >= cx.now_ns() {
            seen.complaints.push(format!("request {id} took no time"));
        }
        let request = &cx.requests[id];
        let mut parts = Vec::new();
        let mut part = id;
        while part != NONE {
            match seen.live.remove(&part) {
                Some(bio) if bio.write == request.is_write() => {
                    parts.push((bio.sector, bio.nr_sectors));
                }
                Some(_) => seen.complaints.push(format!("bio {part} joined the other direction")),
                None => seen.complaints.push(format!("bio {part} completed but was not under way")),
            }
            part = cx.requests[part].chain;
        }
        seen.completed += parts.len() as u64;
        parts.sort_unstable();
        let mut at = request.sector;
        for (sector, nr_sectors) in parts {
            if sector != at {
                seen.complaints.push(format!("request {id}: a part begins at {sector}, not {at}"));
            }
            at = sector + u64::from(nr_sectors);
        }
        if at != request.end() {
            seen.complaints
                .push(format!("request {id}: its parts end at {at}, not {}", request.end()));
        }
    }
}

impl Auditor {
    /// Complains about everything that went wrong.
    pub fn verify(&self, outcome: &Outcome, what: &str) {
        let seen = self.seen.lock().unwrap();
        assert!(
            seen.complaints.is_empty(),
            "{what}: {:?}",
            &seen.complaints[..seen.complaints.len().min(5)]
        );
        let under_way = seen.live.len() as u64;
        assert_eq!(seen.submitted, seen.completed + under_way, "{what}");
        assert_eq!(seen.issued + outcome.flushes, outcome.requests, "{what}");
        let nr_requests = outcome.queue.get("nr_requests") as u32;
        // A batch of the legacy path exceeds the limit by up to a half (`__get_request`).
        let most = match outcome.scheduler.family {
            Family::Legacy => nr_requests * 3 / 2,
            Family::MultiQueue => nr_requests,
        };
        assert!(outcome.peak_tags <= most, "{what}: {} tags of {most}", outcome.peak_tags);
    }

    /// Bios that never completed; allowed only for writeback when a run ends.
    pub fn nr_under_way(&self) -> usize {
        self.seen.lock().unwrap().live.len()
    }
}
