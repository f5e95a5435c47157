//! The parameters of the machine around the queue.

use crate::block::attributes::MAX_REQUESTS;
use crate::block::kernel_version::{KERNEL, RELEASES};
use crate::core::params::{Param, Unit};

/// The simulated machine around the queue.
pub const MACHINE: &[Param] = &[
    Param::choice(KERNEL, RELEASES, 0, "release of Linux that blk-mq and its schedulers follow"),
    Param::new(
        "hz",
        Unit::Count,
        100,
        (24, 1200),
        "ticks a second of the kernel's clock (CONFIG_HZ), which drives its coarse timers",
    ),
    Param::flag(
        "zero_cpu_time",
        0,
        "computing takes no time at all, as in a guest in virtual time; copying is paid for before a \
         buffered call",
    ),
    Param::flag(
        "raw_device",
        0,
        "there is no file system, so all files are one to the kernel, the device: a file's first read is \
         in its middle, and fsync writes all of it",
    ),
    Param::flag(
        "hide_queue_depth",
        0,
        "the driver hides the device's queue depth from the kernel (only SCSI drivers report it); writeback \
         throttling and io.cost use the queue's first nr_requests instead",
    ),
    Param::flag(
        "plug_reads",
        0,
        "each direct read has a plug of its own, as each direct write has, so that the submitting task runs the \
         queue and not the queue's worker; some studies patch their kernels so",
    ),
    Param::new(
        "first_tag",
        Unit::Count,
        0,
        (0, MAX_REQUESTS - 1),
        "tag at which a queue's first search for a free tag begins, unless an arrangement draws it, as a kernel does",
    ),
    Param::new(
        "memory",
        Unit::Bytes,
        4 << 30,
        (64 << 20, 1 << 44),
        "memory that free pages and the page cache share",
    ),
    Param::new(
        "copy_bandwidth",
        Unit::BytesPerSecond,
        10 << 30,
        (1 << 20, 1 << 44),
        "speed of copying between the page cache and a program",
    ),
    Param::new(
        "system_call",
        Unit::Nanoseconds,
        400,
        (1, 1_000_000),
        "processor time of a buffered read or write without the copying",
    ),
    Param::new(
        "dirty_background_ratio",
        Unit::Percent,
        10,
        (0, 100),
        "dirty share at which the flusher starts",
    ),
    Param::new("dirty_ratio", Unit::Percent, 20, (1, 100), "dirty share that is never exceeded"),
    Param::new(
        "dirty_background_bytes",
        Unit::Bytes,
        0,
        (0, 1 << 50),
        "dirty data at which the flusher starts, in place of the share; 0: the share counts",
    ),
    Param::new(
        "dirty_bytes",
        Unit::Bytes,
        0,
        (0, 1 << 50),
        "dirty data that is never exceeded, in place of the share; 0: the share counts",
    ),
    Param::new(
        "dirty_expire_centisecs",
        Unit::Centiseconds,
        3000,
        (1, 360_000),
        "age at which dirty data is written",
    ),
    Param::new(
        "dirty_writeback_centisecs",
        Unit::Centiseconds,
        500,
        (1, 360_000),
        "period of the flusher",
    ),
];
