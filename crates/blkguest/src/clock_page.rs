//! The guest's clock without a system call, where looking at it has no effect: each call is two switches
//! between processes of the host, and a server and its load look at the clock more often than they do I/O.
//!
//! The kernel's instrument `processor-time` keeps the page (`arch/um/kernel/processor_time.c`).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

const FILE: &str = "/proc/clock_page";
const PAGE_BYTES: usize = 4096;

/// The page's first word; null while there is none.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
/// `CLOCK_MONOTONIC` less the page's time, which may have begun at another moment.
static AHEAD_NS: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;

/// Maps the page into this process and those that it forks from now on. A kernel that has none is asked for the
/// time instead.
pub fn map() {
    let Ok(file) = File::open(FILE) else { return };
    // SAFETY: a new mapping; the file lives as long as the guest.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            PAGE_BYTES,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if page != libc::MAP_FAILED {
        PAGE.store(page.cast(), Relaxed);
    }
}

/// `CLOCK_MONOTONIC`, if the page has it; otherwise the kernel must be asked.
#[inline]
pub fn now_ns(ask: impl Fn() -> u64) -> Option<u64> {
    let page = PAGE.load(Relaxed);
    // SAFETY: it is null, or points to the page, which is never unmapped. The kernel writes the word only while
    // this process is in a system call or does not run.
    let moment_ns = unsafe { page.as_ref() }.map(|word| word.load(Relaxed)).filter(|ns| *ns > 0)?;
    let ahead_ns = match AHEAD_NS.load(Relaxed) {
        UNKNOWN => found_ahead_ns(moment_ns, ask)?,
        known => known,
    };
    Some(moment_ns.wrapping_add(ahead_ns))
}

/// No time passes between two looks that give the same.
#[cold]
fn found_ahead_ns(moment_ns: u64, ask: impl Fn() -> u64) -> Option<u64> {
    let asked_ns = ask();
    if asked_ns != ask() {
        return None;
    }
    let ahead_ns = asked_ns.wrapping_sub(moment_ns);
    AHEAD_NS.store(ahead_ns, Relaxed);
    Some(ahead_ns)
}
