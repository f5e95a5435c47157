//! blkparse's default text: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`.

use std::path::PathBuf;

use super::events::{self, EventLine, Events};
use super::fields::{integer, integer32, seconds_as_ns, word};
use super::text::{Line, LineFormat, Trace, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::event::Action;
use crate::io::{UNKNOWN_PROCESSOR, device_number};
use crate::rwbs;

pub const FORMAT: Format = Format {
    name: "blkparse",
    summary: "the default text of blkparse",
    recognises: |head| {
        head.split(|byte| *byte == b'\n').take(100).any(|line| Fields::of(line).is_some())
    },
    open,
    several: false,
};

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let action_of = |line: &[u8]| Fields::of(line).map(|fields| action(fields.action));
    events::open(FORMAT.name, files, action_of, |events| Blkparse { events })
}

/// The action of a letter; `None` for plugging, remapping, sleeping, allocation and messages.
#[inline]
fn action(letter: &[u8]) -> Option<Action> {
    match letter {
        b"Q" => Some(Action::Queue),
        b"M" => Some(Action::BackMerge),
        b"F" => Some(Action::FrontMerge),
        b"I" => Some(Action::Insert),
        b"D" => Some(Action::Issue),
        b"R" => Some(Action::Requeue),
        b"C" => Some(Action::Complete),
        b"X" => Some(Action::Split),
        _ => None,
    }
}

/// The fields that every line has.
struct Fields<'a> {
    device: u32,
    processor: u16,
    at_ns: u64,
    tid: u32,
    action: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    fn of(line: &'a [u8]) -> Option<Self> {
        let (device, rest) = word(line)?;
        let comma = memchr::memchr(b',', device)?;
        let device = device_number(integer32(&device[..comma])?, integer32(&device[comma + 1..])?);
        let (cpu, rest) = word(rest)?;
        let (sequence, rest) = word(rest)?;
        let processor = u16::try_from(integer(cpu)?).unwrap_or(UNKNOWN_PROCESSOR);
        integer(sequence)?;
        let (time, rest) = word(rest)?;
        let (tid, rest) = word(rest)?;
        let (action, rest) = word(rest)?;
        let (at_ns, tid) = (seconds_as_ns(time)?, integer32(tid)?);
        Some(Self { device, processor, at_ns, tid, action, rest })
    }
}

#[derive(Debug)]
struct Blkparse {
    events: Events,
}

impl LineFormat for Blkparse {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let Some(fields) = Fields::of(line) else {
            return match word(line).map(|(first, _)| first) {
                None => Line::Ignored,
                // The summary begins with "CPU0 (8,0):".
                Some(first) if first.starts_with(b"CPU") || first.starts_with(b"Total") => {
                    Line::End
                }
                Some(_) => wrong("no event of blkparse"),
            };
        };
        let Some(action) = action(fields.action) else { return Line::Ignored };
        let Some((letters, rest)) = word(fields.rest) else { return wrong("no operation") };
        let Some((sector, rest)) = word(rest) else { return wrong("no sector") };
        let Some(sector) = integer(sector) else {
            // A SCSI command of its own has bytes instead of a sector.
            return Line::Ignored;
        };
        let Some((sign, rest)) = word(rest) else { return Line::Ignored };
        if sign.starts_with(b"[") || sign.starts_with(b"(") {
            // A command that is passed through has no sectors: its process follows, or its bytes.
            return Line::Ignored;
        }
        let Some((number, rest)) = word(rest) else { return wrong("no length") };
        let Some(number) = integer(number) else { return wrong("the length is no number") };
        let (operation, flags) = rwbs::parse(letters);
        let Fields { device, processor, at_ns, tid, .. } = fields;
        let event = EventLine {
            device,
            processor,
            at_ns,
            tid,
            action,
            operation,
            flags,
            sector,
            sign,
            number,
            rest,
        };
        self.events.take(&event, trace)
    }

    fn finish(&mut self, trace: &mut Trace) {
        self.events.finish(trace);
    }
}
