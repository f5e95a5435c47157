//! A task that keeps its depth waits for as many I/Os, others for those that they had waited for.

use blkreplay::Options;

use crate::samples::{Recording, carry_out};

const DEPTH: u64 = 4;
const IOS: u64 = 40;

/// One task that queues an I/O whenever one completes, so that four are in flight; each takes 400 ns.
fn at_depth_four() -> Recording {
    let mut recording = Recording::default();
    for number in 0..IOS {
        recording.read(1, number * 100, number * 100 + 100 * DEPTH);
    }
    recording
}

/// One task that queues four I/Os and waits for all of them.
fn in_batches() -> Recording {
    let mut recording = Recording::default();
    for number in 0..IOS {
        let begun_ns = number / DEPTH * 1000;
        recording.read(1, begun_ns, begun_ns + 100 * (number % DEPTH + 1));
    }
    recording
}

#[test]
fn a_slow_io_holds_up_batches_and_not_a_task_that_keeps_its_depth() {
    let first_is_slow = |_, index| if index == 0 { 50_000 } else { 400 };
    let ended_ns = |recording: Recording| {
        let plans = recording.plans();
        let made = carry_out(&plans, first_is_slow);
        made.iter().skip(1).map(|made| made.completed_ns).max().unwrap()
    };
    assert!(at_depth_four().plans()[0].waits_for_any);
    assert!(ended_ns(at_depth_four()) < 20_000);
    assert!(!in_batches().plans()[0].waits_for_any);
    assert!(ended_ns(in_batches()) > 50_000);
}

#[test]
fn one_at_a_time_needs_no_choice() {
    let mut recording = Recording::default();
    for number in 0..IOS {
        recording.read(1, number * 1000, number * 1000 + 400);
    }
    assert!(!recording.plans()[0].waits_for_any);
}

#[test]
fn it_is_told() {
    let said = |recording: Recording| {
        let notes = recording.workload(&Options::new("test")).unwrap().summary.notes;
        notes.iter().any(|note| note.contains("whichever"))
    };
    assert!(said(at_depth_four()));
    assert!(!said(in_batches()));
}
