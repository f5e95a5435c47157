//! Mutated job files and profiles: any text gives a value or a typed error, never a panic.
//!
//! The corpus starts with the shipped workloads and profiles and grows by the
//! inputs that are accepted. Each input is one of these, mutated at random:
//! bytes, lines, words from the tables of options and parameters, numbers at
//! the edges. An accepted input is laid out and simulated for a few events. By
//! default a fixed number of inputs is tried; `BLKSIM_FUZZ_SECONDS=600 cargo
//! test -p blksim --test suite fuzz:: -- --nocapture` (`make fuzz`) runs for
//! that long, each time from the seed in `BLKSIM_FUZZ_SEED`. An input that
//! panics is written to `target/fuzz/` and can be tried again with
//! `BLKSIM_FUZZ_INPUT=FILE`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::support::setup;
use blksim::block::raid::check;
use blksim::core::error::Error;
use blksim::core::rng::Stream;
use blksim::devices::{KINDS, Profile};
use blksim::engine::Limits;
use blksim::simulate::{Setup, simulate};
use blksim::workload::options;
use blksim::workload::parse;

/// Inputs of each kind in a run without a time.
const INPUTS: u64 = 4_000;
/// Accepted inputs that are kept to mutate further.
const KEPT: usize = 400;
const LONGEST: usize = 4_000;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "511",
    "512",
    "513",
    "4096",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "nan",
    "0.5",
    "0x10",
    "100%",
    "101%",
    "1k",
    "4k",
    "1m",
    "3g",
    "16t",
    "1p",
    "4e",
    "1us",
    "1ms",
    "1d",
    "",
    "4k/50:8k/50",
    "4k,64k",
    ",",
    ":",
    "zipf:1.2",
    "read:8k",
    "write:-4k",
];

/// Outcome of an input.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Answer {
    Refused,
    /// Read, but refused when it was to run.
    Read,
    Ran,
}

/// The words of the language: options, kinds, parameters, section heads.
fn words() -> Vec<String> {
    let mut words: Vec<String> = options::all()
        .flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()))
        .map(|name| format!("{name}="))
        .collect();
    for kind in KINDS {
        words.push(format!("kind = \"{}\"", kind.name));
        words.extend(kind.parameters.iter().map(|p| format!("{} = ", p.name)));
    }
    words.extend(
        ["[a]", "[global]", "[", "]", "\n", "=", ";", "#", "\"", "raid = \"10\"", "members = "]
            .map(str::to_owned),
    );
    words.extend(
        ["randrw", "randread", "write", "rw", "libaio", "fresh", "random"].map(str::to_owned),
    );
    words
}

fn pick<'a, T>(stream: &mut Stream, from: &'a [T]) -> &'a T {
    &from[stream.below(from.len() as u64) as usize]
}

/// Changes a text once.
fn mutate(stream: &mut Stream, text: &str, other: &str, words: &[String]) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return pick(stream, words).clone();
    }
    let line = stream.below(lines.len() as u64) as usize;
    match stream.below(8) {
        0 => {
            lines.remove(line);
        }
        1 => lines.insert(line, lines[line]),
        2 => {
            let to = stream.below(lines.len() as u64) as usize;
            lines.swap(line, to);
        }
        3 => {
            let others: Vec<&str> = other.lines().collect();
            if !others.is_empty() {
                lines.insert(line, *pick::<&str>(stream, &others));
            }
        }
        4 => {
            let value = format!("{}{}", pick(stream, words), pick(stream, NUMBERS));
            let mut owned: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            owned.insert(line, value);
            return owned.join("\n");
        }
        5 | 6 => {
            // Another value behind the same key.
            let key = lines[line].split_inclusive('=').next().unwrap_or_default();
            let changed = format!("{key}{}", pick(stream, NUMBERS));
            let mut owned: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            owned[line] = changed;
            return owned.join("\n");
        }
        _ => {
            let mut bytes = text.as_bytes().to_vec();
            let at = stream.below(bytes.len() as u64) as usize;
            match stream.below(3) {
                0 => bytes[at] = stream.below(256) as u8,
                1 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, stream.below(128) as u8),
            }
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    lines.join("\n")
}

/// A few events of a simulation; a load that needs much memory is only checked.
fn try_setup(setup: &mut Setup) -> Answer {
    let clones: u64 = setup.jobs.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    if clones > 256 {
        return if blksim::simulate::check(setup).is_ok() { Answer::Ran } else { Answer::Read };
    }
    for job in &mut setup.jobs.jobs {
        job.iodepth = job.iodepth.min(64);
        job.iodepth_batch = job.iodepth_batch.min(64);
    }
    setup.limits = Limits { events: 600, ..Limits::default() };
    match simulate(setup) {
        Ok(_) => Answer::Ran,
        Err(Error::Simulation(e)) if e.field.as_deref() == Some("events") => Answer::Ran,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!error.to_string().contains("defect"), "{error}");
            Answer::Read
        }
    }
}

fn try_job(text: &str) -> Answer {
    let file = match parse(text, "fuzz.fio") {
        Ok(file) => file,
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz.fio"), "{error}");
            return Answer::Refused;
        }
    };
    let mut setup = setup("nvme-tlc", "mq-deadline", "[a]\n");
    setup.jobs = file;
    // Reading a file into the cache beforehand takes as long as that is large.
    setup.machine = vec![("memory".to_owned(), "64m".to_owned())];
    try_setup(&mut setup)
}

fn try_profile(text: &str) -> Answer {
    let Ok(profile) = Profile::parse(text, "fuzz.toml") else { return Answer::Refused };
    if check(&profile).is_err() {
        return Answer::Read;
    }
    let jobs = "[a]\nrw=randrw\nbssplit=512/50:64k/50\ndirect=1\nfsync=9\nioengine=libaio\niodepth=8\nnumber_ios=60\n";
    let mut setup = setup("fixed", "mq-deadline", jobs);
    setup.profile = profile;
    try_setup(&mut setup)
}

/// The files of a folder of the project.
fn corpus(folder: &str, ending: &str) -> Vec<String> {
    let folder = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == ending));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a whole number"))
}

fn fuzz(what: &str, mut pool: Vec<String>, attempt: fn(&str) -> Answer) {
    if let Ok(path) = std::env::var("BLKSIM_FUZZ_INPUT") {
        println!("{what}: {:?}", attempt(&std::fs::read_to_string(path).unwrap()));
        return;
    }
    let seed = number("BLKSIM_FUZZ_SEED").unwrap_or(1);
    let duration = number("BLKSIM_FUZZ_SECONDS").map(Duration::from_secs);
    let mut stream = Stream::named(seed, what);
    let words = words();
    let shipped = pool.len();
    let start = Instant::now();
    let mut answers: BTreeMap<Answer, u64> = BTreeMap::new();
    let mut tried = 0_u64;
    loop {
        match duration {
            Some(duration) if start.elapsed() >= duration => break,
            None if tried >= INPUTS => break,
            _ => {}
        }
        let mut text = pick(&mut stream, &pool).clone();
        let other = pick(&mut stream, &pool).clone();
        for _ in 0..=stream.below(4) {
            text = mutate(&mut stream, &text, &other, &words);
        }
        let answer = catch_unwind(AssertUnwindSafe(|| attempt(&text))).unwrap_or_else(|_| {
            let folder = format!("{}/../../target/fuzz", env!("CARGO_MANIFEST_DIR"));
            std::fs::create_dir_all(&folder).unwrap();
            let path = format!("{folder}/{what}-{seed}-{tried}");
            std::fs::write(&path, &text).unwrap();
            panic!("input {tried} of {what} panics; it is in {path}:\n{text}");
        });
        tried += 1;
        *answers.entry(answer).or_default() += 1;
        if answer == Answer::Ran && text.len() <= LONGEST {
            if pool.len() < shipped + KEPT {
                pool.push(text);
            } else {
                let place = shipped + stream.below(KEPT as u64) as usize;
                pool[place] = text;
            }
        }
    }
    println!("{what}: {tried} inputs in {:.0} s, {answers:?}", start.elapsed().as_secs_f64());
    // A fuzzer all of whose inputs end at the first check finds nothing.
    let ran = answers.get(&Answer::Ran).copied().unwrap_or(0);
    assert!(ran * 20 > tried, "only {ran} of {tried} inputs were accepted");
}

#[test]
fn no_job_file_panics() {
    fuzz("jobs", corpus("workloads", "fio"), try_job);
}

#[test]
fn no_profile_panics() {
    fuzz("profiles", corpus("devices", "toml"), try_profile);
}
