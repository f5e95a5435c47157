//! Errors and warnings, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::interrupt::Interrupted;
use crate::limits::TooLarge;

/// Where in which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: PathBuf,
    pub position: Position,
}

/// A place within a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Offset in bytes, after decompression.
    Byte(u64),
    /// Line, from 1.
    Line(u64),
    Whole,
}

impl Place {
    pub fn byte(file: &Path, offset: u64) -> Self {
        Self { file: file.to_owned(), position: Position::Byte(offset) }
    }

    pub fn line(file: &Path, line: u64) -> Self {
        Self { file: file.to_owned(), position: Position::Line(line) }
    }

    pub fn whole(file: &Path) -> Self {
        Self { file: file.to_owned(), position: Position::Whole }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.position {
            Position::Byte(offset) => write!(formatter, "{file}: byte {offset}"),
            Position::Line(line) => write!(formatter, "{file}:{line}"),
            Position::Whole => write!(formatter, "{file}"),
        }
    }
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refused.
    #[error("{path}: {cause}", path = .path.display())]
    System { path: PathBuf, cause: std::io::Error },
    /// The contents are not of the format.
    #[error("{place}: {message}")]
    Format { place: Place, message: String },
    /// No reader recognises the file.
    #[error("{path}: no reader knows this format", path = .path.display())]
    UnknownFormat { path: PathBuf },
    /// It would need more memory than any recording.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The work was ended from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl RecordError {
    /// The error for one of reading, which may carry one of ours through a decoder.
    pub fn system(path: &Path, cause: std::io::Error) -> Self {
        let carried = cause.get_ref();
        if let Some(too_large) = carried.and_then(|inner| inner.downcast_ref::<TooLarge>()) {
            return Self::TooLarge(too_large.clone());
        }
        if let Some(interrupted) = carried.and_then(|inner| inner.downcast_ref::<Interrupted>()) {
            return Self::Interrupted(*interrupted);
        }
        Self::System { path: path.to_owned(), cause }
    }

    pub fn format(place: Place, message: impl Into<String>) -> Self {
        Self::Format { place, message: message.into() }
    }
}

/// A part of a file that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub place: Place,
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

/// The first warnings of a file, and the number of all.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    pub first: Vec<Warning>,
    pub count: u64,
}

impl Warnings {
    /// Warnings that are kept: a damaged file has one per line.
    const KEPT: usize = 20;

    pub fn add(&mut self, place: impl FnOnce() -> Place, message: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(Warning { place: place(), message: message() });
        }
    }

    pub fn append(&mut self, other: &Self) {
        self.count += other.count;
        let room = Self::KEPT.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
    }
}
