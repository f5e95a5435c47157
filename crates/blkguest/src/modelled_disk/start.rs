//! Creates the disks and starts their server.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use blksim::block::request::{MAX_DISCARD_SECTORS, SECTOR_BYTES};
use blksim::core::error::ErrorKind;
use blksim::elevator;
use blksim::elevator::scheduler::Family;

use super::abi;
use super::server::Server;
use super::turn::Turns;
use crate::disk::Disk;
use crate::failure::{Failure, checked};
use crate::process;
use crate::request::{Request, TimeKind};
use crate::served_model::ServedModel;
use crate::server_turn::ServerTurn;
use crate::shared_memory::SharedMemory;
use crate::transport::{Served, Transport};

/// The driver's control file.
const CONTROL: &str = "/dev/modelled-disks";

/// As on a machine that has been up for a while: cfq puts a queue in front of another by taking a second from
/// its time, and the times are unsigned (`cfq_service_tree_add` of `block/cfq-iosched.c`, Linux 4.19). In
/// virtual time the wait is free.
const LEAST_START_NS: u64 = 10_000_000_000;

/// Disks of blklab's own driver.
#[derive(Debug)]
pub struct ModelledDisk;

impl Transport for ModelledDisk {
    fn start(&self, request: &Request, shared: SharedMemory) -> Result<Served, Failure> {
        let depth = request.facts.queue_depth;
        if depth > abi::MAX_DEPTH {
            let most = abi::MAX_DEPTH;
            let message = format!("a disk takes {most} commands at once at most, not {depth}");
            return Err(Failure::of(ErrorKind::OutOfRange, "depth", message));
        }
        let control = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|error| {
            Failure::Unsupported {
                field: "driver".to_owned(),
                message: format!(
                    "this kernel has no modelled disks ({error}); it needs the instrument modelled-disk"
                ),
            }
        })?;
        let mut models = Vec::new();
        for number in 0..request.nr_disks() {
            add(&control, request)?;
            let device = request.setup.profile.build_member(request.setup.seed, number as usize)?;
            models.push(ServedModel::new(number, device, shared));
        }
        let server = Server {
            models,
            turns: Turns::new(control, (request.nr_disks() * depth) as usize),
            shared,
            virtual_time: request.options.time == TimeKind::Virtual,
            place: ServerTurn::of(request),
            origin_ns: 0,
        };
        process::spawn("the server of the disks", shared, move || server.run())?;
        shared.wait_for(&shared.server_ready, 1, || process::look(shared))?;
        let disks =
            (0..request.nr_disks()).map(|number| Disk { name: format!("modelled{number}") });
        Ok(Served { disks: disks.collect(), clock: None, least_start_ns: LEAST_START_NS })
    }
}

/// Adds a disk with the queue that the request's schedulers need.
fn add(control: &File, request: &Request) -> Result<(), Failure> {
    let facts = &request.facts;
    let mut flags = 0;
    for (flag, is_set) in [
        (abi::ROTATIONAL, facts.rotational),
        (abi::WRITE_CACHE, facts.volatile_cache),
        (abi::MULTI_QUEUE, family(request)? == Family::MultiQueue),
        (abi::KEEPS_CONTENTS, request.options.filesystem.is_some()),
    ] {
        if is_set {
            flags |= flag;
        }
    }
    let discards = request.jobs.iter().any(|job| job.mode.trims);
    let wanted = abi::Add {
        sectors: facts.capacity_bytes / SECTOR_BYTES,
        max_sectors: facts.max_hw_sectors_kb / 4 * 4 * 1024 / SECTOR_BYTES as u32,
        depth: facts.queue_depth,
        flags,
        max_discard_sectors: if discards { MAX_DISCARD_SECTORS } else { 0 },
    };
    // SAFETY: the description outlives the call.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), abi::ADD as _, &raw const wanted) };
    checked("adding the disk", result).map(|_| ())
}

/// The request path of the schedulers of a request; one disk has one path.
fn family(request: &Request) -> Result<Family, Failure> {
    let turns = request.turns.iter().flat_map(|turns| &turns.slots).map(|slot| &slot.scheduler);
    // A scheduler that the simulator does not know comes from a later kernel's patch.
    let families: Vec<Family> = std::iter::once(&request.setup.scheduler)
        .chain(turns)
        .map(|name| elevator::info(name).map_or(Family::MultiQueue, |info| info.family))
        .collect();
    if families.iter().any(|family| *family != families[0]) {
        let message = "schedulers of the legacy path and of blk-mq cannot take turns on one disk";
        return Err(Failure::of(ErrorKind::OutOfRange, "switchback", message.to_owned()));
    }
    Ok(families[0])
}
