//! I/Os that a task queued before it submitted the first of them.

use blkrecord::io::{Flags, Io, Moment, Operation};
use blkreplay::Options;

use crate::samples::{Recording, carry_out};

/// A write of 4 KiB that was queued and inserted, and took 1000 ns from there.
fn write(recording: &mut Recording, tid: u32, queued_ns: u64, inserted_ns: u64) -> &mut Io {
    let times = (queued_ns, Some(inserted_ns + 1000));
    let io = recording.io(tid, Operation::Write, queued_ns / 10 * 8, 4096, times);
    io.inserted = Moment::at(inserted_ns);
    io
}

/// One task that writes two plugs of three.
fn two_plugs() -> Recording {
    let mut recording = Recording::default();
    for begun_ns in [0, 2000] {
        for number in 0..3 {
            write(&mut recording, 1, begun_ns + number * 10, begun_ns + 40);
        }
    }
    recording
}

fn plugged(recording: Recording) -> Vec<bool> {
    recording.plans().iter().flat_map(|plan| &plan.ios).map(|io| io.plugged).collect()
}

#[test]
fn ios_that_were_queued_before_the_first_was_inserted_are_submitted_together() {
    assert_eq!(plugged(two_plugs()), [false, true, true, false, true, true]);
    let notes = two_plugs().workload(&Options::new("test")).unwrap().summary.notes;
    assert!(
        notes.iter().any(|note| note.starts_with("4 I/Os are submitted together")),
        "{notes:?}"
    );
}

#[test]
fn one_that_merges_belongs_to_its_plug() {
    let mut recording = two_plugs();
    for (number, io) in (0..).zip(&mut recording.batch.ios) {
        if number % 3 == 1 {
            (io.merged, io.inserted) = (io.queued, Moment::NEVER);
        }
    }
    assert_eq!(plugged(recording.clone()), [false, true, true, false, true, true]);
    // Without an insertion after it, nothing tells.
    recording.batch.ios.truncate(2);
    recording.batch.ios[0].inserted = recording.batch.ios[0].queued;
    assert_eq!(plugged(recording), [false, false]);
}

#[test]
fn all_of_a_plug_wait_for_the_same_and_are_queued_at_their_own_times() {
    let mut recording = two_plugs();
    // Completes while the second plug fills up.
    recording.batch.ios[2].completed = Moment::at(2015);
    let plan = recording.plans().remove(0);
    let found: Vec<_> = plan.ios.iter().map(|io| (io.waits_for, io.think_ns)).collect();
    assert_eq!(found, [(0, 0), (0, 10), (0, 10), (2, 960), (2, 10), (2, 10)]);
    // On a disk that is slower by 500 ns the second plug comes that much later, and none of the times within.
    let made = carry_out(&[plan], |_, index| if index < 3 { 1500 } else { 1000 });
    let issued_ns: Vec<u64> = made.iter().map(|made| made.issued_ns).collect();
    assert_eq!(issued_ns, [0, 10, 20, 2470, 2480, 2490]);
}

#[test]
fn the_time_after_a_plug_counts_from_its_submission() {
    let mut recording = two_plugs();
    recording.batch.ios.truncate(3);
    write(&mut recording, 1, 100, 100);
    let plan = recording.plans().remove(0);
    assert_eq!((plan.ios[3].plugged, plan.ios[3].waits_for, plan.ios[3].think_ns), (false, 0, 60));
}

#[test]
fn flushes_and_durable_writes_pass_plugs_by() {
    let mut recording = Recording::default();
    write(&mut recording, 1, 0, 40);
    write(&mut recording, 1, 10, 40).flags = Flags::FUA;
    write(&mut recording, 1, 20, 40);
    write(&mut recording, 1, 30, 40).operation = Operation::Flush;
    assert_eq!(plugged(recording), [false; 4]);
    // Inserted once the cache is flushed, while its task goes on.
    let mut recording = Recording::default();
    write(&mut recording, 1, 0, 500).flags = Flags::PREFLUSH;
    write(&mut recording, 1, 100, 100);
    assert_eq!(plugged(recording), [false; 3]);
}

#[test]
fn other_tasks_have_plugs_of_their_own() {
    let mut recording = Recording::default();
    for number in 0..4 {
        write(&mut recording, 1 + number % 2, u64::from(number) * 10, 60);
    }
    assert_eq!(plugged(recording), [false, true, false, true]);
}

#[test]
fn an_io_that_waits_for_another_task_begins_a_plug() {
    let mut recording = Recording::default();
    recording.read(1, 0, 400);
    recording.fork(1, 2, 1000);
    write(&mut recording, 1, 1005, 1040);
    write(&mut recording, 2, 1010, 1040);
    write(&mut recording, 2, 1020, 1040);
    recording.exit(2, 1500);
    let plans = recording.plans();
    assert_eq!(plans[1].awaits.len(), 1);
    assert_eq!(plans[1].ios.iter().map(|io| io.plugged).collect::<Vec<_>>(), [false, true]);
}
