//! I/Os without think time, by which the replay's own way from a completion to its next I/O is measured.

use blksim::core::record::Direction;
use blksim::workload::replay::{KEY, ReplayIo, TaskPlan, encode};

const BLOCK_BYTES: u64 = 4096;
/// Odd, so that its multiples visit every block of a region of 2ⁿ blocks.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A job file with one task that reads or writes so often, one block at a time at scattered places.
pub fn ios_in_turn(count: u32, file_bytes: u64, direction: Direction) -> String {
    let blocks = (file_bytes / BLOCK_BYTES).max(1);
    let io = |index: u32| ReplayIo {
        offset: u64::from(index).wrapping_mul(STRIDE) % blocks * BLOCK_BYTES,
        bytes: BLOCK_BYTES as u32,
        direction,
        durable: false,
        priority: None,
        waits_for: index,
        rank: index,
        think_ns: 0,
    };
    let plan = TaskPlan { ios: (0..count).map(io).collect(), ..TaskPlan::default() };
    let mode = if direction == Direction::Write { "randwrite" } else { "randread" };
    format!(
        "[own-path]\nrw={mode}\ndirect=1\nioengine=libaio\niodepth=1\nbs={BLOCK_BYTES}\nsize={file_bytes}\n\
         filename=replay\n{KEY}={}\n",
        encode(&[plan])
    )
}
