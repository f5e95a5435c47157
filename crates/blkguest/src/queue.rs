//! The disk's queue in sysfs: scheduler, tunables and attributes, each written and read back.

use std::fs;
use std::io;

use blksim::block::attributes::QUEUE;
use blksim::core::error::ErrorKind;
use blksim::core::params::{Param, Shown, Unit, Values, unknown};
use blksim::elevator;
use blksim::simulate::{Given, Setup};
use serde_json::{Map, Value};

use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::{DEBUGFS, read_line};

/// Attributes that a request may set, in the order of writing. `read_ahead_kb` comes last, because
/// the kernel recomputes it when the queue's limits change. The host's list is in
/// `blklab/linux/queue/attributes.py`; `tests/linux/test_queue_attributes.py` keeps the two equal.
const ATTRIBUTES: &[&str] = &[
    "add_random",
    "io_poll",
    "iostats",
    "max_sectors_kb",
    "nomerges",
    "nr_requests",
    "async_depth",
    "rotational",
    "rq_affinity",
    "stable_writes",
    "wbt_lat_usec",
    "write_cache",
    "read_ahead_kb",
];
/// A tunable of mq-deadline up to Linux 6.19, and the queue's attribute from 7.0 on.
const ASYNC_DEPTH: &str = "async_depth";
/// Attributes that every answer reports, as far as the kernel has them.
const REPORTED: &[&str] =
    &["nr_requests", ASYNC_DEPTH, "read_ahead_kb", "max_sectors_kb", "nomerges", "wbt_lat_usec"];

/// Most times a scheduler is set again until its first search for a tag starts at an existing one: with 4 of
/// 256 tags left that takes 64 tries on average, a few milliseconds each.
const MOST_DRAWS: u32 = 500;

/// An arrangement draws the first tag up to so much more often, less one.
const MOST_MORE_DRAWS: u32 = 16;

/// The settings in force.
#[derive(Debug, PartialEq)]
pub struct InForce {
    pub scheduler: String,
    pub tunables: Map<String, Value>,
    pub queue: Map<String, Value>,
}

/// Sets the scheduler, then the queue's attributes, then the scheduler's tunables: a change of
/// `nr_requests` makes mq-deadline recompute its `async_depth` (`dd_depth_updated` in
/// `block/mq-deadline.c`, Linux 6.1). All must be in force at the end.
pub fn set(disk: &Disk, setup: &Setup) -> Result<(), Failure> {
    let scheduler = &setup.scheduler;
    set_scheduler(disk, scheduler)?;
    let mut kept = set_attributes(disk, &setup.queue)?;
    kept.extend(set_tunables(disk, scheduler, &setup.tunables)?);
    for (path, name, before) in &kept {
        let now = read_line(path).ok();
        if now != *before {
            let before = before.as_deref().unwrap_or("something");
            let message = format!(
                "{name} = {before} does not hold under {scheduler}: another setting makes it {}",
                now.as_deref().unwrap_or("unreadable")
            );
            return Err(Failure::of(ErrorKind::OutOfRange, name, message));
        }
    }
    Ok(())
}

/// As [`set`], but with a fresh scheduler also where it is in force already: through another one, so that all
/// schedulers of a switchback have the same beginning.
pub fn set_anew(disk: &Disk, setup: &Setup) -> Result<(), Failure> {
    let offered = read_line(&disk.queue("scheduler"))
        .map_err(|error| Failure::kernel("reading the scheduler", error))?;
    if bracketed(&offered) == Some(&setup.scheduler) {
        let names = offered.split_whitespace().map(|word| word.trim_matches(['[', ']']));
        // none costs least.
        let other =
            names.filter(|name| *name != setup.scheduler).min_by_key(|name| *name != "none");
        if let Some(other) = other {
            set_scheduler(disk, other)?;
        }
    }
    set(disk, setup)
}

/// Sets attributes of the queue in use.
pub fn set_queue(disk: &Disk, queue: &Given) -> Result<(), Failure> {
    set_attributes(disk, queue).map(|_| ())
}

/// Sets tunables of the scheduler in force.
pub fn retune(disk: &Disk, scheduler: &str, tunables: &Given) -> Result<(), Failure> {
    set_tunables(disk, scheduler, tunables).map(|_| ())
}

/// Sets the scheduler again until its allocation hint is an existing tag. The kernel draws the hint at random
/// for a new sbitmap (`init_alloc_hint` in `lib/sbitmap.c`, Linux 6.1), and draws again at the first request if
/// the hint is beyond the depth, which cannot be observed. A guest's random numbers are the same in every run, so
/// an arrangement chooses how often it draws.
pub fn draw_first_tag(disk: &Disk, setup: &Setup) -> Result<(), Failure> {
    let more = setup.arrangement.map_or(0, |drawn| drawn.first_tag(0, 0, MOST_MORE_DRAWS));
    for _ in 0..more {
        set_scheduler(disk, "none")?;
        set(disk, setup)?;
    }
    for _ in 0..MOST_DRAWS {
        if first_tag(disk).is_none_or(|tag| tag < nr_requests(disk)) {
            break;
        }
        set_scheduler(disk, "none")?;
        set(disk, setup)?;
    }
    Ok(())
}

/// The scheduler tag at which the next search for a free tag starts. `None` without a scheduler, and
/// where the kernel does not show it.
pub fn first_tag(disk: &Disk) -> Option<u32> {
    let path = format!("{DEBUGFS}/block/{}/hctx0/sched_tags", disk.name);
    hint_of(&fs::read_to_string(path).ok()?)
}

/// The first processor's hint in the kernel's dump of an sbitmap: `alloc_hint={17, 4}`.
fn hint_of(shown: &str) -> Option<u32> {
    let hints = shown.lines().find_map(|line| line.strip_prefix("alloc_hint={"))?;
    hints.split([',', '}']).next()?.trim().parse().ok()
}

fn nr_requests(disk: &Disk) -> u32 {
    let shown = read_line(&disk.queue("nr_requests")).ok();
    shown.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
}

/// A written file's name and the value it then showed; `None` if the file is write-only.
type Kept = (String, String, Option<String>);

fn set_attributes(disk: &Disk, queue: &Given) -> Result<Vec<Kept>, Failure> {
    if let Some((name, _)) = queue.iter().find(|(name, _)| !ATTRIBUTES.contains(&name.as_str())) {
        let hint = unknown(name, ATTRIBUTES.iter().copied());
        let message = format!("queue attribute {name}: {hint}");
        return Err(Failure::of(ErrorKind::UnknownQueueAttribute, name, message));
    }
    let mut kept = Vec::new();
    for attribute in ATTRIBUTES {
        let Some((name, text)) = queue.iter().find(|(name, _)| name == attribute) else { continue };
        let own = disk.queue(name);
        let Some(path) = place(name, own, disk.queue(&format!("iosched/{name}"))) else {
            let message = format!("queue attribute {name}: this kernel or disk does not have it");
            return Err(Failure::of(ErrorKind::UnknownQueueAttribute, name, message));
        };
        write(&path, name, "queue attribute", &kernel_text(QUEUE, name, text))?;
        kept.push((path.clone(), name.clone(), read_line(&path).ok()));
    }
    Ok(kept)
}

fn set_tunables(disk: &Disk, scheduler: &str, tunables: &Given) -> Result<Vec<Kept>, Failure> {
    let table = elevator::info(scheduler).map_or(&[][..], |info| info.tunables);
    let mut kept = Vec::new();
    for (name, text) in tunables {
        let own = disk.queue(&format!("iosched/{name}"));
        let found = if name.contains('/') { None } else { place(name, own, disk.queue(name)) };
        let Some(path) = found else {
            let known = tunable_names(disk).join(", ");
            let known = if known.is_empty() { "none" } else { &known };
            let message =
                format!("tunable {name} of {scheduler}: no such option; there are {known}");
            return Err(Failure::of(ErrorKind::UnknownTunable, name, message));
        };
        write(&path, name, &format!("tunable of {scheduler}"), &kernel_text(table, name, text))?;
        kept.push((path.clone(), name.clone(), read_line(&path).ok()));
    }
    Ok(kept)
}

/// The file of a setting: its own, or the other one that this kernel has in its place.
fn place(name: &str, own: String, other: String) -> Option<String> {
    let exists = |path: &String| fs::metadata(path).is_ok();
    Some(own)
        .filter(exists)
        .or_else(|| Some(other).filter(|path| name == ASYNC_DEPTH && exists(path)))
}

/// Sets the readahead of an array above the disks, if requested: the array's value counts, not theirs.
pub fn set_read_ahead(disk: &Disk, queue: &Given) -> Result<(), Failure> {
    let Some((name, text)) = queue.iter().find(|(name, _)| name == "read_ahead_kb") else {
        return Ok(());
    };
    write(&disk.queue(name), name, "queue attribute", &kernel_text(QUEUE, name, text))
}

/// The settings in force, equal on all disks.
pub fn read_all(disks: &[Disk]) -> Result<InForce, Failure> {
    let first = read(&disks[0])?;
    for disk in &disks[1..] {
        if read(disk)? != first {
            let message = format!("{} has other settings than {}", disk.name, disks[0].name);
            return Err(Failure::kernel("reading the settings back", message));
        }
    }
    Ok(first)
}

fn set_scheduler(disk: &Disk, scheduler: &str) -> Result<(), Failure> {
    let path = disk.queue("scheduler");
    let offered =
        read_line(&path).map_err(|error| Failure::kernel("reading the scheduler", error))?;
    if bracketed(&offered) == Some(scheduler) {
        return Ok(());
    }
    let refused = |detail: String| {
        let names = offered.replace(['[', ']'], "");
        let names = names.split_whitespace().collect::<Vec<_>>().join(", ");
        let message = format!(
            "this kernel has no scheduler {scheduler:?} for the disk{detail}; there are {names}"
        );
        Failure::of(ErrorKind::UnknownScheduler, "scheduler", message)
    };
    fs::write(&path, scheduler).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOENT) => refused(String::new()),
        _ => refused(format!(" ({error})")),
    })?;
    let kept = read_line(&path).unwrap_or_default();
    if bracketed(&kept) != Some(scheduler) {
        return Err(refused(String::new()));
    }
    Ok(())
}

/// Reads the settings in force.
fn read(disk: &Disk) -> Result<InForce, Failure> {
    let scheduler = read_line(&disk.queue("scheduler"))
        .map_err(|error| Failure::kernel("reading the scheduler", error))?;
    let scheduler = bracketed(&scheduler).unwrap_or("none").to_owned();
    let mut tunables = Map::new();
    for name in tunable_names(disk) {
        // A write-only attribute has no value to report.
        if let Ok(text) = read_line(&disk.queue(&format!("iosched/{name}"))) {
            tunables.insert(name, number_or_word(&text));
        }
    }
    let mut queue = Map::new();
    for name in REPORTED {
        // An attribute may be missing, for example without writeback throttling.
        if let Ok(text) = read_line(&disk.queue(name)) {
            queue.insert((*name).to_owned(), number_or_word(&text));
        }
    }
    Ok(InForce { scheduler, tunables, queue })
}

fn tunable_names(disk: &Disk) -> Vec<String> {
    let Ok(entries) = fs::read_dir(disk.queue("iosched")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// A value in sysfs form: the simulator's units (`8ms`) become bare numbers. Values unknown to the
/// simulator pass unchanged, for the kernel to judge.
pub fn kernel_text(table: &'static [Param], name: &str, text: &str) -> String {
    let mut values = Values::defaults(table);
    if values.set(name, text).is_err() {
        return text.trim().to_owned();
    }
    values
        .iter()
        .find(|(param, _)| param.name == name)
        .map(|(param, value)| match (param.unit, param.show(value)) {
            (Unit::Choice(_), Shown::Word(word)) => word.to_owned(),
            _ => value.to_string(),
        })
        .unwrap_or_default()
}

fn write(path: &str, name: &str, what: &str, text: &str) -> Result<(), Failure> {
    let wrong = |detail: String| {
        let message = format!("{what} {name} = {text}: {detail}");
        Failure::of(ErrorKind::OutOfRange, name, message)
    };
    fs::write(path, text)
        .map_err(|error| wrong(format!("the kernel refused it ({})", plain(&error))))?;
    // Some are write-only.
    let Ok(kept) = read_line(path) else { return Ok(()) };
    let is_default_request =
        matches!((name, text), ("wbt_lat_usec", "-1") | ("max_sectors_kb", "0"));
    if is_default_request || same(&kept, text) {
        return Ok(());
    }
    Err(wrong(format!("the kernel kept {kept}")))
}

/// The kernel's message for an error, without the number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// Whether the value that the kernel shows means the value written.
fn same(kept: &str, written: &str) -> bool {
    let kept = bracketed(kept).unwrap_or(kept);
    kept == written
        || matches!((kept.parse::<i64>(), written.parse::<i64>()), (Ok(a), Ok(b)) if a == b)
}

/// The bracketed word, which is the selected one.
fn bracketed(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

fn number_or_word(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => bracketed(text).unwrap_or(text).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_texts_have_no_units() {
        let table = elevator::info("bfq").unwrap().tunables;
        assert_eq!(kernel_text(table, "slice_idle", "8ms"), "8");
        assert_eq!(kernel_text(table, "slice_idle", "8"), "8");
        assert_eq!(kernel_text(table, "low_latency", "off"), "0");
        assert_eq!(kernel_text(table, "slice_idle", "nonsense"), "nonsense");
        assert_eq!(kernel_text(table, "a_new_one", " 7 "), "7");
    }

    #[test]
    fn the_first_tag_is_the_first_processors() {
        let shown = "nr_tags=64\nbusy=0\nalloc_hint={17, 4}\nwake_batch=8\n";
        assert_eq!((hint_of(shown), hint_of("alloc_hint={9}")), (Some(17), Some(9)));
        assert_eq!((hint_of("nr_tags=64"), hint_of("alloc_hint={}")), (None, None));
    }

    #[test]
    fn answers_of_the_kernel_are_compared_by_meaning() {
        assert!(same("8", "08") && same("none [mq-deadline]", "mq-deadline"));
        assert!(!same("4", "1"));
        assert_eq!(number_or_word("75000"), Value::from(75_000));
        assert_eq!(number_or_word("write [back]"), Value::from("back"));
    }
}
