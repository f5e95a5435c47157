//! The direct I/Os of a clone, each with the time at which the clone asked for it.

use blksim::core::record::Direction;

use super::words;
use crate::failure::Failure;

/// The name of what a clone leaves.
const IOS: &str = "ios";
/// Numbers of an I/O.
const WORDS: usize = 4;

/// A read or write, as a clone asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedIo {
    pub is_write: bool,
    /// On the disk.
    pub offset: u64,
    pub bytes: u32,
    /// On the guest's clock.
    pub start_ns: u64,
    /// When an asynchronous I/O was submitted and the clone could go on; otherwise `start_ns`.
    pub submitted_ns: u64,
}

/// The log of a clone.
#[derive(Debug, Default)]
pub struct IoLog {
    words: Vec<u64>,
    /// The first number of I/Os that are being submitted.
    submits: usize,
}

impl IoLog {
    /// Adds an I/O; syncs and trims are left out.
    pub fn add(&mut self, direction: Direction, offset: u64, bytes: u32, start_ns: u64) {
        let is_write = match direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Sync | Direction::Trim => return,
        };
        let bytes_and_kind = u64::from(bytes) << 1 | u64::from(is_write);
        self.words.extend([offset, bytes_and_kind, start_ns, start_ns]);
    }

    /// All I/Os so far are submitted.
    pub fn submitted(&mut self, now_ns: u64) {
        for io in self.words[self.submits..].chunks_exact_mut(WORDS) {
            io[WORDS - 1] = now_ns;
        }
        self.submits = self.words.len();
    }

    /// Leaves the log for [`collect_ios`].
    pub fn leave(self, number: u32) -> Result<(), Failure> {
        words::leave(IOS, number, self.words)
    }
}

/// The I/Os of a clone, in its order.
pub fn collect_ios(number: u32) -> Result<Vec<AskedIo>, Failure> {
    let words = words::collect(IOS, number)?;
    if words.len() % WORDS != 0 {
        return Err(words::broken(IOS));
    }
    Ok(words.chunks_exact(WORDS).map(asked).collect())
}

fn asked(words: &[u64]) -> AskedIo {
    let (offset, bytes_and_kind) = (words[0], words[1]);
    AskedIo {
        is_write: bytes_and_kind & 1 == 1,
        offset,
        bytes: (bytes_and_kind >> 1) as u32,
        start_ns: words[2],
        submitted_ns: words[3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_kept() {
        let mut log = IoLog::default();
        log.add(Direction::Read, 4096, 512, 7);
        log.add(Direction::Sync, 0, 0, 8);
        log.submitted(8);
        log.add(Direction::Write, 0, 1 << 30, 9);
        let kept: Vec<AskedIo> = log.words.chunks_exact(WORDS).map(asked).collect();
        let read =
            AskedIo { is_write: false, offset: 4096, bytes: 512, start_ns: 7, submitted_ns: 8 };
        let write =
            AskedIo { is_write: true, offset: 0, bytes: 1 << 30, start_ns: 9, submitted_ns: 9 };
        assert_eq!(kept, [read, write]);
    }
}
