//! Binary traces of blktrace, and of ftrace's `blk` tracer, which writes the same records.
//!
//! `blktrace` writes one file per processor, each in the order of time; they are merged. Byte order and
//! version are recognised by the magic of every record (`linux/blktrace_api.h`).

mod cursor;
mod record;

use std::path::PathBuf;

use rustc_hash::FxHashMap;

use super::{Format, HEAD_BYTES, RecordReader, Source};
use crate::batch::{BATCH_IOS, Batch};
use crate::error::{RecordError, Warnings};
use crate::event::{Action, Event};
use crate::facts::{DeviceFacts, Facts, NO_QUEUEING, Tally};
use crate::names::{Names, UNKNOWN_NAME};
use crate::pairing::Pairing;
use cursor::Cursor;
use record::{Header, Kind, Layout};

pub const FORMAT: Format = Format {
    name: "blktrace",
    summary: "binary output of blktrace or of ftrace's blk tracer",
    recognises: |head| Layout::of(head).is_some(),
    open: |files| Ok(Box::new(Reader::new(files)?)),
    several: true,
};

/// Events and I/Os of a trace.
#[derive(Debug)]
pub struct Reader {
    files: Vec<Cursor>,
    facts: Facts,
    names: Names,
    /// Commands by process, from the trace's notices.
    commands: FxHashMap<u32, u32>,
    cgroups: FxHashMap<u64, u32>,
    pairing: Pairing,
    first_ns: Option<u64>,
    latest_ns: u64,
    last_device: Option<u32>,
    warnings: Warnings,
    ended: bool,
}

impl Reader {
    pub fn new(files: Vec<(PathBuf, Source)>) -> Result<Self, RecordError> {
        let mut cursors = Vec::new();
        let mut seen = record::Seen::default();
        for (path, mut source) in files {
            let head =
                source.peek(HEAD_BYTES).map_err(|error| RecordError::system(&path, error))?;
            seen.add(head);
            let mut cursor = Cursor::new(path, source);
            cursor.advance()?;
            cursors.push(cursor);
        }
        let missing = ["priorities", "processes of threads", "paths of control groups"];
        let mut facts = super::text::facts_of(FORMAT.name, &missing);
        let pairing = if seen.begins_with_issues() {
            facts.missing.push(NO_QUEUEING.to_owned());
            Pairing::beginning_with_issues()
        } else {
            Pairing::new()
        };
        Ok(Self {
            files: cursors,
            facts,
            names: Names::default(),
            commands: FxHashMap::default(),
            cgroups: FxHashMap::default(),
            pairing,
            first_ns: None,
            latest_ns: 0,
            last_device: None,
            warnings: Warnings::default(),
            ended: false,
        })
    }

    /// The next event of an I/O, in the order of time; `None` at the end.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event>, RecordError> {
        loop {
            let Some(index) = self.earliest() else { return Ok(None) };
            let file = &self.files[index];
            let header = file.header;
            let event = match header.kind() {
                Kind::Io(action) => Some(self.event(index, &header, action)),
                Kind::Notice => {
                    self.notice(index, &header);
                    None
                }
                Kind::Other => None,
            };
            self.files[index].advance()?;
            if let Some(event) = event {
                return Ok(Some(event));
            }
        }
    }

    /// The file with the earliest record.
    #[inline]
    fn earliest(&self) -> Option<usize> {
        if let [only] = &self.files[..] {
            return (!only.ended).then_some(0);
        }
        let mut best: Option<(u64, u32, usize)> = None;
        for (index, file) in self.files.iter().enumerate() {
            if file.ended {
                continue;
            }
            // Of simultaneous records the one with the smaller number was first.
            let key = (file.header.time, file.header.sequence, index);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        best.map(|(_, _, index)| index)
    }

    #[inline]
    fn event(&mut self, index: usize, header: &Header, action: Action) -> Event {
        let first = *self.first_ns.get_or_insert(header.time);
        let at_ns = header.time.saturating_sub(first).min(crate::io::Moment::MAX_NS);
        self.latest_ns = self.latest_ns.max(at_ns);
        let (operation, flags) = header.operation();
        let mut event = Event::new(at_ns, action, operation);
        event.flags = flags;
        (event.sector, event.bytes) = (header.sector, u64::from(header.bytes));
        (event.device, event.tid) = (header.device, header.pid);
        event.processor = header.processor;
        if self.last_device != Some(header.device) {
            self.note_device(header.device);
        }
        match action {
            Action::Queue | Action::Issue => {
                event.command = self.commands.get(&header.pid).copied().unwrap_or(UNKNOWN_NAME);
                if header.has_cgroup() {
                    event.cgroup = self.cgroup(index);
                }
            }
            Action::Split => {
                let file = &self.files[index];
                event.split_at = file.payload().and_then(be64).unwrap_or(0);
            }
            Action::Complete => event.error = header.error,
            _ => {}
        }
        event
    }

    fn cgroup(&mut self, index: usize) -> u32 {
        let Some(id) = self.files[index].cgroup_id() else { return UNKNOWN_NAME };
        let names = &mut self.names;
        *self.cgroups.entry(id).or_insert_with(|| names.number_of(&format!("cgroup {id}")))
    }

    /// A process's command, or the date.
    fn notice(&mut self, index: usize, header: &Header) {
        let file = &self.files[index];
        let Some(payload) = file.payload() else { return };
        match header.notice() {
            record::Notice::Process if self.commands.len() < 1 << 22 => {
                let name = self.names.number_of_bytes(payload);
                self.commands.insert(header.pid, name);
            }
            record::Notice::Date => {
                if let Some((seconds, ns)) = file.layout.two_words(payload) {
                    let date = u64::from(seconds) * 1_000_000_000 + u64::from(ns);
                    self.facts.started_unix_ns.get_or_insert(date);
                }
            }
            _ => {}
        }
    }

    fn note_device(&mut self, number: u32) {
        self.last_device = Some(number);
        let devices = &mut self.facts.devices;
        if devices.len() < 64 && !devices.iter().any(|device| device.number == number) {
            let name = format!("{}:{}", number >> 20, number & 0xf_ffff);
            devices.push(DeviceFacts { number, name, ..DeviceFacts::default() });
        }
    }

    fn end(&mut self, batch: &mut Batch) -> Result<(), RecordError> {
        self.ended = true;
        self.pairing.finish(batch);
        for file in &self.files {
            self.warnings.append(&file.warnings);
        }
        let counts = self.pairing.counts();
        match self.warnings.first.first() {
            Some(warning) if counts.events == 0 => Err(RecordError::format(
                warning.place.clone(),
                format!("no record can be read; {}", warning.message),
            )),
            _ => Ok(()),
        }
    }
}

fn be64(payload: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*payload.first_chunk()?))
}

impl RecordReader for Reader {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        while !self.ended && batch.ios.len() < BATCH_IOS {
            match self.next_event()? {
                Some(event) => self.pairing.take(&event, batch),
                None => self.end(batch)?,
            }
        }
        Ok(!batch.is_empty())
    }

    fn tally(&self) -> Tally {
        let counts = self.pairing.counts();
        Tally {
            ios: counts.ios,
            events: counts.events,
            lost: 0,
            unmatched: counts.unmatched,
            incomplete: counts.incomplete,
            span_ns: self.latest_ns,
            whole: self.ended,
        }
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
