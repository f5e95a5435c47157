//! The parameters of a device profile that make an array of such disks.

use crate::core::params::{Param, Unit, Values};

/// Parameters that turn a device profile into an array.
pub const RAID: &[Param] = &[
    Param::choice("raid", &["none", "0", "1", "10", "5"], 0, "level of an array of such disks"),
    Param::new("members", Unit::Count, 4, (2, 32), "disks of the array"),
    Param::new("chunk", Unit::Bytes, 512 << 10, (4096, 1 << 30), "chunk of the array"),
];

/// The data layout of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaidLevel {
    Stripes,
    Mirrors,
    StripedMirrors,
    Parity,
}

impl RaidLevel {
    /// The level that values of [`RAID`] ask for; `None` for a single disk.
    pub fn of(values: &Values) -> Option<Self> {
        match values.word("raid") {
            "0" => Some(Self::Stripes),
            "1" => Some(Self::Mirrors),
            "10" => Some(Self::StripedMirrors),
            "5" => Some(Self::Parity),
            _ => None,
        }
    }
}
