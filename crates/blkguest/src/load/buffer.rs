//! The memory that a clone's I/O reads into and writes from.

use std::cell::Cell;
use std::ptr;

use serde::Deserialize;

use crate::failure::Failure;

/// Of a generator of random numbers (Knuth's MMIX).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
/// Bytes from one new word of a write to the next.
const RENEWED_EVERY: usize = 256;
/// Bytes of a page, and the alignment of buffers.
const PAGE_BYTES: usize = 4096;
/// Larger buffers are populated on first use.
const POPULATED_BYTES: usize = 4 << 20;
/// So that the first page and the second are not allocated one after the other.
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

/// The data of an I/O.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data {
    pub bytes: usize,
    /// Pieces of memory that lie apart; 0 if that is unknown.
    pub segments: usize,
    /// Into memory that has not been in use for long, as the page cache takes for what it reads ahead.
    pub cold: bool,
}

/// The buffers that a task may have; it has one in any case.
#[derive(Debug, Clone, Copy)]
pub struct MostBuffers {
    pub number: usize,
    /// Of all.
    pub bytes: usize,
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

    /// Memory in which each I/O, of so many bytes, can have so many segments. A device takes a request of one segment as
    /// soon as it has a place for it, and one of 254 perhaps only by itself. I/Os whose segments are unknown get as many
    /// as the driver takes: with fewer they could be faster than the recorded ones, and with more they would be split.
    ///
    /// # Arguments
    ///
    /// `depth` of them are in flight at a time. There are as many buffers as a task may have if any takes cold memory.
    pub fn in_segments(
        ios: impl Iterator<Item = Data>,
        limits: SegmentLimits,
        depth: usize,
        most: MostBuffers,
    ) -> Result<Self, Failure> {
        let (mut together, mut single, mut any_cold) = (0, 0, false);
        for Data { bytes, segments, cold } in ios {
            let pages = bytes.div_ceil(PAGE_BYTES);
            let of_io = limits.pages_together(pages, segments);
            together = together.max(of_io);
            single = single.max(pages - of_io);
            any_cold |= cold;
        }
        let most = most.number.min(most.bytes / mapped_bytes(together, single)).max(1);
        let depth = depth.clamp(1, most);
        let count = if any_cold { most } else { depth };
        let buffers: Result<_, _> =
            (0..count).map(|_| partly_contiguous(together, single)).collect();
        Ok(Self::of(buffers?, depth, Some(limits)))
    }

    fn of(buffers: Vec<*mut u8>, depth: usize, limits: Option<SegmentLimits>) -> Self {
        Self { buffers, depth, count: Cell::new(0), cold_count: Cell::new(0), limits }
    }

    /// The first byte for an I/O.
    pub fn of_io(&self, Data { bytes, segments, cold }: Data) -> *mut u8 {
        let (counter, buffers) =
            if cold { (&self.cold_count, self.buffers.len()) } else { (&self.count, self.depth) };
        let number = counter.replace(counter.get().wrapping_add(1));
        let single = self.buffers[number % buffers];
        let together = self
            .limits
            .map_or(0, |limits| limits.pages_together(bytes.div_ceil(PAGE_BYTES), segments));
        // SAFETY: so many pages lie before the single ones.
        unsafe { single.sub(together * PAGE_BYTES) }
    }
}

/// Gives both halves of each sector of a write other data than before, so that two of its eight lines in a processor's cache are
/// new, as fio does (`small_content_scramble` in `io_u.c`, fio 3.33): a host copies data more slowly that a processor has just
/// written, and a device may store the same data faster.
///
/// If all lines are new, as in a program that makes all of its data anew, writes of 1 MiB take a sixth longer, and if only one
/// is, a tenth less, on the machine of the measurements.
///
/// # Safety
///
/// So many bytes are mapped there, and nobody else's.
pub unsafe fn renew(data: *mut u8, bytes: usize) {
    for offset in (0..bytes).step_by(RENEWED_EVERY) {
        // SAFETY: buffers begin at a page, and I/Os are whole sectors.
        unsafe {
            let word = data.add(offset).cast::<[u8; 8]>();
            let old = u64::from_ne_bytes(word.read());
            // Sectors that are all alike may be stored faster too.
            let new = old.wrapping_mul(MULTIPLIER).wrapping_add(2 * offset as u64 + 1);
            word.write(new.to_ne_bytes());
        }
    }
}

impl SegmentLimits {
    /// The number of pages that have to lie together, so that an I/O of so many has so many segments. Those are as long as
    /// the driver takes them, and any other page is a segment of its own.
    fn pages_together(self, pages: usize, segments: usize) -> usize {
        let most = self.number.max(1);
        let segments = if segments == 0 { most } else { segments.min(most) };
        let too_many = pages.saturating_sub(segments);
        // Each segment saves as many as it has pages, less itself.
        let saved = (self.bytes.min(HUGE_PAGE_BYTES) / PAGE_BYTES).saturating_sub(1);
        if saved == 0 {
            return 0;
        }
        (too_many + too_many.div_ceil(saved)).min(pages)
    }
}

/// The bytes of a buffer with so many pages.
fn mapped_bytes(together: usize, single: usize) -> usize {
    let huge_bytes = (together * PAGE_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
    huge_bytes + single.max(FEWEST_SINGLE) * PAGE_BYTES
}

/// Huge pages with room for `together` pages at their end, and single pages behind them, of which no two neighbours lie
/// one after the other in memory; gives the first of these. Kernels without huge pages place all anywhere.
fn partly_contiguous(together: usize, single: usize) -> Result<*mut u8, Failure> {
    let huge_bytes = (together * PAGE_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
    let mapped = anonymous(HUGE_PAGE_BYTES + mapped_bytes(together, single), 0)?;
    // Two pages that are allocated one after the other mostly are neighbours in memory, and so must not be in the buffer.
    let single = single.max(FEWEST_SINGLE);
    // SAFETY: all of this lies within the mapping, which nobody else has yet, and advice that a kernel refuses changes
    // nothing. Pages are allocated when they are written to.
    unsafe {
        let huge = mapped.add(mapped.align_offset(HUGE_PAGE_BYTES));
        let rest = huge.add(huge_bytes);
        if together > 0 {
            libc::madvise(huge.cast(), huge_bytes, libc::MADV_HUGEPAGE);
            ptr::write_bytes(rest.sub(together * PAGE_BYTES), 0, together * PAGE_BYTES);
        }
        libc::madvise(rest.cast(), single * PAGE_BYTES, libc::MADV_NOHUGEPAGE);
        for page in (0..single).step_by(2).chain((1..single).step_by(2)) {
            ptr::write_bytes(rest.add(page * PAGE_BYTES), 0, PAGE_BYTES);
        }
        Ok(rest)
    }
}

/// A new mapping of zeroes.
fn anonymous(bytes: usize, flags: libc::c_int) -> Result<*mut u8, Failure> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(Failure::last("allocating a buffer"));
    }
    Ok(mapped.cast())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    const THREE: MostBuffers = MostBuffers { number: 3, bytes: 1 << 30 };

    fn data(bytes: usize, segments: usize) -> Data {
        Data { bytes, segments, cold: false }
    }

    #[test]
    fn as_many_pages_lie_together_as_the_number_of_segments_asks_for() {
        let long = SegmentLimits { number: 254, bytes: u32::MAX as usize };
        assert_eq!(long.pages_together(254, 0), 0);
        // 1 MiB: three pages in one segment, 253 others.
        assert_eq!(long.pages_together(256, 0), 3);
        assert_eq!(long.pages_together(256, 300), 3);
        assert_eq!([1, 2, 256].map(|segments| long.pages_together(256, segments)), [256, 255, 3]);
        // 512 in one segment, two in another, 252 others.
        assert_eq!(long.pages_together(766, 0), 514);
        // Thirteen of sixteen pages (the last is shorter), 115 others.
        let short = SegmentLimits { number: 128, bytes: 64 << 10 };
        assert_eq!(short.pages_together(320, 0), 205);
        assert_eq!(SegmentLimits { number: 1, ..long }.pages_together(10, 0), 10);
        assert_eq!(SegmentLimits { number: 0, ..long }.pages_together(10, 0), 10);
        assert_eq!(SegmentLimits { bytes: PAGE_BYTES, ..long }.pages_together(1000, 0), 0);
    }

    #[test]
    fn all_of_a_buffer_is_there() {
        let limits = |number, bytes| SegmentLimits { number, bytes };
        let written = |buffer: &Buffer, data: Data| {
            let bytes = data.bytes;
            let first = buffer.of_io(data);
            assert_eq!(first.align_offset(PAGE_BYTES), 0);
            // SAFETY: these are the first and the last byte of an I/O in a buffer of nobody else.
            unsafe {
                *first = 1;
                *first.add(bytes - 1) = 1;
            }
        };
        written(&Buffer::anywhere(1).unwrap(), data(1, 0));
        for (ios, limits) in [
            (&[(1 << 20, 0), (512, 0)][..], limits(254, 4 << 20)),
            (&[(9 << 20, 0), (1 << 20, 3), (4096, 1)], limits(128, 64 << 10)),
            (&[(4096, 0)], limits(1, 64 << 10)),
            (&[(3 << 20, 1), (1 << 19, 128), (9 << 10, 2)], limits(254, 4 << 20)),
        ] {
            for cold in [false, true] {
                let ios =
                    ios.iter().map(|(bytes, segments)| Data { cold, ..data(*bytes, *segments) });
                let buffer = Buffer::in_segments(ios.clone(), limits, 2, THREE).unwrap();
                for data in ios.clone().chain(ios) {
                    written(&buffer, data);
                }
            }
        }
    }

    #[test]
    fn ios_in_flight_have_a_buffer_each_and_cold_memory_is_that_of_the_longest_ago() {
        let limits = SegmentLimits { number: 254, bytes: 4 << 20 };
        let (warm, cold) = (data(8192, 2), Data { cold: true, ..data(8192, 2) });
        let different = |places: &[*mut u8]| {
            let mut places = places.to_vec();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        let buffer = Buffer::in_segments([warm, cold].into_iter(), limits, 2, THREE).unwrap();
        let places = [warm, cold, cold, warm, cold, cold, warm].map(|io| buffer.of_io(io));
        assert_eq!((places[0], places[1]), (places[6], places[5]));
        assert_eq!(different(&[places[0], places[3]]), 2);
        assert_eq!(different(&[places[1], places[2], places[4]]), 3);
        let deep = |most| {
            let buffer = Buffer::in_segments([warm].into_iter(), limits, 8, most).unwrap();
            different(&[warm; 8].map(|io| buffer.of_io(io)))
        };
        // A buffer of so few pages has eight.
        let bytes = [1 << 30, 64 << 10, 32 << 10, 1];
        assert_eq!(bytes.map(|bytes| deep(MostBuffers { bytes, ..THREE })), [3, 2, 1, 1]);
    }

    #[test]
    fn each_sector_of_a_write_gets_other_data() {
        let buffer = Buffer::anywhere(1024).unwrap();
        let first = buffer.of_io(data(1024, 0));
        let words = || {
            // SAFETY: the buffer has a page.
            unsafe {
                renew(first, 1024);
                [0, 512, 1024].map(|at| first.add(at).cast::<[u8; 8]>().read())
            }
        };
        let (before, after) = (words(), words());
        assert!(before[0] != after[0] && before[1] != after[1] && after[0] != after[1]);
        assert_eq!((before[2], after[2]), ([0; 8], [0; 8]));
    }

    /// Addresses in memory of the pages of a buffer, by their number; `None` without permission to know them.
    fn page_frames(first: *mut u8, pages: usize) -> Option<Vec<u64>> {
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let mut entries = vec![0; pages * 8];
        pagemap.read_exact_at(&mut entries, (first as usize / PAGE_BYTES * 8) as u64).unwrap();
        let entries =
            entries.chunks_exact(8).map(|entry| u64::from_ne_bytes(entry.try_into().unwrap()));
        let frames: Vec<u64> = entries.map(|entry| entry & ((1 << 55) - 1)).collect();
        (frames[0] != 0).then_some(frames)
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
        let ios = ios.map(|(bytes, segments)| data(bytes, segments));
        let buffer = Buffer::in_segments(ios.into_iter(), limits, 1, THREE).unwrap();
        for io in ios {
            let (bytes, segments, first) = (io.bytes, io.segments, buffer.of_io(io));
            let Some(frames) = page_frames(first, bytes.div_ceil(PAGE_BYTES)) else {
                eprintln!("skipped: only root sees where pages lie");
                return;
            };
            let found = 1 + frames.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
            // By chance some pages lie one after the other, or a huge page could not be had.
            assert!(
                found.abs_diff(segments) <= segments / 8,
                "{bytes} bytes: {found}, not {segments}"
            );
        }
    }
}
