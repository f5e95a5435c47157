//! The guest's clock. Under time travel it advances only while every process sleeps.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::clock_page;
use crate::failure::{Failure, checked};

const SECOND_NS: u64 = 1_000_000_000;
/// The smallest timer slack the kernel accepts.
pub const SLACK_NS: u64 = 1;
/// The slack of ordinary programs (`init_task` in `init/init_task.c`, Linux 6.1).
pub const USUAL_SLACK_NS: u64 = 50_000;

/// The end of a wait that is computed through; see [`compute_ends_of_waits`].
static COMPUTED_NS: AtomicU64 = AtomicU64::new(0);
/// A sleep ends late by some 40 µs on a virtual machine: setting a timer leaves it, and so does its interrupt.
const END_NS: u64 = 100_000;

/// Lets this process and those that it forks compute through the end of each wait, as programs do that think
/// between their I/Os. Not under time travel, where computing takes no time.
pub fn compute_ends_of_waits() {
    COMPUTED_NS.store(END_NS, Relaxed);
}

/// `CLOCK_MONOTONIC` in nanoseconds. In a guest this is a system call, some microseconds of real time, unless the
/// clock page has it.
pub fn now_ns() -> u64 {
    clock_page::now_ns(asked_ns).unwrap_or_else(asked_ns)
}

fn asked_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the call fills in the structure; it cannot fail for this clock.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Waits until a `CLOCK_MONOTONIC` time. The kernel uses the nanosecond of slack that [`no_slack`]
/// leaves, so a sleep ends one nanosecond earlier on request.
pub fn sleep_until(moment_ns: u64) {
    let computed_ns = COMPUTED_NS.load(Relaxed);
    if computed_ns == 0 {
        // Reading a guest's clock takes real time.
        sleep_at_least_until(moment_ns);
        return;
    }
    let woken_ns = moment_ns.saturating_sub(computed_ns);
    // A sleep that ends in the past sets a timer all the same: 15 µs on a virtual machine.
    if now_ns() < woken_ns {
        sleep_at_least_until(woken_ns);
    }
    while now_ns() < moment_ns {
        // Others go on meanwhile: the recorded time has what they took from the program in it.
        thread::yield_now();
    }
}

fn sleep_at_least_until(moment_ns: u64) {
    let time = timespec(moment_ns.saturating_sub(SLACK_NS));
    // SAFETY: the pointer is valid for the call. Interrupted sleeps resume.
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

/// Makes this process's timers fire almost exactly; the kernel otherwise adds up to 50 µs.
pub fn no_slack() {
    // SAFETY: a plain call with numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
}

/// Sets the wall clock, which this program itself does not use.
pub fn set_wall_clock(seconds: i64) -> Result<(), Failure> {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call.
    checked("setting the clock", unsafe {
        libc::clock_settime(libc::CLOCK_REALTIME, &raw const time)
    })
    .map(|_| ())
}

/// The longest time for which to wait for something else too: nothing at the end of a wait that is computed
/// through.
pub fn timeout(wait_ns: u64) -> libc::timespec {
    match COMPUTED_NS.load(Relaxed) {
        0 => timespec(wait_ns.saturating_sub(SLACK_NS).max(1)),
        computed_ns => timespec(wait_ns.saturating_sub(computed_ns)),
    }
}

pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / SECOND_NS) as libc::time_t,
        tv_nsec: (ns % SECOND_NS) as libc::c_long,
    }
}
