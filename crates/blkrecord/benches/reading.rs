//! Records and lines read a second of one core, from memory.
//!
//! `cargo bench -p blkrecord` prints, for each format, millions of records of blktrace, lines or I/Os per
//! second of processor time: the best of some rounds, because other programs can only slow a round down.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use blkrecord::batch::Batch;
use blkrecord::facts::{Facts, Tally};
use blkrecord::file::Writer;
use blkrecord::names::Names;
use blkrecord::readers::{Source, blktrace, from_bytes};

const IOS: u64 = 500_000;
const DEPTH: u64 = 32;
const ROUNDS: u32 = 7;

/// Sectors in random order (splitmix64), without a generator to depend on.
fn sector(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 30) & !7
}

/// Queue, issue and completion of random reads at a depth, as blktrace writes them.
fn binary() -> Vec<u8> {
    let mut out = Vec::with_capacity(IOS as usize * 3 * 48);
    let mut put = |time: u64, number: u64, action: u32| {
        out.extend(0x6561_7407_u32.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend(time.to_le_bytes());
        out.extend(sector(number).to_le_bytes());
        out.extend(4096_u32.to_le_bytes());
        out.extend((action | 1 << 16).to_le_bytes());
        out.extend(4711_u32.to_le_bytes());
        out.extend((8_u32 << 20).to_le_bytes());
        out.extend([0; 8]);
    };
    for number in 0..IOS + DEPTH {
        if number < IOS {
            put(number * 1000, number, 1);
            put(number * 1000 + 300, number, 7);
        }
        if number >= DEPTH {
            put(number * 1000 + 600, number - DEPTH, 8);
        }
    }
    out
}

fn lines(line: impl Fn(&mut String, u64)) -> Vec<u8> {
    let mut text = String::new();
    for number in 0..IOS {
        line(&mut text, number);
    }
    text.into_bytes()
}

fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let msr = lines(|text, number| {
        let ticks = 128_166_372_003_061_629 + number * 1000;
        writeln!(text, "{ticks},hm,1,Read,{},32768,1331", sector(number) * 512).unwrap();
    });
    let systor = lines(|text, number| {
        let us = number % 1_000_000;
        let offset = sector(number) * 512;
        writeln!(text, "1456000{:03}.{us:06},0.001234,W,0,{offset},4096", number / 1_000_000)
            .unwrap();
    });
    let alibaba = lines(|text, number| {
        let at = 1_577_808_000_000_046 + number;
        writeln!(text, "419,W,{},16384,{at}", sector(number) * 512).unwrap();
    });
    let mut iolog = b"fio version 3 iolog\n".to_vec();
    iolog.extend(lines(|text, number| {
        writeln!(text, "{} /dev/sda read {} 4096", number * 10, sector(number) * 512).unwrap();
    }));
    let mut blkreplay =
        b"start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n".to_vec();
    blkreplay.extend(lines(|text, number| {
        let (seconds, ns) = (number / 1_000_000, number % 1_000_000 * 1000);
        writeln!(text, "{seconds:7}.{ns:09} ; {:12} ;    8 ; W ; 0.0 ; 0.0", sector(number))
            .unwrap();
    }));
    let blkparse = lines(|text, number| {
        let (io, step) = (number / 3, number % 3);
        let (letter, task) = [("Q", "[fio]"), ("D", "[fio]"), ("C", "[0]")][step as usize];
        let (seconds, ns) = (number / 1_000_000, number % 1_000_000 * 1000);
        let at = sector(io);
        writeln!(
            text,
            "  8,0 {:4} {number:8} {seconds:5}.{ns:09}  4711  {letter}   R {at} + 8 {task}",
            0
        )
        .unwrap();
    });
    vec![
        ("msr", msr),
        ("systor", systor),
        ("alibaba", alibaba),
        ("fio-iolog-3", iolog),
        ("blkreplay", blkreplay),
        ("blkparse", blkparse),
    ]
}

/// Reads to the end; gives the I/Os.
fn count(bytes: Vec<u8>) -> u64 {
    let mut reader = from_bytes(Path::new("trace"), bytes, None).expect("the trace is whole");
    let mut batch = Batch::default();
    while reader.read(&mut batch).expect("the trace is whole") {
        batch.clear();
    }
    reader.tally().ios
}

/// Seconds of processor time that this process has used.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Prints how many elements a second `work` does.
fn measure<T, R>(name: &str, elements: u64, prepare: impl Fn() -> T, work: impl Fn(T) -> R) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let input = prepare();
        let begin = processor_seconds();
        black_box(work(input));
        best = best.min(processor_seconds() - begin);
    }
    println!("{name:20} {:6.1} M/s", elements as f64 / best / 1e6);
}

fn main() {
    // `cargo test --benches` only wants to know that it compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let trace = binary();
    let source =
        || Source::from_bytes(Path::new("trace"), trace.clone()).expect("memory can be read");
    measure("blktrace, events", 3 * IOS, source, |source| {
        let files = vec![(PathBuf::from("trace"), source)];
        let mut reader = blktrace::Reader::new(files).expect("the trace is whole");
        while let Some(event) = reader.next_event().expect("the trace is whole") {
            black_box(&event);
        }
    });
    measure("blktrace, paired", 3 * IOS, || trace.clone(), count);
    for (name, text) in texts() {
        let lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        measure(name, lines, || text.clone(), count);
    }
    let own = own_format(&trace);
    println!("blkrecord: {:.1} bytes per I/O", own.len() as f64 / IOS as f64);
    measure("blkrecord", IOS, || own.clone(), count);
    measure("blkrecord, written", IOS, || ios_of(&trace), |(ios, names)| written(ios, &names));
}

fn ios_of(trace: &[u8]) -> (Batch, Names) {
    let mut reader =
        from_bytes(Path::new("trace"), trace.to_vec(), None).expect("the trace is whole");
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    while reader.read(&mut batch).expect("the trace is whole") {
        all.ios.append(&mut batch.ios);
    }
    (all, reader.names().clone())
}

fn written(mut ios: Batch, names: &Names) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Facts::default()).expect("memory can be written");
    writer.write(&mut ios, names, &Tally::default()).expect("memory can be written");
    writer.finish(names, &Tally::default()).expect("memory can be written")
}

fn own_format(trace: &[u8]) -> Vec<u8> {
    let (ios, names) = ios_of(trace);
    written(ios, &names)
}
