//! The server's `io_uring`, as seen by the guest's other processes.

use std::mem;
use std::ptr::NonNull;

use io_uring::IoUring;

use super::timers;
use crate::failure::Failure;
use crate::transport::DeviceClock;

/// `IORING_MAX_ENTRIES` of `io_uring/io_uring.c`, Linux 6.1.
const MAX_ENTRIES: u32 = 32_768;

/// The server's ring, whose completions clones may peek at. It lives as long as the guest.
#[derive(Debug, Clone, Copy)]
pub struct Ring(NonNull<IoUring>);

impl Ring {
    /// Opens a ring for disks with this many tags in total. Call before the processes that use it are made.
    pub fn open(tags: u32) -> Result<Self, Failure> {
        // Each tag may have a timer, a commit and a fetch in flight at once.
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
}

impl DeviceClock for Ring {
    /// Time of the last timer that fired and that the server has not yet seen. For processes other than
    /// the server, because linked commits take effect before the server publishes the time.
    fn unseen_ns(&self) -> Option<u64> {
        // SAFETY: the ring lives as long as the guest, and nobody writes to this process's copy.
        let mut completions = unsafe { self.0.as_ref().completion_shared() };
        let moments = completions.by_ref().filter_map(|c| timers::fired(c.user_data(), c.result()));
        let latest_ns = moments.max();
        // Its destructor would mark all completions as seen.
        mem::forget(completions);
        latest_ns
    }
}
