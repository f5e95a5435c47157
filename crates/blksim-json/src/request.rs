//! Parses a JSON request into the setup of a simulation.

use std::collections::BTreeMap;

use blksim::block::kernel_version::KERNEL;
use blksim::block::raid::check;
use blksim::core::error::{Error, ErrorKind, SimulationError};
use blksim::devices::Profile;
use blksim::engine::Limits;
use blksim::live::planned::PlannedChanges;
use blksim::simulate::Setup;
use blksim::switchback::{Slot, Switchback};
use blksim::task::slots::SlotTimes;
use blksim::workload::arrangement::Arrangement;
use blksim::workload::{JobFile, parse};
use serde::Deserialize;
use serde_json::Value;

use crate::change::PlannedRequest;
use crate::processors::ProcessorsRequest;

/// A request to simulate, as received.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    device: DeviceRequest,
    scheduler: Option<String>,
    #[serde(default)]
    tunables: BTreeMap<String, String>,
    #[serde(default)]
    queue: BTreeMap<String, String>,
    #[serde(default)]
    machine: BTreeMap<String, String>,
    #[serde(default)]
    cgroups: BTreeMap<String, BTreeMap<String, String>>,
    jobs: Option<JobsRequest>,
    runtime_ns: Option<u64>,
    #[serde(default)]
    seed: u64,
    /// Seed of the arrangement; without one it is fixed.
    arrangement: Option<u64>,
    #[serde(default)]
    limits: LimitsRequest,
    /// Records a timeline.
    #[serde(default)]
    timeline: bool,
    switchback: Option<SwitchbackRequest>,
    changes: Option<PlannedRequest>,
    /// Processors and what computing costs; without them it costs nothing.
    processors: Option<ProcessorsRequest>,
}

/// Default limit of a timeline: 2 GiB.
const TIMELINE_BYTES: u64 = 2 << 30;

/// A parsed request to simulate.
#[derive(Debug)]
pub struct Prepared {
    pub setup: Setup,
    /// Limit of the timeline; `None` if none is recorded.
    pub timeline_bytes: Option<u64>,
    /// The turns of schedulers; `None` if the only one stays.
    pub switchback: Option<Switchback>,
    /// The changes while it runs; `None` if everything stays as it is.
    pub changes: Option<PlannedChanges>,
}

/// A parsed request to check.
#[derive(Debug)]
pub struct Partial {
    pub setup: Setup,
    pub changes: Option<PlannedChanges>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceRequest {
    profile: Option<String>,
    #[serde(default)]
    source: String,
    kind: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobsRequest {
    text: String,
    source: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsRequest {
    events: Option<u64>,
    simulated_ns: Option<u64>,
    timeline_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchbackRequest {
    slots: Vec<SlotRequest>,
    window_ns: u64,
    #[serde(default)]
    focus: Vec<String>,
    freeze_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotRequest {
    scheduler: String,
    #[serde(default)]
    tunables: BTreeMap<String, String>,
    start_ns: u64,
    end_ns: u64,
    kept_from_ns: u64,
    kept_to_ns: u64,
}

impl SwitchbackRequest {
    fn turns(self) -> Switchback {
        let slot = |slot: SlotRequest| Slot {
            scheduler: slot.scheduler,
            tunables: slot.tunables.into_iter().collect(),
            times: SlotTimes {
                start_ns: slot.start_ns,
                end_ns: slot.end_ns,
                kept_from_ns: slot.kept_from_ns,
                kept_to_ns: slot.kept_to_ns,
            },
        };
        Switchback {
            slots: self.slots.into_iter().map(slot).collect(),
            window_ns: self.window_ns,
            focus: self.focus,
            freeze_ns: self.freeze_ns,
        }
    }
}

/// Parses a request to simulate.
pub fn setup(text: &str) -> Result<Prepared, Error> {
    prepare(request(text)?)
}

/// As [`setup`], for parsed JSON.
pub fn setup_of(value: Value) -> Result<Prepared, Error> {
    prepare(serde_json::from_value(value).map_err(|error| malformed(&error))?)
}

/// As [`setup_of`], where something else than jobs may be the load.
pub fn setup_with_optional_jobs(value: Value) -> Result<Prepared, Error> {
    prepare_any(serde_json::from_value(value).map_err(|error| malformed(&error))?)
}

fn prepare(request: Request) -> Result<Prepared, Error> {
    if request.scheduler.is_some() && request.jobs.is_none() {
        return Err(bad_request("the request has no jobs".to_owned()));
    }
    prepare_any(request)
}

fn prepare_any(mut request: Request) -> Result<Prepared, Error> {
    if request.scheduler.is_none() {
        return Err(bad_request("the request names no scheduler".to_owned()));
    }
    let limit_bytes = request.limits.timeline_bytes.unwrap_or(TIMELINE_BYTES);
    let timeline_bytes = request.timeline.then_some(limit_bytes);
    let switchback = request.switchback.take().map(SwitchbackRequest::turns);
    let changes = request.changes.take().map(PlannedRequest::plan);
    if switchback.is_some() && changes.is_some() {
        let message = "schedulers cannot take turns in a run that has planned changes";
        return Err(bad_request(message.to_owned()));
    }
    Ok(Prepared { setup: settle(request)?, timeline_bytes, switchback, changes })
}

/// Parses a request to check: a missing scheduler means the device's default, missing jobs an idle device.
pub fn partial(text: &str) -> Result<Partial, Error> {
    let mut request = request(text)?;
    let changes = request.changes.take().map(PlannedRequest::plan);
    Ok(Partial { setup: settle(request)?, changes })
}

fn request(text: &str) -> Result<Request, Error> {
    serde_json::from_str(text).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> Error {
    bad_request(format!("the request is not as expected: {error}"))
}

/// The error for a malformed request.
pub fn bad_request(message: String) -> Error {
    SimulationError::new(ErrorKind::Request, message).into()
}

fn settle(request: Request) -> Result<Setup, Error> {
    let device = request.device;
    let source = if device.source.is_empty() { "device" } else { &device.source };
    let mut profile = match (&device.profile, &device.kind) {
        (Some(text), None) => Profile::parse(text, source)?,
        (None, Some(kind)) => Profile::of_kind(kind, source)?,
        (Some(text), Some(kind)) => {
            let profile = Profile::parse(text, source)?;
            if profile.kind.name != kind {
                let message = format!("the profile is of kind {}, not {kind}", profile.kind.name);
                return Err(SimulationError::of(ErrorKind::UnknownDevice, "kind", message).into());
            }
            profile
        }
        (None, None) => {
            return Err(bad_request("the device needs a profile or a kind".to_owned()));
        }
    };
    let mut machine: Vec<_> = request.machine.into_iter().collect();
    for (name, text) in &device.parameters {
        // An option of the target, though not of its device.
        if name == KERNEL {
            machine.push((name.clone(), text.clone()));
        } else {
            profile.set(name, text)?;
        }
    }
    let defaults = Limits::default();
    let scheduler = match request.scheduler {
        Some(name) => name,
        None => blksim::elevator::default_for(&check(&profile)?).to_owned(),
    };
    let jobs = match request.jobs {
        Some(jobs) => parse(&jobs.text, &jobs.source)?,
        None => JobFile::default(),
    };
    Ok(Setup {
        profile,
        scheduler,
        tunables: request.tunables.into_iter().collect(),
        queue: request.queue.into_iter().collect(),
        machine,
        cgroups: request
            .cgroups
            .into_iter()
            .map(|(name, attributes)| (name, attributes.into_iter().collect()))
            .collect(),
        jobs,
        runtime_ns: request.runtime_ns,
        seed: request.seed,
        arrangement: request.arrangement.map(|seed| Arrangement { seed }),
        processors: request.processors.map(ProcessorsRequest::table).transpose()?,
        limits: Limits {
            events: request.limits.events.unwrap_or(defaults.events),
            simulated_ns: request.limits.simulated_ns.unwrap_or(defaults.simulated_ns),
        },
    })
}
