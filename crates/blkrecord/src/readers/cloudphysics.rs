//! Traces of virtual disks by `CloudPhysics` (Waldspurger et al., "SHARDS", FAST 2015): records of `vscsi`
//! tracing, in little-endian order. Version 1 has no response times, version 2 has. Times are in µs.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::clock::Clock;
use super::native::only;
use super::text::facts_of;
use super::{Format, RecordReader, Source};
use crate::batch::{BATCH_IOS, Batch};
use crate::error::{Place, RecordError, Warnings};
use crate::facts::{DeviceFacts, Facts, Tally};
use crate::io::{Io, Operation};
use crate::names::Names;

pub const FORMAT: Format = Format {
    name: "cloudphysics",
    summary: "CloudPhysics (binary vscsi records)",
    recognises: |head| version_of(head).is_some(),
    open,
    several: false,
};

const TICK_NS: u64 = 1000;
const BUFFER_BYTES: usize = 1 << 20;
/// Records by which a file is recognised, if it has as many.
const RECOGNISED: usize = 8;

/// The layout of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Number, length, elements, command and version, address, time.
    One,
    /// Command and version, number, length, elements, address, time, response time.
    Two,
}

impl Version {
    fn bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
struct Record {
    operation: Operation,
    bytes: u64,
    sector: u64,
    at_us: u64,
    response_us: Option<u64>,
}

impl Record {
    /// Reads a record; `None` if its command is none that moves data, or its version another one.
    fn of(bytes: &[u8], version: Version) -> Option<Self> {
        let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (number, command, length, after) = match version {
            Version::One => (1, 12, 4, 16),
            Version::Two => (2, 0, 8, 16),
        };
        if short(command + 2)? >> 8 != number {
            return None;
        }
        Some(Self {
            operation: operation(short(command)?)?,
            bytes: u64::from(word(length)?),
            sector: long(after)?,
            at_us: long(after + 8)?,
            response_us: if version == Version::Two { Some(long(after + 16)?) } else { None },
        })
    }
}

/// The operation of a SCSI command: READ and WRITE of 6, 10, 12 and 16 bytes.
fn operation(command: u16) -> Option<Operation> {
    match command & 0xff {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Operation::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Operation::Write),
        _ => None,
    }
}

fn version_of(head: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let mut records = head.chunks_exact(version.bytes()).take(RECOGNISED).peekable();
        records.peek().is_some() && records.all(|record| Record::of(record, *version).is_some())
    })
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, mut source) = only(files)?;
    let bytes = RECOGNISED * Version::Two.bytes();
    let head = source.peek(bytes).map_err(|error| RecordError::system(&path, error))?;
    let Some(version) = version_of(head) else {
        return Err(RecordError::format(Place::whole(&path), "no record of vscsi tracing"));
    };
    Ok(Reader::boxed(&path, source, version))
}

#[derive(Debug)]
struct Reader {
    path: PathBuf,
    source: BufReader<Source>,
    /// Bytes of the records so far.
    position: u64,
    version: Version,
    facts: Facts,
    names: Names,
    clock: Clock,
    tally: Tally,
    warnings: Warnings,
}

impl Reader {
    fn boxed(path: &Path, source: Source, version: Version) -> Box<dyn RecordReader> {
        let last = match version {
            Version::One => "completions",
            Version::Two => "queueing apart from the device",
        };
        let mut facts = facts_of(FORMAT.name, &["processes, priorities and control groups", last]);
        facts.devices.push(DeviceFacts { name: "disk".to_owned(), ..DeviceFacts::default() });
        Box::new(Self {
            path: path.to_owned(),
            source: BufReader::with_capacity(BUFFER_BYTES, source),
            position: 0,
            version,
            facts,
            names: Names::default(),
            clock: Clock::default(),
            tally: Tally::default(),
            warnings: Warnings::default(),
        })
    }

    fn warn(&mut self, at: u64, message: &str) {
        self.warnings.add(|| Place::byte(&self.path, at), || message.to_owned());
    }
}

impl RecordReader for Reader {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        let mut record = [0_u8; 40];
        let record = &mut record[..self.version.bytes()];
        while !self.tally.whole && batch.ios.len() < BATCH_IOS {
            let at = self.position;
            let mut filled = 0;
            while filled < record.len() {
                let read = self.source.read(&mut record[filled..]);
                match read.map_err(|error| RecordError::system(&self.path, error))? {
                    0 => break,
                    count => filled += count,
                }
            }
            self.position += filled as u64;
            if filled < record.len() {
                self.tally.whole = true;
                if filled > 0 {
                    self.warn(at, "the last record is cut off");
                }
                break;
            }
            let Some(found) = Record::of(record, self.version) else {
                self.warn(at, "neither a read nor a write");
                continue;
            };
            let queued = self.clock.at(found.at_us, TICK_NS);
            let mut io = Io::new(queued, found.operation, found.sector, found.bytes);
            if let Some(response_us) = found.response_us {
                io.completed = self.clock.after(queued, response_us.saturating_mul(TICK_NS));
            }
            self.tally.ios += 1;
            self.tally.incomplete += u64::from(!io.completed.is_known());
            batch.ios.push(io);
        }
        self.tally.span_ns = self.clock.latest_ns;
        Ok(!batch.is_empty())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
