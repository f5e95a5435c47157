//! Catalogues as JSON: job files, options, schedulers, devices, timelines.

use blksim::block::raid::check;
use blksim::core::error::Error;
use blksim::core::params::{Param, Shown, Unit, Values};
use blksim::devices::device::Facts;
use blksim::devices::raid::RAID;
use blksim::devices::{KINDS, Profile};
use blksim::elevator;
use blksim::elevator::scheduler::Family;
use blksim::timeline;
use blksim::workload::file_size_range::FileSizes;
use blksim::workload::generator::Transfer;
use blksim::workload::job::{Extent, Remark};
use blksim::workload::options;
use blksim::workload::replay::{Home, JobReplay};
use blksim::workload::{Job, JobFile, transfers};
use serde_json::{Map, Value, json};

/// A job file as JSON.
pub fn job_file(file: &JobFile) -> Value {
    json!({
        "source": file.source,
        "jobs": file.jobs.iter().map(job).collect::<Vec<_>>(),
        "host_only": file.host_only.iter().map(remark).collect::<Vec<_>>(),
        "notes": file.notes.iter().map(remark).collect::<Vec<_>>(),
        "warnings": file.warnings.iter().map(remark).collect::<Vec<_>>(),
    })
}

pub(crate) fn remark(r: &Remark) -> Value {
    json!({"job": r.job, "option": r.option, "line": r.line, "message": r.message})
}

fn job(job: &Job) -> Value {
    let mut answer = work(job);
    answer["offset_increment_percent"] = json!(percent(Some(job.offset_increment)));
    answer["smallest_block_bytes"] =
        json!(job.block_sizes.read.smallest().min(job.block_sizes.write.smallest()));
    answer["io_size_percent"] = json!(job.io_size_percent);
    answer["filenames"] = json!(job.filenames);
    answer["nr_files"] = json!(job.nr_files);
    answer["file_lengths"] = json!(job.filesize.as_ref().map_or(&[][..], |sizes| &sizes.drawn));
    answer
}

/// The most of it; one macro takes no more.
fn work(job: &Job) -> Value {
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
        "filesize_bytes": job.filesize.as_ref().and_then(FileSizes::fixed),
        "offset_bytes": job.offset.fixed_bytes().unwrap_or(0),
        "offset_percent": percent(Some(job.offset)),
        "offset_increment_bytes": job.offset_increment.fixed_bytes().unwrap_or(0),
        "io_size_bytes": job.io_size,
        "number_ios": job.number_ios,
        "runtime_ns": job.runtime_ns,
        "time_based": job.time_based,
        "ramp_time_ns": job.ramp_time_ns,
        "startdelay_ns": job.startdelay_ns,
        "filename": job.filenames.first(),
        "stonewall": job.stonewall,
        "new_group": job.new_group,
        "wait_for": job.wait_for,
        "exitall": job.exitall,
        "verifies": job.verify.is_some(),
        "strided": job.strides.is_some(),
        "prioclass": job.prioclass,
        "prio": job.prio,
        "nice": job.nice,
        "cgroup": job.cgroup,
        "cgroup_weight": job.cgroup_weight,
        "replayed_ios": job.replay.as_ref().map(|replay| {
            replay.plans.iter().map(|plan| plan.ios.len()).sum::<usize>()
        }),
        "replayed_home": job.replay.as_ref().and_then(most_at_home),
    })
}

/// The processor, and the number of all of the recorded machine, of most of a job's I/Os.
fn most_at_home(replay: &JobReplay) -> Option<[u16; 2]> {
    let mut counts: Vec<(Option<Home>, usize)> = Vec::new();
    for plan in &replay.plans {
        match counts.iter_mut().find(|(home, _)| *home == plan.home) {
            Some((_, count)) => *count += plan.ios.len(),
            None => counts.push((plan.home, plan.ios.len())),
        }
    }
    let (home, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    home.map(|home| [home.processor, home.of])
}

fn percent(extent: Option<Extent>) -> Option<u64> {
    match extent {
        Some(Extent::Percent(share)) => Some(share),
        _ => None,
    }
}

/// The first I/Os of every clone of every job: direction, offset on the device, bytes, and class and
/// level of a priority of its own.
pub fn job_transfers(
    file: &JobFile,
    capacity: u64,
    seed: u64,
    most: usize,
) -> Result<Value, Error> {
    let jobs = transfers(&file.jobs, capacity, seed, most)?;
    let one = |transfer: &Transfer| {
        let own = transfer.priority.map(|own| [own.class, own.level]);
        json!([transfer.direction.name(), transfer.offset, transfer.bytes, own])
    };
    let clone = |clone: &Vec<Transfer>| clone.iter().map(one).collect::<Value>();
    Ok(jobs.iter().map(|clones| clones.iter().map(clone).collect::<Value>()).collect())
}

/// The table of job options.
pub fn job_options() -> Value {
    options::all()
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

/// The simulated schedulers.
pub fn schedulers() -> Value {
    elevator::all()
        .into_iter()
        .map(|info| {
            json!({
                "name": info.name,
                "kernel_versions": info.kernel_versions,
                "summary": info.summary,
                "family": match info.family {
                    Family::Legacy => "legacy",
                    Family::MultiQueue => "multi-queue",
                },
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
                // Every kind can be an array of such devices.
                "array_parameters": params(RAID),
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

pub(crate) fn shown(param: &Param, value: u64) -> Value {
    match param.show(value) {
        Shown::Number(number) => number.into(),
        Shown::Word(word) => word.into(),
    }
}

pub(crate) fn values(values: &Values) -> Value {
    let entries = values.iter().map(|(p, value)| (p.name.to_owned(), shown(p, value)));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Option values as JSON: name to number or word.
pub fn settings(of: &Values) -> Value {
    values(of)
}

/// Reads and checks a profile.
pub fn profile(text: &str, source: &str) -> Result<Value, Error> {
    let profile = Profile::parse(text, source)?;
    let facts = check(&profile)?;
    let mut answer = device(&profile, &facts);
    answer["parameters"] = values(&profile.values);
    Ok(answer)
}

pub(crate) fn device(profile: &Profile, facts: &Facts) -> Value {
    json!({
        "name": profile.name,
        "kind": profile.kind.name,
        "summary": profile.summary,
        "capacity_bytes": facts.capacity_bytes,
        "rotational": facts.rotational,
        "queue_depth": facts.queue_depth,
        "nr_hw_queues": facts.nr_hw_queues,
        "volatile_cache": facts.volatile_cache,
        "default_scheduler": elevator::default_for(facts),
    })
}
