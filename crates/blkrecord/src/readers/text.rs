//! Formats with one I/O or one event per line.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use super::clock::Clock;
use super::fields::separated;
use super::lines::Lines;
use super::{RecordReader, Source};
use crate::batch::{BATCH_IOS, Batch};
use crate::error::{Place, RecordError, Warnings};
use crate::facts::{DeviceFacts, Facts, Tally};
use crate::names::Names;
use crate::pairing::Counts;

/// The outcome of reading a line.
pub enum Line {
    /// It was used.
    Used,
    /// A heading, a comment, an event that does not matter.
    Ignored,
    /// It cannot be read; why.
    Wrong(Cow<'static, str>),
    /// The trace ends here; what follows is a summary.
    End,
}

/// The fields of a line of comma-separated values; or the outcome of a line that has another number of them.
#[inline]
pub fn exactly<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Line> {
    let (fields, count) = separated::<N>(line, b',');
    if count == N {
        Ok(fields)
    } else if line.trim_ascii().is_empty() {
        Err(Line::Ignored)
    } else {
        Err(Line::Wrong(Cow::Owned(format!("not {N} fields"))))
    }
}

/// A line that is wrong for a fixed reason.
pub const fn wrong(why: &'static str) -> Line {
    Line::Wrong(Cow::Borrowed(why))
}

/// A trace so far, as a line format fills it.
#[derive(Debug, Default)]
pub struct Trace {
    pub facts: Facts,
    pub names: Names,
    pub clock: Clock,
    pub batch: Batch,
    /// Counts of events, for formats that have them.
    pub counts: Option<Counts>,
}

impl Trace {
    /// The device of that name: number 0 is the first one that appears.
    pub fn device_named(&mut self, name: &[u8]) -> u32 {
        // Traces have few devices, mostly one.
        let devices = &self.facts.devices;
        if let Some(found) = devices.iter().find(|device| device.name.as_bytes() == name) {
            return found.number;
        }
        let number = devices.len() as u32;
        if devices.len() < MOST_DEVICES {
            let name = String::from_utf8_lossy(name).into_owned();
            self.facts.devices.push(DeviceFacts { number, name, ..DeviceFacts::default() });
        }
        number.min(MOST_DEVICES as u32)
    }
}

/// Devices of a trace; Alibaba's have a thousand. Damaged files must not make the search above long.
const MOST_DEVICES: usize = 4096;

/// A format of lines.
pub trait LineFormat: Send + fmt::Debug {
    fn take(&mut self, line: &[u8], trace: &mut Trace) -> Line;

    /// Called once after the last line.
    fn finish(&mut self, trace: &mut Trace) {
        let _ = trace;
    }
}

/// Reads any line format.
#[derive(Debug)]
pub struct TextReader<F> {
    path: PathBuf,
    lines: Lines,
    format: F,
    trace: Trace,
    tally: Tally,
    warnings: Warnings,
    used: u64,
    ended: bool,
}

impl<F: LineFormat + 'static> TextReader<F> {
    pub fn boxed(path: &Path, source: Source, format: F, facts: Facts) -> Box<dyn RecordReader> {
        Box::new(Self {
            path: path.to_owned(),
            lines: Lines::new(source),
            format,
            trace: Trace { facts, ..Trace::default() },
            tally: Tally::default(),
            warnings: Warnings::default(),
            used: 0,
            ended: false,
        })
    }

    fn end(&mut self) -> Result<(), RecordError> {
        self.ended = true;
        self.format.finish(&mut self.trace);
        self.tally.whole = true;
        let early = self.trace.clock.early;
        if early > 0 {
            self.warnings.add(
                || Place::whole(&self.path),
                || {
                    format!(
                        "{early} I/Os are earlier than the first line; they count as simultaneous"
                    )
                },
            );
        }
        match self.warnings.first.first() {
            Some(warning) if self.used == 0 => Err(RecordError::format(
                warning.place.clone(),
                format!("no line can be read; the first: {}", warning.message),
            )),
            _ => Ok(()),
        }
    }
}

impl<F: LineFormat + 'static> RecordReader for TextReader<F> {
    fn facts(&self) -> &Facts {
        &self.trace.facts
    }

    fn names(&self) -> &Names {
        &self.trace.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        while !self.ended && self.trace.batch.ios.len() < BATCH_IOS {
            let line = self.lines.next().map_err(|error| RecordError::system(&self.path, error))?;
            let Some(line) = line else {
                self.end()?;
                break;
            };
            match self.format.take(line, &mut self.trace) {
                Line::Used => self.used += 1,
                Line::Ignored => {}
                Line::Wrong(message) => {
                    let number = self.lines.number();
                    self.warnings.add(|| Place::line(&self.path, number), || message.into_owned());
                }
                Line::End => {
                    self.end()?;
                    break;
                }
            }
        }
        let given = &mut self.trace.batch;
        self.tally.ios += given.ios.len() as u64;
        let open = given.ios.iter().filter(|io| !io.completed.is_known()).count();
        self.tally.incomplete += open as u64;
        let any = !given.is_empty();
        batch.ios.append(&mut given.ios);
        batch.tasks.append(&mut given.tasks);
        self.tally.span_ns = self.trace.clock.latest_ns;
        if let Some(counts) = self.trace.counts {
            (self.tally.events, self.tally.unmatched) = (counts.events, counts.unmatched);
        }
        Ok(any)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}

/// The facts of a format's traces.
pub fn facts_of(format: &str, missing: &[&str]) -> Facts {
    Facts {
        format: format.to_owned(),
        missing: missing.iter().map(|text| (*text).to_owned()).collect(),
        ..Facts::default()
    }
}

/// The first line of a file's head that is not empty.
pub fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty())
        .unwrap_or(b"")
}
