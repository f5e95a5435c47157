//! blkparse's default text: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`.

use std::path::PathBuf;

use super::fields::{integer, integer32, seconds_as_ns, word};
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, wrong};
use super::{Format, HEAD_BYTES, RecordReader, Source};
use crate::error::RecordError;
use crate::event::{Action, Event};
use crate::facts::{DeviceFacts, NO_QUEUEING};
use crate::io::{SECTOR_BYTES, UNKNOWN_PROCESSOR, device_number};
use crate::pairing::Pairing;
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

const MISSING: [&str; 2] = ["priorities and control groups", "processes of threads"];

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, mut source) = only(files)?;
    let head = source.peek(HEAD_BYTES).map_err(|error| RecordError::system(&path, error))?;
    let mut facts = facts_of(FORMAT.name, &MISSING);
    let pairing = if begins_with_issues(head) {
        facts.missing.push(NO_QUEUEING.to_owned());
        Pairing::beginning_with_issues()
    } else {
        Pairing::new()
    };
    Ok(TextReader::boxed(&path, source, Blkparse { pairing }, facts))
}

/// Whether a trace was made of issues and completions alone (`blktrace -a issue -a complete`).
fn begins_with_issues(head: &[u8]) -> bool {
    let mut issued = false;
    for fields in head.split(|byte| *byte == b'\n').filter_map(Fields::of) {
        match fields.action {
            b"Q" => return false,
            b"D" => issued = true,
            _ => {}
        }
    }
    issued
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
    pairing: Pairing,
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
        let action = match fields.action {
            b"Q" => Action::Queue,
            b"M" => Action::BackMerge,
            b"F" => Action::FrontMerge,
            b"I" => Action::Insert,
            b"D" => Action::Issue,
            b"R" => Action::Requeue,
            b"C" => Action::Complete,
            b"X" => Action::Split,
            // Plugging, remapping, sleeping, allocation, messages.
            _ => return Line::Ignored,
        };
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
        let at = trace.clock.at(fields.at_ns, 1);
        let mut event = Event::new(at.raw(), action, operation);
        event.flags = flags;
        (event.device, event.processor) = (fields.device, fields.processor);
        (event.tid, event.sector) = (fields.tid, sector);
        match (action, sign) {
            (Action::Split, b"/") => event.split_at = number,
            (Action::Split, _) => return wrong("a split without its second sector"),
            (_, b"+") => {
                let Some(bytes) = number.checked_mul(SECTOR_BYTES) else {
                    return wrong("an impossible length");
                };
                event.bytes = bytes;
            }
            _ => return wrong("no length"),
        }
        let last = bracketed(rest);
        if action == Action::Complete {
            let digits = last.strip_prefix(b"-").unwrap_or(last);
            event.error = integer(digits).and_then(|error| u16::try_from(error).ok()).unwrap_or(0);
        } else if matches!(action, Action::Queue | Action::Issue) {
            event.command = trace.names.number_of_bytes(last);
        }
        note_device(trace, fields.device);
        self.pairing.take(&event, &mut trace.batch);
        trace.counts = Some(self.pairing.counts());
        Line::Used
    }

    fn finish(&mut self, trace: &mut Trace) {
        self.pairing.finish(&mut trace.batch);
        trace.counts = Some(self.pairing.counts());
    }
}

/// The text between the first and the last bracket: a command may contain brackets.
pub(super) fn bracketed(text: &[u8]) -> &[u8] {
    let begin = memchr::memchr(b'[', text).map_or(text.len(), |begin| begin + 1);
    let end = memchr::memrchr(b']', text).unwrap_or(text.len());
    text.get(begin..end).unwrap_or(b"")
}

pub(super) fn note_device(trace: &mut Trace, number: u32) {
    let devices = &mut trace.facts.devices;
    if devices.len() < 64 && !devices.iter().any(|device| device.number == number) {
        let name = format!("{}:{}", number >> 20, number & 0xf_ffff);
        devices.push(DeviceFacts { number, name, ..DeviceFacts::default() });
    }
}
