//! Scheduling policies of this program's own processes.

use libc::c_int;

/// The calling process runs before all others from now on; under a cost table it computes in no time.
pub fn go_first() {
    set_policy(libc::SCHED_FIFO, 1);
}

/// As `go_first`, but processes that it makes are ordinary ones.
pub fn go_first_alone() {
    set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
}

/// The calling process runs after all others from now on.
pub fn go_last() {
    set_policy(libc::SCHED_IDLE, 0);
}

fn set_policy(policy: c_int, priority: c_int) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is valid for the call. If it fails, the guest is slower and otherwise unaffected.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}
