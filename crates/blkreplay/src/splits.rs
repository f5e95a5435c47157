//! I/Os that the kernel split because they were too large for the disk.
//!
//! A program's call for 1 MiB can become two requests of the disk, which both begin at once. A replay that called for
//! each part would begin the second one late, and another disk may take the whole, or split it elsewhere.

use blkrecord::io::{Io, Moment, UNKNOWN_SEGMENTS};
use blksim::block::request::PAGE_BYTES;

/// The I/Os as they were before they were split, in the order of queueing; expects that order.
pub fn united(mut ios: Vec<Io>) -> Vec<Io> {
    // They are recorded in the order of completions.
    for parts in ios.chunk_by_mut(are_of_one) {
        parts.sort_by_key(|part| part.sector);
    }
    ios.dedup_by(|part, whole| {
        let belongs = are_of_one(whole, part) && whole.end_sector() == part.sector;
        if belongs {
            unite(whole, part);
        }
        belongs
    });
    ios
}

/// All parts have the I/O's time of queueing.
fn are_of_one(one: &Io, other: &Io) -> bool {
    one.split.is_known()
        && other.split.is_known()
        && (one.queued, one.tid, one.operation) == (other.queued, other.tid, other.operation)
}

/// Makes the next part one with those before.
fn unite(whole: &mut Io, part: &Io) {
    whole.segments = segments(whole).saturating_add(segments(part));
    whole.bytes += part.bytes;
    // A moment that never came is later than all others.
    whole.completed = whole.completed.max(part.completed);
    let entered =
        [whole, part].map(|io| if io.inserted.is_known() { io.inserted } else { io.issued });
    whole.inserted =
        entered.into_iter().filter(|moment| moment.is_known()).max().unwrap_or(Moment::NEVER);
    // A part that was merged does not make the whole one that waited for nothing.
    if !part.merged.is_known() {
        whole.merged = Moment::NEVER;
    }
}

/// The segments of a part. Of one that was merged nobody knows them; the pages that were too many for a request mostly lie
/// apart.
fn segments(part: &Io) -> u16 {
    if part.segments == UNKNOWN_SEGMENTS {
        u16::try_from(part.bytes.div_ceil(PAGE_BYTES)).unwrap_or(u16::MAX)
    } else {
        part.segments
    }
}
