//! The disk's cache: segments that were read, and data not yet written.

use std::collections::VecDeque;

/// Contiguous sectors.
#[derive(Debug, Clone, Copy)]
struct Segment {
    sector: u64,
    nr_sectors: u64,
}

impl Segment {
    /// True if it contains a sector, or ends just before it. All segments are checked, and their
    /// order is unpredictable: one comparison, which nearly always fails, is faster than two.
    /// foretold: one comparison, which nearly always fails, is quicker than two.
    #[inline]
    fn reaches(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.sector) <= self.nr_sectors
    }

    fn end(&self) -> u64 {
        self.sector + self.nr_sectors
    }
}

/// Segments of data that was read, least recently used first out.
#[derive(Debug, Clone)]
pub struct ReadCache {
    /// Most recent last.
    segments: VecDeque<Segment>,
    limit: usize,
}

impl ReadCache {
    pub fn new(limit: usize) -> Self {
        Self { segments: VecDeque::with_capacity(limit + 1), limit }
    }

    /// True if it contains all of `first..end`.
    #[inline]
    pub fn holds(&self, first: u64, end: u64) -> bool {
        self.segments.iter().any(|segment| segment.reaches(first) && end <= segment.end())
    }

    /// Remembers `first..end`, joined to a segment that it continues, of at most `largest` sectors.
    #[inline]
    pub fn add(&mut self, first: u64, end: u64, largest: u64) {
        if self.limit == 0 || first >= end {
            return;
        }
        let continued = self.segments.iter().position(|segment| segment.reaches(first));
        let continued = continued.and_then(|index| self.segments.remove(index));
        let (first, end) = if let Some(segment) = continued {
            (segment.sector, end.max(segment.end()))
        } else {
            if self.segments.len() >= self.limit {
                self.segments.pop_front();
            }
            (first, end)
        };
        let sector = first.max(end.saturating_sub(largest));
        self.segments.push_back(Segment { sector, nr_sectors: end - sector });
    }

    /// Forgets what overlaps a write.
    #[inline]
    pub fn forget(&mut self, first: u64, end: u64) {
        self.segments.retain(|segment| segment.end() <= first || end <= segment.sector);
    }
}

/// An extent that is only in the cache.
#[derive(Debug, Clone, Copy)]
pub struct Dirty {
    pub sector: u64,
    pub nr_sectors: u64,
    pub cylinder: u32,
    pub clock_ns: u64,
}

/// Accepted data that is not on the medium.
#[derive(Debug, Clone, Default)]
pub struct WriteCache {
    pub extents: Vec<Dirty>,
    pub nr_sectors: u64,
}

impl WriteCache {
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// True if it contains all of `first..end`.
    pub fn holds(&self, first: u64, end: u64) -> bool {
        self.extents.iter().any(|d| d.sector <= first && end <= d.sector + d.nr_sectors)
    }

    /// True if it can take `first..end` without another extent.
    pub fn takes_without_extent(&self, first: u64, end: u64, largest: u64) -> bool {
        let continues =
            |d: &Dirty| d.sector + d.nr_sectors == first && d.nr_sectors + (end - first) <= largest;
        self.extents.iter().any(continues) || self.holds(first, end)
    }

    /// Takes data in. Data that is there already is overwritten in place; data that continues an
    /// extent extends it, up to `largest` sectors.
    pub fn add(&mut self, dirty: Dirty, largest: u64) {
        let end = dirty.sector + dirty.nr_sectors;
        if self.holds(dirty.sector, end) {
            return;
        }
        self.nr_sectors += dirty.nr_sectors;
        let continued = self.extents.iter_mut().rev().find(|d| {
            d.sector + d.nr_sectors == dirty.sector && d.nr_sectors + dirty.nr_sectors <= largest
        });
        match continued {
            Some(extent) => extent.nr_sectors += dirty.nr_sectors,
            None => self.extents.push(dirty),
        }
    }

    /// Takes an extent out to be written.
    pub fn take(&mut self, index: usize) -> Dirty {
        let dirty = self.extents.swap_remove(index);
        self.nr_sectors -= dirty.nr_sectors;
        dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_segment_goes_first_and_growth_is_bounded() {
        let mut cache = ReadCache::new(2);
        cache.add(0, 10, 100);
        cache.add(1000, 1010, 100);
        cache.add(10, 120, 100);
        assert!(cache.holds(20, 120) && !cache.holds(0, 10));
        cache.add(5000, 5001, 100);
        assert!(!cache.holds(1000, 1010));
        cache.forget(119, 130);
        assert!(!cache.holds(20, 30));
    }

    #[test]
    fn sequential_writes_become_one_extent() {
        let mut cache = WriteCache::default();
        let dirty = |sector| Dirty { sector, nr_sectors: 8, cylinder: 0, clock_ns: 0 };
        cache.add(dirty(0), 16);
        cache.add(dirty(8), 16);
        cache.add(dirty(16), 16);
        cache.add(dirty(0), 16);
        assert_eq!((cache.extents.len(), cache.nr_sectors), (2, 24));
        assert_eq!(cache.take(0).nr_sectors, 16);
        assert_eq!(cache.nr_sectors, 8);
    }
}
