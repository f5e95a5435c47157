//! Events of the block layer as text, one on each line: what blkparse's and perf's lines have in common.

use std::path::PathBuf;

use super::fields::integer;
use super::native::only;
use super::text::{Line, LineFormat, TextReader, Trace, facts_of, wrong};
use super::{HEAD_BYTES, RecordReader, Source};
use crate::error::RecordError;
use crate::event::{Action, Event};
use crate::facts::{DeviceFacts, NO_QUEUEING};
use crate::io::{Flags, Operation, SECTOR_BYTES};
use crate::pairing::Pairing;

const MISSING: [&str; 2] = ["priorities and control groups", "processes of threads"];
/// Devices that are listed by name.
const MOST_DEVICES: usize = 64;

/// Opens a trace. `action_of` is the action of a line that has an event, or the inner `None` for one that
/// does not matter.
pub(super) fn open<F: LineFormat + 'static>(
    name: &'static str,
    files: Vec<(PathBuf, Source)>,
    action_of: impl Fn(&[u8]) -> Option<Option<Action>>,
    format: impl FnOnce(Events) -> F,
) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, mut source) = only(files)?;
    let head = source.peek(HEAD_BYTES).map_err(|error| RecordError::system(&path, error))?;
    let mut facts = facts_of(name, &MISSING);
    let pairing = if begins_with_issues(head, action_of) {
        facts.missing.push(NO_QUEUEING.to_owned());
        Pairing::beginning_with_issues()
    } else {
        Pairing::new()
    };
    Ok(TextReader::boxed(&path, source, format(Events { pairing }), facts))
}

/// Whether a trace was made of issues and completions alone (`blktrace -a issue -a complete`).
fn begins_with_issues(head: &[u8], action_of: impl Fn(&[u8]) -> Option<Option<Action>>) -> bool {
    let mut issued = false;
    for action in head.split(|byte| *byte == b'\n').filter_map(action_of).flatten() {
        match action {
            Action::Queue => return false,
            Action::Issue => issued = true,
            _ => {}
        }
    }
    issued
}

/// An event as its line has it.
pub(super) struct EventLine<'a> {
    pub device: u32,
    pub processor: u16,
    pub at_ns: u64,
    pub tid: u32,
    pub action: Action,
    pub operation: Operation,
    pub flags: Flags,
    pub sector: u64,
    /// `+` before the length, `/` before the second sector of a split.
    pub sign: &'a [u8],
    pub number: u64,
    /// The command or the error, in brackets.
    pub rest: &'a [u8],
}

/// The I/Os that the events make up.
#[derive(Debug)]
pub(super) struct Events {
    pairing: Pairing,
}

impl Events {
    /// Takes one event.
    #[inline]
    pub fn take(&mut self, line: &EventLine<'_>, trace: &mut Trace) -> Line {
        let at = trace.clock.at(line.at_ns, 1);
        let mut event = Event::new(at.raw(), line.action, line.operation);
        event.flags = line.flags;
        (event.device, event.processor) = (line.device, line.processor);
        (event.tid, event.sector) = (line.tid, line.sector);
        match (line.action, line.sign) {
            (Action::Split, b"/") => event.split_at = line.number,
            (Action::Split, _) => return wrong("a split without its second sector"),
            (_, b"+") => {
                let Some(bytes) = line.number.checked_mul(SECTOR_BYTES) else {
                    return wrong("an impossible length");
                };
                event.bytes = bytes;
            }
            _ => return wrong("no length"),
        }
        let last = bracketed(line.rest);
        if line.action == Action::Complete {
            let digits = last.strip_prefix(b"-").unwrap_or(last);
            event.error = integer(digits).and_then(|error| u16::try_from(error).ok()).unwrap_or(0);
        } else if matches!(line.action, Action::Queue | Action::Issue) {
            event.command = trace.names.number_of_bytes(last);
        }
        note_device(trace, event.device);
        self.pairing.take(&event, &mut trace.batch);
        trace.counts = Some(self.pairing.counts());
        Line::Used
    }

    /// Gives up the I/Os that no event completed.
    pub fn finish(&mut self, trace: &mut Trace) {
        self.pairing.finish(&mut trace.batch);
        trace.counts = Some(self.pairing.counts());
    }
}

/// The text between the first and the last bracket: a command may contain brackets.
fn bracketed(text: &[u8]) -> &[u8] {
    let begin = memchr::memchr(b'[', text).map_or(text.len(), |begin| begin + 1);
    let end = memchr::memrchr(b']', text).unwrap_or(text.len());
    text.get(begin..end).unwrap_or(b"")
}

fn note_device(trace: &mut Trace, number: u32) {
    let devices = &mut trace.facts.devices;
    if devices.len() < MOST_DEVICES && !devices.iter().any(|device| device.number == number) {
        let name = format!("{}:{}", number >> 20, number & 0xf_ffff);
        devices.push(DeviceFacts { number, name, ..DeviceFacts::default() });
    }
}
