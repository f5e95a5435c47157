//! The first disk's device, as a picture needs it: its arm, and the places of sectors on its platters.

use crate::devices::device::Facts;
use crate::devices::{AnyDevice, Geometry, Motion};
use crate::live::LiveSimulation;

/// The arm and the platters of a disk.
#[derive(Debug, Clone, Copy)]
pub struct Arm<'a> {
    pub motion: Motion,
    geometry: &'a Geometry,
}

/// A place on a platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlatterPlace {
    pub cylinder: u32,
    /// A sector is under the heads whenever the time is this modulo a revolution.
    pub angle_ns: u64,
}

impl Arm<'_> {
    pub fn revolution_ns(&self) -> u64 {
        self.geometry.revolution_ns
    }

    pub fn cylinders(&self) -> u32 {
        self.geometry.locate(self.geometry.capacity_sectors - 1).cylinder + 1
    }

    /// The place of a sector.
    pub fn place(&self, sector: u64) -> PlatterPlace {
        let place = self.geometry.locate(sector.min(self.geometry.capacity_sectors - 1));
        let angle_ns = place.clock_ns % self.geometry.revolution_ns;
        PlatterPlace { cylinder: place.cylinder, angle_ns }
    }
}

impl LiveSimulation {
    /// Properties of the device, or of the array.
    pub fn facts(&self) -> &Facts {
        &self.simulation.facts
    }

    /// Requests that the first disk's device has got so far.
    pub fn nr_dispatched(&self) -> u64 {
        self.simulation.engine.machine().block.disks[0].counters.requests
    }

    /// The arm of the first disk; `None` if it has none.
    pub fn arm(&self) -> Option<Arm<'_>> {
        match &self.simulation.engine.machine().block.disks[0].device {
            AnyDevice::Hdd(disk) => Some(Arm { motion: disk.motion(), geometry: disk.geometry() }),
            _ => None,
        }
    }
}
