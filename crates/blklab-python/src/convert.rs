//! Between JSON and the types of blksim.

use std::collections::BTreeMap;

use blksim::device::Facts;
use blksim::devices::{KINDS, Profile, check, default_scheduler};
use blksim::engine::Limits;
use blksim::error::{Error, ErrorKind, SimulationError};
use blksim::params::{Param, Shown, Unit, Values};
use blksim::record::{Direction, Histogram, JobRecord};
use blksim::schedulers;
use blksim::simulate::{Checked, Outcome, Setup};
use blksim::timeline;
use blksim::workload::job::{Extent, Remark};
use blksim::workload::options::OPTIONS;
use blksim::workload::{Job, JobFile, parse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::bad_request;

/// A job file for Python.
pub fn job_file(file: &JobFile) -> Value {
    json!({
        "source": file.source,
        "jobs": file.jobs.iter().map(job).collect::<Vec<_>>(),
        "host_only": file.host_only.iter()
            .map(|r| json!({"job": r.job, "option": r.option, "line": r.line}))
            .collect::<Vec<_>>(),
        "warnings": file.warnings.iter().map(remark).collect::<Vec<_>>(),
    })
}

fn remark(r: &Remark) -> Value {
    json!({"job": r.job, "option": r.option, "line": r.line, "message": r.message})
}

fn job(job: &Job) -> Value {
    json!({
        "name": job.name,
        "line": job.line,
        "options": job.options,
        "option_lines": job.option_lines,
        "numjobs": job.numjobs,
        "rw": job.mode_text,
        "reads": job.mode.reads,
        "writes": job.mode.writes,
        "sequential": !job.mode.random,
        "direct": job.direct,
        "ioengine": job.engine,
        "iodepth": job.iodepth,
        "block_size_bytes": job.largest_block(),
        "size_bytes": job.size.and_then(Extent::fixed_bytes),
        "size_percent": percent(job.size),
        "offset_bytes": job.offset.fixed_bytes().unwrap_or(0),
        "offset_percent": percent(Some(job.offset)),
        "offset_increment_bytes": job.offset_increment,
        "io_size_bytes": job.io_size,
        "number_ios": job.number_ios,
        "runtime_ns": job.runtime_ns,
        "time_based": job.time_based,
        "ramp_time_ns": job.ramp_time_ns,
        "startdelay_ns": job.startdelay_ns,
        "filename": job.filename,
        "stonewall": job.stonewall,
        "prioclass": job.prioclass,
        "prio": job.prio,
        "nice": job.nice,
        "cgroup": job.cgroup,
        "cgroup_weight": job.cgroup_weight,
    })
}

fn percent(extent: Option<Extent>) -> Option<u64> {
    match extent {
        Some(Extent::Percent(share)) => Some(share),
        _ => None,
    }
}

/// The table of job options.
pub fn job_options() -> Value {
    OPTIONS
        .iter()
        .map(|o| {
            json!({
                "name": o.name,
                "aliases": o.aliases,
                "kind": o.kind.describe(),
                "default": if o.default.is_empty() { Value::Null } else { o.default.into() },
                "support": o.support.name(),
                "help": o.help,
            })
        })
        .collect()
}

/// The schedulers that are simulated.
pub fn schedulers() -> Value {
    schedulers::ALL
        .iter()
        .map(|info| {
            json!({
                "name": info.name,
                "kernel_versions": info.kernel_versions,
                "summary": info.summary,
                "tunables": params(info.tunables),
            })
        })
        .collect()
}

/// The kinds of devices.
pub fn devices() -> Value {
    KINDS
        .iter()
        .map(|kind| {
            json!({
                "kind": kind.name,
                "summary": kind.summary,
                "parameters": params(kind.parameters),
            })
        })
        .collect()
}

/// The tables of a timeline.
pub fn timeline_format() -> Value {
    let tables: Vec<Value> = timeline::TABLES
        .iter()
        .map(|table| {
            let columns: Vec<Value> = table
                .columns
                .iter()
                .map(|c| json!({"name": c.name, "bytes": c.bytes, "unit": c.unit, "help": c.help}))
                .collect();
            json!({"name": table.name, "row_bytes": table.row_bytes, "columns": columns})
        })
        .collect();
    json!({"version": timeline::VERSION, "tables": tables})
}

fn params(table: &[Param]) -> Value {
    table
        .iter()
        .map(|p| {
            let mut entry = json!({
                "name": p.name,
                "unit": p.unit.name(),
                "default": shown(p, p.default),
                "min": p.min,
                "max": p.max,
                "help": p.help,
            });
            if let Unit::Choice(words) = p.unit {
                entry["choices"] = json!(words);
            }
            entry
        })
        .collect()
}

fn shown(param: &Param, value: u64) -> Value {
    match param.show(value) {
        Shown::Number(number) => number.into(),
        Shown::Word(word) => word.into(),
    }
}

fn values(values: &Values) -> Value {
    let entries = values.iter().map(|(p, value)| (p.name.to_owned(), shown(p, value)));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Reads and checks a profile.
pub fn profile(text: &str, source: &str) -> Result<Value, Error> {
    let profile = Profile::parse(text, source)?;
    let facts = check(&profile)?;
    let mut answer = device(&profile, &facts);
    answer["parameters"] = values(&profile.values);
    Ok(answer)
}

fn device(profile: &Profile, facts: &Facts) -> Value {
    json!({
        "name": profile.name,
        "kind": profile.kind.name,
        "summary": profile.summary,
        "capacity_bytes": facts.capacity_bytes,
        "rotational": facts.rotational,
        "queue_depth": facts.queue_depth,
        "nr_hw_queues": facts.nr_hw_queues,
        "volatile_cache": facts.volatile_cache,
        "default_scheduler": default_scheduler(facts),
    })
}

/// A request to simulate, as it comes from Python.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
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
    #[serde(default)]
    limits: LimitsRequest,
    /// Record what happens inside.
    #[serde(default)]
    timeline: bool,
}

/// What a timeline may take by default: 2 GiB.
const TIMELINE_BYTES: u64 = 2 << 30;

/// A request to simulate, read.
pub struct Prepared {
    pub setup: Setup,
    /// Limit of the timeline, if one is wanted.
    pub timeline_bytes: Option<u64>,
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

/// Reads a request to simulate.
pub fn setup(text: &str) -> Result<Prepared, Error> {
    let request = request(text)?;
    if request.scheduler.is_none() {
        return Err(bad_request("the request names no scheduler".to_owned()));
    }
    if request.jobs.is_none() {
        return Err(bad_request("the request has no jobs".to_owned()));
    }
    let limit_bytes = request.limits.timeline_bytes.unwrap_or(TIMELINE_BYTES);
    let timeline_bytes = request.timeline.then_some(limit_bytes);
    Ok(Prepared { setup: settle(request)?, timeline_bytes })
}

/// Reads a request to check: without a scheduler it means the device's default, without jobs an idle device.
pub fn partial_setup(text: &str) -> Result<Setup, Error> {
    settle(request(text)?)
}

fn request(text: &str) -> Result<Request, Error> {
    serde_json::from_str(text)
        .map_err(|error| bad_request(format!("the request is not as expected: {error}")))
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
    for (name, text) in &device.parameters {
        profile.set(name, text)?;
    }
    let defaults = Limits::default();
    let scheduler = match request.scheduler {
        Some(name) => name,
        None => default_scheduler(&check(&profile)?).to_owned(),
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
        machine: request.machine.into_iter().collect(),
        cgroups: request
            .cgroups
            .into_iter()
            .map(|(name, attributes)| (name, attributes.into_iter().collect()))
            .collect(),
        jobs,
        runtime_ns: request.runtime_ns,
        seed: request.seed,
        limits: Limits {
            events: request.limits.events.unwrap_or(defaults.events),
            simulated_ns: request.limits.simulated_ns.unwrap_or(defaults.simulated_ns),
        },
    })
}

/// The answer to a check.
pub fn checked(setup: &Setup, checked: &Checked) -> Value {
    json!({
        "device": device(&setup.profile, &checked.facts),
        "queue": values(&checked.queue),
        "tunables": values(&checked.tunables),
    })
}

/// The answer to a request.
pub fn outcome(setup: &Setup, outcome: &Outcome) -> Value {
    let mut facts = device(&setup.profile, &outcome.facts);
    facts["parameters"] = values(&setup.profile.values);
    json!({
        "scheduler": outcome.scheduler.name,
        "tunables": values(&outcome.tunables),
        "queue": values(&outcome.queue),
        "device": facts,
        "jobs": outcome.jobs.iter().map(job_sample).collect::<Vec<_>>(),
        "warnings": setup.jobs.warnings.iter().map(remark).collect::<Vec<_>>(),
        "engine": {
            "name": "blksim",
            "version": env!("CARGO_PKG_VERSION"),
            "seed": setup.seed,
            "machine": values(&outcome.machine),
            "events": outcome.events,
            "requests": outcome.requests,
            "merges": outcome.merges,
            "flushes": outcome.flushes,
            "simulated_ns": outcome.simulated_ns,
            "device_busy_ns": outcome.device_busy_ns,
            "peak_tags": outcome.peak_tags,
            "peak_in_flight": outcome.peak_in_flight,
        },
    })
}

fn job_sample(record: &JobRecord) -> Value {
    let directions: Vec<Value> = Direction::ALL
        .iter()
        .filter(|d| record.direction(**d).ios > 0)
        .map(|d| {
            let direction = record.direction(*d);
            json!({
                "direction": d.name(),
                "ios": direction.ios,
                "bytes": direction.bytes,
                "runtime_ns": record.runtime_ns,
                "latency": histogram(&direction.latency),
            })
        })
        .collect();
    json!({
        "name": record.name,
        "clones": record.clones,
        "runtime_ns": record.runtime_ns,
        "directions": directions,
        "cpu_user_ns": null,
        "cpu_system_ns": null,
        "context_switches": null,
    })
}

fn histogram(histogram: &Histogram) -> Value {
    let bins: Map<String, Value> =
        histogram.bins().map(|(ns, count)| (ns.to_string(), count.into())).collect();
    json!({
        "count": histogram.count(),
        "sum_ns": histogram.sum_ns(),
        "min_ns": histogram.min_ns(),
        "max_ns": histogram.max_ns(),
        "bins": bins,
    })
}
