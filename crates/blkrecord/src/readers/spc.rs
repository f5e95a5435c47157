//! The trace format of the Storage Performance Council: `ASU,LBA,Size,Opcode,Timestamp`, in sectors, bytes and
//! seconds. The traces of OLTP and of a search engine of the University of Massachusetts are in it.

use std::path::PathBuf;

use super::fields::{integer, seconds_as_ns, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, Operation};

pub const FORMAT: Format = Format {
    name: "spc",
    summary: "SPC, as UMass's traces (CSV)",
    recognises,
    open,
    several: false,
};

const MISSING: [&str; 2] = ["processes, priorities and control groups", "completions"];

fn recognises(head: &[u8]) -> bool {
    let (fields, count) = separated::<5>(first_line(head), b',');
    count >= 5
        && fields[..3].iter().all(|field| integer(field).is_some())
        && operation(fields[3]).is_some()
        && seconds_as_ns(fields[4]).is_some()
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Spc, facts_of(FORMAT.name, &MISSING)))
}

fn operation(text: &[u8]) -> Option<Operation> {
    match text {
        b"R" | b"r" => Some(Operation::Read),
        b"W" | b"w" => Some(Operation::Write),
        _ => None,
    }
}

#[derive(Debug)]
struct Spc;

impl LineFormat for Spc {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        // Optional fields may follow.
        let (fields, count) = separated::<5>(line, b',');
        if count < 5 {
            return if line.trim_ascii().is_empty() {
                Line::Ignored
            } else {
                wrong("fewer than 5 fields")
            };
        }
        let (Some(sector), Some(bytes)) = (integer(fields[1]), integer(fields[2])) else {
            return wrong("an address or size is no number");
        };
        let Some(operation) = operation(fields[3]) else { return wrong("neither R nor W") };
        let Some(at_ns) = seconds_as_ns(fields[4]) else { return wrong("the time is no number") };
        let queued = trace.clock.at(at_ns, 1);
        let mut io = Io::new(queued, operation, sector, bytes);
        io.device = trace.device_named(fields[0]);
        trace.batch.ios.push(io);
        Line::Used
    }
}
