//! The page that all processes of the guest share: the start, the phases, the
//! device's moment, and what went wrong.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::failure::{Failure, checked};

/// Longest text of a failure that crosses from one process to another.
const FAILURE_BYTES: usize = 4096;
/// How often a waiting process looks whether the others still live, in guest time.
const LOOK: Duration = Duration::from_secs(1);

/// Most disks that a guest has: the largest array of the simulator.
pub const MAX_DISKS: usize = 32;

/// Figures of a disk, kept by the server.
#[derive(Debug, Default)]
#[repr(C)]
pub struct DeviceFigures {
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub flushes: AtomicU64,
    pub busy_ns: AtomicU64,
    pub peak_in_flight: AtomicU32,
}

/// The fixed part of the shared memory. All of it begins as zero.
#[derive(Debug)]
#[repr(C)]
pub struct Board {
    /// The moment (`CLOCK_MONOTONIC`) at which the device last did something.
    pub device_now_ns: AtomicU64,
    /// The moment at which the first phase starts; 0 as long as it is not known.
    pub start_ns: AtomicU64,
    /// The moment at which the last clone ended.
    pub end_ns: AtomicU64,
    /// The device takes its time from now on; before, it answers at once.
    pub modelled: AtomicU32,
    pub server_ready: AtomicU32,
    pub clones_ready: AtomicU32,
    /// Phases that may run: those with a number below this.
    pub open_phases: AtomicU32,
    pub clones_ended: AtomicU32,
    /// Of each disk.
    pub figures: [DeviceFigures; MAX_DISKS],
    failed: AtomicU32,
    failure_bytes: AtomicU32,
    failure: [u8; FAILURE_BYTES],
}

/// The shared memory: the board, and a counter for each phase.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    board: &'static Board,
    /// Rung when anything happens that the first process may wait for: an eventfd, not a futex
    /// with a timeout. User-mode Linux lets a system call that ends with an error take 1 µs of
    /// virtual time (`handle_syscall`, `arch/um/kernel/skas/syscall.c`, Linux 6.1), a futex's
    /// ETIMEDOUT too, and an I/O under way at that moment would take that much longer.
    bell: libc::c_int,
    left_in_phase: &'static [AtomicU32],
}

impl std::ops::Deref for Shared {
    type Target = Board;

    fn deref(&self) -> &Board {
        self.board
    }
}

impl Shared {
    /// Memory that children made by `fork` share.
    pub fn new(clones_of_phases: &[u32]) -> Result<Self, Failure> {
        let bytes = size_of::<Board>() + size_of_val(clones_of_phases);
        // SAFETY: a plain call.
        let bell = checked("making an eventfd", unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: a fresh anonymous mapping, never unmapped, zeroed by the kernel; zero is a
        // valid value of every field, and the counters behind the board are aligned for u32.
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
            let counters = start.byte_add(size_of::<Board>()).cast::<AtomicU32>();
            Self {
                board: &*start.cast::<Board>(),
                bell,
                left_in_phase: slice::from_raw_parts(counters, clones_of_phases.len()),
            }
        };
        for (left, clones) in shared.left_in_phase.iter().zip(clones_of_phases) {
            left.store(*clones, SeqCst);
        }
        Ok(shared)
    }

    /// The board itself, which lives as long as the guest.
    pub fn board(self) -> &'static Board {
        self.board
    }

    /// A clone of a phase has ended; the last one opens the next phase.
    pub fn clone_ended(&self, phase: usize, now_ns: u64) {
        self.end_ns.fetch_max(now_ns, SeqCst);
        if self.left_in_phase[phase].fetch_sub(1, SeqCst) == 1 {
            self.open_phase(phase + 1);
        }
        self.clones_ended.fetch_add(1, SeqCst);
        self.ring();
    }

    /// Lets a phase begin.
    pub fn open_phase(&self, phase: usize) {
        self.open_phases.store(phase as u32 + 1, SeqCst);
        wake(&self.open_phases);
    }

    /// Has the first process look what has happened.
    pub fn ring(&self) {
        let once = 1_u64;
        // SAFETY: the bytes live through the call. The count stays far below its limit.
        unsafe { libc::write(self.bell, (&raw const once).cast(), size_of::<u64>()) };
    }

    /// Sleeps until `word`, whose changes are rung, has reached `value`; `look` is called now and
    /// then and may give up. For the first process.
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
            self.await_bell();
        }
    }

    /// Sleeps until the bell has been rung since the last time, or it is time to look.
    fn await_bell(self) {
        let mut bell = libc::pollfd { fd: self.bell, events: libc::POLLIN, revents: 0 };
        let mut rung = 0_u64;
        // SAFETY: both pointers are valid for their calls. Every outcome means: look again.
        unsafe {
            if libc::poll(&raw mut bell, 1, LOOK.as_millis() as libc::c_int) == 1 {
                libc::read(self.bell, (&raw mut rung).cast(), size_of::<u64>());
            }
        }
    }

    /// Sleeps until `word` has reached `value`, for ever if need be.
    pub fn await_value(word: &AtomicU32, value: u32) {
        loop {
            let seen = word.load(SeqCst);
            if seen >= value {
                return;
            }
            wait(word, seen);
        }
    }

    /// Leaves a failure for the first process to find; the first one counts.
    pub fn fail(&self, failure: &Failure) {
        let text = failure.answer().to_string();
        let bytes = &text.as_bytes()[..text.len().min(FAILURE_BYTES)];
        if self.failed.swap(1, SeqCst) == 0 {
            // SAFETY: only the one process that set the flag writes, and readers wait for the length.
            unsafe {
                let target = self.board.failure.as_ptr().cast_mut();
                ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
            }
            self.failure_bytes.store(bytes.len() as u32, SeqCst);
        }
        self.ring();
    }

    /// The answer that another process left because it failed.
    pub fn failure(&self) -> Option<String> {
        let bytes = self.failure_bytes.load(SeqCst) as usize;
        let text = String::from_utf8_lossy(&self.board.failure[..bytes]);
        (bytes > 0).then(|| text.into_owned())
    }
}

/// Sleeps while `word` has the value `seen`.
fn wait(word: &AtomicU32, seen: u32) {
    let for_ever: *const libc::timespec = ptr::null();
    // SAFETY: the word lives in shared memory for ever. Every outcome means: look again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, for_ever) };
}

/// Wakes all that wait for `word`.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives in shared memory for ever.
    unsafe {
        let nobody: *const c_void = ptr::null();
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, nobody);
    }
}
