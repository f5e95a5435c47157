//! I/Os that the kernel had split are whole again.

use blkrecord::io::{Io, Moment, Operation};
use blkreplay::Options;

use crate::samples::{Recording, carry_out};

const PART: u64 = 512 << 10;

/// Writes of 1 MiB one after the other, whose parts complete in the other order.
fn split_writes() -> Recording {
    let mut recording = Recording::default();
    for number in 0..3 {
        let queued_ns = number * 10_000;
        for part in [1, 0] {
            let sector = (2 * number + part) * PART / 512;
            let times = (queued_ns, Some(queued_ns + 2000 - 500 * part));
            let io = recording.io(1, Operation::Write, sector, PART, times);
            (io.split, io.inserted) =
                (Moment::at(queued_ns + 10), Moment::at(queued_ns + 20 + part));
            io.segments = 128;
        }
    }
    recording
}

#[test]
fn an_io_has_all_of_its_parts_again() {
    let plan = split_writes().plans().remove(0);
    let whole = plan.ios.iter().map(|io| (io.offset, io.bytes, io.memory.segments));
    assert_eq!(whole.collect::<Vec<_>>(), [0, 1, 2].map(|number| (number << 20, 1 << 20, 256)));
    // The next waits for the last part.
    assert_eq!(plan.ios.iter().map(|io| io.think_ns).collect::<Vec<_>>(), [0, 8000, 8000]);
    let made = carry_out(&[plan], |_, _| 2000);
    assert_eq!(made.iter().map(|made| made.issued_ns).collect::<Vec<_>>(), [0, 10_000, 20_000]);
    let notes = split_writes().workload(&Options::new("test")).unwrap().summary.notes;
    assert!(notes.iter().any(|note| note.starts_with("3 parts are one I/O again")), "{notes:?}");
}

#[test]
fn what_nobody_knows_of_a_part_is_as_large_as_it_can_be() {
    let segments = |change: fn(&mut Io)| {
        let mut recording = split_writes();
        change(&mut recording.batch.ios[0]);
        recording.plans()[0].ios[0].memory.segments
    };
    // A merged part has one for each page.
    assert_eq!(segments(|part| part.segments = 0), 256);
    assert_eq!(segments(|part| part.segments = 7), 135);
}

#[test]
fn an_io_without_the_end_of_a_part_has_none() {
    let mut recording = split_writes();
    recording.batch.ios[0].completed = Moment::NEVER;
    assert_eq!(
        recording.plans()[0].ios.iter().map(|io| io.waits_for).collect::<Vec<_>>(),
        [0, 0, 1]
    );
}

#[test]
fn others_stay_apart() {
    let parts = |change: fn(&mut Io)| {
        let mut recording = split_writes();
        change(&mut recording.batch.ios[0]);
        recording.plans().iter().map(|plan| plan.ios.len()).sum::<usize>()
    };
    assert_eq!(parts(|_| ()), 3);
    for change in [
        |io: &mut Io| io.split = Moment::NEVER,
        |io: &mut Io| io.queued = Moment::at(1),
        |io: &mut Io| io.tid = 2,
        |io: &mut Io| io.operation = Operation::Read,
        |io: &mut Io| io.sector += 8,
    ] {
        assert_eq!(parts(change), 4);
    }
}
