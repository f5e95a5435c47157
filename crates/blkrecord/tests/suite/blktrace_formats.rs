//! Binary traces: both byte orders, both versions, several processors.

use std::fs;

use crate::samples::{self, CGROUP, NOTIFY, Record, WRITE, blktrace, read};
use blkrecord::batch::Batch;
use blkrecord::io::{Moment, Operation};
use blkrecord::limits::Bounds;
use blkrecord::readers;

#[test]
fn both_byte_orders_and_versions_tell_the_same() {
    let records = samples::blktrace_records();
    let reference = read(blktrace(&records, false, false)).unwrap();
    for (big_endian, wide) in [(true, false), (false, true), (true, true)] {
        let other = read(blktrace(&records, big_endian, wide)).unwrap();
        assert_eq!(other.ios, reference.ios);
        assert_eq!(other.tally, reference.tally);
    }
    let [first, second, flush] = reference.ios[..] else { panic!("{reference:?}") };
    assert_eq!(reference.names.text(first.command), "postgres");
    assert_eq!((first.queued, first.inserted, first.issued), at(0, 300, 400));
    assert_eq!(
        (second.merged, second.completed, second.tid),
        (Moment::at(150), Moment::at(900), 77)
    );
    assert_eq!((first.processor, second.processor), (0, 3));
    assert_eq!((flush.operation, flush.error), (Operation::Flush, 5));
    assert_eq!((flush.issued, flush.completed), (Moment::at(1000), Moment::at(1200)));
}

fn at(first: u64, second: u64, third: u64) -> (Moment, Moment, Moment) {
    (Moment::at(first), Moment::at(second), Moment::at(third))
}

#[test]
fn processors_are_merged_by_time() {
    let folder = std::env::temp_dir().join(format!("blkrecord-merge-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let records = samples::blktrace_records();
    let every = |rest: usize| -> Vec<Record<'_>> {
        records
            .iter()
            .copied()
            .enumerate()
            .filter(|(index, _)| index % 3 == rest)
            .map(|(_, record)| record)
            .collect()
    };
    for cpu in 0..3 {
        let file = folder.join(format!("sda.blktrace.{cpu}"));
        fs::write(file, blktrace(&every(cpu), false, false)).unwrap();
    }
    let whole = read(blktrace(&records, false, false)).unwrap();
    for name in ["sda", "sda.blktrace.1"] {
        let mut reader = readers::open(&folder.join(name), None, &Bounds::default()).unwrap();
        let mut batch = Batch::default();
        while reader.read(&mut batch).unwrap() && !reader.tally().whole {}
        assert_eq!(batch.ios, whole.ios);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn control_groups_and_the_date_are_noted() {
    let mut group = 4711_u64.to_le_bytes().to_vec();
    let write = Record { sector: 8, bytes: 512, ..Record::default() };
    let mut date = Vec::new();
    date.extend(1_700_000_000_u32.to_le_bytes());
    date.extend(5_u32.to_le_bytes());
    let mut split = group.clone();
    split.extend(9_u64.to_be_bytes());
    group.truncate(8);
    let records = [
        Record { action: 0x1 | NOTIFY, payload: &date, ..Record::default() },
        Record { bytes: 1024, action: 0x1 | WRITE | CGROUP, payload: &group, ..write },
        Record { bytes: 512, action: 0xd | WRITE | CGROUP, payload: &split, ..write },
        Record { action: 0x8 | WRITE | CGROUP, payload: &group, ..write },
        Record { action: 0x8 | WRITE | CGROUP, payload: &group, sector: 9, ..write },
    ];
    let trace = read(blktrace(&records, false, false)).unwrap();
    assert_eq!(trace.facts.started_unix_ns, Some(1_700_000_000_000_000_005));
    assert_eq!(trace.ios.len(), 2);
    assert!(trace.ios.iter().all(|io| trace.names.text(io.cgroup) == "cgroup 4711"));
}

#[test]
fn damage_is_skipped_up_to_the_next_record() {
    let records = samples::blktrace_records();
    let mut bytes = blktrace(&records, false, false);
    // Within the notice's payload comes nothing that looks like a record.
    bytes.splice(64..64, *b"something else");
    let trace = read(bytes).unwrap();
    assert_eq!(trace.ios.len(), 3);
    assert_eq!(
        trace.warnings.first[0].to_string(),
        "trace: byte 64: no record begins here; skipped to the next one"
    );
    let mut bytes = blktrace(&records, false, false);
    bytes.truncate(bytes.len() - 1);
    let trace = read(bytes).unwrap();
    assert_eq!((trace.ios.len(), trace.tally.incomplete), (3, 1));
    assert!(trace.warnings.first[0].message.contains("ends within a record"));
}
