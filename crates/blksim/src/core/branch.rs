//! Which way a branch mostly goes, for the layout of machine code: the usual
//! way of a request then falls through, and what is seldom lies apart.
//!
//! Where the compiler has to guess, a request takes 70 to 100 jumps; where it
//! is told, half as many (`docs/measurements.md`).

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
