//! Files that would fill the memory are refused, and honest ones, however regular, are not.

use std::io::Write;
use std::path::Path;

use blkrecord::batch::Batch;
use blkrecord::error::RecordError;
use blkrecord::facts::{CgroupFacts, Facts, Tally};
use blkrecord::file::block::{self, Kind};
use blkrecord::file::{MAGIC, VERSION, Writer, columns};
use blkrecord::interrupt::Interrupt;
use blkrecord::io::{Io, Moment, Operation};
use blkrecord::limits::{Bounds, CGROUPS, FACT_BYTES, FREE_ROWS, Memory};
use blkrecord::names::Names;
use blkrecord::readers::{self, RecordReader, from_bytes};
use blkrecord::task_event::{TaskEvent, TaskEventKind};
use blkrecord::waits;

const PATH: &str = "trace";

/// A file of these blocks, without its end.
fn file(facts: &[u8], blocks: &[(Kind, &[u8], usize)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    block::write(&mut bytes, Kind::FACTS, facts).unwrap();
    for (kind, raw, times) in blocks {
        let mut one = Vec::new();
        block::write(&mut one, *kind, raw).unwrap();
        (0..*times).for_each(|_| bytes.extend_from_slice(&one));
    }
    bytes
}

/// Reads without keeping anything; gives the number of rows and the error.
fn read(bytes: Vec<u8>) -> (u64, Result<Box<dyn RecordReader>, RecordError>) {
    let mut rows = 0;
    let result = from_bytes(Path::new(PATH), bytes, None).and_then(|mut reader| {
        let mut batch = Batch::default();
        while reader.read(&mut batch)? {
            rows += (batch.ios.len() + batch.tasks.len()) as u64;
            batch.clear();
        }
        Ok(reader)
    });
    (rows, result)
}

fn refusal(bytes: Vec<u8>) -> String {
    let (rows, result) = read(bytes);
    let error = result.expect_err("such a file is refused");
    assert!(rows < 4 * FREE_ROWS, "{rows} rows were read");
    assert!(matches!(error, RecordError::TooLarge(_)), "{error:?}");
    let message = error.to_string();
    assert!(message.starts_with("trace: "), "{message}");
    message
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

#[test]
fn blocks_full_of_rows_are_refused_as_they_are_and_compressed_again() {
    let mut events =
        [TaskEvent { at: Moment::at(0), kind: TaskEventKind::Fork, tid: 1, parent: 1, command: 0 }]
            .repeat(1 << 16);
    events[0].at = Moment::at(1);
    let ios = [Io::new(Moment::at(0), Operation::Read, 0, 0)].repeat(1 << 16);
    let raws =
        [(Kind::IOS, columns::encode_ios(&ios)), (Kind::TASKS, columns::encode_tasks(&events))];
    for (kind, raw) in raws {
        let bomb = file(b"{}", &[(kind, &raw, 1500)]);
        assert!(bomb.len() < 2_000_000);
        let message = refusal(bomb.clone());
        assert!(message.contains("are larger than any recording"), "{message}");
        let outer = zstd_of(&bomb);
        assert!(outer.len() < 40_000);
        refusal(outer);
    }
}

#[test]
fn blocks_that_nobody_needs_must_not_grow_for_ever() {
    let zeroes = vec![0; 16 << 20];
    let message = refusal(file(b"{}", &[(Kind(*b"LATE"), &zeroes, 1000)]));
    assert!(message.contains("bytes decompressed from"), "{message}");
}

#[test]
fn text_that_grows_for_ever_is_refused() {
    let line = b"128166372003061629,hm,1,Read,0,512,1\n";
    let compressed = |some: &[u8], times: usize| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.write_all(line).unwrap();
        (0..times).for_each(|_| encoder.write_all(some).unwrap());
        encoder.finish().unwrap()
    };
    let message = refusal(compressed(&line.repeat(1 << 16), 100));
    assert!(message.contains("I/Os and task events in"), "{message}");
    let message = refusal(compressed(&vec![b'\n'; 1 << 20], 600));
    assert!(message.contains("bytes decompressed from"), "{message}");
}

#[test]
fn control_groups_beyond_all_measure_are_left_out() {
    let group = CgroupFacts { path: "/a".to_owned(), ..CgroupFacts::default() };
    let some = serde_json::to_vec(&vec![group; 4096]).unwrap();
    let (_, reader) = read(file(b"{}", &[(Kind::CGROUPS, &some, 40)]));
    let reader = reader.unwrap();
    assert_eq!(reader.facts().cgroups.len(), CGROUPS);
    let told = |reader: &dyn RecordReader| {
        reader
            .warnings()
            .first
            .iter()
            .filter(|warning| warning.message.contains("left out"))
            .count()
    };
    assert_eq!(told(&*reader), 1);
    // One that is too large by itself is not even parsed.
    let large = serde_json::to_vec(&vec![CgroupFacts::default(); 400_000]).unwrap();
    let (_, reader) = read(file(b"{}", &[(Kind::CGROUPS, &large, 9)]));
    let reader = reader.unwrap();
    assert!(reader.facts().cgroups.is_empty());
    assert_eq!(told(&*reader), 1);
}

#[test]
fn facts_and_names_beyond_all_measure_are_refused() {
    let facts = format!("{{\"target\":\"{}\"}}", "x".repeat(FACT_BYTES));
    assert!(refusal(file(facts.as_bytes(), &[])).contains("bytes of conditions"));
    let devices = format!("{{\"devices\":[{}{{}}]}}", "{},".repeat(100_000));
    assert!(refusal(file(devices.as_bytes(), &[])).contains("100001 devices"));

    let mut blocks = Vec::new();
    for number in 0..20 {
        let mut raw = Vec::new();
        for name in 0..1024 {
            let name = format!("{number}-{name}-{}", "x".repeat(4000));
            // A varint of two bytes.
            raw.extend([name.len() as u8 | 0x80, (name.len() >> 7) as u8]);
            raw.extend(name.as_bytes());
        }
        blocks.push(raw);
    }
    let blocks: Vec<_> = blocks.iter().map(|raw| (Kind::NAMES, &raw[..], 1)).collect();
    assert!(refusal(file(b"{}", &blocks)).contains("names are larger than"));
}

/// I/Os that differ in nothing but their time, as no disk has ever done them.
#[test]
fn the_most_regular_recording_is_read() {
    let ios = FREE_ROWS + FREE_ROWS / 2;
    let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
    let mut batch = Batch::default();
    let names = Names::default();
    for number in 0..ios {
        let mut io = Io::new(Moment::at(number * 1000), Operation::Read, number * 8, 4096);
        io.issued = Moment::at(number * 1000 + 1);
        io.completed = Moment::at(number * 1000 + 500);
        batch.ios.push(io);
        if batch.ios.len() == 8192 {
            writer.write(&mut batch, &names, &Tally::default()).unwrap();
        }
    }
    writer.write(&mut batch, &names, &Tally::default()).unwrap();
    let bytes = writer.finish(&names, &Tally::default()).unwrap();
    assert!(bytes.len() as u64 * 40 > ios, "{} bytes for {ios} I/Os", bytes.len());
    let (rows, result) = read(bytes);
    assert_eq!(rows, ios);
    assert!(result.unwrap().tally().whole);
}

fn lines(count: usize) -> Vec<u8> {
    b"128166372003061629,hm,1,Read,0,512,1\n".repeat(count)
}

#[test]
fn what_does_not_fit_into_the_memory_is_refused() {
    let folder = std::env::temp_dir().join(format!("blkrecord-limits-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("trace");
    std::fs::write(&path, lines(20_000)).unwrap();
    let analysed = |free_bytes| {
        let memory = Memory { free_bytes, bytes_each: waits::KEPT_BYTES };
        let bounds = Bounds { memory: Some(memory), ..Bounds::default() };
        let mut reader = readers::open(&path, None, &bounds)?;
        waits::of(&mut *reader, &Interrupt::default())
    };
    let error = analysed(20_000 * waits::KEPT_BYTES - 1).unwrap_err();
    assert!(error.to_string().contains("larger than the memory that is free here"), "{error}");
    assert_eq!(analysed(20_000 * waits::KEPT_BYTES).unwrap().all.ios, 20_000);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_interrupt_ends_reading_and_analysing() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    // The questions until the end, each of which may be the one that gets a yes.
    let asked = Arc::new(AtomicU32::new(0));
    let folder = std::env::temp_dir().join(format!("blkrecord-interrupt-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("trace");
    std::fs::write(&path, lines(200_000)).unwrap();
    let analysed = |most: u32| {
        asked.store(0, Ordering::SeqCst);
        let counter = Arc::clone(&asked);
        let interrupt = Interrupt::when(move || counter.fetch_add(1, Ordering::SeqCst) >= most);
        let bounds = Bounds { interrupt: interrupt.clone(), memory: None };
        let mut reader = readers::open(&path, None, &bounds)?;
        waits::of(&mut *reader, &interrupt)
    };
    assert_eq!(analysed(u32::MAX).unwrap().all.ios, 200_000);
    let questions = asked.load(Ordering::SeqCst);
    assert!(questions > 30, "{questions}");
    for most in 0..questions {
        assert!(matches!(analysed(most), Err(RecordError::Interrupted(_))), "question {most}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_writes_to_can_be_interrupted() {
    let folder = std::env::temp_dir().join(format!("blkrecord-pipe-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("pipe");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name is terminated.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let looks = std::sync::atomic::AtomicU32::new(0);
    let interrupt =
        Interrupt::when(move || looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 2);
    let opened = readers::open(&path, None, &Bounds { interrupt, memory: None });
    assert!(matches!(opened, Err(RecordError::Interrupted(_))));

    // One that is written to ends with its writer.
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, lines(3)).unwrap()
    });
    let mut reader = readers::open(&path, None, &Bounds::default()).unwrap();
    let mut batch = Batch::default();
    while reader.read(&mut batch).unwrap() && batch.ios.len() < 3 {}
    assert_eq!(batch.ios.len(), 3);
    writer.join().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn devices_are_refused() {
    for path in ["/dev/zero", "/dev/null"] {
        let error = readers::open(Path::new(path), None, &Bounds::default()).err().unwrap();
        assert!(error.to_string().contains("neither a regular file nor a pipe"), "{error}");
    }
}
