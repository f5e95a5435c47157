//! Thesios, Google's synthesized traces of disks (Phothilimthana et al., ASPLOS 2024): CSV with a heading.
//!
//! Reads that a cache served did not reach the disk and are left out. Offsets are within files, so positions on
//! the disk are unknown; the application stands for the process.

use std::path::PathBuf;

use super::fields::{integer, seconds_as_ns, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, Operation, SECTOR_BYTES};

pub const FORMAT: Format = Format {
    name: "thesios",
    summary: "Thesios of Google (CSV)",
    recognises: |head| first_line(head).starts_with(HEADING),
    open,
    several: false,
};

const HEADING: &[u8] = b"filename,file_offset,application,";
const MISSING: [&str; 3] = [
    "processes, priorities and control groups",
    "queueing apart from the device",
    "positions on the disk: offsets are within files",
];
const MOST_FIELDS: usize = 32;

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(TextReader::boxed(&path, source, Thesios::default(), facts_of(FORMAT.name, &MISSING)))
}

/// Places of the columns, from the heading.
#[derive(Clone, Copy, Debug)]
struct Columns {
    operation: usize,
    bytes: usize,
    disk_bytes: usize,
    start: usize,
    latency: usize,
}

#[derive(Debug, Default)]
struct Thesios {
    columns: Option<Columns>,
}

impl Columns {
    fn of(fields: &[&[u8]]) -> Option<Self> {
        let place = |name: &[u8]| fields.iter().position(|field| *field == name);
        Some(Self {
            operation: place(b"op_type")?,
            bytes: place(b"request_io_size_bytes")?,
            disk_bytes: place(b"disk_io_size_bytes")?,
            start: place(b"start_time")?,
            latency: place(b"simulated_latency").or_else(|| place(b"latency"))?,
        })
    }
}

/// Seconds, also as Python writes small numbers: `1e-05`.
fn any_seconds_as_ns(text: &[u8]) -> Option<u64> {
    seconds_as_ns(text).or_else(|| {
        let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        (seconds.is_finite() && (0.0..1e10).contains(&seconds)).then_some((seconds * 1e9) as u64)
    })
}

impl LineFormat for Thesios {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let (fields, count) = separated::<MOST_FIELDS>(line, b',');
        if line.starts_with(HEADING) {
            self.columns = Columns::of(&fields[..count.min(MOST_FIELDS)]);
            return Line::Ignored;
        }
        if line.trim_ascii().is_empty() {
            return Line::Ignored;
        }
        let Some(columns) = self.columns else { return wrong("the heading lacks a column") };
        let operation = match fields[columns.operation] {
            b"READ" => Operation::Read,
            b"WRITE" => Operation::Write,
            _ => return wrong("neither READ nor WRITE"),
        };
        let numbers = [fields[1], fields[columns.bytes], fields[columns.disk_bytes]].map(integer);
        let [Some(offset), Some(bytes), Some(disk_bytes)] = numbers else {
            return wrong("an offset or size is no number");
        };
        let times = [fields[columns.start], fields[columns.latency]].map(any_seconds_as_ns);
        let [Some(start_ns), Some(latency_ns)] = times else { return wrong("a time is no number") };
        if operation == Operation::Read && disk_bytes == 0 {
            return Line::Ignored;
        }
        if trace.facts.started_unix_ns.is_none() {
            trace.facts.started_unix_ns = Some(start_ns);
        }
        let queued = trace.clock.at(start_ns, 1);
        let size = if operation == Operation::Read { disk_bytes } else { bytes };
        let mut io = Io::new(queued, operation, offset / SECTOR_BYTES, size);
        io.completed = trace.clock.after(queued, latency_ns);
        io.command = trace.names.number_of_bytes(fields[2]);
        io.device = trace.device_named(b"disk");
        trace.batch.ios.push(io);
        Line::Used
    }
}
