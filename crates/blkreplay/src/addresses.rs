//! Places on the recorded disk to places in a file.
//!
//! What was touched stays whole and in order, so that sequential I/O stays sequential and what was near
//! stays near; only gaps that nothing touched shrink, all by the same factor. Everything moves in whole
//! blocks of 4 KiB, so that I/Os keep their alignment.

use blkrecord::io::SECTOR_BYTES;

use crate::error::ReplayError;
use crate::options::ScaleTo;
use crate::recorded::RecordedIo;

/// Sectors of a block.
const BLOCK: u64 = 4096 / SECTOR_BYTES;

/// Touched sectors of the recorded disk, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    start: u64,
    end: u64,
    /// The place of `start` in the file.
    to: u64,
}

/// The map from a disk to a file.
#[derive(Debug)]
pub struct Addresses {
    extents: Vec<Extent>,
    /// Sectors of the file.
    sectors: u64,
    touched: u64,
    span: u64,
}

impl Addresses {
    /// The map for I/Os.
    pub fn of(ios: &[RecordedIo], scale_to: ScaleTo) -> Result<Self, ReplayError> {
        let mut extents = touched_extents(ios);
        let touched: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
        let (first, last) = match (extents.first(), extents.last()) {
            (Some(first), Some(last)) => (first.start, last.end),
            _ => (0, 0),
        };
        let span = last - first;
        let gaps = span - touched;
        let room = match scale_to {
            ScaleTo::Recorded => {
                return Ok(Self { sectors: last.max(BLOCK), extents, touched, span });
            }
            ScaleTo::Touched => 0,
            ScaleTo::Automatic => touched,
            ScaleTo::Bytes(bytes) => {
                (bytes / SECTOR_BYTES).checked_sub(touched).ok_or_else(|| {
                    let message = format!(
                        "the recorded I/Os touch {} bytes, more than scale-to={bytes}",
                        touched * SECTOR_BYTES
                    );
                    ReplayError::unfit(message, "give more, or leave scale-to out")
                })?
            }
        };
        let mut to = 0;
        let mut before = first;
        for extent in &mut extents {
            let gap = extent.start - before;
            to += if gaps <= room {
                gap
            } else {
                (u128::from(gap) * u128::from(room) / u128::from(gaps)) as u64 / BLOCK * BLOCK
            };
            extent.to = to;
            to += extent.end - extent.start;
            before = extent.end;
        }
        Ok(Self { extents, sectors: to.max(BLOCK), touched, span })
    }

    /// The byte of the file for a touched sector.
    pub fn byte(&self, sector: u64) -> u64 {
        let after = self.extents.partition_point(|extent| extent.start <= sector);
        let place = match after.checked_sub(1) {
            Some(index) => self.extents[index].to + (sector - self.extents[index].start),
            None => 0,
        };
        place * SECTOR_BYTES
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }

    /// Bytes that I/Os touch.
    pub fn touched_bytes(&self) -> u64 {
        self.touched * SECTOR_BYTES
    }

    /// Bytes of the recorded disk from the first that is touched to the last.
    pub fn span_bytes(&self) -> u64 {
        self.span * SECTOR_BYTES
    }
}

fn touched_extents(ios: &[RecordedIo]) -> Vec<Extent> {
    let blocks =
        |io: &RecordedIo| (io.sector / BLOCK * BLOCK, io.end_sector().next_multiple_of(BLOCK));
    let mut touched: Vec<(u64, u64)> = ios.iter().filter(|io| io.sectors > 0).map(blocks).collect();
    touched.sort_unstable();
    let mut extents: Vec<Extent> = Vec::new();
    for (start, end) in touched {
        match extents.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => extents.push(Extent { start, end, to: start }),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Action;
    use blksim::workload::replay::Memory;

    fn io(sector: u64, sectors: u32) -> RecordedIo {
        RecordedIo {
            queued_ns: 0,
            submitted_ns: 0,
            completed_ns: 1,
            sector,
            sectors,
            action: Action::Read,
            durable: false,
            barrier: false,
            ioprio: 0,
            tid: 0,
            command: 0,
            cgroup: 0,
            processor: 0,
            memory: Memory::default(),
        }
    }

    #[test]
    fn gaps_shrink_alike_and_neighbours_stay() {
        let ios = [io(8000, 8), io(8008, 16), io(108_000, 24), io(308_000, 8)];
        let all = Addresses::of(&ios, ScaleTo::Recorded).unwrap();
        assert_eq!(all.byte(108_003), 108_003 * 512);
        let touched = Addresses::of(&ios, ScaleTo::Touched).unwrap();
        assert_eq!((touched.byte(8000), touched.byte(8010)), (0, 10 * 512));
        assert_eq!((touched.byte(108_000), touched.byte(308_001)), (24 * 512, 49 * 512));
        assert_eq!(touched.file_bytes(), touched.touched_bytes());
        let third = Addresses::of(&ios, ScaleTo::Bytes(100_056 * 512)).unwrap();
        let first = third.byte(108_000) / 512 - 24;
        let second = third.byte(308_000) / 512 - third.byte(108_000) / 512 - 24;
        assert!(second.abs_diff(2 * first) <= 2 * BLOCK, "{first} {second}");
        assert!(third.file_bytes() <= 100_056 * 512);
        assert!(Addresses::of(&ios, ScaleTo::Bytes(4096)).is_err());
    }
}
