//! Captures that are analysed as they come, window by window, without a file.

use std::fmt;

use blkrecord::batch::Batch;
use blkrecord::error::{RecordError, Warnings};
use blkrecord::facts::{Facts, Tally};
use blkrecord::interrupt::Interrupt;
use blkrecord::names::Names;
use blkrecord::readers::RecordReader;
use blkrecord::waits::{self, Waits};

use crate::clock;
use crate::error::CaptureError;
use crate::recording;
use crate::request::{Devices, Request};
use crate::source::{Source, SourceCounts};

/// More I/Os in a window are counted as lost: a second of the fastest disk, a few hundred MB.
const MOST_IOS: usize = 4_000_000;

/// A capture whose I/Os are analysed as they come.
pub struct Live {
    source: Box<dyn Source>,
    facts: Facts,
    names: Names,
    batch: Batch,
    /// Counts at the beginning of the window, and I/Os that it had no room for.
    before: SourceCounts,
    left_out: u64,
    began_ns: u64,
    /// Since `began_ns`.
    window_ns: u64,
}

impl Live {
    /// Starts to capture; `output` of the request plays no part.
    pub fn begin(mut request: Request) -> Result<Self, CaptureError> {
        let devices = Devices::of(&request);
        let began_ns = clock::monotonic_ns();
        let source = recording::start(devices, &request, began_ns)?;
        recording::describe(&mut request.facts, source.as_ref(), began_ns);
        Ok(Self {
            source,
            facts: request.facts,
            names: Names::default(),
            batch: Batch::default(),
            before: SourceCounts::default(),
            left_out: 0,
            began_ns,
            window_ns: 0,
        })
    }

    /// Facts that the I/Os lack, for people.
    pub fn missing(&self) -> Vec<String> {
        self.facts.missing.clone()
    }

    /// Takes what has happened; to be called every 20 ms or so.
    pub fn poll(&mut self) -> Result<(), CaptureError> {
        self.source.poll(&mut self.batch, &mut self.names)?;
        self.batch.tasks.clear();
        if self.batch.ios.len() > MOST_IOS {
            self.left_out += (self.batch.ios.len() - MOST_IOS) as u64;
            self.batch.ios.truncate(MOST_IOS);
        }
        Ok(())
    }

    /// The waits of the I/Os that have completed since the last call, or since the beginning.
    pub fn window(&mut self) -> Result<Waits, CaptureError> {
        self.poll()?;
        let now_ns = clock::monotonic_ns() - self.began_ns;
        let counts = self.source.counts();
        let tally = Tally {
            ios: self.batch.ios.len() as u64,
            events: counts.events - self.before.events,
            lost: counts.lost - self.before.lost + self.left_out,
            unmatched: counts.unmatched - self.before.unmatched,
            incomplete: counts.incomplete,
            span_ns: now_ns - self.window_ns,
            whole: true,
        };
        let mut window = Window {
            facts: &self.facts,
            names: &self.names,
            batch: std::mem::take(&mut self.batch),
            tally,
            begin_ns: self.window_ns,
            warnings: Warnings::default(),
        };
        (self.before, self.left_out, self.window_ns) = (counts, 0, now_ns);
        waits::of(&mut window, &Interrupt::default())
            .map_err(|error| CaptureError::Unavailable(error.to_string()))
    }

    /// Stops, and removes everything from the kernel.
    pub fn finish(&mut self) -> Result<(), CaptureError> {
        self.source.stop(&mut self.batch, &mut self.names)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Live").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// A window as a trace.
#[derive(Debug)]
struct Window<'a> {
    facts: &'a Facts,
    names: &'a Names,
    batch: Batch,
    tally: Tally,
    begin_ns: u64,
    warnings: Warnings,
}

impl RecordReader for Window<'_> {
    fn facts(&self) -> &Facts {
        self.facts
    }

    fn names(&self) -> &Names {
        self.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        batch.ios.append(&mut self.batch.ios);
        Ok(!batch.is_empty())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
