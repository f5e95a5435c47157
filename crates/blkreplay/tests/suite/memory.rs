//! The memory that the data of recorded I/Os lay in.

use blkrecord::io::{Flags, Operation};
use blksim::workload::replay::Memory;

use crate::samples::Recording;

#[test]
fn a_plan_has_the_segments_and_the_cold_memory_of_its_ios() {
    let mut recording = Recording::default();
    for (index, operation, segments, flags) in [
        (0, Operation::Read, 254, Flags::AHEAD),
        (1, Operation::Read, 1, Flags::SYNC),
        (2, Operation::Write, 2, Flags::SYNC),
        // A flush before a write has no data.
        (3, Operation::Write, 3, Flags::SYNC.with(Flags::PREFLUSH)),
    ] {
        let times = (index * 1000, Some(index * 1000 + 400));
        let io = recording.io(1, operation, index * 2048, 1 << 20, times);
        (io.segments, io.flags) = (segments, flags);
    }
    let plans = recording.plans();
    let found: Vec<Memory> = plans[0].ios.iter().map(|io| io.memory).collect();
    let warm = |segments| Memory { segments, cold: false };
    assert_eq!(found, [Memory { segments: 254, cold: true }, warm(1), warm(2), warm(0), warm(3)]);
}
