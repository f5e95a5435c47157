//! fio's I/O logs (`write_iolog`): version 2 (`FILE ACTION OFFSET LENGTH`, with `wait` in µs) and version 3
//! (a time in µs before each line).

use std::path::PathBuf;

use super::fields::{integer, word};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, first_line, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Flags, Io, Operation, SECTOR_BYTES};

pub const FORMAT_2: Format = Format {
    name: "fio-iolog-2",
    summary: "fio's write_iolog, version 2",
    recognises: |head| first_line(head) == HEADING_2,
    open: |files| open(files, false),
    several: false,
};

pub const FORMAT_3: Format = Format {
    name: "fio-iolog-3",
    summary: "fio's write_iolog, version 3",
    recognises: |head| first_line(head) == HEADING_3,
    open: |files| open(files, true),
    several: false,
};

const HEADING_2: &[u8] = b"fio version 2 iolog";
const HEADING_3: &[u8] = b"fio version 3 iolog";
const TICK_NS: u64 = 1000;
const MISSING: [&str; 3] = [
    "processes, priorities and control groups",
    "completions",
    "places on the device: offsets are within files",
];

fn open(files: Vec<(PathBuf, Source)>, timed: bool) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    let name = if timed { FORMAT_3.name } else { FORMAT_2.name };
    let format = Iolog { timed, waited_us: 0 };
    Ok(TextReader::boxed(&path, source, format, facts_of(name, &MISSING)))
}

#[derive(Debug)]
struct Iolog {
    /// Version 3.
    timed: bool,
    /// The sum of version 2's waits.
    waited_us: u64,
}

impl LineFormat for Iolog {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        if line.trim_ascii().is_empty() || line == HEADING_2 || line == HEADING_3 {
            return Line::Ignored;
        }
        let mut rest = line;
        let mut at_us = self.waited_us;
        if self.timed {
            let Some((time, after)) = word(rest) else { return Line::Ignored };
            let Some(time) = integer(time) else { return wrong("the time is no number") };
            (at_us, rest) = (time, after);
        }
        let Some((file, rest)) = word(rest) else { return wrong("no file's name") };
        let Some((action, rest)) = word(rest) else { return wrong("no action") };
        let numbers = word(rest).map(|(offset, rest)| (integer(offset), word(rest)));
        let offset = numbers.and_then(|(offset, _)| offset);
        let bytes = numbers.and_then(|(_, after)| integer(after?.0));
        let (operation, flags) = match action {
            b"add" | b"open" | b"close" => return Line::Ignored,
            b"wait" => {
                let Some(wait) = offset else { return wrong("a wait without its length") };
                self.waited_us = self.waited_us.saturating_add(wait);
                return Line::Used;
            }
            b"sync" | b"datasync" => (Operation::Flush, Flags::PREFLUSH),
            b"read" => (Operation::Read, Flags::default()),
            b"write" => (Operation::Write, Flags::default()),
            b"trim" => (Operation::Discard, Flags::default()),
            _ => return wrong("an unknown action"),
        };
        let queued = trace.clock.at(at_us, TICK_NS);
        let (offset, bytes) = match (operation, offset, bytes) {
            (Operation::Flush, ..) => (0, 0),
            (_, Some(offset), Some(bytes)) => (offset, bytes),
            _ => return wrong("no offset or length"),
        };
        let mut io = Io::new(queued, operation, offset / SECTOR_BYTES, bytes);
        io.flags = flags;
        io.device = trace.device_named(file);
        trace.batch.ios.push(io);
        Line::Used
    }
}
