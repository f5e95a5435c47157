//! Tencent Cloud block storage (Zhang et al., "OSCA", ATC 2020; SNIA trace 27917):
//! `Timestamp,Offset,Size,IOType,VolumeID`, in seconds and sectors; 0 is a read, 1 a write.

use std::path::PathBuf;

use super::fields::{integer, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, exactly, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, Operation, SECTOR_BYTES};

pub const FORMAT: Format =
    Format { name: "tencent", summary: "Tencent Cloud (CSV)", recognises, open, several: false };

const MISSING: [&str; 3] =
    ["processes, priorities and control groups", "completions", "times within a second"];
/// Seconds since 1970 of which a trace may be: from 2001 to 2286.
const DATES: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

fn recognises(head: &[u8]) -> bool {
    let line = first_line(head);
    let (fields, count) = separated::<5>(line, b',');
    count == 5
        && fields.iter().all(|field| integer(field).is_some())
        && integer(fields[0]).is_some_and(|seconds| DATES.contains(&seconds))
        && operation(fields[3]).is_some()
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Tencent, facts_of(FORMAT.name, &MISSING)))
}

fn operation(text: &[u8]) -> Option<Operation> {
    match text {
        b"0" => Some(Operation::Read),
        b"1" => Some(Operation::Write),
        _ => None,
    }
}

#[derive(Debug)]
struct Tencent;

impl LineFormat for Tencent {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let fields = match exactly::<5>(line) {
            Ok(fields) => fields,
            Err(outcome) => return outcome,
        };
        let [Some(seconds), Some(sector), Some(sectors)] =
            [fields[0], fields[1], fields[2]].map(integer)
        else {
            return wrong("a time, offset or size is no number");
        };
        let Some(operation) = operation(fields[3]) else { return wrong("neither 0 nor 1") };
        let Some(bytes) = sectors.checked_mul(SECTOR_BYTES) else {
            return wrong("an impossible size");
        };
        if trace.facts.started_unix_ns.is_none() {
            trace.facts.started_unix_ns = seconds.checked_mul(SECOND_NS);
        }
        let queued = trace.clock.at(seconds, SECOND_NS);
        let mut io = Io::new(queued, operation, sector, bytes);
        io.device = trace.device_named(fields[4]);
        trace.batch.ios.push(io);
        Line::Used
    }
}
