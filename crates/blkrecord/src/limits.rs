//! Limits of the memory that a trace may take.
//!
//! A file of a few kilobytes can stand for any number of I/Os, names and control groups. These limits are far above
//! what any recorder writes, and a file that exceeds one is refused with [`TooLarge`].
//!
//! | Limit | What recorders write |
//! |---|---|
//! | [`FREE_ROWS`] I/Os and task events, and [`ROWS_PER_BYTE`] for each further byte of the file | one takes about 5 bytes in a recording of a disk, at least 0.03 if all of them are alike |
//! | [`FREE_BYTES`] after decompression, and [`GROWTH`] for each further byte of the file | text grows 5 to 30 times |
//! | [`NAME_BYTES`] of names | 16 for a command, some 100 for a control group |
//! | [`FACT_BYTES`] of conditions, [`DEVICES`] devices | 3 KiB for a disk |
//! | [`CGROUPS`] control groups with settings, [`CGROUP_BYTES`] | 300 for a group |
//!
//! What an analysis keeps of each I/O is limited by the free memory of the machine ([`Memory`]), not by the file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::interrupt::Interrupt;

/// I/Os and task events of a file of any size.
pub const FREE_ROWS: u64 = 4 << 20;
/// I/Os and task events for each byte beyond.
pub const ROWS_PER_BYTE: u64 = 64;
/// Bytes after decompression of a file of any size.
pub const FREE_BYTES: u64 = 256 << 20;
/// Bytes after decompression for each byte of the file.
pub const GROWTH: u64 = 2048;
/// All names together.
pub const NAME_BYTES: usize = 64 << 20;
/// The conditions of a recording, as JSON.
pub const FACT_BYTES: usize = 4 << 20;
/// Devices in the conditions.
pub const DEVICES: usize = 4096;
/// Control groups whose settings are kept.
pub const CGROUPS: usize = 1 << 16;
/// The settings of all control groups, as JSON.
pub const CGROUP_BYTES: usize = 8 << 20;

/// A trace that exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}", path = .path.display())]
pub struct TooLarge {
    pub path: PathBuf,
    pub message: String,
}

impl TooLarge {
    pub fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), message: message.into() }
    }
}

/// The bytes of a file that have been read, and what they may become.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    bytes: Arc<AtomicU64>,
}

impl Stored {
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// An error if so many rows are more than the bytes so far can stand for.
    pub fn check_rows(&self, path: &Path, rows: u64) -> Result<(), TooLarge> {
        let stored = self.bytes();
        if rows <= FREE_ROWS.saturating_add(stored.saturating_mul(ROWS_PER_BYTE)) {
            return Ok(());
        }
        let message = format!(
            "{rows} I/Os and task events in {stored} bytes are larger than any recording: {FREE_ROWS}, and {ROWS_PER_BYTE} \
             more for each byte"
        );
        Err(TooLarge::new(path, message))
    }

    /// An error if so many bytes after decompression are more than the bytes so far can stand for.
    pub fn check_growth(&self, path: &Path, bytes: u64) -> Result<(), TooLarge> {
        let stored = self.bytes();
        if bytes <= FREE_BYTES.saturating_add(stored.saturating_mul(GROWTH)) {
            return Ok(());
        }
        let message = format!(
            "{bytes} bytes decompressed from {stored} are larger than any recording: {FREE_BYTES}, and {GROWTH} more for \
             each byte"
        );
        Err(TooLarge::new(path, message))
    }
}

/// Memory for what is kept of each I/O or task event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub free_bytes: u64,
    /// Kept of each.
    pub bytes_each: u64,
}

impl Memory {
    /// An error if so many rows do not fit.
    pub fn check_rows(self, path: &Path, rows: u64) -> Result<(), TooLarge> {
        if rows.saturating_mul(self.bytes_each) <= self.free_bytes {
            return Ok(());
        }
        let message = format!(
            "it is larger than the memory that is free here: {rows} I/Os and task events so far need {} bytes each, and \
             {} MiB are free",
            self.bytes_each,
            self.free_bytes >> 20
        );
        Err(TooLarge::new(path, message))
    }
}

/// Bounds that the caller of a reader sets.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    pub interrupt: Interrupt,
    /// `None` if nothing is kept.
    pub memory: Option<Memory>,
}

impl From<TooLarge> for io::Error {
    fn from(error: TooLarge) -> Self {
        Self::other(error)
    }
}
