//! The format `.blkrecord`: everything comes back, and what was written before a kill too.

use blkrecord::batch::Batch;
use blkrecord::facts::{CgroupFacts, DeviceFacts, Facts, Tally};
use blkrecord::file::block::{self, Kind};
use blkrecord::file::{MAGIC, Writer, columns};
use blkrecord::io::{Flags, Io, Moment, Operation, UNKNOWN_PROCESSOR, UNKNOWN_SEGMENTS};
use blkrecord::names::Names;
use blkrecord::task_event::{TaskEvent, TaskEventKind};
use proptest::prelude::*;

use crate::samples::read;

fn facts() -> Facts {
    Facts {
        format: "blkrecord".to_owned(),
        capture: "tracefs".to_owned(),
        devices: vec![DeviceFacts {
            number: 7 << 20,
            name: "loop0".to_owned(),
            ..DeviceFacts::default()
        }],
        ..Facts::default()
    }
}

/// A file with `count` I/Os in blocks of `block`.
fn file(count: u64, block: u64, finish: bool) -> Vec<u8> {
    let mut names = Names::default();
    let mut writer = Writer::new(Vec::new(), &facts()).unwrap();
    let mut batch = Batch::default();
    for number in 0..count {
        let queued = Moment::at(number * 1000);
        let mut io = Io::new(queued, Operation::Read, number * 8, 4096);
        io.completed = Moment::at(number * 1000 + 500);
        io.command = names.number_of(&format!("task {}", number % 7));
        batch.ios.push(io);
        if number % 5 == 0 {
            let kind = TaskEventKind::Fork;
            batch.tasks.push(TaskEvent {
                at: queued,
                kind,
                tid: 5,
                parent: 4,
                command: io.command,
            });
        }
        if number % block == block - 1 {
            let tally = Tally { lost: 3, ..Tally::default() };
            writer.write(&mut batch, &names, &tally).unwrap();
            writer.flush(&names, &tally).unwrap();
        }
    }
    let tally = Tally { lost: 4, ..Tally::default() };
    writer.write(&mut batch, &names, &tally).unwrap();
    if finish {
        return writer.finish(&names, &tally).unwrap();
    }
    // As a kill leaves it: what was flushed.
    let mut probe = writer.finish(&names, &tally).unwrap();
    let end = probe.windows(4).rposition(|kind| kind == b"END ").unwrap();
    probe.truncate(end);
    probe
}

/// For tests of damage.
pub fn sample() -> Vec<u8> {
    file(40, 10, true)
}

#[test]
fn facts_names_tasks_and_counts_come_back() {
    let contents = read(file(100, 30, true)).unwrap();
    assert_eq!(contents.facts, facts());
    assert_eq!(contents.ios.len(), 100);
    assert_eq!(contents.tasks.len(), 20);
    assert_eq!(contents.names.text(contents.ios[8].command), "task 1");
    assert_eq!(contents.tally.lost, 4);
    assert!(contents.tally.whole);
    assert_eq!(contents.warnings.count, 0);
}

#[test]
fn a_killed_recorders_file_is_readable_to_its_last_block() {
    let contents = read(file(100, 30, false)).unwrap();
    assert_eq!(contents.ios.len(), 100);
    assert!(!contents.tally.whole);
    assert!(contents.warnings.first[0].message.contains("was killed"));

    let whole = file(100, 30, true);
    let mut last = 0;
    for length in 0..whole.len() {
        match read(&whole[..length]) {
            Ok(contents) => {
                assert!(contents.ios.len() >= last, "more bytes give no fewer I/Os");
                assert!(contents.ios.len() % 10 == 0 && !contents.tally.whole);
                last = contents.ios.len();
            }
            Err(error) => assert_eq!(last, 0, "{error}"),
        }
    }
    assert_eq!(last, 100);
}

#[test]
fn other_versions_are_named() {
    let mut bytes = sample();
    bytes[14] = 9;
    let error = read(bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "trace: byte 14: version 9 of the format; this blklab reads 1 to 3"
    );
}

#[test]
fn earlier_versions_had_no_segments_and_no_processors() {
    let ios: Vec<Io> = (0..9)
        .map(|number| Io {
            processor: number as u16,
            segments: 2,
            ..Io::new(Moment::at(number * 1000), Operation::Write, number * 8, 4096)
        })
        .collect();
    let mut raw = columns::encode_ios(&ios);
    let without_segments = |io: &Io| Io { segments: UNKNOWN_SEGMENTS, ..*io };
    let without_both = |io: &Io| Io { processor: UNKNOWN_PROCESSOR, ..without_segments(io) };
    for (version, expected) in [
        (2_u16, ios.iter().map(without_segments).collect::<Vec<Io>>()),
        (1, ios.iter().map(without_both).collect()),
    ] {
        // The last column: its length, and a byte for each.
        raw.truncate(raw.len() - 1 - ios.len());
        let mut bytes = MAGIC.to_vec();
        bytes.extend(version.to_le_bytes());
        let facts = br#"{"format": "blkrecord", "capture": "bpf", "devices": []}"#;
        let blocks = [(Kind::FACTS, &facts[..]), (Kind::IOS, &raw), (Kind::END, b"{\"ios\": 9}")];
        for (kind, raw) in blocks {
            block::write(&mut bytes, kind, raw).unwrap();
        }
        let contents = read(bytes).unwrap();
        assert_eq!(contents.warnings.count, 0, "{:?}", contents.warnings);
        assert_eq!((contents.facts.capture.as_str(), contents.facts.processors), ("bpf", None));
        assert_eq!(contents.ios, expected);
    }
}

#[test]
fn an_io_takes_few_bytes() {
    let bytes = file(100_000, 8192, true).len() as f64 / 100_000.0;
    assert!(bytes < 12.0, "{bytes} bytes per I/O");
}

fn moments() -> impl Strategy<Value = Moment> {
    prop_oneof![
        Just(Moment::NEVER),
        (0..Moment::MAX_NS).prop_map(Moment::at),
        (0_u64..1000).prop_map(Moment::at),
        Just(Moment::at(u64::MAX)),
    ]
}

prop_compose! {
    fn any_io()(
        times in prop::array::uniform6(moments()),
        (sector, bytes) in any::<(u64, u64)>(),
        operation in 0_u8..10,
        (flags, ioprio, error, processor, segments) in any::<(u16, u16, u16, u16, u16)>(),
        (tgid, tid, device) in any::<(u32, u32, u32)>(),
    ) -> Io {
        Io {
            queued: times[0],
            split: times[1],
            merged: times[2],
            inserted: times[3],
            issued: times[4],
            completed: times[5],
            sector,
            bytes,
            operation: Operation::from_number(operation).unwrap(),
            flags: Flags(flags),
            ioprio,
            error,
            tgid,
            tid,
            command: 0,
            cgroup: 0,
            processor,
            segments,
            device,
            order: 0,
        }
    }
}

proptest! {
    #[test]
    fn any_io_comes_back(ios in prop::collection::vec(any_io(), 0..50)) {
        let names = Names::default();
        let mut writer = Writer::new(Vec::new(), &facts()).unwrap();
        let mut batch = Batch { ios: ios.clone(), tasks: Vec::new() };
        writer.write(&mut batch, &names, &Tally::default()).unwrap();
        let contents = read(writer.finish(&names, &Tally::default()).unwrap()).unwrap();
        prop_assert_eq!(contents.ios, ios);
    }
}

#[test]
fn control_groups_come_back_whenever_they_were_seen() {
    let mut writer = Writer::new(Vec::new(), &facts()).unwrap();
    let group = |number: u32| CgroupFacts {
        path: format!("/g{number}"),
        settings: [("io.weight".to_owned(), format!("default {number}"))].into(),
    };
    // More than a block takes.
    let early: Vec<CgroupFacts> = (0..700).map(group).collect();
    writer.cgroups(&early).unwrap();
    let mut names = Names::default();
    let mut batch = Batch::default();
    let mut io = Io::new(Moment::at(1), Operation::Read, 0, 4096);
    io.cgroup = names.number_of("/g700");
    batch.ios.push(io);
    writer.write(&mut batch, &names, &Tally::default()).unwrap();
    writer.cgroups(&[group(700)]).unwrap();
    let bytes = writer.finish(&names, &Tally::default()).unwrap();
    let found = read(bytes).unwrap();
    assert_eq!(found.facts.cgroups, (0..=700).map(group).collect::<Vec<_>>());
}
