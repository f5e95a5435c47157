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

fn folder() -> String {
    format!("{CONFIGFS}/nullb/torture")
}

fn set(attribute: &str, value: u64) -> Result<(), Failure> {
    fs::write(format!("{}/{attribute}", folder()), value.to_string()).map_err(|error| {
        Failure::kernel(format!("setting null_blk's {attribute} to {value}"), error)
    })
}
