//! Runs one job file on one device, without Python around it: for profilers
//! and for measuring a whole process.
//!
//! `cargo run --release -p blksim --example simulate -- PROFILE SCHEDULER JOBFILE [nr_requests=N …]`
//!
//! PROFILE is a device profile (TOML), JOBFILE a job file; what follows sets
//! attributes of the queue. `machine=FILE` takes a cost table (TOML), `cpus=N` so
//! many of its processors. `arrangement=SEED` draws what nobody controls,
//! `device.NAME=VALUE` sets a parameter of the device, and `cgroup=GROUP:FILE=VALUE`
//! writes a file of a control group.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use blksim::block::cgroup::GivenGroups;
use blksim::core::processor_table::{ProcessorTable, SchedulerCosts};
use blksim::core::record::Direction;
use blksim::devices::Profile;
use blksim::engine::Limits;
use blksim::simulate::{Outcome, Setup, simulate};
use blksim::workload::arrangement::Arrangement;
use blksim::workload::parse;

fn run(arguments: &[String]) -> Result<String, String> {
    let [profile, scheduler, jobs, queue @ ..] = arguments else {
        return Err("usage: simulate PROFILE SCHEDULER JOBFILE [ATTRIBUTE=VALUE …]".to_owned());
    };
    let text = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let name = Path::new(profile).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let attribute = |pair: &String| match pair.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("{pair:?} is not of the form ATTRIBUTE=VALUE")),
    };
    let mut attributes: Vec<(String, String)> =
        queue.iter().map(attribute).collect::<Result<_, _>>()?;
    let mut option = |wanted: &str| {
        let place = attributes.iter().position(|(name, _)| name == wanted)?;
        Some(attributes.remove(place).1)
    };
    let (machine, cpus) = (option("machine"), option("cpus"));
    let arrangement = option("arrangement").map(|seed| seed.parse::<u64>()).transpose();
    let arrangement = arrangement.map_err(|_| "arrangement= takes a number".to_owned())?;
    let mut cgroups = GivenGroups::new();
    while let Some(setting) = option("cgroup") {
        let parts = setting.split_once(':').and_then(|(group, rest)| {
            rest.split_once('=').map(|(file, value)| (group, (file.to_owned(), value.to_owned())))
        });
        let (group, setting) = parts.ok_or("cgroup= takes GROUP:FILE=VALUE")?;
        cgroups.push((group.to_owned(), vec![setting]));
    }
    let processors = machine.map(|path| table_of(&text(&path)?, cpus.as_deref())).transpose()?;
    let mut profile = Profile::parse(&text(profile)?, &name).map_err(|e| e.to_string())?;
    attributes.retain(|(name, _)| !name.starts_with("device."));
    for pair in queue {
        if let Some((name, value)) = pair.strip_prefix("device.").and_then(|p| p.split_once('=')) {
            profile.set(name, value).map_err(|e| e.to_string())?;
        }
    }
    let setup = Setup {
        profile,
        scheduler: scheduler.clone(),
        tunables: Vec::new(),
        queue: attributes,
        machine: Vec::new(),
        cgroups,
        jobs: parse(&text(jobs)?, jobs).map_err(|e| e.to_string())?,
        runtime_ns: None,
        seed: 1,
        arrangement: arrangement.map(|seed| Arrangement { seed }),
        processors,
        limits: Limits { events: u64::MAX, ..Limits::default() },
    };
    let start = Instant::now();
    let outcome = simulate(&setup).map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!(
        "{} requests in {seconds:.2} s: {:.2} million a second; {:.3} s simulated, {} events; \
         fingerprint {:016x}",
        outcome.requests,
        outcome.requests as f64 / seconds / 1e6,
        outcome.simulated_ns as f64 / 1e9,
        outcome.events,
        fingerprint(&outcome)
    ))
}

/// A hash of all that the run measured, to compare runs bit by bit (FNV-1a).
fn fingerprint(outcome: &Outcome) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        for byte in word.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    let Outcome { events, requests, merges, flushes, simulated_ns, .. } = *outcome;
    [events, requests, merges, flushes, simulated_ns].into_iter().for_each(&mut add);
    for job in &outcome.jobs {
        add(job.runtime_ns);
        for direction in Direction::ALL {
            let record = job.direction(direction);
            [record.ios(), record.bytes, record.latency.sum_ns()].into_iter().for_each(&mut add);
            record.latency.bins().flat_map(|(ns, count)| [ns, count]).for_each(&mut add);
        }
    }
    hash
}

/// The cost table of a file, with another number of processors if one is asked for.
fn table_of(text: &str, cpus: Option<&str>) -> Result<ProcessorTable, String> {
    let file: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let figure = |name: &str, value: &toml::Value| {
        let found = value.as_integer().and_then(|figure| u64::try_from(figure).ok());
        found.ok_or_else(|| format!("{name} is not a number"))
    };
    let own = |name: &str| file.get(name).map_or(Ok(0), |value| figure(name, value));
    let cpus = match cpus {
        Some(number) => number.parse().map_err(|_| format!("cpus={number} is not a number"))?,
        None => own("cpus")? as u32,
    };
    let mut table = ProcessorTable {
        cpus,
        slice_ns: own("slice_ns")?,
        punt_ns: own("punt_ns")?,
        map_page_ns: own("map_page_ns")?,
        ..Default::default()
    };
    for (name, value) in file.get("steps").and_then(toml::Value::as_table).into_iter().flatten() {
        if !table.steps.set(name, figure(name, value)?) {
            return Err(format!("there is no step {name}"));
        }
    }
    let schedulers = file.get("schedulers").and_then(toml::Value::as_table);
    for (scheduler, costs) in schedulers.into_iter().flatten() {
        let mut found = SchedulerCosts::default();
        for (name, value) in costs.as_table().into_iter().flatten() {
            if !found.set(name, figure(name, value)?) {
                return Err(format!("{scheduler} has no cost {name}"));
            }
        }
        table.schedulers.push((scheduler.clone(), found));
    }
    Ok(table)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
