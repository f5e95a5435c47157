//! A task thinks about one I/O after the other, and a replay takes its own time off.

use blksim::workload::replay::{Cursor, OwnPath, PathOfSize, SharedSignals, Turn};

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
    let mut recording = Recording::default();
    for number in 0..3 {
        recording.read(1, number * 1000, number * 1000 + 400);
    }
    let plan = recording.plans().remove(0);
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
