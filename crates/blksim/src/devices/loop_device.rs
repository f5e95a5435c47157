//! `loop`: a device that a thread of the machine itself serves from memory, one command after the
//! other, as the loop driver does on tmpfs (`loop_process_work` in `drivers/block/loop.c`).
//!
//! On a machine whose computing takes time, the thread takes what the machine's cost table says, from
//! the other tasks. Elsewhere it has a processor of its own, and the parameters say how long it takes.

use crate::block::request::{Operation, SECTOR_BYTES};
use crate::core::error::ProfileError;
use crate::core::params::{Param, Unit, Values};
use crate::devices::copier::Copier;
use crate::devices::device::{Command, Device, Facts, Outbox};

pub const SUMMARY: &str = "loop device over memory: a thread copies, one command after the other";

pub const PARAMETERS: &[Param] = &[
    Param::new(
        "command",
        Unit::Nanoseconds,
        1_000,
        (1, 1_000_000_000),
        "processor time of a command without the copying",
    ),
    Param::new(
        "copy_bandwidth",
        Unit::BytesPerSecond,
        4 << 30,
        (1 << 20, 1 << 44),
        "speed of the copying",
    ),
    // `LOOP_DEFAULT_HW_Q_DEPTH` in `drivers/block/loop.c`, Linux 6.1.
    Param::new("depth", Unit::Count, 128, (1, 65_536), "commands that it takes at once"),
    Param::new("capacity", Unit::Bytes, 1 << 30, (1 << 20, 1 << 56), "size"),
];

#[derive(Debug, Clone)]
pub struct LoopDevice {
    facts: Facts,
    copier: Copier,
}

impl LoopDevice {
    #[expect(clippy::unnecessary_wraps, reason = "all devices are built alike")]
    pub fn new(values: &Values, _source: &str, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            facts: Facts {
                capacity_bytes: values.get("capacity") / SECTOR_BYTES * SECTOR_BYTES,
                rotational: false,
                queue_depth: values.get("depth") as u32,
                nr_hw_queues: 1,
                shares_tags: false,
                bio_based: false,
                volatile_cache: false,
                discards: true,
                // `BLK_DEF_MAX_SECTORS` in `include/linux/blkdev.h`, Linux 6.1.
                max_hw_sectors_kb: 1280,
            },
            copier: Copier::new(values),
        })
    }
}

impl Device for LoopDevice {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        // A discard punches a hole; nothing is copied.
        let copied = if command.operation == Operation::Discard { 0 } else { command.nr_sectors };
        let done_ns = self.copier.serve(u64::from(copied) * SECTOR_BYTES, outbox.now_ns());
        outbox.complete_at(done_ns, command.id);
    }

    fn is_served_by_thread(&self) -> bool {
        true
    }

    fn worked(&mut self, work_ns: u64) {
        self.copier.worked(work_ns);
    }

    fn busy_ns(&self) -> u64 {
        self.copier.busy_ns()
    }
}
