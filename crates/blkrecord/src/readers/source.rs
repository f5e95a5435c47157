//! The bytes of a file, decompressed, with their position.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use crate::error::RecordError;

/// A file that is read from front to back.
pub struct Source {
    inner: Box<dyn Read + Send>,
    /// Bytes that were looked at and are still to be read.
    peeked: Vec<u8>,
    taken: usize,
    position: u64,
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Source {
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let refused = |error| RecordError::system(path, error);
        let file = File::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.is_dir() {
            return Err(refused(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Self::decompressed(Box::new(file)).map_err(refused)
    }

    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, RecordError> {
        Self::decompressed(Box::new(Cursor::new(bytes)))
            .map_err(|error| RecordError::system(path, error))
    }

    fn decompressed(inner: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut plain = Self { inner, peeked: Vec::new(), taken: 0, position: 0 };
        let head = plain.peek(4)?;
        let inner: Box<dyn Read + Send> = if head.starts_with(&GZIP) {
            Box::new(flate2::read::MultiGzDecoder::new(plain))
        } else if head.starts_with(&ZSTD) {
            Box::new(zstd::stream::read::Decoder::new(plain)?)
        } else {
            return Ok(plain);
        };
        Ok(Self { inner, peeked: Vec::new(), taken: 0, position: 0 })
    }

    /// The first bytes that are still to be read, at most `bytes`; fewer only if the file ends.
    pub fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.peeked.len() - self.taken < bytes {
            let before = self.peeked.len();
            self.peeked.resize(before + bytes, 0);
            let read = self.inner.read(&mut self.peeked[before..]);
            self.peeked.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let rest = &self.peeked[self.taken..];
        Ok(&rest[..rest.len().min(bytes)])
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.peeked[self.taken..];
        let count = if rest.is_empty() {
            self.inner.read(buffer)?
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
