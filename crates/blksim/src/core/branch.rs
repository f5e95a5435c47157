//! Branch hints for code layout: the usual path of a request falls through, rare code lies apart.
//!
//! With the compiler's own guesses a request takes 70 to 100 jumps; with hints, half as many
//! (`docs/appendix/measurements.md`).

/// The condition, which is rarely true.
#[inline(always)]
pub fn unlikely(condition: bool) -> bool {
    if condition {
        cold_path();
    }
    condition
}

/// The condition, which is usually true.
#[inline(always)]
pub fn likely(condition: bool) -> bool {
    !unlikely(!condition)
}

/// Marks its caller's branch as rare. The compiler would remove an empty call before it lays out
/// the code, so the function contains something that it must keep.
#[cold]
#[inline(never)]
pub fn cold_path() {
    std::hint::black_box(());
}
