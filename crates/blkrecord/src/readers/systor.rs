//! SYSTOR '17 traces (Lee et al., "Understanding storage traffic characteristics on enterprise virtual
//! desktop infrastructure"): `Timestamp,Response,IOType,LUN,Offset,Size`, times in seconds since 1970.

use std::path::PathBuf;

use super::fields::{integer, read_or_write, seconds_as_ns, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, exactly, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, SECTOR_BYTES};

pub const FORMAT: Format =
    Format { name: "systor", summary: "SYSTOR '17 (CSV)", recognises, open, several: false };

const MISSING: [&str; 2] =
    ["processes, priorities and control groups", "queueing apart from the device"];

fn recognises(head: &[u8]) -> bool {
    let line = first_line(head);
    let (fields, count) = separated::<6>(line, b',');
    line.starts_with(b"Timestamp,Response,IOType")
        || (count == 6
            && seconds_as_ns(fields[0]).is_some()
            && read_or_write(fields[2]).is_some()
            && integer(fields[4]).is_some()
            && integer(fields[5]).is_some())
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Systor, facts_of(FORMAT.name, &MISSING)))
}

#[derive(Debug)]
struct Systor;

impl LineFormat for Systor {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let fields = match exactly::<6>(line) {
            Ok(fields) => fields,
            Err(outcome) => return outcome,
        };
        if fields[0] == b"Timestamp" {
            return Line::Ignored;
        }
        let Some(at_ns) = seconds_as_ns(fields[0]) else { return wrong("the time is no number") };
        let (Some(offset), Some(bytes)) = (integer(fields[4]), integer(fields[5])) else {
            return wrong("an offset or size is no number");
        };
        let Some(operation) = read_or_write(fields[2]) else { return wrong("neither R nor W") };
        trace.facts.started_unix_ns.get_or_insert(at_ns);
        let queued = trace.clock.at(at_ns, 1);
        let mut io = Io::new(queued, operation, offset / SECTOR_BYTES, bytes);
        // Some I/Os have no response time.
        if let Some(response) = seconds_as_ns(fields[1]) {
            io.completed = trace.clock.after(queued, response);
        }
        io.device = trace.device_named(fields[3]);
        trace.batch.ios.push(io);
        Line::Used
    }
}
