//! Runs one job file on one device, without Python around it: for profilers
//! and for measuring a whole process.
//!
//! `cargo run --release -p blksim --example simulate -- PROFILE SCHEDULER JOBFILE [nr_requests=N …]`
//!
//! PROFILE is a device profile (TOML), JOBFILE a job file; what follows sets
//! attributes of the queue.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use blksim::devices::Profile;
use blksim::engine::Limits;
use blksim::simulate::{Setup, simulate};
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
    let setup = Setup {
        profile: Profile::parse(&text(profile)?, &name).map_err(|e| e.to_string())?,
        scheduler: scheduler.clone(),
        tunables: Vec::new(),
        queue: queue.iter().map(attribute).collect::<Result<_, _>>()?,
        machine: Vec::new(),
        cgroups: Vec::new(),
        jobs: parse(&text(jobs)?, jobs).map_err(|e| e.to_string())?,
        runtime_ns: None,
        seed: 1,
        arrangement: None,
        processors: None,
        limits: Limits { events: u64::MAX, ..Limits::default() },
    };
    let start = Instant::now();
    let outcome = simulate(&setup).map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!(
        "{} requests in {seconds:.2} s: {:.2} million a second; {:.3} s simulated",
        outcome.requests,
        outcome.requests as f64 / seconds / 1e6,
        outcome.simulated_ns as f64 / 1e9
    ))
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
