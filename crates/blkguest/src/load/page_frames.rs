//! Pages of this process, and the frames, pages of the machine's memory, that hold them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr;

use crate::failure::Failure;

/// Bytes of a page, and the alignment of buffers.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of an entry of `/proc/self/pagemap`, and its bits: the number of the frame, and whether there is one.
const ENTRY_BYTES: usize = 8;
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;
/// Two frames do not fit a page: the one after that of the page before, and the one before that of the page behind.
const UNFIT_FRAMES: usize = 2;

/// The frames of pages that follow each other; `None` without permission to know them, or if some pages have none.
pub fn page_frames(first: *const u8, pages: usize) -> Option<Vec<u64>> {
    let mut entries = vec![0; pages * ENTRY_BYTES];
    let place = first as usize / PAGE_BYTES * ENTRY_BYTES;
    File::open("/proc/self/pagemap").ok()?.read_exact_at(&mut entries, place as u64).ok()?;
    let frame = |entry: &[u8]| {
        let entry = u64::from_ne_bytes(entry.try_into().ok()?);
        // Those who may not know it read zero.
        (entry & PRESENT != 0 && entry & FRAME != 0).then_some(entry & FRAME)
    };
    entries.chunks_exact(ENTRY_BYTES).map(frame).collect()
}

/// Whether a device takes pages in these frames as one segment.
pub fn joined(before: u64, behind: u64) -> bool {
    before + 1 == behind
}

/// Gives other frames to pages, but not to the first, until none is joined to the page before it. Where frames are unknown,
/// pages stay as they are.
///
/// # Safety
///
/// The pages are anonymous memory of zeroes that nobody uses yet.
pub unsafe fn part_pages(first: *mut u8, pages: usize) -> Result<(), Failure> {
    let Some(mut frames) = page_frames(first, pages) else { return Ok(()) };
    let count = frames.windows(2).filter(|pair| joined(pair[0], pair[1])).count();
    if count == 0 {
        return Ok(());
    }
    let mut spares = Spares::map(count + UNFIT_FRAMES)?;
    for page in 1..pages {
        if !joined(frames[page - 1], frames[page]) {
            continue;
        }
        let Some(spare) = spares.take(frames[page - 1], frames.get(page + 1).copied()) else {
            // Only if the kernel does not tell the frames of the spare ones.
            break;
        };
        // SAFETY: one of these pages, which the caller gives.
        unsafe { spare.replace(first.add(page * PAGE_BYTES))? };
        frames[page] = spare.frame;
    }
    Ok(())
}

/// A page of zeroes in a frame that another page may get.
#[derive(Debug)]
struct Spare {
    page: *mut u8,
    frame: u64,
}

impl Spare {
    /// Moves the page, with its frame, to the place of another one.
    ///
    /// # Safety
    ///
    /// Nobody uses either.
    unsafe fn replace(&self, other: *mut u8) -> Result<(), Failure> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the caller gives both.
        let moved = unsafe {
            libc::mremap(
                self.page.cast(),
                PAGE_BYTES,
                PAGE_BYTES,
                flags,
                other.cast::<libc::c_void>(),
            )
        };
        if moved == libc::MAP_FAILED {
            return Err(Failure::last("moving a page of a buffer"));
        }
        Ok(())
    }
}

/// Those that are left are unmapped at last.
#[derive(Debug)]
struct Spares(Vec<Spare>);

impl Spares {
    fn map(count: usize) -> Result<Self, Failure> {
        let first = anonymous(count * PAGE_BYTES, libc::MAP_POPULATE)?;
        let frames = page_frames(first, count).unwrap_or_default();
        let spare =
            |(number, frame)| Spare { page: first.wrapping_add(number * PAGE_BYTES), frame };
        Ok(Self(frames.into_iter().enumerate().map(spare).collect()))
    }

    /// One that is joined to neither of two frames.
    fn take(&mut self, before: u64, behind: Option<u64>) -> Option<Spare> {
        let fits = |spare: &Spare| {
            !joined(before, spare.frame) && behind.is_none_or(|behind| !joined(spare.frame, behind))
        };
        let found = self.0.iter().position(fits)?;
        Some(self.0.swap_remove(found))
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        for spare in &self.0 {
            // SAFETY: nobody else has these pages.
            unsafe { libc::munmap(spare.page.cast(), PAGE_BYTES) };
        }
    }
}

/// A new mapping of zeroes.
pub fn anonymous(bytes: usize, flags: libc::c_int) -> Result<*mut u8, Failure> {
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
    use std::slice;

    use super::*;

    #[test]
    fn joined_pages_are_parted_and_still_hold_zeroes() {
        const HUGE_PAGE_BYTES: usize = 2 << 20;
        let pages = HUGE_PAGE_BYTES / PAGE_BYTES;
        let mapped = anonymous(2 * HUGE_PAGE_BYTES, 0).unwrap();
        // SAFETY: the huge page lies within the new mapping.
        let first = unsafe {
            let first = mapped.add(mapped.align_offset(HUGE_PAGE_BYTES));
            libc::madvise(first.cast(), HUGE_PAGE_BYTES, libc::MADV_HUGEPAGE);
            ptr::write_bytes(first, 0, HUGE_PAGE_BYTES);
            first
        };
        let Some(before) = page_frames(first, pages) else {
            eprintln!("skipped: only root sees where pages lie");
            return;
        };
        // SAFETY: nobody else has these pages.
        let bytes = unsafe {
            part_pages(first, pages).unwrap();
            slice::from_raw_parts(first, HUGE_PAGE_BYTES)
        };
        let after = page_frames(first, pages).unwrap();
        assert_eq!(before[0], after[0]);
        assert!(!after.windows(2).any(|pair| joined(pair[0], pair[1])));
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_page_gets_a_frame_that_is_joined_to_neither_of_its_neighbours() {
        let found = |before, behind| {
            let spares = [11, 20, 5].map(|frame| Spare { page: ptr::null_mut(), frame });
            Spares(spares.into()).take(before, behind).map(|spare| spare.frame)
        };
        assert_eq!(found(12, Some(11)), Some(11));
        assert_eq!(found(10, None), Some(20));
        assert_eq!(found(10, Some(21)), Some(5));
    }
}
