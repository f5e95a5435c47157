//! Memory shared by all processes of the guest: start time, phases, the device's time, the first
//! failure.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::failure::{Failure, checked};

/// Longest failure message passed between processes.
const FAILURE_BYTES: usize = 4096;
/// How often a waiting process checks that the others are still alive, in guest time.
const LOOK: Duration = Duration::from_secs(1);

/// Most disks of a guest: the simulator's largest array.
pub const MAX_DISKS: usize = 32;

/// A disk's I/O counters, kept by its server.
#[derive(Debug, Default)]
#[repr(C)]
pub struct DeviceStats {
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub flushes: AtomicU64,
    pub busy_ns: AtomicU64,
    pub peak_in_flight: AtomicU32,
}

/// The fixed part of the shared memory. Every field starts as zero.
#[derive(Debug)]
#[repr(C)]
pub struct SharedPage {
    /// `CLOCK_MONOTONIC` time of the device's last event.
    pub device_now_ns: AtomicU64,
    /// Start of the first phase; 0 until it is known.
    pub start_ns: AtomicU64,
    /// Time at which the last clone ended.
    pub end_ns: AtomicU64,
    /// Set once the device model's latencies apply; before, every command completes at once.
    pub modelled: AtomicU32,
    pub server_ready: AtomicU32,
    pub clones_ready: AtomicU32,
    /// Phases numbered below this may run.
    pub open_phases: AtomicU32,
    pub clones_ended: AtomicU32,
    /// Set when the last scheduler of a switchback has had its turn.
    pub turns_taken: AtomicU32,
    /// Per disk.
    pub stats: [DeviceStats; MAX_DISKS],
    failed: AtomicU32,
    failure_bytes: AtomicU32,
    failure: [u8; FAILURE_BYTES],
}

/// The shared memory: the page, then a counter for each phase.
#[derive(Debug, Clone, Copy)]
pub struct SharedMemory {
    page: &'static SharedPage,
    /// Signalled whenever something happens that the first process may be waiting for. It is an
    /// eventfd and not a futex with a timeout, because User-mode Linux charges 1 µs of virtual time
    /// for a system call that fails (`handle_syscall`, `arch/um/kernel/skas/syscall.c`, Linux 6.1),
    /// ETIMEDOUT included, and an I/O in flight at that time would take that much longer.
    eventfd: libc::c_int,
    left_in_phase: &'static [AtomicU32],
}

impl std::ops::Deref for SharedMemory {
    type Target = SharedPage;

    fn deref(&self) -> &SharedPage {
        self.page
    }
}

impl SharedMemory {
    /// Memory that children made by `fork` share.
    pub fn new(clones_of_phases: &[u32]) -> Result<Self, Failure> {
        let bytes = size_of::<SharedPage>() + size_of_val(clones_of_phases);
        // SAFETY: a plain call.
        let eventfd = checked("making an eventfd", unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: a fresh anonymous mapping, never unmapped, zeroed by the kernel; zero is a
        // valid value of every field, and the counters behind the page are aligned for u32.
        let shared = unsafe {
            let start = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(Failure::last("allocating shared memory"));
            }
            let counters = start.byte_add(size_of::<SharedPage>()).cast::<AtomicU32>();
            Self {
                page: &*start.cast::<SharedPage>(),
                eventfd,
                left_in_phase: slice::from_raw_parts(counters, clones_of_phases.len()),
            }
        };
        for (left, clones) in shared.left_in_phase.iter().zip(clones_of_phases) {
            left.store(*clones, SeqCst);
        }
        Ok(shared)
    }

    /// The fixed part, which lives as long as the guest.
    pub fn page(self) -> &'static SharedPage {
        self.page
    }

    /// Records that a clone has ended; the last one of a phase opens the next phase.
    pub fn clone_ended(&self, phase: usize, now_ns: u64) {
        self.end_ns.fetch_max(now_ns, SeqCst);
        if self.left_in_phase[phase].fetch_sub(1, SeqCst) == 1 {
            self.open_phase(phase + 1);
        }
        self.clones_ended.fetch_add(1, SeqCst);
        self.notify();
    }

    /// Starts a phase.
    pub fn open_phase(&self, phase: usize) {
        self.open_phases.store(phase as u32 + 1, SeqCst);
        wake(&self.open_phases);
    }

    /// Wakes the first process so that it checks for changes.
    pub fn notify(&self) {
        let once = 1_u64;
        // SAFETY: the bytes live through the call. The count stays far below its limit.
        unsafe { libc::write(self.eventfd, (&raw const once).cast(), size_of::<u64>()) };
    }

    /// Sleeps until `word` has reached `value`. Writers of `word` must call [`Self::notify`]; `look` is
    /// called at intervals and may give up. For the first process.
    pub fn wait_for(
        self,
        word: &AtomicU32,
        value: u32,
        mut look: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            if word.load(SeqCst) >= value {
                return Ok(());
            }
            look()?;
            self.await_event();
        }
    }

    /// Sleeps until the next notification, or until it is time to look.
    fn await_event(self) {
        let mut event = libc::pollfd { fd: self.eventfd, events: libc::POLLIN, revents: 0 };
        let mut signalled = 0_u64;
        // SAFETY: both pointers are valid for their calls. Whatever it returns, the caller looks again.
        unsafe {
            if libc::poll(&raw mut event, 1, LOOK.as_millis() as libc::c_int) == 1 {
                libc::read(self.eventfd, (&raw mut signalled).cast(), size_of::<u64>());
            }
        }
    }

    /// Sleeps until `word` has reached `value`, without a timeout.
    pub fn await_value(word: &AtomicU32, value: u32) {
        loop {
            let seen = word.load(SeqCst);
            if seen >= value {
                return;
            }
            wait(word, seen);
        }
    }

    /// Records a failure for the first process; only the first failure is kept.
    pub fn fail(&self, failure: &Failure) {
        let text = failure.answer().to_string();
        let bytes = &text.as_bytes()[..text.len().min(FAILURE_BYTES)];
        if self.failed.swap(1, SeqCst) == 0 {
            // SAFETY: only the one process that set the flag writes, and readers wait for the length.
            unsafe {
                let target = self.page.failure.as_ptr().cast_mut();
                ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
            }
            self.failure_bytes.store(bytes.len() as u32, SeqCst);
        }
        self.notify();
    }

    /// The answer left by a process that failed.
    pub fn failure(&self) -> Option<String> {
        let bytes = self.failure_bytes.load(SeqCst) as usize;
        let text = String::from_utf8_lossy(&self.page.failure[..bytes]);
        (bytes > 0).then(|| text.into_owned())
    }
}

/// Sleeps while `word` has the value `seen`.
fn wait(word: &AtomicU32, seen: u32) {
    let for_ever: *const libc::timespec = ptr::null();
    // SAFETY: the word lives in shared memory for ever. Whatever it returns, the caller looks again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, for_ever) };
}

/// Wakes every process that waits for `word`.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives in shared memory for ever.
    unsafe {
        let nobody: *const c_void = ptr::null();
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, nobody);
    }
}
