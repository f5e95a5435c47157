//! Readers against damaged and adversarial files: an error or warnings, never a panic or an endless run.
//!
//! `BLKRECORD_FUZZ_SECONDS` and `BLKRECORD_FUZZ_SEED` set how long and from which seed.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng};

use crate::samples::{self, read};
use blkrecord::readers::{FORMATS, from_bytes};

/// I/Os that a file may give: a line or record gives one, a split one more.
fn check(bytes: &[u8]) {
    let most = bytes.len() + 1;
    if let Ok(contents) = read(bytes) {
        assert!(contents.ios.len() <= most);
        assert_eq!(contents.ios.len() as u64, contents.tally.ios);
    }
}

#[test]
fn samples_are_recognised_and_whole() {
    for (name, bytes) in samples::all() {
        let contents = read(bytes).unwrap();
        assert_eq!(contents.facts.format, name);
        assert!(!contents.ios.is_empty());
        assert_eq!(contents.warnings.count, 0, "{name}: {:?}", contents.warnings);
    }
}

#[test]
fn every_prefix_is_read() {
    for (_, bytes) in samples::all() {
        for length in 0..bytes.len() {
            check(&bytes[..length]);
        }
    }
}

#[test]
fn every_format_survives_every_other_formats_file() {
    for (_, bytes) in samples::all() {
        for format in &FORMATS {
            let path = std::path::Path::new("trace");
            if let Ok(mut reader) = from_bytes(path, bytes.clone(), Some(format)) {
                let mut batch = blkrecord::batch::Batch::default();
                while reader.read(&mut batch).unwrap_or(false) {
                    batch.clear();
                }
            }
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("BLKRECORD_FUZZ_SECONDS");
    let seed = number("BLKRECORD_FUZZ_SEED").unwrap_or(1);
    let mut seed_bytes = [0; 32];
    seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(Config::default(), rng);
    let samples = samples::all();
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut rounds = 0;
    while end.map_or(rounds < 300, |end| Instant::now() < end) {
        rounds += 1;
        for (_, bytes) in &samples {
            let damaged = damage(bytes, &mut runner);
            check(&damaged);
        }
    }
}

/// Changes, removes, doubles or inserts some bytes, mostly such that matter.
fn damage(bytes: &[u8], runner: &mut proptest::test_runner::TestRunner) -> Vec<u8> {
    let mut random = |most: usize| (runner.rng().next_u64() % most.max(1) as u64) as usize;
    let mut damaged = bytes.to_vec();
    for _ in 0..=random(4) {
        if damaged.is_empty() {
            break;
        }
        let at = random(damaged.len());
        let length = random(40).min(damaged.len() - at);
        match random(6) {
            0 => damaged[at] ^= 1 << random(8),
            1 => damaged[at] = [0, 0xff, b'9', b'-', b'\n', b',', 0x80][random(7)],
            2 => drop(damaged.drain(at..at + length)),
            3 => {
                let copy = damaged[at..at + length].to_vec();
                damaged.splice(at..at, copy);
            }
            4 => drop(damaged.splice(at..at, *b"18446744073709551615")),
            _ => damaged[at..at + length].fill(0xff),
        }
    }
    damaged
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in &FORMATS {
            if let Ok(mut reader) = from_bytes(std::path::Path::new("x"), bytes.clone(), Some(format)) {
                let mut batch = blkrecord::batch::Batch::default();
                while reader.read(&mut batch).unwrap_or(false) {
                    batch.clear();
                }
            }
        }
    }
}
