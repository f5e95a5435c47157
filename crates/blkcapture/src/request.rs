//! Requests: the devices to record, and the file to write.

use std::path::PathBuf;

use blkrecord::facts::Facts;
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// A recording, as the command line asks for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The file that a recording writes; it must not exist.
    #[serde(default)]
    pub output: PathBuf,
    /// The conditions; `devices` are those to be recorded.
    pub facts: Facts,
    /// The partitions of each device: bios name these, requests the whole device.
    pub partitions: Vec<Partition>,
    /// Bytes of the kernel's buffers together.
    pub buffer_bytes: u64,
    #[serde(default)]
    pub capture: Capture,
    /// The compiled BPF programs; `None` if this blklab has none.
    #[serde(default)]
    pub bpf_object: Option<PathBuf>,
    /// Mount point of the control group hierarchy with the I/O controller.
    #[serde(default)]
    pub cgroup_root: Option<PathBuf>,
}

/// A way of capturing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// The best one that works.
    #[default]
    Auto,
    Bpf,
    Tracefs,
}

/// A partition and its disk, by device number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    pub number: u32,
    pub disk: u32,
}

/// The devices to record, and the disk of each.
#[derive(Clone, Debug)]
pub struct Devices {
    disks: FxHashMap<u32, u32>,
}

impl Devices {
    pub fn of(request: &Request) -> Self {
        let whole = request.facts.devices.iter().map(|device| (device.number, device.number));
        let parts = request.partitions.iter().map(|part| (part.number, part.disk));
        Self { disks: whole.chain(parts).collect() }
    }

    /// The disk of a device or partition; `None` if it is not to be recorded.
    #[inline]
    pub fn disk(&self, number: u32) -> Option<u32> {
        self.disks.get(&number).copied()
    }

    /// The whole devices, sorted.
    pub fn disks(&self) -> Vec<u32> {
        let mut disks: Vec<u32> = self.disks.values().copied().collect();
        disks.sort_unstable();
        disks.dedup();
        disks
    }

    /// All numbers, sorted.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.disks.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}
