//! Long work that a signal ends soon.
//!
//! Python only marks that a signal has come, and calls its handler in the main thread between two instructions; while
//! that thread works in a crate, there is none. So somebody must ask Python now and then, with its lock:
//!
//! | Work | Who asks |
//! |---|---|
//! | a call of unknown length | the calling thread, while another one works ([`run`]) |
//! | one of thousands of short calls, for which a thread costs too much | the work itself ([`Asked`]) |
//! | simulations | `running.rs`, between slices |
//!
//! The crates know nothing of Python: they look at a [`Interrupt`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blkrecord::interrupt::Interrupt;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::error;

/// Between two questions whether a signal has come.
const LOOK: Duration = Duration::from_millis(50);
/// For the work to heed the signal and free its memory; then it is left to itself.
const END: Duration = Duration::from_millis(200);

/// Works in another thread, without the interpreter's lock. A signal's handler runs meanwhile; if it raises, the work
/// is asked to end, and the exception is given. A panic becomes an error.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    let is_wanted = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let looked_at = Arc::clone(&is_wanted);
    let spawned = thread::Builder::new().name("blklab-work".to_owned()).spawn(move || {
        let interrupt = Interrupt::when(move || looked_at.load(Ordering::Relaxed));
        let done = catch_unwind(AssertUnwindSafe(|| work(&interrupt)));
        // Nobody waits for work that was left to itself.
        let _ = sender.send(done);
    });
    if let Err(cause) = spawned {
        return Err(PyMemoryError::new_err(format!("no thread can be started: {cause}")));
    }
    loop {
        // The receiver is moved into the wait and back: it cannot be shared.
        let heard = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        receiver = heard.1;
        match heard.0 {
            Ok(done) => return done.map_err(|panic| panicked(py, panic.as_ref())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(panicked(py, &"the thread is gone")),
        }
        if let Err(signal) = py.check_signals() {
            is_wanted.store(true, Ordering::Relaxed);
            py.detach(move || drop(receiver.recv_timeout(END)));
            return Err(signal);
        }
    }
}

fn panicked(py: Python<'_>, panic: &(dyn std::any::Any + Send)) -> PyErr {
    error::raise(py, &error::from_panic(panic))
}

/// Asks Python for signals from within short calls, at most every 50 ms, and keeps what a handler has raised.
#[derive(Clone, Debug)]
pub struct Asked {
    began: Instant,
    next_ms: Arc<AtomicU64>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Asked {
    pub fn new() -> Self {
        Self { began: Instant::now(), next_ms: Arc::default(), raised: Arc::default() }
    }

    /// For the work.
    pub fn interrupt(&self) -> Interrupt {
        let asked = self.clone();
        Interrupt::when(move || asked.has_raised())
    }

    /// The exception that has ended the work.
    pub fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn has_raised(&self) -> bool {
        let now_ms = self.began.elapsed().as_millis() as u64;
        if now_ms < self.next_ms.load(Ordering::Relaxed) {
            return false;
        }
        self.next_ms.store(now_ms + LOOK.as_millis() as u64, Ordering::Relaxed);
        match Python::attach(Python::check_signals) {
            Ok(()) => false,
            Err(signal) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(signal);
                true
            }
        }
    }
}
