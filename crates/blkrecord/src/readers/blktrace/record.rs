//! One record: `struct blk_io_trace` and `struct blk_io_trace2` of `linux/blktrace_api.h`.

use crate::event::Action;
use crate::io::{Flags, Operation, UNKNOWN_PROCESSOR};

/// Byte order and version of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    big_endian: bool,
    /// Version 8: an action of 64 bits.
    wide: bool,
}

/// The upper three bytes of the magic; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;

impl Layout {
    /// The layout of a file that begins with these bytes.
    #[inline]
    pub fn of(head: &[u8]) -> Option<Self> {
        let bytes = *head.first_chunk::<4>()?;
        let (little, big) = (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes));
        let (big_endian, version) = if little & !0xff == MAGIC {
            (false, little & 0xff)
        } else if big & !0xff == MAGIC {
            (true, big & 0xff)
        } else {
            return None;
        };
        match version {
            7 => Some(Self { big_endian, wide: false }),
            8 => Some(Self { big_endian, wide: true }),
            _ => None,
        }
    }

    /// The first four bytes of every record.
    pub fn magic(self) -> [u8; 4] {
        let magic = MAGIC | if self.wide { 8 } else { 7 };
        if self.big_endian { magic.to_be_bytes() } else { magic.to_le_bytes() }
    }

    /// Bytes of a record without its payload.
    #[inline]
    pub fn bytes(self) -> usize {
        if self.wide { 64 } else { 48 }
    }

    /// The first two words of a payload.
    pub fn two_words(self, payload: &[u8]) -> Option<(u32, u32)> {
        let (first, rest) = payload.split_first_chunk::<4>()?;
        Some((self.word(*first), self.word(*rest.first_chunk()?)))
    }

    #[inline]
    fn word(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    #[inline]
    pub fn long(self, bytes: [u8; 8]) -> u64 {
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// Reads a record whose magic was checked; `record` has [`Self::bytes`] bytes.
    #[inline]
    pub fn header(self, record: &[u8]) -> Header {
        let word = |at: usize| self.word(chunk(record, at));
        let long = |at: usize| self.long(chunk(record, at));
        let short = |at: usize| {
            let bytes: [u8; 2] = chunk(record, at);
            if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let (action, pid, after) =
            if self.wide { (long(32), word(28), 40) } else { (u64::from(word(28)), word(32), 36) };
        Header {
            sequence: word(4),
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action,
            pid,
            device: word(after),
            processor: u16::try_from(word(after + 4)).unwrap_or(UNKNOWN_PROCESSOR),
            // The kernel stores −errno in 16 bits.
            error: (short(after + 8) as i16).unsigned_abs(),
            payload_bytes: short(after + 10),
        }
    }
}

/// Which events the beginnings of a trace's files have.
#[derive(Debug, Default)]
pub struct Seen {
    queued: bool,
    issued: bool,
}

impl Seen {
    /// Looks at the whole records at the beginning of a file.
    pub fn add(&mut self, mut head: &[u8]) {
        while let Some(layout) = Layout::of(head)
            && head.len() >= layout.bytes()
        {
            let header = layout.header(head);
            match header.kind() {
                Kind::Io(Action::Queue) => self.queued = true,
                Kind::Io(Action::Issue) => self.issued = true,
                _ => {}
            }
            head = head.get(layout.bytes() + usize::from(header.payload_bytes)..).unwrap_or(&[]);
        }
    }

    /// Whether the trace was made of issues and completions alone (`blktrace -a issue -a complete`).
    pub fn begins_with_issues(&self) -> bool {
        self.issued && !self.queued
    }
}

#[inline]
fn chunk<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// The fields of a record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    pub sequence: u32,
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    /// The action in the lower 16 bits, the categories above.
    pub action: u64,
    pub pid: u32,
    pub device: u32,
    pub processor: u16,
    pub error: u16,
    pub payload_bytes: u16,
}

/// The subject of a record.
pub enum Kind {
    Io(Action),
    Notice,
    Other,
}

/// A record about the trace itself.
pub enum Notice {
    Process,
    Date,
    Other,
}

/// `__BLK_TA_CGROUP`: the payload begins with the control group's number.
const CGROUP: u64 = 1 << 8;

impl Header {
    fn category(&self, bit: u32) -> bool {
        self.action >> (16 + bit) & 1 == 1
    }

    #[inline]
    pub fn has_cgroup(&self) -> bool {
        self.action & CGROUP != 0
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        if self.category(10) {
            return Kind::Notice;
        }
        Kind::Io(match self.action & 0xff {
            1 => Action::Queue,
            2 => Action::BackMerge,
            3 => Action::FrontMerge,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            12 => Action::Insert,
            13 => Action::Split,
            // Allocation, sleeping, plugging, bouncing, remapping, driver data.
            _ => return Kind::Other,
        })
    }

    pub fn notice(&self) -> Notice {
        match self.action & 0xff {
            0 => Notice::Process,
            1 => Notice::Date,
            _ => Notice::Other,
        }
    }

    /// Operation and flags, by the categories (`fill_rwbs` in kernel/trace/blktrace.c).
    #[inline]
    pub fn operation(&self) -> (Operation, Flags) {
        let flush = self.category(2);
        let write = self.category(1);
        let mut flags = Flags::default();
        for (bit, flag) in
            [(15, Flags::FUA), (11, Flags::AHEAD), (3, Flags::SYNC), (12, Flags::META)]
        {
            if self.category(bit) {
                flags = flags.with(flag);
            }
        }
        let operation = if self.category(13) {
            Operation::Discard
        } else if write {
            Operation::Write
        } else if flush && self.bytes == 0 {
            return (Operation::Flush, flags);
        } else if self.category(9) {
            Operation::Passthrough
        } else {
            Operation::Read
        };
        if flush {
            flags = flags.with(Flags::PREFLUSH);
        }
        (operation, flags)
    }
}
