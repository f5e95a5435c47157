//! Dependencies between tasks.

use blkrecord::io::Operation;
use blksim::workload::replay::{Signal, TaskPlan};

use crate::samples::Recording;

fn signals(plan: &TaskPlan) -> (Vec<Signal>, Vec<Signal>) {
    (plan.awaits.clone(), plan.sets.clone())
}

fn at(at: u32) -> Vec<Signal> {
    vec![Signal { at, number: 0 }]
}

#[test]
fn a_child_waits_for_what_its_parent_had_done_and_a_parent_for_its_child() {
    let mut recording = Recording::default();
    recording.read(1, 0, 100);
    recording.read(1, 50, 400);
    recording.fork(1, 2, 150);
    recording.read(2, 250, 300);
    recording.exit(2, 320);
    recording.read(1, 500, 600);
    let plans = recording.plans();
    let (parent, child) = (&plans[0], &plans[1]);
    // The parent had done its first I/O, not the second.
    assert_eq!((child.awaits[0].at, parent.sets[0].at), (0, 1));
    assert_eq!(child.ios[0].think_ns, 150);
    assert_eq!((parent.awaits[0].at, child.sets[0].at), (2, 1));
    assert_eq!((parent.ios[2].waits_for, parent.ios[2].think_ns), (2, 100));
}

#[test]
fn a_task_without_io_passes_on_what_it_waits_for() {
    let mut recording = Recording::default();
    recording.read(1, 0, 100);
    // 1 forks 2, which forks 3 and does no I/O itself; 1 goes on once both have ended.
    recording.fork(1, 2, 150);
    recording.fork(2, 3, 160);
    recording.read(3, 200, 300);
    recording.exit(3, 310);
    recording.exit(2, 320);
    recording.read(1, 400, 500);
    let plans = recording.plans();
    assert_eq!((plans[1].awaits[0].at, plans[0].sets[0].at), (0, 1));
    assert_eq!((plans[0].awaits[0].at, plans[1].sets[0].at), (1, 1));
}

#[test]
fn numbers_of_threads_that_occur_again_are_other_tasks() {
    let mut recording = Recording::default();
    recording.read(2, 0, 100);
    recording.exit(2, 200);
    recording.fork(1, 2, 300);
    recording.read(2, 400, 500);
    let plans = recording.plans();
    assert_eq!(plans.len(), 2);
    assert_eq!((plans[1].ios[0].waits_for, plans[1].ios[0].think_ns), (0, 400));
}

#[test]
fn fsync_waits_for_the_journal_and_the_journal_for_its_data() {
    let journal = |reader_is_busy: bool| {
        let mut recording = Recording::default();
        recording.io(1, Operation::Write, 0, 4096, (0, Some(100_000)));
        if reader_is_busy {
            recording.read(1, 50_000, 900_000);
        }
        recording.io(2, Operation::Write, 8000, 8192, (110_000, Some(200_000)));
        recording.io(2, Operation::Flush, 0, 0, (210_000, Some(500_000)));
        recording.io(1, Operation::Write, 8, 4096, (510_000, Some(600_000)));
        recording.plans()
    };
    let plans = journal(false);
    let (writer, journal_task) = (&plans[0], &plans[1]);
    let numbers =
        |signals: &[Signal]| signals.iter().map(|signal| signal.number).collect::<Vec<_>>();
    assert_eq!(numbers(&writer.awaits), numbers(&journal_task.sets));
    assert_eq!(numbers(&writer.sets), numbers(&journal_task.awaits));
    assert_eq!((writer.awaits[0].at, journal_task.sets[0].at), (1, 2));
    assert_eq!((writer.sets[0].at, journal_task.awaits[0].at), (1, 0));
    assert_eq!((writer.ios[1].think_ns, journal_task.ios[0].think_ns), (10_000, 10_000));
    // A task that has I/O in flight meanwhile waits for something else.
    let busy = journal(true);
    assert!(busy.iter().all(|plan| signals(plan) == (Vec::new(), Vec::new())));
}

#[test]
fn a_thread_that_goes_on_in_another_group_goes_on_after_itself() {
    let mut recording = Recording::default();
    let group = recording.names.number_of("/a/b");
    recording.read(1, 0, 100);
    recording.io(1, Operation::Read, 8, 4096, (150, Some(300))).cgroup = group;
    let plans = recording.plans();
    assert_eq!(signals(&plans[0]), (Vec::new(), at(1)));
    assert_eq!(signals(&plans[1]), (at(0), Vec::new()));
    assert_eq!(plans[1].ios[0].think_ns, 50);
}
