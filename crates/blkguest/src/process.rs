//! Processes of the guest: made by `fork`, so that each has its own I/O context,
//! priority and control group, as the processes of a real load have.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::clock;
use crate::failure::{Failure, checked};
use crate::shared_memory::SharedMemory;

/// Runs `work` in a new process and returns its id; a failure there goes to the shared memory.
pub fn spawn(
    what: &str,
    shared: SharedMemory,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<libc::pid_t, Failure> {
    // SAFETY: this program has a single thread, so the child may do anything.
    let child = checked(&format!("creating {what}"), unsafe { libc::fork() })?;
    if child != 0 {
        return Ok(child);
    }
    clock::no_slack();
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(defect(&*panic)));
    if let Err(failure) = &outcome {
        shared.fail(failure);
    }
    // SAFETY: ends this process without running its parent's exit handlers.
    unsafe { libc::_exit(i32::from(outcome.is_err())) }
}

/// Converts a panic into a failure.
pub fn defect(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::Internal { message: text.unwrap_or_else(|| "unknown cause".to_owned()) }
}

/// Checks whether a process recorded a failure or was killed.
pub fn look(shared: SharedMemory) -> Result<(), Failure> {
    if shared.failure().is_some() {
        return Err(Failure::Died { message: "a process of the guest has failed".to_owned() });
    }
    loop {
        let mut status = 0;
        // SAFETY: the pointer is valid for the call.
        let child = unsafe { libc::waitpid(-1, ptr::from_mut(&mut status), libc::WNOHANG) };
        if child <= 0 {
            return Ok(());
        }
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let cause = match signal {
                libc::SIGKILL => " (out of memory?)",
                _ => "",
            };
            let message = format!("a process of the guest was killed by signal {signal}{cause}");
            return Err(Failure::Died { message });
        }
    }
}
