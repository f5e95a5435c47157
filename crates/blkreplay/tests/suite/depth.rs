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
fn a_task_that_refills_its_depth_keeps_it() {
    let mut recording = Recording::default();
    for number in 0..IOS {
        // Four complete together, the last of each round with the next, and it takes 10 ns to queue each.
        let round_ns = number / DEPTH * 1000;
        let last = number % DEPTH == DEPTH - 1;
        recording.read(1, round_ns + number % DEPTH * 10, round_ns + if last { 1900 } else { 900 });
    }
    assert!(recording.plans()[0].waits_for_any);
}

#[test]
fn a_task_that_seldom_has_several_in_flight_waits_for_those_of_the_recording() {
    let mut recording = Recording::default();
    for number in 0..IOS {
        let begun_ns = number * 1000;
        recording.read(1, begun_ns, begun_ns + 400);
        if number % 8 == 0 {
            recording.read(1, begun_ns + 10, begun_ns + 300);
        }
    }
    assert!(!recording.plans()[0].waits_for_any);
}

#[test]
fn a_deep_beginning_is_not_the_usual_depth() {
    let mut recording = Recording::default();
    for number in 0..3 * DEPTH {
        recording.read(1, number, 1000);
    }
    for number in 0..8 * IOS {
        recording.read(1, 2000 + number * 100, 2000 + number * 100 + 100 * DEPTH);
    }
    let plan = recording.plans().remove(0);
    assert_eq!(u64::from(plan.depth()), 3 * DEPTH);
    assert!(plan.waits_for_any);
}

#[test]
fn one_at_a_time_needs_no_choice() {
    assert!(!Recording::one_at_a_time(IOS).plans()[0].waits_for_any);
}

#[test]
fn it_is_told() {
    let said = |recording: Recording| {
        let notes = recording.workload(&Options::new("test")).unwrap().summary.notes;
        notes.iter().any(|note| note.contains("whichever"))
    };
    assert!(said(at_depth_four()));
    assert!(!said(in_batches()));
    assert!(!said(Recording::one_at_a_time(IOS)));
}

#[test]
fn a_task_held_up_by_its_processor_uses_its_depth_on_a_slower_disk() {
    // Room for four, but it takes 100 ns to queue each, and the disk takes 250; after each tenth the disk pauses.
    let mut recording = Recording::default();
    let pause_ns = |number: u64| number / 10 * 2000;
    for number in 0..2 * IOS {
        let queued_ns = number * 100 + pause_ns(number);
        let pauses = number % 10 >= 10 - DEPTH;
        recording.read(1, queued_ns, queued_ns + if pauses { 2400 } else { 250 });
    }
    let plan = recording.plans().remove(0);
    let in_flight = |latency_ns: u64| {
        let made = carry_out(std::slice::from_ref(&plan), |_, _| latency_ns);
        let busy_ns = made.len() as u64 * latency_ns;
        busy_ns as f64 / made.iter().map(|made| made.completed_ns).max().unwrap() as f64
    };
    assert!(in_flight(4000) > 3.5, "{}", in_flight(4000));
}
