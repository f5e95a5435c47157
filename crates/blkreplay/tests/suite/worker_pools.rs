//! Kernel workers of a pool are one task.

use blkrecord::io::Operation;
use blkreplay::Options;

use crate::samples::{Recording, carry_out};

/// Reads one after the other, each by another worker; a bound worker has its own.
fn chain() -> Recording {
    let mut recording = Recording::default();
    for number in 0..6 {
        let tid = number % 3;
        let times = (u64::from(number) * 1000, Some(u64::from(number) * 1000 + 400));
        recording.io(tid, Operation::Read, u64::from(number) * 8, 4096, times);
    }
    let names = ["kworker/u8:0", "kworker/u8:1", "kworker/0:1H"];
    let numbers = names.map(|name| recording.names.number_of(name));
    for io in &mut recording.batch.ios {
        io.command = numbers[io.tid as usize];
    }
    recording
}

#[test]
fn workers_of_a_pool_go_on_one_after_the_other() {
    let plans = chain().plans();
    assert_eq!(plans.iter().map(|plan| plan.ios.len()).collect::<Vec<_>>(), [4, 2]);
    assert!(plans.iter().all(|plan| plan.waits_for_any));
    // Of a disk that takes ten times as long no two I/Os of the pool are in flight at a time.
    let made = carry_out(&plans, |_, _| 4000);
    let of_pool: Vec<_> = made.iter().filter(|made| made.task == 0).collect();
    assert!(of_pool.windows(2).all(|pair| pair[1].issued_ns >= pair[0].completed_ns));
}

#[test]
fn it_is_told() {
    let notes = chain().workload(&Options::new("test")).unwrap().summary.notes;
    assert!(notes.iter().any(|note| note.starts_with("2 of 2 tasks are pools")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("kept their depth")), "{notes:?}");
}
