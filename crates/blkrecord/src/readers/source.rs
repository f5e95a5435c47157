//! The bytes of a file, decompressed, with their position.

use std::fmt;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::stream::Stream;
use crate::error::RecordError;
use crate::interrupt::Interrupt;
use crate::limits::Stored;

/// A file that is read from front to back.
pub struct Source {
    inner: Box<dyn Read + Send>,
    path: PathBuf,
    interrupt: Interrupt,
    stored: Stored,
    /// Whether the bytes are those of the file.
    plain: bool,
    /// Bytes that were looked at and are still to be read.
    peeked: Vec<u8>,
    taken: usize,
    position: u64,
    /// Bytes that `inner` has given.
    given: u64,
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window of zstd without `--long`.
const ZSTD_WINDOW_LOG: u32 = 27;

impl Source {
    /// Opens a regular file or a pipe.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, RecordError> {
        let refused = |error| RecordError::system(path, error);
        let stream = Stream::open(path, interrupt).map_err(refused)?;
        Self::decompressed(Box::new(stream), path, interrupt).map_err(refused)
    }

    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, RecordError> {
        Self::decompressed(Box::new(Cursor::new(bytes)), path, &Interrupt::default())
            .map_err(|error| RecordError::system(path, error))
    }

    fn decompressed(
        inner: Box<dyn Read + Send>,
        path: &Path,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let mut plain = Self {
            inner,
            path: path.to_owned(),
            interrupt: interrupt.clone(),
            stored: Stored::default(),
            plain: true,
            peeked: Vec::new(),
            taken: 0,
            position: 0,
            given: 0,
        };
        let stored = plain.stored.clone();
        let head = plain.peek(4)?;
        let inner: Box<dyn Read + Send> = if head.starts_with(&GZIP) {
            Box::new(flate2::read::MultiGzDecoder::new(plain))
        } else if head.starts_with(&ZSTD) {
            let mut decoder = zstd::stream::read::Decoder::new(plain)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        } else {
            return Ok(plain);
        };
        Ok(Self {
            inner,
            path: path.to_owned(),
            interrupt: interrupt.clone(),
            stored,
            plain: false,
            peeked: Vec::new(),
            taken: 0,
            position: 0,
            given: 0,
        })
    }

    /// The first bytes that are still to be read, at most `bytes`; fewer only if the file ends.
    pub fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.peeked.len() - self.taken < bytes {
            let before = self.peeked.len();
            let mut more = vec![0; bytes];
            match self.take(&mut more)? {
                0 => break,
                count => self.peeked.extend_from_slice(&more[..count]),
            }
            debug_assert!(self.peeked.len() > before);
        }
        let rest = &self.peeked[self.taken..];
        Ok(&rest[..rest.len().min(bytes)])
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The bytes of the file that have been read.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Reads from the file or its decoder.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.interrupt.check().map_err(io::Error::other)?;
            match self.inner.read(buffer) {
                Ok(count) => {
                    self.given += count as u64;
                    if self.plain {
                        self.stored.add(count as u64);
                    } else {
                        self.stored.check_growth(&self.path, self.given)?;
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.peeked[self.taken..];
        let count = if rest.is_empty() {
            self.take(buffer)?
        } else {
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.taken += count;
            if self.taken == self.peeked.len() {
                self.peeked = Vec::new();
                self.taken = 0;
            }
            count
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Source").field("position", &self.position).finish_non_exhaustive()
    }
}
