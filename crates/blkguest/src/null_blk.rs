//! `null_blk` as the disk: a fixed latency, for kernels without ublk.

use std::fs;

use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::{CONFIGFS, mount};
use crate::request::Request;
use crate::shared_memory::SharedMemory;
use crate::transport::{Served, Transport};

/// One disk of the kernel's own.
#[derive(Debug)]
pub struct NullBlk;

impl Transport for NullBlk {
    fn start(&self, request: &Request, _shared: SharedMemory) -> Result<Served, Failure> {
        Ok(Served { disks: vec![start(request)?], clock: None, least_start_ns: 0 })
    }
}

/// Creates the disk (`drivers/block/null_blk/main.c` of Linux 6.1).
fn start(request: &Request) -> Result<Disk, Failure> {
    mount("configfs", CONFIGFS, "configfs", "")?;
    let folder = format!("{CONFIGFS}/nullb/blklab");
    fs::create_dir(&folder).map_err(|error| Failure::Unsupported {
        field: "driver".to_owned(),
        message: format!("this kernel has no null_blk with configfs ({error})"),
    })?;
    let values = &request.setup.profile.values;
    let facts = &request.facts;
    let mebibytes = (facts.capacity_bytes >> 20).max(1);
    for (attribute, value) in [
        // 2: completion from a timer.
        ("irqmode", 2),
        ("completion_nsec", values.get("latency")),
        ("hw_queue_depth", u64::from(facts.queue_depth)),
        ("submit_queues", 1),
        ("size", mebibytes),
        ("blocksize", 512),
    ] {
        fs::write(format!("{folder}/{attribute}"), value.to_string()).map_err(|error| {
            Failure::kernel(format!("setting null_blk's {attribute} to {value}"), error)
        })?;
    }
    // Only since 5.13; until then requests have 127 KiB at most.
    let sectors = (u64::from(facts.max_hw_sectors_kb) * 2).to_string();
    let _ = fs::write(format!("{folder}/max_sectors"), sectors);
    fs::write(format!("{folder}/power"), "1")
        .map_err(|error| Failure::kernel("switching null_blk on", error))?;
    let index = fs::read_to_string(format!("{folder}/index")).unwrap_or_default();
    let index = if index.trim().is_empty() { "0" } else { index.trim() };
    // Since 6.6 a device made through configfs is named after its folder; before, by its index.
    let names = [format!("nullb{index}"), "blklab".to_owned()];
    let name = names.into_iter().find(|name| fs::metadata(format!("/sys/block/{name}")).is_ok());
    let name = name.ok_or_else(|| Failure::kernel("creating the disk", "no /sys/block/nullb0"))?;
    let disk = Disk { name };
    let rotational = if facts.rotational { "1" } else { "0" };
    fs::write(disk.queue("rotational"), rotational)
        .map_err(|error| Failure::kernel("describing the disk", error))?;
    Ok(disk)
}
