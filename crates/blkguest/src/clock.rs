//! The guest's clock. Under time travel it moves only when everybody sleeps.

use std::mem::MaybeUninit;
use std::ptr;

const SECOND_NS: u64 = 1_000_000_000;
/// The least that timers can be late, unless another one fires before.
pub const SLACK_NS: u64 = 1;

/// Nanoseconds of `CLOCK_MONOTONIC`. A system call in a guest: some microseconds of real time.
pub fn now_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the call fills in the structure; it cannot fail for this clock.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Sleeps until a moment of `CLOCK_MONOTONIC`. Of the slack that [`no_slack`] leaves the kernel
/// makes use, so that it is asked for the nanosecond before.
pub fn sleep_until(moment_ns: u64) {
    let time = timespec(moment_ns.saturating_sub(SLACK_NS));
    // SAFETY: the pointer is valid for the call. Interrupted sleeps go on.
    unsafe {
        while libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            ptr::null_mut(),
        ) == libc::EINTR
        {}
    }
}

/// Lets timers of this process fire almost exactly; the kernel would otherwise add up to 50 µs.
pub fn no_slack() {
    // SAFETY: a plain call with numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
}

pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / SECOND_NS) as libc::time_t,
        tv_nsec: (ns % SECOND_NS) as libc::c_long,
    }
}
