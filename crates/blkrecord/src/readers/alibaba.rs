//! Alibaba Cloud block traces (Li et al., "An in-depth analysis of cloud block storage workloads in
//! large-scale production", IISWC 2020): `device_id,opcode,offset,length,timestamp`, times in µs.

use std::path::PathBuf;

use super::fields::{integer, read_or_write, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, exactly, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, SECTOR_BYTES};

pub const FORMAT: Format =
    Format { name: "alibaba", summary: "Alibaba Cloud (CSV)", recognises, open, several: false };

const MISSING: [&str; 2] = ["processes, priorities and control groups", "completions"];

fn recognises(head: &[u8]) -> bool {
    let line = first_line(head);
    let (fields, count) = separated::<5>(line, b',');
    let numbers = [fields[0], fields[2], fields[3], fields[4]];
    line.starts_with(b"device_id,opcode,")
        || (count == 5
            && numbers.iter().all(|field| integer(field).is_some())
            && read_or_write(fields[1]).is_some())
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Alibaba, facts_of(FORMAT.name, &MISSING)))
}

#[derive(Debug)]
struct Alibaba;

impl LineFormat for Alibaba {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let fields = match exactly::<5>(line) {
            Ok(fields) => fields,
            Err(outcome) => return outcome,
        };
        if fields[0] == b"device_id" {
            return Line::Ignored;
        }
        let numbers = [fields[2], fields[3], fields[4]].map(integer);
        let [Some(offset), Some(bytes), Some(at_us)] = numbers else {
            return wrong("an offset, length or time is no number");
        };
        let Some(operation) = read_or_write(fields[1]) else { return wrong("neither R nor W") };
        if trace.facts.started_unix_ns.is_none() {
            trace.facts.started_unix_ns = at_us.checked_mul(1000);
        }
        let queued = trace.clock.at(at_us, 1000);
        let mut io = Io::new(queued, operation, offset / SECTOR_BYTES, bytes);
        io.device = trace.device_named(fields[0]);
        trace.batch.ios.push(io);
        Line::Used
    }
}
