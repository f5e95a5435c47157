//! Replays a recording on this machine: the processes that a guest would have, on a file or a device.
//!
//! `blkguest replay REQUEST ANSWER` reads a job file and the places of its clones, runs one process for each
//! clone, and writes the jobs' records. It changes no setting; the caller has prepared disk and groups.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use blksim::core::error::ErrorKind;
use blksim::core::record::JobRecord;
use blksim::workload::job::nr_signals;
use blksim::workload::layout::Region;
use blksim::workload::order::JobOrder;
use blksim::workload::replay::{OwnPath, PathOfSize};
use blksim::workload::{JobFile, parse};
use blksim_json::{bad_request, job_samples};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock;
use crate::failure::Failure;
use crate::load::{self, JobProcess, MostBuffers, RealReplay, SegmentLimits, Timing};
use crate::process;
use crate::processors;
use crate::request::MAX_CLONES;
use crate::shared_memory::SharedMemory;

/// Time from the last process that is ready to the first I/O: all of them sleep by then.
const START_MARGIN_NS: u64 = 50_000_000;

/// Buffers of all tasks together, so that one that is to be cold is in no processor's cache when its turn comes again. On the
/// machine of the measurements 16 of 1.3 MiB are as good as 64, and 4 are not.
const MOST_BUFFERS: MostBuffers = MostBuffers { number: 32, bytes: 128 << 20 };

/// A job file, and the places of its clones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    text: String,
    source: String,
    /// Of each clone, in the order of the job file.
    places: Vec<Place>,
    /// The file of each control group that takes processes.
    #[serde(default)]
    groups: BTreeMap<String, String>,
    /// Taken off the think times that follow a completion.
    #[serde(default)]
    own_paths: OwnPaths,
    /// Has no task make synchronous calls.
    #[serde(default)]
    always_asynchronous: bool,
    /// Those of the disk's driver; no I/O is split for its buffer then.
    #[serde(default)]
    segment_limits: Option<SegmentLimits>,
}

/// The time that a replay itself takes between a completion and the next I/O.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnPaths {
    synchronous: ByDirection,
    asynchronous: ByDirection,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByDirection {
    read: BySize,
    write: BySize,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BySize {
    fixed_ns: u64,
    per_mib_ns: u64,
}

impl From<ByDirection> for OwnPath {
    fn from(ByDirection { read, write }: ByDirection) -> Self {
        Self { read: read.into(), write: write.into() }
    }
}

impl From<BySize> for PathOfSize {
    fn from(BySize { fixed_ns, per_mib_ns }: BySize) -> Self {
        Self { fixed_ns, per_mib_ns }
    }
}

impl Request {
    /// How tasks with these processors replay.
    fn real_replay(&self, homes: &[Option<u16>]) -> RealReplay {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let mut taken: Vec<u16> = homes.iter().flatten().copied().collect();
        taken.sort_unstable();
        RealReplay {
            synchronous: self.own_paths.synchronous.into(),
            asynchronous: self.own_paths.asynchronous.into(),
            always_asynchronous: self.always_asynchronous,
            segment_limits: self.segment_limits,
            most_buffers: MOST_BUFFERS.of_each(self.places.len()),
            shares_processors: self.places.len() > processors
                || taken.windows(2).any(|pair| pair[0] == pair[1]),
        }
    }
}

/// The part of a file or device that a clone works on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    path: String,
    offset: u64,
    bytes: u64,
}

/// Replays as a request asks; gives the answer.
pub fn run(request: &Path) -> Result<Value, Failure> {
    let text = fs::read_to_string(request)
        .map_err(|error| Failure::kernel(format!("reading {}", request.display()), error))?;
    let request: Request = serde_json::from_str(&text)
        .map_err(|error| bad_request(format!("the request is not as expected: {error}")))?;
    let file = parse(&request.text, &request.source).map_err(blksim::core::error::Error::from)?;
    check(&request, &file)?;
    clock::no_slack();
    clock::compute_ends_of_waits();
    let order = JobOrder::new(&file.jobs);
    let mut clones_of_phases = vec![0; order.nr_phases()];
    for (job, phase) in file.jobs.iter().zip(&order.phases) {
        clones_of_phases[*phase] += job.numjobs;
    }
    let clones_of_jobs: Vec<u32> = file.jobs.iter().map(|job| job.numjobs).collect();
    let shared =
        SharedMemory::new(&clones_of_phases, &clones_of_jobs, &[], nr_signals(&file.jobs), 0)?;
    let outcome = replay(&request, &file, &order, shared);
    // The first failure is the cause; this process's own error is its consequence.
    match (shared.failure(), outcome) {
        (Some(text), Err(failure)) => serde_json::from_str(&text).map_err(|_| failure),
        (_, outcome) => outcome,
    }
}

fn check(request: &Request, file: &JobFile) -> Result<(), Failure> {
    if let Some(job) = file.jobs.iter().find(|job| job.replay.is_none()) {
        let message = format!("job {} replays nothing", job.name);
        return Err(Failure::of(ErrorKind::Request, "text", message));
    }
    let clones: u64 = file.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    if clones > MAX_CLONES {
        let message = format!(
            "the recording has {clones} tasks, and a replay runs {MAX_CLONES} processes at most; \
             record for a shorter time"
        );
        return Err(Failure::of(ErrorKind::OutOfRange, "numjobs", message));
    }
    if clones != request.places.len() as u64 {
        let message = format!("{} places for {clones} clones", request.places.len());
        return Err(Failure::of(ErrorKind::Request, "places", message));
    }
    Ok(())
}

fn replay(
    request: &Request,
    file: &JobFile,
    order: &JobOrder,
    shared: SharedMemory,
) -> Result<Value, Failure> {
    let region = |place: &Place| Region {
        file: 0,
        start: place.offset,
        bytes: place.bytes,
        begin: 0,
        file_bytes: place.bytes,
        pass_bytes: place.bytes,
    };
    let regions: Vec<Region> = request.places.iter().map(region).collect();
    let mut clones: Vec<JobProcess> = Vec::new();
    let allowed = processors::allowed();
    let plans =
        file.jobs.iter().filter_map(|job| job.replay.as_ref()).flat_map(|replay| &replay.plans);
    let homes: Vec<Option<u16>> = plans.map(|plan| processors::home(plan, &allowed)).collect();
    let real_replay = request.real_replay(&homes);
    let group_file = |group: &String| request.groups.get(group).map(String::as_str);
    for (job_index, job) in file.jobs.iter().enumerate() {
        for index in 0..job.numjobs {
            clones.push(JobProcess {
                number: clones.len() as u32,
                job,
                index,
                job_index,
                order,
                flow: None,
                regions: std::slice::from_ref(&regions[clones.len()]),
                seed: 0,
                start_delay_ns: 0,
                timing: Timing { device: None, call_ns: 0, bytes_per_second: 0 },
                slots: None,
                closes_slots: false,
                beside_command: false,
                group_file: job.cgroup.as_ref().and_then(group_file),
                processor: homes[clones.len()],
                real_replay: Some(real_replay),
            });
        }
    }
    for (clone, place) in clones.iter().zip(&request.places) {
        let places = [load::Place { path: place.path.clone(), start: 0 }];
        process::spawn("a task", shared, move || load::run_clone(clone, &places, shared))?;
        shared.wait_for(&shared.clones_ready, clone.number + 1, || process::look(shared))?;
    }
    shared.start_ns.store(clock::now_ns() + START_MARGIN_NS, SeqCst);
    shared.open_phase(0);
    shared.wait_for(&shared.clones_ended, clones.len() as u32, || process::look(shared))?;
    let mut records: Vec<JobRecord> =
        file.jobs.iter().map(|job| JobRecord::new(&job.name, job.numjobs)).collect();
    for clone in &clones {
        load::collect_record(clone.number, &mut records[clone.job_index])?;
    }
    Ok(json!({"jobs": job_samples(&records)}))
}
