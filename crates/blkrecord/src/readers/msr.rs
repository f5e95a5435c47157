//! MSR Cambridge block traces (Narayanan, Donnelly and Rowstron, "Write off-loading", FAST 2008):
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in units of 100 ns since 1601.

use std::path::PathBuf;

use super::fields::{integer, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, exactly, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, Operation, SECTOR_BYTES};

pub const FORMAT: Format =
    Format { name: "msr", summary: "MSR Cambridge (CSV)", recognises, open, several: false };

const TICK_NS: u64 = 100;
/// Ticks from 1601 to 1970.
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;
const MISSING: [&str; 2] =
    ["processes, priorities and control groups", "queueing apart from the device"];

fn recognises(head: &[u8]) -> bool {
    let line = first_line(head);
    let (fields, count) = separated::<7>(line, b',');
    let numbers = [fields[0], fields[2], fields[4], fields[5], fields[6]];
    line.starts_with(b"Timestamp,Hostname,")
        || (count == 7
            && numbers.iter().all(|field| integer(field).is_some())
            && operation(fields[3]).is_some())
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Msr::default(), facts_of(FORMAT.name, &MISSING)))
}

fn operation(text: &[u8]) -> Option<Operation> {
    match text {
        b"Read" | b"read" | b"R" => Some(Operation::Read),
        b"Write" | b"write" | b"W" => Some(Operation::Write),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Msr {
    /// Host and disk of the line before, and their device.
    last: (Vec<u8>, u32),
}

impl Msr {
    fn device(&mut self, host: &[u8], disk: &[u8], trace: &mut Trace) -> u32 {
        let name = &self.last.0;
        let same = name.len() == host.len() + disk.len() + 1
            && name.starts_with(host)
            && name.ends_with(disk)
            && name[host.len()] == b'_';
        if !same || trace.facts.devices.is_empty() {
            let name = [host, b"_", disk].concat();
            self.last = (name.clone(), trace.device_named(&name));
        }
        self.last.1
    }
}

impl LineFormat for Msr {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let fields = match exactly::<7>(line) {
            Ok(fields) => fields,
            Err(outcome) => return outcome,
        };
        if fields[0] == b"Timestamp" {
            return Line::Ignored;
        }
        let numbers = [fields[0], fields[4], fields[5], fields[6]].map(integer);
        let [Some(ticks), Some(offset), Some(bytes), Some(response)] = numbers else {
            return wrong("a time, offset, size or response time is no number");
        };
        let Some(operation) = operation(fields[3]) else { return wrong("neither Read nor Write") };
        if trace.facts.started_unix_ns.is_none() {
            let since_1970 =
                ticks.checked_sub(UNIX_EPOCH_TICKS).and_then(|ticks| ticks.checked_mul(TICK_NS));
            trace.facts.started_unix_ns = since_1970;
        }
        let queued = trace.clock.at(ticks, TICK_NS);
        let mut io = Io::new(queued, operation, offset / SECTOR_BYTES, bytes);
        io.completed = trace.clock.after(queued, response.saturating_mul(TICK_NS));
        io.device = self.device(fields[1], fields[2], trace);
        trace.batch.ios.push(io);
        Line::Used
    }
}
