//! blklab's own format.

use super::{Format, RecordReader, Source};
use crate::error::{Place, RecordError};
use crate::file::{MAGIC, Reader};
use std::path::PathBuf;

pub const FORMAT: Format = Format {
    name: "blkrecord",
    summary: "blklab record",
    recognises: |head| head.starts_with(&MAGIC[..]),
    open,
    several: false,
};

fn open(files: Vec<(PathBuf, Source)>) -> Result<Box<dyn RecordReader>, RecordError> {
    let (path, source) = only(files)?;
    Ok(Box::new(Reader::new(source, &path)?))
}

/// The file of a format that has one.
pub fn only(mut files: Vec<(PathBuf, Source)>) -> Result<(PathBuf, Source), RecordError> {
    files.pop().ok_or_else(|| {
        RecordError::format(Place::whole(std::path::Path::new("")), "there is no file")
    })
}
