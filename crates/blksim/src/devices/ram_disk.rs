//! `ramdisk`: memory that the submitting task itself copies from or to, as the brd driver does
//! (`brd_submit_bio` in `drivers/block/brd.c`, Linux 6.1). It takes bios, not requests: there is no
//! request queue, so nothing is scheduled, merged or plugged, and an I/O is complete when its submission
//! returns.
//!
//! On a machine whose computing takes time, a task pays what the machine's cost table says: a bio on its
//! way (`submit_ns`), the copying, and its end (`end_ns`). Elsewhere one processor does all copying, and
//! the parameters say how long it takes.

use crate::block::request::SECTOR_BYTES;
use crate::core::error::ProfileError;
use crate::core::params::{Param, Unit, Values};
use crate::devices::copier::Copier;
use crate::devices::device::{Command, Device, Facts, Outbox};

pub const SUMMARY: &str = "RAM disk: the submitting task copies; there is no queue to schedule";

pub const PARAMETERS: &[Param] = &[
    Param::new(
        "command",
        Unit::Nanoseconds,
        300,
        (1, 1_000_000_000),
        "processor time of a command without the copying",
    ),
    Param::new(
        "copy_bandwidth",
        Unit::BytesPerSecond,
        10 << 30,
        (1 << 20, 1 << 44),
        "speed of the copying",
    ),
    Param::new("capacity", Unit::Bytes, 1 << 30, (1 << 20, 1 << 56), "size"),
];

/// Nothing limits the bios under way; the model needs a number.
const DEPTH: u32 = 65_536;

#[derive(Debug, Clone)]
pub struct RamDisk {
    facts: Facts,
    copier: Copier,
}

impl RamDisk {
    #[expect(clippy::unnecessary_wraps, reason = "all devices are built alike")]
    pub fn new(values: &Values, _source: &str, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            facts: Facts {
                capacity_bytes: values.get("capacity") / SECTOR_BYTES * SECTOR_BYTES,
                rotational: false,
                queue_depth: DEPTH,
                nr_hw_queues: 1,
                shares_tags: false,
                bio_based: true,
                volatile_cache: false,
                discards: false,
                max_hw_sectors_kb: 1280,
            },
            copier: Copier::new(values),
        })
    }
}

impl Device for RamDisk {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        let bytes = u64::from(command.nr_sectors) * SECTOR_BYTES;
        let done_ns = self.copier.serve(bytes, outbox.now_ns());
        outbox.complete_at(done_ns, command.id);
    }

    fn worked(&mut self, work_ns: u64) {
        self.copier.worked(work_ns);
    }

    fn busy_ns(&self) -> u64 {
        self.copier.busy_ns()
    }
}
