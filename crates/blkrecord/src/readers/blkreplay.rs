//! blkreplay's load files: text up to a heading `start ; sector; length ; op ; …`, then I/Os in seconds
//! and sectors, with the delay and duration of a replay, which are 0 in loads that are still to be replayed.

use std::path::PathBuf;

use memchr::memmem;

use super::fields::{integer, seconds_as_ns, separated};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::io::{Io, Operation, SECTOR_BYTES};

pub const FORMAT: Format =
    Format { name: "blkreplay", summary: "blkreplay (.load)", recognises, open, several: false };

const MISSING: [&str; 2] = ["processes, priorities and control groups", "completions"];

fn recognises(head: &[u8]) -> bool {
    // Its first words stand at the beginning of a line, behind a licence of any length.
    head.split(|byte| *byte == b'\n').any(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    let (fields, count) = separated::<4>(line, b';');
    count >= 4 && fields == [&b"start"[..], b"sector", b"length", b"op"]
}

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    let format = Blkreplay { headed: false };
    Ok(TextReader::boxed(&path, source, format, facts_of(FORMAT.name, &MISSING)))
}

#[derive(Debug)]
struct Blkreplay {
    headed: bool,
}

impl LineFormat for Blkreplay {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        if !self.headed {
            self.headed = is_heading(line);
            return Line::Ignored;
        }
        let (fields, count) = separated::<6>(line, b';');
        if count < 4 {
            let remark = line.trim_ascii().is_empty()
                || line.starts_with(b"#")
                || memmem::find(line, b"INFO").is_some();
            return if remark { Line::Ignored } else { wrong("fewer than 4 fields") };
        }
        let Some(at_ns) = seconds_as_ns(fields[0]) else { return wrong("the time is no number") };
        let (Some(sector), Some(sectors)) = (integer(fields[1]), integer(fields[2])) else {
            return wrong("a sector or length is no number");
        };
        // Converters of blktrace's traces leave its flags in place: RA for readahead.
        let operation = match fields[3].first() {
            Some(b'R' | b'r') => Operation::Read,
            Some(b'W' | b'w') => Operation::Write,
            _ => return wrong("neither R nor W"),
        };
        let Some(bytes) = sectors.checked_mul(SECTOR_BYTES) else {
            return wrong("an impossible length");
        };
        let queued = trace.clock.at(at_ns, 1);
        let mut io = Io::new(queued, operation, sector, bytes);
        io.device = trace.device_named(b"");
        let duration = seconds_as_ns(fields[5]).filter(|duration| *duration > 0);
        if let Some(duration) = duration {
            let delay = seconds_as_ns(fields[4]).unwrap_or(0);
            io.issued = trace.clock.after(queued, delay);
            io.completed = trace.clock.after(io.issued, duration);
        }
        trace.batch.ios.push(io);
        Line::Used
    }
}
