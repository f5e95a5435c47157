//! A recording with a thread that takes what the kernel has.
//!
//! The thread has the idle policy, so that it neither delays the recorded programs nor moves them to other processors:
//! the scheduler takes a processor on which only it runs for an idle one. Where the processors are busy it may wait for
//! long; [`Attended::check`] then lets it take its turn like any other, once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blkrecord::facts::Tally;

use crate::clock;
use crate::error::CaptureError;
use crate::recording::Recording;
use crate::request::Request;

/// Time between two looks. Control groups and, through tracefs, tasks that end earlier stay without names.
const INTERVAL: Duration = Duration::from_millis(20);
/// The kernel's buffers have room for more than a second of a very fast disk.
const LATE_NS: u64 = 150_000_000;
/// Time between looks whether the thread has ended.
const END_INTERVAL: Duration = Duration::from_micros(500);

/// A recording under way, and its thread.
#[derive(Debug)]
pub struct Attended {
    capture: &'static str,
    missing: Vec<String>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Shared by the thread and its owner, who must never wait for a lock that an idle thread holds.
#[derive(Debug)]
struct Shared {
    /// The thread's until it has ended.
    recording: Mutex<Recording>,
    /// Set as the thread ends.
    failure: Mutex<Option<CaptureError>>,
    is_ended: AtomicBool,
    /// The thread's number; 0 until it runs.
    tid: AtomicI32,
    /// When it last had taken everything.
    taken_ns: AtomicU64,
    is_hurried: AtomicBool,
}

impl Attended {
    /// Starts to record.
    pub fn begin(request: Request) -> Result<Self, CaptureError> {
        let recording = Recording::begin(request)?;
        let (capture, missing) = (recording.capture(), recording.missing());
        let shared = Arc::new(Shared {
            recording: Mutex::new(recording),
            failure: Mutex::new(None),
            is_ended: AtomicBool::new(false),
            tid: AtomicI32::new(0),
            taken_ns: AtomicU64::new(clock::monotonic_ns()),
            is_hurried: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("blkcapture".to_owned()).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| of_thread.attend()));
            let broken =
                || CaptureError::Unavailable("the recorder's thread broke down".to_owned());
            if let Err(error) = result.unwrap_or_else(|_| Err(broken())) {
                *locked(&of_thread.failure) = Some(error);
            }
        });
        let thread = thread.map_err(|cause| {
            CaptureError::Unavailable(format!("the recorder has no thread: {cause}"))
        })?;
        Ok(Self { capture, missing, shared, thread: Some(thread) })
    }

    /// The way of capturing: `bpf` or `tracefs`.
    pub fn capture(&self) -> &'static str {
        self.capture
    }

    /// Facts that the record will lack, for people.
    pub fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    /// Makes sure that the thread gets on; to be called every 100 ms or so.
    ///
    /// # Errors
    ///
    /// The reason why it has given up; only once.
    pub fn check(&self) -> Result<(), CaptureError> {
        let Some(thread) = &self.thread else { return Ok(()) };
        if thread.is_finished() {
            return locked(&self.shared.failure).take().map_or(Ok(()), Err);
        }
        let taken_ns = self.shared.taken_ns.load(SeqCst);
        if clock::monotonic_ns().saturating_sub(taken_ns) > LATE_NS {
            self.shared.hurry();
        }
        Ok(())
    }

    /// Stops, and completes the file. A second call does nothing.
    ///
    /// # Errors
    ///
    /// The reason why the thread has given up, unless [`Self::check`] has told it, or the file is not complete.
    pub fn finish(&mut self) -> Result<Tally, CaptureError> {
        if let Some(thread) = self.thread.take() {
            self.shared.is_ended.store(true, SeqCst);
            thread.thread().unpark();
            while !thread.is_finished() {
                self.shared.hurry();
                thread::sleep(END_INTERVAL);
            }
            // A panic is a failure already.
            let _ = thread.join();
        }
        let tally = locked(&self.shared.recording).finish();
        locked(&self.shared.failure).take().map_or(tally, Err)
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        // The programs in the kernel go with the recording, of which the thread has a share.
        self.shared.is_ended.store(true, SeqCst);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Shared {
    fn attend(&self) -> Result<(), CaptureError> {
        // SAFETY: a plain call.
        self.tid.store(unsafe { libc::gettid() }, SeqCst);
        set_policy(0, libc::SCHED_IDLE);
        loop {
            // Returns at once if the end was there before.
            thread::park_timeout(INTERVAL);
            if self.is_ended.load(SeqCst) {
                return Ok(());
            }
            locked(&self.recording).poll()?;
            self.taken_ns.store(clock::monotonic_ns(), SeqCst);
            if self.is_hurried.swap(false, SeqCst) {
                set_policy(0, libc::SCHED_IDLE);
            }
        }
    }

    /// Lets the thread run as others do, until it has taken everything once.
    fn hurry(&self) {
        self.is_hurried.store(true, SeqCst);
        match self.tid.load(SeqCst) {
            0 => {}
            tid => set_policy(tid, libc::SCHED_OTHER),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the policy of a thread; 0 is the calling one. Where that is refused, the thread costs the others a little.
fn set_policy(tid: libc::pid_t, policy: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call.
    unsafe { libc::sched_setscheduler(tid, policy, &raw const parameters) };
}
