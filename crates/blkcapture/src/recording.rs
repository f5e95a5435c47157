//! One recording, from its beginning to a whole file.

use std::fmt;
use std::fs::File;
use std::io;

use blkrecord::batch::Batch;
use blkrecord::facts::{Facts, Tally};
use blkrecord::file::Writer;
use blkrecord::names::Names;

use crate::bpf::BpfSource;
use crate::cgroup_settings::CgroupSettings;
use crate::clock;
use crate::error::CaptureError;
use crate::request::{Capture, Devices, Request};
use crate::source::Source;
use crate::tracefs::TracefsSource;

/// A kill loses this much at most.
const FLUSH_INTERVAL_NS: u64 = 1_000_000_000;

/// A source, the file with the facts, and the beginning.
type Started = (Box<dyn Source>, Writer<File>, u64);

/// A recording under way.
pub struct Recording {
    request: Request,
    source: Box<dyn Source>,
    /// `None` once it is finished.
    writer: Option<Writer<File>>,
    names: Names,
    cgroups: CgroupSettings,
    batch: Batch,
    ios: u64,
    began_ns: u64,
    flushed_ns: u64,
}

impl Recording {
    /// Starts to record.
    pub fn begin(mut request: Request) -> Result<Self, CaptureError> {
        if request.facts.devices.is_empty() {
            return Err(CaptureError::Request("there is no device to record".to_owned()));
        }
        let file = File::create_new(&request.output)
            .map_err(|cause| CaptureError::Output { path: request.output.clone(), cause })?;
        match Self::with_file(&mut request, file) {
            Ok((source, writer, began_ns)) => Ok(Self {
                cgroups: CgroupSettings::new(request.cgroup_root.clone()),
                request,
                source,
                writer: Some(writer),
                names: Names::default(),
                batch: Batch::default(),
                ios: 0,
                began_ns,
                flushed_ns: began_ns,
            }),
            Err(error) => {
                // Nothing was recorded: leave no file behind.
                let _ = std::fs::remove_file(&request.output);
                Err(error)
            }
        }
    }

    fn with_file(request: &mut Request, file: File) -> Result<Started, CaptureError> {
        let devices = Devices::of(request);
        let began_ns = clock::monotonic_ns();
        let source = start(devices, request, began_ns)?;
        describe(&mut request.facts, source.as_ref(), began_ns);
        let writer = Writer::new(file, &request.facts)
            .map_err(|cause| CaptureError::Output { path: request.output.clone(), cause })?;
        Ok((source, writer, began_ns))
    }

    /// The way of capturing: `bpf` or `tracefs`.
    pub fn capture(&self) -> &'static str {
        self.source.name()
    }

    /// Facts that the record will lack, for people.
    pub fn missing(&self) -> Vec<String> {
        self.source.missing()
    }

    /// Takes and writes what has happened; to be called every 20 ms or so.
    pub fn poll(&mut self) -> Result<(), CaptureError> {
        if self.writer.is_some() {
            self.source.poll(&mut self.batch, &mut self.names)?;
            self.write(false)?;
        }
        Ok(())
    }

    /// Stops, and completes the file. A second call does nothing.
    pub fn finish(&mut self) -> Result<Tally, CaptureError> {
        if self.writer.is_some() {
            let stopped = self.source.stop(&mut self.batch, &mut self.names);
            self.write(true)?;
            let tally = self.tally();
            if let Some(writer) = self.writer.take() {
                writer.finish(&self.names, &tally).map_err(|cause| self.output_error(cause))?;
            }
            stopped?;
        }
        Ok(Tally { whole: true, ..self.tally() })
    }

    fn write(&mut self, last: bool) -> Result<(), CaptureError> {
        self.ios += self.batch.ios.len() as u64;
        let cgroups = self.cgroups.of(&self.batch.ios, &self.names);
        let tally = self.tally();
        let now = clock::monotonic_ns();
        let due = last || now - self.flushed_ns >= FLUSH_INTERVAL_NS;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut result = writer.cgroups(&cgroups);
        if result.is_ok() {
            result = writer.write(&mut self.batch, &self.names, &tally);
        }
        if due && result.is_ok() {
            self.flushed_ns = now;
            result = writer.flush(&self.names, &tally);
        }
        result.map_err(|cause| self.output_error(cause))
    }

    fn tally(&self) -> Tally {
        let counts = self.source.counts();
        Tally {
            ios: self.ios,
            events: counts.events,
            lost: counts.lost,
            unmatched: counts.unmatched,
            incomplete: counts.incomplete,
            span_ns: clock::monotonic_ns() - self.began_ns,
            whole: false,
        }
    }

    fn output_error(&self, cause: io::Error) -> CaptureError {
        CaptureError::Output { path: self.request.output.clone(), cause }
    }
}

/// Adds the way of capturing to the facts.
pub(crate) fn describe(facts: &mut Facts, source: &dyn Source, began_ns: u64) {
    "blkrecord".clone_into(&mut facts.format);
    source.name().clone_into(&mut facts.capture);
    facts.missing = source.missing();
    facts.started_unix_ns = Some(clock::unix_ns() - (clock::monotonic_ns() - began_ns));
}

/// Starts the best source that works, or the one that was asked for.
pub(crate) fn start(
    devices: Devices,
    request: &Request,
    began_ns: u64,
) -> Result<Box<dyn Source>, CaptureError> {
    let reason = match request.capture {
        Capture::Tracefs => None,
        Capture::Auto | Capture::Bpf => match BpfSource::start(&devices, request, began_ns) {
            Ok(source) => return Ok(Box::new(source)),
            Err(error) if request.capture == Capture::Bpf => return Err(error),
            Err(error) => Some(error.to_string()),
        },
    };
    Ok(Box::new(TracefsSource::start(devices, request, began_ns, reason)?))
}

impl fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recording")
            .field("output", &self.request.output)
            .finish_non_exhaustive()
    }
}
