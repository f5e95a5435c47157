//! Readers: one file per format. To add one, add its file and its line in [`FORMATS`].

mod alibaba;
mod biosnoop;
mod blkparse;
mod blkreplay;
pub mod blktrace;
mod bounded;
mod clock;
mod cloudphysics;
mod events;
mod fields;
mod iolog;
mod lines;
mod msr;
mod native;
mod perf_script;
mod source;
mod spc;
mod stream;
mod systor;
mod tencent;
mod text;
mod thesios;

use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::error::{Place, RecordError, Warnings};
use crate::facts::{Facts, Tally};
use crate::limits::Bounds;
use crate::names::Names;
use bounded::Bounded;
pub use source::Source;

/// A trace that is read batch by batch.
pub trait RecordReader: Send + std::fmt::Debug {
    /// The conditions of the recording. Formats without a header learn their devices while reading.
    fn facts(&self) -> &Facts;

    /// The names that the I/Os so far refer to.
    fn names(&self) -> &Names;

    /// Appends the next I/Os and task events; false at the end, with nothing appended.
    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError>;

    /// The counts so far, complete after the end.
    fn tally(&self) -> Tally;

    /// Where the record's time begins. A part of a longer one has I/Os that were queued before.
    fn begin_ns(&self) -> u64 {
        0
    }

    /// Parts that were skipped so far.
    fn warnings(&self) -> &Warnings;
}

/// Opens the files of a trace.
type Open = fn(Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError>;

/// A format.
#[derive(Debug)]
pub struct Format {
    /// Its name on the command line and in [`Facts::format`].
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Whether a file that begins with these bytes is of this format.
    pub recognises: fn(&[u8]) -> bool,
    /// Opens files, of which all but blktrace take one.
    open: Open,
    /// Whether a trace may consist of several files.
    several: bool,
}

/// Every format, in the order in which they are tried.
pub const FORMATS: [Format; 16] = [
    native::FORMAT,
    blktrace::FORMAT,
    iolog::FORMAT_3,
    iolog::FORMAT_2,
    blkreplay::FORMAT,
    blkparse::FORMAT,
    msr::FORMAT,
    systor::FORMAT,
    alibaba::FORMAT,
    biosnoop::BIOSNOOP,
    biosnoop::IOSNOOP,
    perf_script::FORMAT,
    spc::FORMAT,
    tencent::FORMAT,
    thesios::FORMAT,
    cloudphysics::FORMAT,
];

/// Bytes at the beginning of a file by which its format is recognised: blkreplay's files begin with a
/// licence.
const HEAD_BYTES: usize = 64 << 10;

/// Opens a trace, compressed (gzip, zstd) or not.
///
/// For a trace of blktrace, `path` may be one of the files of its processors (`sda.blktrace.0`) or their
/// common beginning (`sda`); all are read together.
pub fn open(
    path: &Path,
    format: Option<&Format>,
    bounds: &Bounds,
) -> Result<Box<dyn RecordReader>, RecordError> {
    let paths = files_of(path);
    let mut first = Source::open(&paths[0], &bounds.interrupt)?;
    let format = match format {
        Some(format) => format,
        None => detect(&mut first, &paths[0])?,
    };
    let mut files = vec![(paths[0].clone(), first)];
    if format.several {
        for path in &paths[1..] {
            files.push((path.clone(), Source::open(path, &bounds.interrupt)?));
        }
    }
    open_bounded(path, format, files, bounds)
}

fn open_bounded(
    path: &Path,
    format: &Format,
    files: Vec<(PathBuf, Source)>,
    bounds: &Bounds,
) -> Result<Box<dyn RecordReader>, RecordError> {
    let stored = files.iter().map(|(_, source)| source.stored().clone()).collect();
    Ok(Bounded::boxed((format.open)(files)?, path, bounds, stored))
}

/// The format of that name.
pub fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Reads a trace from memory, as if it were a file named `path`.
pub fn from_bytes(
    path: &Path,
    bytes: Vec<u8>,
    format: Option<&Format>,
) -> Result<Box<dyn RecordReader>, RecordError> {
    let mut source = Source::from_bytes(path, bytes)?;
    let format = match format {
        Some(format) => format,
        None => detect(&mut source, path)?,
    };
    open_bounded(path, format, vec![(path.to_owned(), source)], &Bounds::default())
}

fn detect(source: &mut Source, path: &Path) -> Result<&'static Format, RecordError> {
    let head = source.peek(HEAD_BYTES).map_err(|error| RecordError::system(path, error))?;
    if head.is_empty() {
        return Err(RecordError::format(Place::whole(path), "the file is empty"));
    }
    FORMATS
        .iter()
        .find(|format| (format.recognises)(head))
        .ok_or_else(|| RecordError::UnknownFormat { path: path.to_owned() })
}

/// The files of a trace: those of all processors if it is one of blktrace's.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beginning = match name.rsplit_once(".blktrace.") {
        Some((beginning, cpu)) if cpu.bytes().all(|byte| byte.is_ascii_digit()) => beginning,
        _ if !path.exists() => &name,
        _ => return vec![path.to_owned()],
    };
    let mut found = Vec::new();
    for cpu in 0..8192 {
        let file = path.with_file_name(format!("{beginning}.blktrace.{cpu}"));
        if file.exists() {
            found.push(file);
        } else if cpu >= 1024 {
            break;
        }
    }
    if found.is_empty() { vec![path.to_owned()] } else { found }
}
