//! A task thinks about one I/O after the other, and a replay takes its own time off.

use blkrecord::io::{Moment, Operation};
use blksim::workload::replay::{Cursor, OwnPath, PathOfSize, SharedSignals, TaskPlan, Turn};

use crate::samples::{Recording, carry_out};

const BATCH: u64 = 8;
const LATENCY_NS: u64 = 500;

/// One task that queues eight I/Os, 100 ns one after the other, waits for all of them, and begins anew.
fn batches() -> Recording {
    let mut recording = Recording::default();
    for number in 0..5 * BATCH {
        let at_ns = number / BATCH * 2000 + number % BATCH * 100;
        recording.read(1, at_ns, at_ns + LATENCY_NS);
    }
    recording
}

#[test]
fn think_time_counts_from_the_io_before_if_that_is_later() {
    let plan = &batches().plans()[0];
    let times: Vec<u64> = plan.ios.iter().map(|io| io.think_ns).collect();
    // The last of a batch completes 1,200 ns after its beginning, the next begins after 2,000. Completions
    // of the same batch come when the sixth is queued.
    assert_eq!(times[BATCH as usize..2 * BATCH as usize], [800, 100, 100, 100, 100, 0, 0, 0]);
}

#[test]
fn an_early_completion_does_not_let_a_task_think_twice_at_a_time() {
    let made = carry_out(&batches().plans(), |_, _| 1);
    let gaps: Vec<u64> =
        made.windows(2).map(|pair| pair[1].issued_ns - pair[0].issued_ns).collect();
    assert_eq!(gaps.iter().filter(|gap| **gap >= 100).count(), 5 * 4 + 4, "{gaps:?}");
}

#[test]
fn the_same_latencies_give_the_same_times() {
    let made = carry_out(&batches().plans(), |_, _| LATENCY_NS);
    for (number, made) in (0..).zip(made) {
        assert_eq!(made.issued_ns, number / BATCH * 2000 + number % BATCH * 100);
    }
}

#[test]
fn the_time_of_a_replay_itself_is_taken_off_after_a_completion_only() {
    let plan = Recording::one_at_a_time(3).plans().remove(0);
    let due = |fixed_ns: u64, ended_ns: u64| {
        let mut cursor = Cursor::new(plan.clone().into(), SharedSignals::owned(0));
        cursor.start(0);
        // 4 KiB take 4 ns.
        let read = PathOfSize { fixed_ns, per_mib_ns: 1024 };
        cursor.take_off(OwnPath { read, write: PathOfSize { fixed_ns: 9000, per_mib_ns: 0 } });
        assert!(matches!(cursor.turn(0), Turn::Issue(_)));
        let index = cursor.submitted();
        cursor.completed(index, ended_ns);
        match cursor.turn(ended_ns) {
            Turn::Until(due_ns) => due_ns,
            Turn::Issue(_) => ended_ns,
            turn => panic!("{turn:?}"),
        }
    };
    assert_eq!(due(0, 500), 1096);
    assert_eq!(due(13, 500), 1083);
    // A task does not think about an I/O before it has queued the one before.
    assert_eq!(due(5000, 500), 600);
}

#[test]
fn a_task_on_real_processors_makes_up_for_late_ios() {
    let plan = Recording::one_at_a_time(4).plans().remove(0);
    assert_eq!(thinks(&plan), [0, 600, 600, 600]);
    // The second I/O comes 250 ns late; all complete at once.
    let dues = |most_late_ns: u64| {
        let mut cursor = Cursor::new(plan.clone().into(), SharedSignals::owned(0));
        cursor.start(0);
        cursor.make_up(most_late_ns);
        let mut dues = Vec::new();
        let mut now_ns = 0;
        loop {
            match cursor.turn(now_ns) {
                Turn::Until(due_ns) => {
                    now_ns = if dues.is_empty() { due_ns + 250 } else { due_ns };
                    dues.push(due_ns);
                }
                Turn::Issue(_) => {
                    let index = cursor.submitted();
                    cursor.completed(index, now_ns);
                }
                Turn::Finished => return dues,
                turn => panic!("{turn:?}"),
            }
        }
    };
    assert_eq!(dues(0), [600, 1450, 2050]);
    assert_eq!(dues(100), [600, 1350, 1950]);
    assert_eq!(dues(1000), [600, 1200, 1800]);
}

/// One task whose second I/O gets a tag only 600 ns after it was queued, and which thinks for 20 ns then.
fn sleep_for_a_tag(known: bool) -> TaskPlan {
    let mut recording = Recording::default();
    for (queued_ns, inserted_ns, completed_ns) in [(0, 0, 300), (100, 700, 900), (720, 720, 1000)] {
        let times = (queued_ns, Some(completed_ns));
        let io = recording.io(1, Operation::Write, queued_ns * 8, 4096, times);
        io.inserted = if known { Moment::at(inserted_ns) } else { Moment::NEVER };
    }
    recording.plans().remove(0)
}

fn thinks(plan: &TaskPlan) -> Vec<u64> {
    plan.ios.iter().map(|io| io.think_ns).collect()
}

#[test]
fn a_plug_holds_nobody_up() {
    let mut recording = Recording::default();
    for queued_ns in [0, 10, 20, 100] {
        let times = (queued_ns, Some(queued_ns + 1000));
        let io = recording.io(1, Operation::Write, queued_ns * 8, 4096, times);
        // The first three are inserted when the last of them is there.
        io.inserted = Moment::at(queued_ns.max(30));
    }
    assert_eq!(thinks(&recording.plans()[0]), [0, 10, 10, 70]);
}

#[test]
fn sleeping_for_a_tag_is_no_thinking() {
    let plan = sleep_for_a_tag(true);
    assert_eq!(thinks(&plan), [0, 100, 20]);
    assert_eq!(thinks(&sleep_for_a_tag(false)), [0, 100, 420]);
    // The replay sleeps until 650, and learns of the first completion only then.
    let due = |path_ns: u64| {
        let mut cursor = Cursor::new(plan.clone().into(), SharedSignals::owned(0));
        cursor.start(0);
        let own = PathOfSize { fixed_ns: path_ns, per_mib_ns: 0 };
        cursor.take_off(OwnPath { read: own, write: own });
        assert!(matches!(cursor.turn(0), Turn::Issue(_)));
        let first = cursor.submitted();
        assert_eq!(cursor.turn(0), Turn::Until(100));
        assert!(matches!(cursor.turn(100), Turn::Issue(_)));
        cursor.submitted();
        assert_eq!(cursor.turn(650), Turn::AwaitCompletion);
        cursor.completed(first, 650);
        match cursor.turn(650) {
            Turn::Until(due_ns) => due_ns,
            Turn::Issue(_) => 650,
            turn => panic!("{turn:?}"),
        }
    };
    assert_eq!(due(0), 670);
    // On a real processor a call takes about as long as the replay's way to its next I/O; that is no sleep.
    assert_eq!([15, 550].map(due), [655, 650]);
}
