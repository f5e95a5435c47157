//! The meaning of the lines of each text format.

use crate::samples::{self, read};
use blkrecord::io::{Flags, Moment, Operation};

#[test]
fn msr_counts_in_windows_time_and_has_completions() {
    let trace = read(samples::MSR).unwrap();
    let [first, second, third] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((first.operation, first.sector, first.bytes), (Operation::Read, 749_016, 32_768));
    assert_eq!((first.queued, first.completed), (Moment::at(0), Moment::at(133_100)));
    assert_eq!(second.queued, Moment::at(1_332_052_600));
    assert_eq!(first.device, second.device);
    assert_eq!(trace.facts.devices[third.device as usize].name, "hm_0");
    assert_eq!(trace.facts.devices[first.device as usize].name, "hm_1");
    // The first trace of hm began in the afternoon of 22 February 2007.
    assert_eq!(trace.facts.started_unix_ns, Some(1_172_163_600_306_162_900));
}

#[test]
fn systor_may_lack_a_response() {
    let trace = read(samples::SYSTOR).unwrap();
    let [first, second] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!(first.completed, Moment::at(1_234_000));
    assert_eq!((second.queued, second.completed), (Moment::at(499_000), Moment::NEVER));
    assert_eq!((second.sector, second.bytes), (1, 8192));
    assert_eq!((trace.tally.ios, trace.tally.incomplete), (2, 1));
}

#[test]
fn alibaba_counts_in_microseconds() {
    let trace = read(samples::ALIBABA).unwrap();
    assert_eq!(trace.ios[1].queued, Moment::at(10_000));
    assert_eq!(trace.ios[1].bytes, 360_448);
    assert_eq!(trace.facts.devices[1].name, "725");
}

#[test]
fn iologs_of_both_versions() {
    let two = read(samples::IOLOG_2).unwrap();
    let kinds: Vec<_> = two.ios.iter().map(|io| (io.operation, io.queued, io.sector)).collect();
    assert_eq!(
        kinds,
        [
            (Operation::Write, Moment::at(0), 0),
            (Operation::Read, Moment::at(250_000), 16),
            (Operation::Flush, Moment::at(250_000), 0),
            (Operation::Discard, Moment::at(250_000), 8),
        ]
    );
    let three = read(samples::IOLOG_3).unwrap();
    let kinds: Vec<_> = three.ios.iter().map(|io| (io.operation, io.queued, io.bytes)).collect();
    assert_eq!(
        kinds,
        [
            (Operation::Read, Moment::at(0), 4096),
            (Operation::Write, Moment::at(15_000), 8192),
            (Operation::Flush, Moment::at(19_000), 0),
        ]
    );
}

#[test]
fn blkreplay_begins_behind_its_heading() {
    let trace = read(samples::BLKREPLAY).unwrap();
    let [first, second] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((first.sector, first.bytes, first.completed), (37_766_853, 32_768, Moment::NEVER));
    assert_eq!(second.issued, Moment::at(450_518_165));
    assert_eq!(second.completed, Moment::at(452_518_165));
}

#[test]
fn blkparse_is_paired() {
    let trace = read(samples::BLKPARSE).unwrap();
    assert_eq!(trace.warnings.count, 0, "{:?}", trace.warnings);
    let [first, merged, behind, front] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!(trace.names.text(first.command), "kj [our] nald");
    assert_eq!(trace.names.text(merged.command), "dd");
    assert_eq!((first.processor, merged.processor), (0, 1));
    // The trace begins with its first event of an I/O.
    assert_eq!((first.queued, first.issued), (Moment::at(0), Moment::at(3000)));
    assert_eq!((merged.merged, merged.completed), (Moment::at(900), Moment::at(8500)));
    assert_eq!((behind.sector, behind.bytes, behind.error), (192, 65_536, 5));
    assert_eq!((front.sector, front.flags), (64, Flags::SYNC));
    assert_eq!(front.queued, Moment::at(9500));
    assert_eq!(trace.tally.unmatched, 0);
}

#[test]
fn wrong_lines_are_skipped_with_their_number() {
    let text = samples::MSR.replace("hm,1,Write", "hm,1,Wrote");
    let trace = read(text).unwrap();
    assert_eq!(trace.ios.len(), 2);
    assert_eq!(trace.warnings.first[0].to_string(), "trace:2: neither Read nor Write");
}

#[test]
fn a_file_of_wrong_lines_is_an_error() {
    let error = read("fio version 3 iolog\nyesterday f read 0 1\n").unwrap_err();
    assert_eq!(error.to_string(), "trace:2: no line can be read; the first: the time is no number");
}

#[test]
fn unknown_and_empty_files_are_named() {
    let error = read("[job]\nrw=read\n").unwrap_err();
    assert_eq!(error.to_string(), "trace: no reader knows this format");
    assert_eq!(read("").unwrap_err().to_string(), "trace: the file is empty");
}

#[test]
fn compressed_files_are_read_as_they_are() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(samples::MSR.as_bytes()).unwrap();
    assert_eq!(read(gzip.finish().unwrap()).unwrap().ios.len(), 3);
    let zstd = zstd::bulk::compress(samples::MSR.as_bytes(), 1).unwrap();
    assert_eq!(read(zstd).unwrap().ios.len(), 3);
}
