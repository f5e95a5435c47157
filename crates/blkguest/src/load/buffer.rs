//! The memory that a clone's I/O reads into and writes from.

use std::ptr;

use crate::failure::Failure;

/// Bytes of a page, and the alignment of buffers.
const PAGE_BYTES: usize = 4096;
/// Larger buffers are populated on first use.
const POPULATED_BYTES: usize = 4 << 20;
/// A huge page of x86-64 and of aarch64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Maps a buffer of so many bytes, which lives as long as the process.
///
/// # Arguments
///
/// `most_segments` is the number of segments that a driver takes in one request, if the buffer's I/Os are not to be
/// split for that. Each page is a segment, unless it follows the one before it in memory too. A recorded I/O of 1 MiB
/// may have had such pages, where 254 segments is the most. So many of the first pages are taken from a huge page that
/// the rest may lie anywhere: an I/O of fewer segments than the recorded one had would be faster.
pub fn map(bytes: usize, most_segments: Option<u32>) -> Result<*mut u8, Failure> {
    let pages = bytes.div_ceil(PAGE_BYTES);
    let together = most_segments.map_or(0, |most| pages_together(pages, most as usize));
    if together > 0 {
        return partly_contiguous(pages, together);
    }
    let bytes = pages * PAGE_BYTES;
    anonymous(bytes, if bytes <= POPULATED_BYTES { libc::MAP_POPULATE } else { 0 })
}

/// The number of pages that have to lie in huge pages, so that a buffer has so many segments. All that lie in one of
/// these are one segment, any other page is one of its own.
fn pages_together(pages: usize, most_segments: usize) -> usize {
    let too_many = pages.saturating_sub(most_segments.max(1));
    // Each huge page saves as many segments as it has pages, less its own.
    let huge_pages = too_many.div_ceil(HUGE_PAGE_BYTES / PAGE_BYTES - 1);
    (too_many + huge_pages).min(pages)
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
        assert_eq!(pages_together(254, 254), 0);
        // 1 MiB: three pages in one segment, 253 others.
        assert_eq!(pages_together(256, 254), 3);
        // 512 in one segment, two in another, 252 others.
        assert_eq!(pages_together(766, 254), 514);
        assert_eq!(pages_together(10, 1), 10);
        assert_eq!(pages_together(10, 0), 10);
    }

    #[test]
    fn all_of_a_buffer_is_there() {
        for (bytes, most_segments) in
            [(1, None), (1 << 20, Some(254)), (9 << 20, Some(128)), (4096, Some(1))]
        {
            let buffer = map(bytes, most_segments).unwrap();
            assert_eq!(buffer.align_offset(PAGE_BYTES), 0);
            // SAFETY: these are the first and the last byte of a buffer of nobody else.
            unsafe {
                *buffer = 1;
                *buffer.add(bytes - 1) = 1;
            }
        }
    }
}
