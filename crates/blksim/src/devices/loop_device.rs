//! `loop`: a device that a thread of the machine itself serves from memory, one command after the
//! other, as the loop driver does on tmpfs (`loop_process_work` in `drivers/block/loop.c`).
//!
//! On a machine whose computing takes time, the thread takes what the machine's cost table says, from
//! the other tasks. Elsewhere it has a processor of its own, and the parameters say how long it takes.
//! Percentages tell reads from writes, for which the file system has to find or allocate pages.

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
    percentage(
        "read_command_percent",
        "a read's part of `command`, or of the cost table's `thread_command_ns`",
    ),
    percentage("read_copy_percent", "a read's part of the time for copying"),
    percentage(
        "write_command_percent",
        "a write's part of `command`, or of the cost table's `thread_command_ns`",
    ),
    percentage("write_copy_percent", "a write's part of the time for copying"),
    // `LOOP_DEFAULT_HW_Q_DEPTH` in `drivers/block/loop.c`, Linux 6.1.
    Param::new("depth", Unit::Count, 128, (1, 65_536), "commands that it takes at once"),
    Param::new("capacity", Unit::Bytes, 1 << 30, (1 << 20, 1 << 56), "size"),
];

const fn percentage(name: &'static str, meaning: &'static str) -> Param {
    Param::new(name, Unit::Percent, 100, (1, 10_000), meaning)
}

/// The parts of the usual times that one direction takes.
#[derive(Debug, Clone, Copy)]
struct Percentages {
    command: u64,
    copy: u64,
}

impl Percentages {
    fn of_ns(self, command_ns: u64, copying_ns: u64) -> u64 {
        (self.command * command_ns + self.copy * copying_ns) / 100
    }
}

#[derive(Debug, Clone)]
pub struct LoopDevice {
    facts: Facts,
    copier: Copier,
    reads: Percentages,
    writes: Percentages,
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
            reads: Percentages {
                command: values.get("read_command_percent"),
                copy: values.get("read_copy_percent"),
            },
            writes: Percentages {
                command: values.get("write_command_percent"),
                copy: values.get("write_copy_percent"),
            },
        })
    }
}

impl Device for LoopDevice {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn submit(&mut self, command: Command, outbox: &mut Outbox) {
        let (command_ns, copying_ns) =
            self.copier.times_ns(u64::from(command.nr_sectors) * SECTOR_BYTES);
        let work_ns = self.thread_work_ns(command.operation, command_ns, copying_ns);
        let done_ns = self.copier.work(work_ns, outbox.now_ns());
        outbox.complete_at(done_ns, command.id);
    }

    fn is_served_by_thread(&self) -> bool {
        true
    }

    fn thread_work_ns(&self, operation: Operation, command_ns: u64, copying_ns: u64) -> u64 {
        match operation {
            Operation::Read => self.reads.of_ns(command_ns, copying_ns),
            // It punches a hole; nothing is copied.
            Operation::Discard => self.writes.of_ns(command_ns, 0),
            _ => self.writes.of_ns(command_ns, copying_ns),
        }
    }

    fn worked(&mut self, work_ns: u64) {
        self.copier.worked(work_ns);
    }

    fn busy_ns(&self) -> u64 {
        self.copier.busy_ns()
    }
}
