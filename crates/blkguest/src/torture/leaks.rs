//! Requests and tags that are still in use when nobody has I/O in flight.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::DEBUGFS;

/// Requests are given back a moment after their I/O is reported.
const LOOKS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(10);

/// The tags in use, and the I/Os that the kernel counts as in flight.
pub fn in_flight(disk: &Disk) -> String {
    found(disk).iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
}

/// Makes sure that nothing is in use.
pub fn check(disk: &Disk) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        if found(disk).iter().all(|(_, count)| *count == 0) {
            return Ok(());
        }
        thread::sleep(BETWEEN);
    }
    let message = format!("nobody has I/O in flight, and in use are: {}", in_flight(disk));
    Err(Failure::mistake("leak", message))
}

fn found(disk: &Disk) -> Vec<(&'static str, u64)> {
    let queue = format!("{DEBUGFS}/block/{}/hctx0", disk.name);
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let inflight = read(format!("/sys/block/{}/inflight", disk.name));
    let inflight = inflight.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum();
    vec![
        ("tags", busy(&read(format!("{queue}/tags")))),
        ("scheduler's tags", busy(&read(format!("{queue}/sched_tags")))),
        ("I/Os", inflight),
    ]
}

/// The `busy=` of a dump of tags, reserved ones included (`block/blk-mq-debugfs.c`, Linux 6.1).
pub fn busy(shown: &str) -> u64 {
    shown.lines().filter_map(|line| line.strip_prefix("busy=")?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_in_use_are_counted() {
        let shown = "nr_tags=64\nnr_reserved_tags=0\n\nbitmap_tags:\ndepth=64\nbusy=3\ncleared=1\n";
        assert_eq!((busy(shown), busy("")), (3, 0));
    }
}
