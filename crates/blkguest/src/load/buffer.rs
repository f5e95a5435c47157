//! The memory that a clone's I/O reads into and writes from.

use std::cell::Cell;
use std::ptr;

use blksim::workload::replay::Memory;
use serde::Deserialize;

use super::page_frames::{PAGE_BYTES, anonymous, part_pages};
use crate::failure::Failure;

/// Bytes from one new word of a write to the next.
const RENEWED_EVERY: usize = 256;
/// Larger buffers are populated on first use.
const POPULATED_BYTES: usize = 4 << 20;
/// Single pages at least, so that the first of two is not allocated right before the second.
const FEWEST_SINGLE: usize = 8;
/// A huge page of x86-64 and of aarch64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The segments, pieces of memory that lie apart, that a driver takes in one request.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentLimits {
    pub number: usize,
    /// Of one.
    pub bytes: usize,
}

/// The buffers that a task may have; it has one in any case.
#[derive(Debug, Clone, Copy)]
pub struct MostBuffers {
    pub number: usize,
    /// Of all.
    pub bytes: usize,
}

impl MostBuffers {
    /// Those of each of so many tasks.
    pub fn of_each(self, tasks: usize) -> Self {
        let tasks = tasks.max(1);
        Self { number: self.number.div_ceil(tasks), bytes: self.bytes / tasks }
    }
}

/// The memory of a clone's I/Os, which lives as long as the process. Those that are in flight at a time have a buffer each, and
/// cold memory is the buffer of the longest ago: a host copies into memory that no processor's cache has a fifth more slowly.
///
/// ```text
/// huge pages: one segment ───────┐┌─ single pages: a segment each
/// [            an I/O of few segments ]
///                     [    one of many segments    ]
/// ```
#[derive(Debug)]
pub struct Buffer {
    /// Of each: the first byte of the single pages, or of all.
    buffers: Vec<*mut u8>,
    /// So many of them, the first, are in use as a rule.
    depth: usize,
    /// I/Os so far, and those of them in cold memory.
    count: Cell<usize>,
    cold_count: Cell<usize>,
    limits: Option<SegmentLimits>,
}

impl Buffer {
    /// Memory for I/Os of so many bytes, wherever the kernel has some.
    pub fn anywhere(bytes: usize) -> Result<Self, Failure> {
        let bytes = bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        let populated = if bytes <= POPULATED_BYTES { libc::MAP_POPULATE } else { 0 };
        Ok(Self::of(vec![anonymous(bytes, populated)?], 1, None))
    }

    /// Memory in which each I/O, of so many bytes, can have its segments. A device takes a request of one segment as
    /// soon as it has a place for it, and one of 254 perhaps only by itself. I/Os whose segments are unknown get as many
    /// as the driver takes: with fewer they could be faster than the recorded ones, and with more they would be split.
    ///
    /// # Arguments
    ///
    /// `depth` of them are in flight at a time. There are as many buffers as a task may have if any takes cold memory.
    pub fn in_segments(
        ios: impl Iterator<Item = (usize, Memory)>,
        limits: SegmentLimits,
        depth: usize,
        most: MostBuffers,
    ) -> Result<Self, Failure> {
        let (mut most_pages, mut any_cold) = (Pages { together: 0, single: FEWEST_SINGLE }, false);
        for (bytes, memory) in ios {
            let pages = limits.pages(bytes, memory);
            most_pages.together = most_pages.together.max(pages.together);
            most_pages.single = most_pages.single.max(pages.single);
            any_cold |= memory.cold;
        }
        let most = most.number.min(most.bytes / most_pages.bytes()).max(1);
        let depth = depth.clamp(1, most);
        let count = if any_cold { most } else { depth };
        let buffers: Result<Vec<_>, _> = (0..count).map(|_| most_pages.map()).collect();
        let buffers = buffers?;
        // Last, because a kernel may move pages to make room for huge ones.
        for single in &buffers {
            most_pages.part(*single)?;
        }
        Ok(Self::of(buffers, depth, Some(limits)))
    }

    fn of(buffers: Vec<*mut u8>, depth: usize, limits: Option<SegmentLimits>) -> Self {
        Self { buffers, depth, count: Cell::new(0), cold_count: Cell::new(0), limits }
    }

    /// The first byte for an I/O.
    pub fn of_io(&self, bytes: usize, memory: Memory) -> *mut u8 {
        let (counter, buffers) = if memory.cold {
            (&self.cold_count, self.buffers.len())
        } else {
            (&self.count, self.depth)
        };
        let number = counter.replace(counter.get().wrapping_add(1));
        let single = self.buffers[number % buffers];
        let together = self.limits.map_or(0, |limits| limits.pages(bytes, memory).together);
        // SAFETY: so many pages lie before the single ones.
        unsafe { single.sub(together * PAGE_BYTES) }
    }

    /// The same for a write, both halves of each of whose sectors get other data than before, so that two of its eight lines in
    /// a processor's cache are new, as with fio (`small_content_scramble` in `io_u.c`, fio 3.33). A host copies data more
    /// slowly that a processor has just written, and a device may store the same data faster.
    ///
    /// On the machine of the measurements writes of 1 MiB took 14 % longer than fio's if all lines were new, as in a program that
    /// makes all of its data anew, and 3 to 8 % less if only one was.
    pub fn of_new_data(&self, bytes: usize, memory: Memory) -> *mut u8 {
        let data = self.of_io(bytes, memory);
        for offset in (0..bytes).step_by(RENEWED_EVERY) {
            // SAFETY: the buffer holds the I/O, which is of whole sectors.
            unsafe {
                let word = data.add(offset).cast::<[u8; 8]>();
                // Sectors that are all alike may be stored faster too.
                let new = u64::from_ne_bytes(word.read()).wrapping_add(2 * offset as u64 + 1);
                word.write(new.to_ne_bytes());
            }
        }
        data
    }
}

impl SegmentLimits {
    /// The pages of an I/O, some of which have to lie together, so that it has its segments. Those are as long as the driver takes
    /// them, and any other page is a segment of its own.
    fn pages(self, bytes: usize, memory: Memory) -> Pages {
        let pages = bytes.div_ceil(PAGE_BYTES);
        let most = self.number.max(1);
        // A program whose data lie in more pieces than the driver takes has its I/Os split too.
        let segments = match memory.segments {
            0 => most,
            known => known.into(),
        };
        let too_many = pages.saturating_sub(segments);
        // Each segment saves as many as it has pages, less itself.
        let saved = (self.bytes.min(HUGE_PAGE_BYTES) / PAGE_BYTES).saturating_sub(1);
        let together = match saved {
            0 => 0,
            saved => (too_many + too_many.div_ceil(saved)).min(pages),
        };
        Pages { together, single: pages - together }
    }
}

/// Pages of an I/O or a buffer: those that lie together in memory, and those that are a segment each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pages {
    together: usize,
    single: usize,
}

impl Pages {
    fn huge_bytes(self) -> usize {
        (self.together * PAGE_BYTES).next_multiple_of(HUGE_PAGE_BYTES)
    }

    /// Of a buffer.
    fn bytes(self) -> usize {
        self.huge_bytes() + self.single * PAGE_BYTES
    }

    /// Maps huge pages, at whose end those that lie together are, and single pages behind them, of which hardly any two
    /// neighbours lie one after the other in memory; gives the first of these. Kernels without huge pages place all anywhere.
    fn map(self) -> Result<*mut u8, Failure> {
        let Self { together, single } = self;
        let mapped = anonymous(HUGE_PAGE_BYTES + self.bytes(), 0)?;
        // SAFETY: all of this lies within the mapping, which nobody else has yet, and advice that a kernel refuses changes
        // nothing. Pages are allocated when they are written to.
        unsafe {
            let huge = mapped.add(mapped.align_offset(HUGE_PAGE_BYTES));
            let rest = huge.add(self.huge_bytes());
            if together > 0 {
                libc::madvise(huge.cast(), self.huge_bytes(), libc::MADV_HUGEPAGE);
                ptr::write_bytes(rest.sub(together * PAGE_BYTES), 0, together * PAGE_BYTES);
            }
            libc::madvise(rest.cast(), single * PAGE_BYTES, libc::MADV_NOHUGEPAGE);
            // Pages that are allocated one after the other mostly are neighbours in memory.
            for page in (0..single).step_by(2).chain((1..single).step_by(2)) {
                ptr::write_bytes(rest.add(page * PAGE_BYTES), 0, PAGE_BYTES);
            }
            Ok(rest)
        }
    }

    /// Parts single pages that lie one after the other in memory nonetheless, by chance: a segment less makes an I/O faster.
    fn part(self, single: *mut u8) -> Result<(), Failure> {
        let together = self.together.min(1);
        // SAFETY: the last of the pages that lie together, and the single ones, which nobody uses yet.
        unsafe { part_pages(single.sub(together * PAGE_BYTES), together + self.single) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_frames::{joined, page_frames};
    use super::*;

    const THREE: MostBuffers = MostBuffers { number: 3, bytes: 1 << 30 };

    fn of(segments: u16) -> Memory {
        Memory { segments, cold: false }
    }

    #[test]
    fn as_many_pages_lie_together_as_the_number_of_segments_asks_for() {
        let together = |limits: SegmentLimits, pages: usize, segments| {
            let found = limits.pages(pages * PAGE_BYTES, of(segments));
            assert_eq!(found.together + found.single, pages);
            found.together
        };
        let long = SegmentLimits { number: 254, bytes: u32::MAX as usize };
        assert_eq!(together(long, 254, 0), 0);
        // 1 MiB: three pages in one segment, 253 others.
        assert_eq!(together(long, 256, 0), 3);
        assert_eq!([1, 2, 254].map(|segments| together(long, 256, segments)), [256, 255, 3]);
        // Split, as the recorded one was.
        assert_eq!([256, 300].map(|segments| together(long, 256, segments)), [0, 0]);
        // 512 in one segment, two in another, 252 others.
        assert_eq!(together(long, 766, 0), 514);
        // Thirteen of sixteen pages (the last is shorter), 115 others.
        let short = SegmentLimits { number: 128, bytes: 64 << 10 };
        assert_eq!(together(short, 320, 0), 205);
        assert_eq!(together(SegmentLimits { number: 1, ..long }, 10, 0), 10);
        assert_eq!(together(SegmentLimits { number: 0, ..long }, 10, 0), 10);
        assert_eq!(together(SegmentLimits { bytes: PAGE_BYTES, ..long }, 1000, 0), 0);
    }

    #[test]
    fn all_of_a_buffer_is_there() {
        let limits = |number, bytes| SegmentLimits { number, bytes };
        let written = |buffer: &Buffer, bytes: usize, memory| {
            let first = buffer.of_io(bytes, memory);
            assert_eq!(first.align_offset(PAGE_BYTES), 0);
            // SAFETY: these are the first and the last byte of an I/O in a buffer of nobody else.
            unsafe {
                *first = 1;
                *first.add(bytes - 1) = 1;
            }
        };
        written(&Buffer::anywhere(1).unwrap(), 1, of(0));
        for (ios, limits) in [
            (&[(1 << 20, 0), (512, 0)][..], limits(254, 4 << 20)),
            (&[(9 << 20, 0), (1 << 20, 3), (4096, 1)], limits(128, 64 << 10)),
            (&[(4096, 0)], limits(1, 64 << 10)),
            (&[(3 << 20, 1), (1 << 19, 128), (9 << 10, 2)], limits(254, 4 << 20)),
        ] {
            for cold in [false, true] {
                let ios =
                    ios.iter().map(|(bytes, segments)| (*bytes, Memory { cold, ..of(*segments) }));
                let buffer = Buffer::in_segments(ios.clone(), limits, 2, THREE).unwrap();
                for (bytes, memory) in ios.clone().chain(ios) {
                    written(&buffer, bytes, memory);
                }
            }
        }
    }

    #[test]
    fn ios_in_flight_have_a_buffer_each_and_cold_memory_is_that_of_the_longest_ago() {
        let limits = SegmentLimits { number: 254, bytes: 4 << 20 };
        let (warm, cold) = (of(2), Memory { cold: true, ..of(2) });
        let different = |places: &[*mut u8]| {
            let mut places = places.to_vec();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        let ios = [(8192, warm), (8192, cold)].into_iter();
        let buffer = Buffer::in_segments(ios, limits, 2, THREE).unwrap();
        let places = [warm, cold, cold, warm, cold, cold, warm].map(|io| buffer.of_io(8192, io));
        assert_eq!((places[0], places[1]), (places[6], places[5]));
        assert_eq!(different(&[places[0], places[3]]), 2);
        assert_eq!(different(&[places[1], places[2], places[4]]), 3);
        let deep = |most| {
            let buffer = Buffer::in_segments([(8192, warm)].into_iter(), limits, 8, most).unwrap();
            different(&[warm; 8].map(|io| buffer.of_io(8192, io)))
        };
        // A buffer of so few pages has eight.
        let bytes = [1 << 30, 64 << 10, 32 << 10, 1];
        assert_eq!(bytes.map(|bytes| deep(MostBuffers { bytes, ..THREE })), [3, 2, 1, 1]);
    }

    #[test]
    fn tasks_share_the_buffers() {
        let most = |tasks| MostBuffers { number: 32, bytes: 1 << 20 }.of_each(tasks);
        assert_eq!([0, 1, 3, 99].map(|tasks| most(tasks).number), [32, 32, 11, 1]);
        assert_eq!([0, 1, 4].map(|tasks| most(tasks).bytes), [1 << 20, 1 << 20, 1 << 18]);
    }

    #[test]
    fn each_sector_of_a_write_gets_other_data() {
        let buffer = Buffer::anywhere(1024).unwrap();
        let words = || {
            let first = buffer.of_new_data(1024, of(0));
            // SAFETY: the buffer has a page.
            unsafe { [0, 512, 1024].map(|at| first.add(at).cast::<[u8; 8]>().read()) }
        };
        let (before, after) = (words(), words());
        assert!(before[0] != after[0] && before[1] != after[1] && after[0] != after[1]);
        assert_eq!((before[2], after[2]), ([0; 8], [0; 8]));
    }

    #[test]
    fn an_io_has_its_segments_in_memory() {
        let huge_pages = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if huge_pages.map_or(true, |text| text.contains("[never]")) {
            eprintln!("skipped: this kernel gives no huge pages");
            return;
        }
        let limits = SegmentLimits { number: 254, bytes: 4 << 20 };
        let ios =
            [(1 << 20, 1), (1 << 20, 254), (1 << 19, 2), (1 << 19, 128), (9 << 10, 3), (8192, 2)];
        let ios = ios.map(|(bytes, segments)| (bytes, of(segments)));
        let buffer = Buffer::in_segments(ios.into_iter(), limits, 1, THREE).unwrap();
        for (bytes, memory) in ios {
            let (segments, first) = (usize::from(memory.segments), buffer.of_io(bytes, memory));
            let Some(frames) = page_frames(first, bytes.div_ceil(PAGE_BYTES)) else {
                eprintln!("skipped: only root sees where pages lie");
                return;
            };
            let found = 1 + frames.windows(2).filter(|pair| !joined(pair[0], pair[1])).count();
            assert_eq!(found, segments, "{bytes} bytes");
        }
    }
}
