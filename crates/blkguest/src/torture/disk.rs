//! The disk of a torture: `null_blk`, which keeps its contents in memory and makes mistakes on request.
//!
//! Boot parameters say which requests it hands back or lets time out (`null_blk.requeue`, `null_blk.timeout`,
//! `drivers/block/null_blk/main.c`, Linux 6.1).

use std::fs;

use super::kept_file::KeptFile;
use super::plan::{BLOCK_BYTES, BLOCKS, Plan};
use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::{CONFIGFS, mount};

/// Makes the disk.
pub fn start(plan: &Plan) -> Result<Disk, Failure> {
    mount("configfs", CONFIGFS, "configfs", "")?;
    fs::create_dir(folder()).map_err(|error| Failure::Unsupported {
        field: "driver".to_owned(),
        message: format!("this kernel has no null_blk with configfs ({error})"),
    })?;
    let bytes = u64::from(plan.workers) * BLOCKS * BLOCK_BYTES;
    for (attribute, value) in [
        ("memory_backed", 1),
        // 2: completion from a timer.
        ("irqmode", 2),
        ("completion_nsec", plan.latency_ns),
        ("hw_queue_depth", u64::from(plan.queue_depth)),
        ("submit_queues", 1),
        ("size", (bytes >> 20).max(1)),
        ("blocksize", u64::from(plan.logical_block_bytes)),
        ("cache_size", u64::from(plan.cache_mib)),
    ] {
        set(attribute, value)?;
    }
    set("power", 1)?;
    let index = fs::read_to_string(format!("{}/index", folder())).unwrap_or_default();
    let index = if index.trim().is_empty() { "0" } else { index.trim() };
    // Since 6.6 a device made through configfs is named after its folder; before, by its index.
    let names = [format!("nullb{index}"), "torture".to_owned()];
    let name = names.into_iter().find(|name| fs::metadata(format!("/sys/block/{name}")).is_ok());
    let name = name.ok_or_else(|| Failure::kernel("creating the disk", "no /sys/block/nullb0"))?;
    Ok(Disk { name })
}

/// Removes the disk, with its scheduler in place.
pub fn end() -> Result<(), Failure> {
    set("power", 0)?;
    fs::remove_dir(folder()).map_err(|error| Failure::kernel("removing the disk", error))
}

/// The disk's own counters.
pub fn counters(disk: &Disk) -> KeptFile {
    KeptFile::of(format!("/sys/block/{}/stat", disk.name))
}

/// Flushes that a disk with these counters has done; `None` where the kernel does not count them (before Linux 5.5,
/// `Documentation/block/stat.rst`).
pub fn flushes(counters: &KeptFile) -> Option<u64> {
    counters.read()?.split_whitespace().nth(15)?.parse().ok()
}

/// Places of the reads, writes, discards and flushes that were completed.
const COMPLETED: [usize; 4] = [0, 4, 11, 15];

/// I/Os that a disk with these counters has completed, by kind; 0 for a kind that the kernel does not count.
///
/// Other counters move while the disk does nothing: merges, and since Linux 6.10 those in flight, which include I/Os
/// in the scheduler, and the busy time, which reading brings up to date while there are any (`part_stat_show()`,
/// `block/genhd.c`, Linux 6.12).
pub fn completed(counters: &str) -> [u64; 4] {
    let counts: Vec<&str> = counters.split_whitespace().collect();
    COMPLETED.map(|place| counts.get(place).and_then(|count| count.parse().ok()).unwrap_or(0))
}

fn folder() -> String {
    format!("{CONFIGFS}/nullb/torture")
}

fn set(attribute: &str, value: u64) -> Result<(), Failure> {
    fs::write(format!("{}/{attribute}", folder()), value.to_string()).map_err(|error| {
        Failure::kernel(format!("setting null_blk's {attribute} to {value}"), error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_the_counters_or_adding_an_io_completes_none() {
        let before = "90 12 720 31 80 7 640 1205 3 410 1236 5 0 40 6 14 9";
        // Linux 6.12, 10 ms later: one I/O was merged, and another one waits.
        let after = "90 12 720 31 80 8 640 1205 4 420 1236 5 0 40 6 14 9";
        assert_eq!(completed(before), [90, 80, 5, 14]);
        assert_eq!(completed(after), completed(before));
    }

    #[test]
    fn each_kind_of_io_that_ends_is_one_completed() {
        assert_eq!(completed("1 0 8 1 2 0 16 1 0 1 2 3 0 24 1 4 1"), [1, 2, 3, 4]);
        assert_eq!(completed("1 0 8 1 2 0 16 1 0 1 2"), [1, 2, 0, 0]);
    }
}
