//! Lines of a file, without copies and with bounded memory.

use std::io::{self, Read};

use super::source::Source;

/// Bytes that are read at a time, and so the longest line.
const BUFFER_BYTES: usize = 1 << 20;

/// The lines of a file.
#[derive(Debug)]
pub struct Lines {
    source: Source,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    number: u64,
    /// The last line was longer than the buffer: its rest is skipped.
    skipping: bool,
    ended: bool,
}

impl Lines {
    pub fn new(source: Source) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            number: 0,
            skipping: false,
            ended: false,
        }
    }

    /// The number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end; `None` at the end of the file. An endless line is given once, cut.
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                let line = self.start..self.start + length;
                self.start = line.end + 1;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                self.number += 1;
                return Ok(Some(without_return(&self.buffer[line])));
            }
            if self.ended {
                let line = self.start..self.end;
                self.start = self.end;
                if line.is_empty() || std::mem::take(&mut self.skipping) {
                    return Ok(None);
                }
                self.number += 1;
                return Ok(Some(without_return(&self.buffer[line])));
            }
            if self.end - self.start == self.buffer.len() {
                self.start = self.end;
                if !std::mem::replace(&mut self.skipping, true) {
                    self.number += 1;
                    return Ok(Some(&self.buffer[..1024]));
                }
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lines(bytes: Vec<u8>) -> Vec<(u64, usize)> {
        let mut lines = Lines::new(Source::from_bytes(Path::new("x"), bytes).unwrap());
        let mut found = Vec::new();
        while let Some(length) = lines.next().unwrap().map(<[u8]>::len) {
            found.push((lines.number(), length));
        }
        found
    }

    #[test]
    fn every_line_has_its_number() {
        assert_eq!(lines(b"ab\r\n\nc".to_vec()), [(1, 2), (2, 0), (3, 1)]);
        assert_eq!(lines(b"ab\n".to_vec()), [(1, 2)]);
        assert_eq!(lines(Vec::new()), []);
    }

    #[test]
    fn an_endless_line_is_given_once() {
        let mut bytes = vec![b'x'; 3 * BUFFER_BYTES + 5];
        bytes.extend_from_slice(b"\nab\n");
        assert_eq!(lines(bytes), [(1, 1024), (2, 2)]);
        assert_eq!(lines(vec![b'x'; 3 * BUFFER_BYTES]), [(1, 1024)]);
    }
}
