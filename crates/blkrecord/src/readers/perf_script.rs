//! Block events as `perf script`, `trace-cmd report` and ftrace's `trace` print them:
//! `dd  1234 [001] 12.345678: block:block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]`.

use std::path::PathBuf;

use memchr::memmem;

use super::events::{self, EventLine, Events};
use super::fields::{integer, integer32, seconds_as_ns, word};
use super::text::{Line, LineFormat, Trace, wrong};
use super::{Format, RecordReader, Source};
use crate::error::RecordError;
use crate::event::Action;
use crate::io::{Operation, UNKNOWN_PROCESSOR, UNKNOWN_TASK, device_number};
use crate::rwbs;

pub const FORMAT: Format = Format {
    name: "perf",
    summary: "block events of perf script, trace-cmd report or ftrace",
    recognises: |head| {
        head.split(|byte| *byte == b'\n').take(200).any(|line| Fields::of(line).is_some())
    },
    open,
    several: false,
};

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let action_of = |line: &[u8]| Fields::of(line).map(|fields| fields.action);
    events::open(FORMAT.name, files, action_of, |events| Perf { events })
}

/// The fields that every line has.
struct Fields<'a> {
    processor: u16,
    at_ns: u64,
    tid: u32,
    /// `None` for block events that do not matter.
    action: Option<Action>,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let at = memmem::find(line, b" block")? + 1;
        let (head, rest) = (&line[..at], &line[at..]);
        let rest = rest.strip_prefix(b"block:").unwrap_or(rest);
        let colon = memchr::memchr(b':', rest)?;
        let (name, rest) = (rest[..colon].strip_prefix(b"block_")?, &rest[colon + 1..]);
        // perf aligns the names of events behind the time.
        let head = head.trim_ascii_end().strip_suffix(b":")?;
        let begin = head.iter().rposition(u8::is_ascii_whitespace)? + 1;
        let at_ns = seconds_as_ns(&head[begin..])?;
        let before = &head[..begin];
        let open = memchr::memrchr(b'[', before)?;
        let close = open + memchr::memchr(b']', &before[open..])?;
        let processor = integer(&before[open + 1..close])?;
        let processor = u16::try_from(processor).unwrap_or(UNKNOWN_PROCESSOR);
        let task = before[..open].trim_ascii_end();
        let digits = task.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let tid = integer32(&task[task.len() - digits..]).unwrap_or(UNKNOWN_TASK);
        let action = match name {
            b"bio_queue" => Some(Action::Queue),
            b"bio_backmerge" | b"rq_merge" => Some(Action::BackMerge),
            b"bio_frontmerge" => Some(Action::FrontMerge),
            b"rq_insert" => Some(Action::Insert),
            b"rq_issue" => Some(Action::Issue),
            b"rq_requeue" => Some(Action::Requeue),
            b"rq_complete" => Some(Action::Complete),
            b"split" => Some(Action::Split),
            _ => None,
        };
        Some(Self { processor, at_ns, tid, action, rest })
    }
}

#[derive(Debug)]
struct Perf {
    events: Events,
}

impl LineFormat for Perf {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line {
        let Some(fields) = Fields::of(line) else {
            let line = line.trim_ascii();
            let other = line.is_empty()
                || line.starts_with(b"#")
                || memchr::memchr(b'[', line).is_none()
                || memmem::find(line, b" block_").is_none();
            return if other { Line::Ignored } else { wrong("no block event") };
        };
        let Some(action) = fields.action else { return Line::Ignored };
        let Some((device, rest)) = word(fields.rest) else { return wrong("no device") };
        let Some(comma) = memchr::memchr(b',', device) else { return wrong("no device") };
        let numbers = (integer32(&device[..comma]), integer32(&device[comma + 1..]));
        let (Some(major), Some(minor)) = numbers else { return wrong("no device") };
        let Some((letters, rest)) = word(rest) else { return wrong("no operation") };
        let (operation, flags) = rwbs::parse(letters);
        let Some(rest) = behind_command(action, rest) else { return wrong("no command") };
        if operation == Operation::Passthrough {
            return Line::Ignored;
        }
        let Some((sector, rest)) = word(rest) else { return wrong("no sector") };
        let Some((sign, rest)) = word(rest) else { return wrong("no length") };
        let Some((number, rest)) = word(rest) else { return wrong("no length") };
        let (Some(sector), Some(number)) = (integer(sector), integer(number)) else {
            return wrong("a sector or length is no number");
        };
        let Fields { processor, at_ns, tid, .. } = fields;
        let event = EventLine {
            device: device_number(major, minor),
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

/// The rest behind the bytes and the command in parentheses that events of requests have.
fn behind_command(action: Action, rest: &[u8]) -> Option<&[u8]> {
    let of_request = match action {
        Action::Insert | Action::Issue | Action::Requeue | Action::Complete => true,
        // Merges of bios have neither, those of requests both.
        Action::BackMerge => memchr::memchr(b'(', rest).is_some(),
        _ => false,
    };
    if !of_request {
        return Some(rest);
    }
    Some(&rest[memchr::memchr(b')', rest)? + 1..])
}
