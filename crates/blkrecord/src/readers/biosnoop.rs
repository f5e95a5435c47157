//! Tables with a line for each completed I/O: biosnoop (bcc, libbpf-tools) and iosnoop (perf-tools).
//!
//! biosnoop prints when an I/O completed and how long it was in the device, with `-Q` also how long in the
//! queue. iosnoop prints times with `-s` and `-t` only. A command may contain blanks, so the columns behind it
//! are counted from the right.

use std::path::PathBuf;

use super::fields::{integer, integer32, seconds_as_ns, word};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, wrong};
use super::{Format, HEAD_BYTES, RecordReader, Source};
use crate::error::RecordError;
use crate::facts::NO_QUEUEING;
use crate::io::Io;
use crate::rwbs;

pub const BIOSNOOP: Format = Format {
    name: "biosnoop",
    summary: "the table of biosnoop (bcc, libbpf-tools), with or without -Q",
    recognises: |head| head_columns(head).is_some_and(|columns| columns.program == BIOSNOOP.name),
    open: |files| open(BIOSNOOP.name, files),
    several: false,
};

pub const IOSNOOP: Format = Format {
    name: "iosnoop",
    summary: "the table of iosnoop -ts (perf-tools)",
    recognises: |head| head_columns(head).is_some_and(|columns| columns.program == IOSNOOP.name),
    open: |files| open(IOSNOOP.name, files),
    several: false,
};

const MISSING: [&str; 2] = ["priorities and control groups", "threads of processes"];
/// A table has fewer columns.
const MOST_COLUMNS: usize = 24;
/// Lines of the head in which the heading is looked for.
const MOST_LINES_BEFORE: usize = 20;

fn open(name: &str, files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, mut source) = only(files)?;
    let head = source.peek(HEAD_BYTES).map_err(|error| RecordError::system(&path, error))?;
    let columns = head_columns(head);
    let base_ns = columns.as_ref().and_then(|columns| earliest_ns(head, columns));
    let mut facts = facts_of(name, &MISSING);
    if columns.is_none_or(|columns| columns.queue.is_none()) {
        facts.missing.push(NO_QUEUEING.to_owned());
    }
    let format = Snoop { columns: None, base_ns };
    Ok(TextReader::boxed(&path, source, format, facts))
}

/// Where a table has its columns: those before the command from the left, the others from the right.
#[derive(Clone, Copy, Debug)]
struct Columns {
    program: &'static str,
    /// Columns before the command, and behind it.
    before: usize,
    behind: usize,
    start: Option<usize>,
    end: Option<usize>,
    process: usize,
    device: usize,
    operation: usize,
    sector: usize,
    bytes: usize,
    latency: usize,
    queue: Option<usize>,
}

impl Columns {
    /// Reads a heading.
    fn of(line: &[u8]) -> Option<Self> {
        let (words, count) = words(line);
        let words = &words[..count];
        let place = |names: &[&[u8]]| words.iter().position(|word| names.contains(word));
        let command = place(&[b"COMM"])?;
        let behind = count - command - 1;
        if behind == 0 {
            return None;
        }
        let biosnoop = place(&[b"LAT(ms)"]).is_some();
        Some(Self {
            program: if biosnoop { BIOSNOOP.name } else { IOSNOOP.name },
            before: command,
            behind,
            start: place(&[b"STARTs"]),
            end: place(&[b"TIME(s)", b"ENDs"]),
            process: place(&[b"PID"])?,
            device: place(&[b"DISK", b"DEV"])?,
            operation: place(&[b"T", b"TYPE"])?,
            sector: place(&[b"SECTOR", b"BLOCK"])?,
            bytes: place(&[b"BYTES"])?,
            latency: place(&[b"LAT(ms)", b"LATms"])?,
            queue: place(&[b"QUE(ms)"]),
        })
    }

    fn read<'a>(&self, line: &'a [u8]) -> Option<Fields<'a>> {
        let (all, count) = words(line);
        if count < self.before + 1 + self.behind {
            return None;
        }
        // A command without a name leaves its column empty, and every place behind it is still right.
        let at = |column: usize| {
            let place = if column <= self.before {
                column
            } else {
                count - (self.before + 1 + self.behind - column)
            };
            all[place]
        };
        let command_end = all[count - self.behind].as_ptr() as usize - line.as_ptr() as usize;
        let command_begin = all[self.before].as_ptr() as usize - line.as_ptr() as usize;
        let latency_ns = milliseconds_as_ns(at(self.latency))?;
        let end_ns = match (self.end, self.start) {
            (Some(end), _) => since_before(at(end))?,
            (None, Some(start)) => since_before(at(start))?.checked_add(latency_ns)?,
            (None, None) => return None,
        };
        let start_ns = match self.start {
            Some(start) => since_before(at(start))?,
            None => end_ns.saturating_sub(latency_ns),
        };
        Some(Fields {
            start_ns,
            end_ns,
            queue_ns: match self.queue {
                Some(queue) => milliseconds_as_ns(at(queue))?,
                None => 0,
            },
            command: line.get(command_begin..command_end)?.trim_ascii(),
            process: integer32(at(self.process))?,
            device: at(self.device),
            operation: at(self.operation),
            sector: integer(at(self.sector)),
            bytes: integer(at(self.bytes))?,
        })
    }
}

/// The fields of a line.
#[derive(Debug)]
struct Fields<'a> {
    start_ns: u64,
    end_ns: u64,
    queue_ns: u64,
    command: &'a [u8],
    process: u32,
    device: &'a [u8],
    operation: &'a [u8],
    /// Nowhere for a flush.
    sector: Option<u64>,
    bytes: u64,
}

fn words(line: &[u8]) -> ([&[u8]; MOST_COLUMNS], usize) {
    let (mut found, mut count, mut rest) = ([&b""[..]; MOST_COLUMNS], 0, line);
    while let Some((next, after)) = word(rest)
        && count < MOST_COLUMNS
    {
        found[count] = next;
        count += 1;
        rest = after;
    }
    // A line with more words is none of a table.
    if word(rest).is_some() { (found, 0) } else { (found, count) }
}

/// Nanoseconds since a day before the table begins: its first I/Os began before their completions, at 0.
fn since_before(seconds: &[u8]) -> Option<u64> {
    seconds_as_ns(seconds)?.checked_add(86_400_000_000_000)
}

fn milliseconds_as_ns(text: &[u8]) -> Option<u64> {
    Some(seconds_as_ns(text)? / 1000)
}

fn head_columns(head: &[u8]) -> Option<Columns> {
    head.split(|byte| *byte == b'\n').take(MOST_LINES_BEFORE).find_map(Columns::of)
}

/// The earliest beginning among the first lines: lines are in the order of completion.
fn earliest_ns(head: &[u8], columns: &Columns) -> Option<u64> {
    let lines = head.split(|byte| *byte == b'\n');
    let fields = lines.filter_map(|line| columns.read(line));
    fields.map(|fields| fields.start_ns.saturating_sub(fields.queue_ns)).min()
}

#[derive(Debug)]
struct Snoop {
    columns: Option<Columns>,
    base_ns: Option<u64>,
}

impl LineFormat for Snoop {
    #[inline]
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let Some(columns) = &self.columns else {
            self.columns = Columns::of(line);
            return match &self.columns {
                Some(Columns { start: None, end: None, .. }) => {
                    wrong("the table has no times: iosnoop -ts prints them")
                }
                _ => Line::Ignored,
            };
        };
        if line.trim_ascii().is_empty() || Columns::of(line).is_some() {
            return Line::Ignored;
        }
        let Some(fields) = columns.read(line) else { return wrong("no line of this table") };
        if let Some(base_ns) = self.base_ns.take() {
            trace.clock.at(base_ns, 1);
        }
        let (operation, flags) = rwbs::parse(fields.operation);
        let queued = trace.clock.at(fields.start_ns.saturating_sub(fields.queue_ns), 1);
        let mut io = Io::new(queued, operation, fields.sector.unwrap_or(0), fields.bytes);
        io.issued = trace.clock.at(fields.start_ns, 1);
        io.completed = trace.clock.at(fields.end_ns, 1);
        io.flags = flags;
        (io.tgid, io.tid) = (fields.process, fields.process);
        io.command = trace.names.number_of_bytes(fields.command);
        io.device = trace.device_named(fields.device);
        trace.batch.ios.push(io);
        Line::Used
    }
}
