//! The processors that tasks had stayed on.

use blkrecord::io::{Operation, UNKNOWN_PROCESSOR};
use blkreplay::Options;
use blksim::workload::replay::Home;

use crate::samples::{Recording, plans_of};

/// One task for each list; its I/Os come from these processors.
fn recording(processors: Option<u32>, tasks: &[&[u16]]) -> Recording {
    let mut recording = Recording { processors, ..Recording::default() };
    for (tid, numbers) in (1..).zip(tasks) {
        for (index, number) in (0..).zip(*numbers) {
            let times = (index * 1000 + u64::from(tid), Some(index * 1000 + 400));
            recording.io(tid, Operation::Read, index * 8, 4096, times).processor = *number;
        }
    }
    recording
}

fn homes(processors: Option<u32>, tasks: &[&[u16]]) -> Vec<Option<Home>> {
    recording(processors, tasks).plans().iter().map(|plan| plan.home).collect()
}

#[test]
fn a_task_has_stayed_where_nine_tenths_of_its_ios_come_from() {
    let mut mostly = [1; 20];
    (mostly[3], mostly[11]) = (0, 2);
    let mut less = mostly;
    less[12] = 0;
    let home = |processor| Some(Home { processor, of: 4 });
    assert_eq!(homes(Some(4), &[&mostly, &less, &[3]]), [home(1), None, home(3)]);
}

#[test]
fn an_unknown_processor_is_no_home() {
    let unknown = [UNKNOWN_PROCESSOR; 5];
    assert_eq!(homes(Some(4), &[&unknown]), [None]);
    assert_eq!(homes(None, &[&unknown]), [None]);
}

#[test]
fn a_trace_that_tells_no_number_has_at_least_the_processors_that_it_names() {
    let home = |processor| Some(Home { processor, of: 6 });
    assert_eq!(homes(None, &[&[0; 9], &[5; 9]]), [home(0), home(5)]);
    // Perhaps a converter has written zeroes.
    assert_eq!(homes(None, &[&[0; 9], &[0; 9]]), [None, None]);
    // Here it is known that there is no other.
    assert_eq!(homes(Some(1), &[&[0; 9]]), [Some(Home { processor: 0, of: 1 })]);
}

#[test]
fn the_notes_say_how_many_stayed() {
    let made = recording(Some(2), &[&[1; 9], &[0, 1, 0, 1]]).workload(&Options::new("t")).unwrap();
    let note = "1 of 2 tasks stayed on one of 2 processors; a replay on a host that has as many keeps them there";
    assert!(made.summary.notes.contains(&note.to_owned()), "{:?}", made.summary.notes);
    assert_eq!(plans_of(&made).iter().filter(|plan| plan.home.is_some()).count(), 1);
}
