//! The records of one file, one after the other.

use std::io::{self, Read};
use std::path::PathBuf;

use memchr::memmem;

use super::record::{Header, Layout};
use crate::error::{Place, RecordError, Warnings};
use crate::readers::Source;

const BUFFER_BYTES: usize = 1 << 20;

/// A file and its current record.
#[derive(Debug)]
pub struct Cursor {
    path: PathBuf,
    source: Source,
    buffer: Box<[u8]>,
    /// Where the next record begins in the buffer.
    next: usize,
    end: usize,
    /// Offset in the file of the buffer's first byte.
    offset: u64,
    /// Where the current record's payload is in the buffer.
    payload: std::ops::Range<usize>,
    source_ended: bool,
    pub layout: Layout,
    pub header: Header,
    pub ended: bool,
    pub warnings: Warnings,
}

impl Cursor {
    pub fn new(path: PathBuf, source: Source) -> Self {
        Self {
            path,
            source,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            next: 0,
            end: 0,
            offset: 0,
            payload: 0..0,
            source_ended: false,
            layout: Layout::default(),
            header: Header::default(),
            ended: false,
            warnings: Warnings::default(),
        }
    }

    /// The current record's payload without the number of its control group; `None` if it has none.
    pub fn payload(&self) -> Option<&[u8]> {
        let all = self.buffer.get(self.payload.clone())?;
        let payload = if self.header.has_cgroup() { all.get(8..)? } else { all };
        (!payload.is_empty()).then_some(payload)
    }

    /// The number of the current record's control group.
    pub fn cgroup_id(&self) -> Option<u64> {
        let all = self.buffer.get(self.payload.clone())?;
        Some(self.layout.long(*all.first_chunk()?))
    }

    /// Moves to the next record, or to the end.
    #[inline]
    pub fn advance(&mut self) -> Result<(), RecordError> {
        loop {
            let rest = &self.buffer[self.next..self.end];
            let Some(layout) = Layout::of(rest) else {
                if rest.len() < 4 && !self.source_ended {
                    self.fill()?;
                    continue;
                }
                if rest.len() < 4 {
                    if !rest.is_empty() {
                        self.warn("the file ends within a record");
                    }
                    self.ended = true;
                    return Ok(());
                }
                self.skip_damage()?;
                continue;
            };
            let fixed = layout.bytes();
            if rest.len() >= fixed {
                let header = layout.header(&rest[..fixed]);
                let whole = fixed + usize::from(header.payload_bytes);
                if rest.len() >= whole {
                    self.payload = self.next + fixed..self.next + whole;
                    self.next += whole;
                    (self.layout, self.header) = (layout, header);
                    return Ok(());
                }
            }
            if self.source_ended {
                self.warn("the file ends within a record");
                self.ended = true;
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Skips to the next bytes that look like the beginning of a record.
    #[cold]
    fn skip_damage(&mut self) -> Result<(), RecordError> {
        self.warn("no record begins here; skipped to the next one");
        let magic = self.layout.magic();
        loop {
            let rest = &self.buffer[self.next..self.end];
            // The byte at `next` itself is none, or we would not be here.
            if let Some(found) = memmem::find(rest.get(1..).unwrap_or(b""), &magic) {
                self.next += 1 + found;
                return Ok(());
            }
            self.next = self.end.saturating_sub(3).max(self.next);
            if self.source_ended {
                self.next = self.end;
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn warn(&mut self, message: &str) {
        let place = Place::byte(&self.path, self.offset + self.next as u64);
        self.warnings.add(|| place, || message.to_owned());
    }

    /// Reads on, moving what is left to the front.
    #[cold]
    fn fill(&mut self) -> Result<(), RecordError> {
        self.buffer.copy_within(self.next..self.end, 0);
        self.offset += self.next as u64;
        (self.next, self.end) = (0, self.end - self.next);
        self.payload = 0..0;
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.source_ended = true;
                    return Ok(());
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecordError::system(&self.path, error)),
            }
        }
    }
}
