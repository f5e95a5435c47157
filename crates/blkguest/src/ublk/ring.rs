//! The server's ring, as far as other processes of the guest see it.

use std::mem;
use std::ptr::NonNull;

use io_uring::IoUring;

use super::timers;
use crate::failure::Failure;

/// `IORING_MAX_ENTRIES` of `io_uring/io_uring.c`, Linux 6.1.
const MAX_ENTRIES: u32 = 32_768;

/// The server's ring, whose completions clones may look at. It lives as long as the guest.
#[derive(Debug, Clone, Copy)]
pub struct Ring(NonNull<IoUring>);

impl Ring {
    /// A ring for disks with so many tags in all. To be made before the processes that use it.
    pub fn open(tags: u32) -> Result<Self, Failure> {
        // A timer, an answer and a fetch for each tag may be on their way at once.
        let entries = (tags * 2 + 16).next_power_of_two().min(MAX_ENTRIES);
        let ring = IoUring::builder()
            .build(entries)
            .map_err(|error| Failure::kernel("creating the server's ring", error))?;
        Ok(Self(NonNull::from(Box::leak(Box::new(ring)))))
    }

    /// The ring itself.
    ///
    /// # Safety
    ///
    /// For the one process that serves, once.
    pub unsafe fn of_server(mut self) -> &'static mut IoUring {
        // SAFETY: the ring lives as long as the guest; the rest is the caller's duty.
        unsafe { self.0.as_mut() }
    }

    /// The moment of the last timer that fired and that the server has not seen yet. For others than
    /// the server: what the kernel does by itself happens before the server publishes the moment.
    pub fn unseen_ns(self) -> Option<u64> {
        // SAFETY: the ring lives as long as the guest, and nobody writes to this process's copy.
        let mut completions = unsafe { self.0.as_ref().completion_shared() };
        let moments = completions.by_ref().filter_map(|c| timers::fired(c.user_data(), c.result()));
        let latest_ns = moments.max();
        // Its destructor would tell the kernel that all of them have been seen.
        mem::forget(completions);
        latest_ns
    }
}
