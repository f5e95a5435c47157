//! The transport that serves the disks of a run: a driver of the kernel, and this program's side of it.
//!
//! Loads, settings and switchbacks see disks, and do not know what serves them.

use std::fmt;

use crate::disk::Disk;
use crate::failure::Failure;
use crate::modelled_disk::ModelledDisk;
use crate::null_blk::NullBlk;
use crate::request::{Driver, Request};
use crate::shared_memory::SharedMemory;
use crate::ublk::Ublk;

/// Makes disks.
pub trait Transport {
    /// Creates the disks of a request, and starts what serves them.
    fn start(&self, request: &Request, shared: SharedMemory) -> Result<Served, Failure>;
}

/// Disks that are served.
#[derive(Debug)]
pub struct Served {
    pub disks: Vec<Disk>,
    /// Tells the device's time without a system call, where that is possible.
    pub clock: Option<&'static dyn DeviceClock>,
    /// Guest time before which no load begins.
    pub least_start_ns: u64,
}

/// The device's time between two announcements of its server.
pub trait DeviceClock: fmt::Debug {
    /// Time of the last event of the device that its server has not announced yet.
    fn unseen_ns(&self) -> Option<u64>;
}

/// The transport of a driver.
pub fn transport_of(driver: Driver) -> &'static dyn Transport {
    match driver {
        Driver::Ublk => &Ublk,
        Driver::ModelledDisk => &ModelledDisk,
        Driver::NullBlk => &NullBlk,
    }
}
