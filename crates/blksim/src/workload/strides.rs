//! Zones that a job visits one after the other (`zonemode=strided`).

use super::job::Strides;
use super::layout::Region;

/// The current zone; positions are relative to the region.
#[derive(Debug, Clone)]
pub(super) struct StridedZones {
    options: Strides,
    pub start: u64,
    /// Bytes transferred within it.
    done: u64,
}

impl StridedZones {
    pub fn new(options: Strides) -> Self {
        Self { options, start: 0, done: 0 }
    }

    /// Length of a zone.
    pub fn range(&self) -> u64 {
        self.options.range
    }

    /// Goes on to the next zone if this one has had its bytes, and to its beginning at its end
    /// (`setup_strided_zone_mode` in `io_u.c`, fio 3.33). Zones may reach beyond the region, up to the
    /// end of its file. Returns true if random offsets may come again.
    pub fn enter(&mut self, position: &mut [u64; 2], direction: usize, region: Region) -> bool {
        let Strides { zone_bytes, range, skip } = self.options;
        if self.done >= zone_bytes {
            self.done = 0;
            self.start = self.start.saturating_add(range).saturating_add(skip);
            if region.begin.saturating_add(self.start) >= region.file_bytes {
                self.start = 0;
            }
            position[direction] = self.start;
        }
        if position[direction] >= self.start + range {
            position[direction] = self.start;
        }
        let begins_again = self.done % range == 0;
        if begins_again {
            *position = [self.start; 2];
        }
        begins_again
    }

    /// Counts an I/O.
    pub fn issued(&mut self, bytes: u64) {
        self.done += bytes;
    }
}
