//! Kernel workers of a pool are one task.

use blkrecord::io::Operation;
use blkreplay::Options;
use blksim::workload::replay::{MAX_CONTEXTS, TaskPlan};

use crate::samples::{Recording, carry_out};

/// Reads one after the other, each by another worker; a bound worker has its own.
fn chain() -> Recording {
    let mut recording = Recording::default();
    for number in 0..6 {
        let tid = number % 3;
        let times = (u64::from(number) * 1000, Some(u64::from(number) * 1000 + 400));
        recording.io(tid, Operation::Read, u64::from(number) * 8, 4096, times);
    }
    of_workers(&mut recording, &["kworker/u8:0", "kworker/u8:1", "kworker/0:1H"]);
    recording
}

/// Gives the threads of a recording these names, by their numbers.
fn of_workers(recording: &mut Recording, names: &[&str]) {
    let numbers: Vec<u32> = names.iter().map(|name| recording.names.number_of(name)).collect();
    for io in &mut recording.batch.ios {
        io.command = numbers[io.tid as usize];
    }
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

#[test]
fn a_late_completion_holds_up_only_what_followed_it() {
    // One program keeps the disk busy. Two others read, compute at the same time, and read again.
    let mut recording = Recording::default();
    for (tid, queued_ns, completed_ns) in
        [(0, 0, 9000), (0, 100, 1000), (1, 200, 1010), (1, 1500, 2400), (0, 1900, 2800)]
    {
        recording.read(tid, queued_ns, completed_ns);
    }
    of_workers(&mut recording, &["kworker/u8:0", "kworker/u8:1"]);
    let plans = recording.plans();
    assert_eq!(plans[0].ios.iter().map(|io| io.waits_for).collect::<Vec<_>>(), [0, 0, 0, 1, 2]);
    let latency_ns = |_, index| match index {
        0 => 9000,
        2 => 3000,
        _ => 900,
    };
    let made = carry_out(&plans, latency_ns);
    assert_eq!((made[3].issued_ns, made[4].issued_ns), (1500, 2400 + 890));
}

#[test]
fn each_worker_has_its_io_context() {
    let plans = chain().plans();
    let contexts = |plan: &TaskPlan| plan.ios.iter().map(|io| io.context).collect::<Vec<_>>();
    // Those of the pool take turns; the bound one is alone.
    assert_eq!(plans.iter().map(contexts).collect::<Vec<_>>(), [vec![0, 1, 0, 1], vec![0, 0]]);
}

#[test]
fn workers_beyond_the_most_contexts_share_the_last() {
    let mut recording = Recording::default();
    let count = u32::from(MAX_CONTEXTS) + 3;
    for number in 0..count {
        recording.read(number, u64::from(number) * 1000, u64::from(number) * 1000 + 400);
    }
    of_workers(&mut recording, &vec!["kworker/u8:0"; count as usize]);
    let plans = recording.plans();
    assert_eq!(plans[0].nr_contexts(), MAX_CONTEXTS);
    assert_eq!(plans[0].check(), Ok(()));
}
