//! Changes of settings beneath the load: schedulers, depths, tunables, attributes of the queue.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use blksim::core::rng::Stream;

use super::excuse::{Excuse, Expiries};
use super::kept_file::KeptFile;
use super::plan::{Load, Plan};
use super::{Torture, leave_count};
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::read_line;

/// Attributes of the queue with values for them. A kernel or a disk that does not take one refuses it.
const ATTRIBUTES: [(&str, &[u32]); 6] = [
    ("nr_requests", &[2, 4, 8, 16, 64, 128, 256]),
    ("nomerges", &[0, 1, 2]),
    ("rq_affinity", &[0, 1, 2]),
    ("wbt_lat_usec", &[0, 200, 2000, 75_000]),
    ("max_sectors_kb", &[4, 16, 64, 128, 512]),
    ("iostats", &[0, 1]),
];

/// Selects a scheduler.
pub fn select(disk: &Disk, scheduler: &str) -> Result<(), Failure> {
    fs::write(disk.queue("scheduler"), scheduler)
        .map_err(|error| Failure::kernel(format!("selecting {scheduler}"), error))
}

/// Gives the scheduler room for many requests.
pub fn deepen(disk: &Disk) -> Result<(), Failure> {
    fs::write(disk.queue("nr_requests"), "256")
        .map_err(|error| Failure::kernel("setting nr_requests", error))
}

/// Changes settings until the end of the load; the count of switches is left for the answer.
pub fn disturb(
    torture: &Torture,
    plan: &Plan,
    disk: &Disk,
    excuse: Excuse,
    (start_ns, end_ns): (u64, u64),
) -> Result<(), Failure> {
    let mut draw = Stream::named(torture.seed, "disturbance");
    let offered = read_line(&disk.queue("scheduler"))
        .map_err(|error| Failure::kernel("reading the schedulers", error))?;
    let offered = offered.replace(['[', ']'], "");
    let others: Vec<&str> =
        offered.split_whitespace().filter(|name| *name != torture.scheduler).collect();
    let mut usual = BTreeMap::new();
    let mut expiries = Expiries::new(excuse);
    let mut tunables = Vec::new();
    let (mut now_ns, mut switches) = (start_ns, 0);
    loop {
        let pause = draw.exponential() * plan.disturbance_ns as f64;
        now_ns = (now_ns + pause as u64 + 1).max(clock::now_ns());
        if now_ns >= end_ns {
            break;
        }
        clock::sleep_until(now_ns);
        match if plan.load == Load::Mixed { draw.below(10) } else { 5 } {
            0..5 => {
                let own = others.is_empty() || draw.percent(65);
                let index = draw.below(others.len().max(1) as u64) as usize;
                select(disk, if own { &torture.scheduler } else { others[index] })?;
                switches += 1;
            }
            5..8 => {
                // Where schedulers change, so do the tunables.
                if tunables.is_empty() || plan.load == Load::Mixed {
                    tunables = tunables_of(disk);
                }
                tune(&tunables, &mut usual, &mut expiries, &mut draw);
            }
            _ => {
                let (name, values) = ATTRIBUTES[draw.below(ATTRIBUTES.len() as u64) as usize];
                let value = values[draw.below(values.len() as u64) as usize];
                let _refused = fs::write(disk.queue(name), value.to_string());
            }
        }
    }
    leave_count("switches", switches)
}

/// A tunable of the scheduler in force.
struct Tunable {
    path: PathBuf,
    value: KeptFile,
}

/// The tunables of the scheduler in force, by name.
fn tunables_of(disk: &Disk) -> Vec<Tunable> {
    let Ok(entries) = fs::read_dir(disk.queue("iosched")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let tunable = |path: PathBuf| Tunable { value: KeptFile::of(path.display().to_string()), path };
    paths.into_iter().map(tunable).collect()
}

/// Changes a tunable of the scheduler in force to a value near its usual one, so that nobody has to wait much
/// longer than usual; the kernel may refuse it.
fn tune(
    tunables: &[Tunable],
    usual: &mut BTreeMap<String, u64>,
    expiries: &mut Expiries,
    draw: &mut Stream,
) {
    if tunables.is_empty() {
        return;
    }
    let Tunable { path, value } = &tunables[draw.below(tunables.len() as u64) as usize];
    let choice = draw.below(5);
    let Some(before) = value.read().and_then(|text| text.trim().parse::<u64>().ok()) else {
        return;
    };
    // Most tunables of the same name of two schedulers mean the same.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let value = *usual.entry(name.clone()).or_insert(before);
    let value = match choice {
        0 => value.saturating_mul(2),
        1 => value / 2,
        2 => 1,
        3 => value / 10,
        _ => value + 1,
    };
    expiries.change(&name, before, value, clock::now_ns());
    let _refused = fs::write(path, value.to_string());
}
