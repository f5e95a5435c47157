//! One I/O: a bio from its queueing to its completion.

/// A moment in nanoseconds since the start of the record, or never.
///
/// Eight bytes instead of the sixteen of `Option<u64>`: a record has six of them per I/O.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// It did not happen, or the trace does not tell.
    pub const NEVER: Self = Self(u64::MAX);
    /// The latest moment that the file format can express: 146 years.
    pub const MAX_NS: u64 = (1 << 62) - 1;

    /// The moment `ns` nanoseconds after the start, at most [`Self::MAX_NS`].
    pub const fn at(ns: u64) -> Self {
        Self(if ns > Self::MAX_NS { Self::MAX_NS } else { ns })
    }

    /// Nanoseconds since the start; `None` for [`Self::NEVER`].
    pub const fn ns(self) -> Option<u64> {
        if self.0 == u64::MAX { None } else { Some(self.0) }
    }

    /// Nanoseconds since the start, `u64::MAX` for [`Self::NEVER`].
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether it happened.
    pub const fn is_known(self) -> bool {
        self.0 != u64::MAX
    }

    /// Nanoseconds from `earlier` to this moment; `None` if either is unknown, 0 if they are swapped.
    pub fn since(self, earlier: Self) -> Option<u64> {
        Some(self.ns()?.saturating_sub(earlier.ns()?))
    }
}

impl std::fmt::Debug for Moment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ns() {
            Some(ns) => write!(formatter, "{ns}ns"),
            None => formatter.write_str("never"),
        }
    }
}

/// The operation of an I/O: `enum req_op` of `linux/blk_types.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    Read = 0,
    Write = 1,
    Flush = 2,
    Discard = 3,
    SecureErase = 4,
    WriteZeroes = 5,
    ZoneAppend = 6,
    ZoneManagement = 7,
    Passthrough = 8,
    Other = 9,
}

impl Operation {
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::SecureErase,
        Self::WriteZeroes,
        Self::ZoneAppend,
        Self::ZoneManagement,
        Self::Passthrough,
        Self::Other,
    ];

    /// The operation with this number in a file.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::SecureErase => "secure erase",
            Self::WriteZeroes => "write zeroes",
            Self::ZoneAppend => "zone append",
            Self::ZoneManagement => "zone management",
            Self::Passthrough => "passthrough",
            Self::Other => "other",
        }
    }
}

/// How an I/O is done: the flags of `linux/blk_types.h` (`REQ_…`) that a scheduler or a device looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    pub const SYNC: Self = Self(1);
    pub const META: Self = Self(1 << 1);
    /// Forced unit access: the data are on the medium when the write completes.
    pub const FUA: Self = Self(1 << 2);
    /// The device's cache is flushed before the write.
    pub const PREFLUSH: Self = Self(1 << 3);
    /// Readahead: it may fail.
    pub const AHEAD: Self = Self(1 << 4);
    pub const PRIO: Self = Self(1 << 5);
    pub const IDLE: Self = Self(1 << 6);
    pub const BACKGROUND: Self = Self(1 << 7);
    pub const NOWAIT: Self = Self(1 << 8);
    pub const POLLED: Self = Self(1 << 9);
    pub const SWAP: Self = Self(1 << 10);

    /// Every flag with its name.
    pub const NAMES: [(Self, &'static str); 11] = [
        (Self::SYNC, "sync"),
        (Self::META, "meta"),
        (Self::FUA, "fua"),
        (Self::PREFLUSH, "preflush"),
        (Self::AHEAD, "ahead"),
        (Self::PRIO, "prio"),
        (Self::IDLE, "idle"),
        (Self::BACKGROUND, "background"),
        (Self::NOWAIT, "nowait"),
        (Self::POLLED, "polled"),
        (Self::SWAP, "swap"),
    ];

    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the kernel flushes the device's cache for it: before its data, or after them.
    pub const fn is_durable(self) -> bool {
        self.0 & (Self::FUA.0 | Self::PREFLUSH.0) != 0
    }

    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A process or thread that is unknown.
pub const UNKNOWN_TASK: u32 = u32::MAX;
/// A priority that the trace does not tell; 0 is `IOPRIO_CLASS_NONE`.
pub const UNKNOWN_IOPRIO: u16 = u16::MAX;
/// A processor that the trace does not tell.
pub const UNKNOWN_PROCESSOR: u16 = u16::MAX;
/// The segments of an I/O whose trace does not tell them.
pub const UNKNOWN_SEGMENTS: u16 = 0;
/// Bytes of a sector, in which the block layer counts whatever the device's own sectors are.
pub const SECTOR_BYTES: u64 = 512;

/// One bio, or one fragment of a bio that was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Submitted to the block layer (blktrace's Q).
    pub queued: Moment,
    /// Split from a larger bio, whose time of queueing it keeps (X).
    pub split: Moment,
    /// Merged into a request that waited already (M, F).
    pub merged: Moment,
    /// Its request was given to the scheduler (I).
    pub inserted: Moment,
    /// Its request was last given to the driver (D).
    pub issued: Moment,
    /// Completed (C).
    pub completed: Moment,
    /// First sector on the whole device, in units of 512 bytes.
    pub sector: u64,
    pub bytes: u64,
    pub operation: Operation,
    pub flags: Flags,
    /// Class in the upper three bits, level in the lower three (linux/ioprio.h).
    pub ioprio: u16,
    /// The error number of the completion; 0 for success.
    pub error: u16,
    /// Process of the task that submitted it.
    pub tgid: u32,
    /// Task (thread) that submitted it.
    pub tid: u32,
    /// Command of that task, in the record's [`crate::names::Names`].
    pub command: u32,
    /// Path of the control group that is charged, in the record's names.
    pub cgroup: u32,
    /// Processor that queued it.
    pub processor: u16,
    /// Pieces of memory that lie apart (`nr_phys_segments`), of a bio that was issued as a request by itself.
    pub segments: u16,
    /// Device number: major in the upper twelve bits, minor in the lower twenty.
    pub device: u32,
    /// Its place among those that were queued at the same moment, where a trace gives I/Os in another order.
    /// Not in our own format, whose clock is fine enough.
    pub order: u32,
}

impl Io {
    /// An I/O of which only the place, the size and the time of queueing are known.
    pub fn new(queued: Moment, operation: Operation, sector: u64, bytes: u64) -> Self {
        Self {
            queued,
            split: Moment::NEVER,
            merged: Moment::NEVER,
            inserted: Moment::NEVER,
            issued: Moment::NEVER,
            completed: Moment::NEVER,
            sector,
            bytes,
            operation,
            flags: Flags::default(),
            ioprio: UNKNOWN_IOPRIO,
            error: 0,
            tgid: UNKNOWN_TASK,
            tid: UNKNOWN_TASK,
            command: 0,
            cgroup: 0,
            processor: UNKNOWN_PROCESSOR,
            segments: UNKNOWN_SEGMENTS,
            device: 0,
            order: 0,
        }
    }

    /// The sector after its last.
    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(self.bytes.div_ceil(SECTOR_BYTES))
    }
}

/// A device number as the kernel keeps it (`MKDEV`).
pub const fn device_number(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}
