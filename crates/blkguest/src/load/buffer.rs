//! The memory that a clone's I/O reads into and writes from.

use std::ptr;

use serde::Deserialize;

use crate::failure::Failure;

/// Bytes of a page, and the alignment of buffers.
const PAGE_BYTES: usize = 4096;
/// Larger buffers are populated on first use.
const POPULATED_BYTES: usize = 4 << 20;
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

/// Maps a buffer of so many bytes, which lives as long as the process.
///
/// # Arguments
///
/// `limits` are those of a driver, if the buffer's I/Os are not to be split for its segments. Each page is a segment,
/// unless it follows the one before it in memory too. A recorded I/O of 1 MiB may have had such pages, where 254
/// segments is the most. So many of the first pages are taken from huge pages that the rest may lie anywhere: an I/O of
/// fewer segments than the recorded one had would be faster.
pub fn map(bytes: usize, limits: Option<SegmentLimits>) -> Result<*mut u8, Failure> {
    let pages = bytes.div_ceil(PAGE_BYTES);
    let together = limits.map_or(0, |limits| limits.pages_together(pages));
    if together > 0 {
        return partly_contiguous(pages, together);
    }
    let bytes = pages * PAGE_BYTES;
    anonymous(bytes, if bytes <= POPULATED_BYTES { libc::MAP_POPULATE } else { 0 })
}

impl SegmentLimits {
    /// The number of pages that have to lie in huge pages, so that a buffer has no more segments. Those are as long as
    /// the driver takes them, and any other page is a segment of its own.
    fn pages_together(self, pages: usize) -> usize {
        let too_many = pages.saturating_sub(self.number.max(1));
        // Each segment saves as many as it has pages, less itself.
        let saved = (self.bytes.min(HUGE_PAGE_BYTES) / PAGE_BYTES).saturating_sub(1);
        if saved == 0 {
            return 0;
        }
        (too_many + too_many.div_ceil(saved)).min(pages)
    }
}

/// A buffer whose first pages are the last ones of huge pages. Kernels without these place them anywhere.
fn partly_contiguous(pages: usize, together: usize) -> Result<*mut u8, Failure> {
    let huge_bytes = (together * PAGE_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
    let rest_bytes = (pages - together) * PAGE_BYTES;
    let mapped = anonymous(HUGE_PAGE_BYTES + huge_bytes + rest_bytes, 0)?;
    // SAFETY: all of this lies within the mapping, and advice that a kernel refuses changes nothing.
    let buffer = unsafe {
        let huge = mapped.add(mapped.align_offset(HUGE_PAGE_BYTES));
        let rest = huge.add(huge_bytes);
        libc::madvise(huge.cast(), huge_bytes, libc::MADV_HUGEPAGE);
        if rest_bytes > 0 {
            libc::madvise(rest.cast(), rest_bytes, libc::MADV_NOHUGEPAGE);
        }
        rest.sub(together * PAGE_BYTES)
    };
    // The pages are allocated when they are written to.
    // SAFETY: the range is mapped, and nobody else has it yet.
    unsafe { ptr::write_bytes(buffer, 0, pages * PAGE_BYTES) };
    Ok(buffer)
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
    use super::*;

    #[test]
    fn as_many_pages_lie_together_as_the_number_of_segments_asks_for() {
        let long = SegmentLimits { number: 254, bytes: u32::MAX as usize };
        assert_eq!(long.pages_together(254), 0);
        // 1 MiB: three pages in one segment, 253 others.
        assert_eq!(long.pages_together(256), 3);
        // 512 in one segment, two in another, 252 others.
        assert_eq!(long.pages_together(766), 514);
        // Thirteen of sixteen pages (the last is shorter), 115 others.
        let short = SegmentLimits { number: 128, bytes: 64 << 10 };
        assert_eq!(short.pages_together(320), 205);
        assert_eq!(SegmentLimits { number: 1, ..long }.pages_together(10), 10);
        assert_eq!(SegmentLimits { number: 0, ..long }.pages_together(10), 10);
        assert_eq!(SegmentLimits { bytes: PAGE_BYTES, ..long }.pages_together(1000), 0);
    }

    #[test]
    fn all_of_a_buffer_is_there() {
        let limits = |number, bytes| Some(SegmentLimits { number, bytes });
        for (bytes, limits) in [
            (1, None),
            (1 << 20, limits(254, 4 << 20)),
            (9 << 20, limits(128, 64 << 10)),
            (4096, limits(1, 64 << 10)),
        ] {
            let buffer = map(bytes, limits).unwrap();
            assert_eq!(buffer.align_offset(PAGE_BYTES), 0);
            // SAFETY: these are the first and the last byte of a buffer of nobody else.
            unsafe {
                *buffer = 1;
                *buffer.add(bytes - 1) = 1;
            }
        }
    }
}
