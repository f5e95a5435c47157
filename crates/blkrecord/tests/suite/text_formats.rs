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

#[test]
fn a_trace_of_issues_and_completions_begins_with_its_issues() {
    let trace = read(samples::BLKPARSE_ISSUES).unwrap();
    assert_eq!(trace.warnings.count, 0, "commands that are passed through: {:?}", trace.warnings);
    let [first, second] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((first.queued, first.issued), (Moment::at(0), Moment::at(0)));
    assert_eq!(first.completed, Moment::at(300_000));
    assert_eq!((second.sector, second.bytes), (4096, 4096));
    assert_eq!(trace.names.text(second.command), "app");
    assert_eq!(trace.tally.unmatched, 0);
    assert!(trace.facts.missing.iter().any(|text| text == blkrecord::facts::NO_QUEUEING));
    let queued = read(samples::BLKPARSE).unwrap();
    assert!(!queued.facts.missing.iter().any(|text| text == blkrecord::facts::NO_QUEUEING));
}

#[test]
fn completions_alone_are_counted() {
    let lines = samples::BLKPARSE_ISSUES.lines().filter(|line| line.contains(" C "));
    let trace = read(lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!((trace.ios.len(), trace.tally.unmatched), (0, 2));
}

#[test]
fn biosnoop_ends_with_the_completion() {
    let trace = read(samples::BIOSNOOP).unwrap();
    let [tar, sync, flush] = trace.ios[..] else { panic!("{trace:?}") };
    // The second was queued first: 0.55 ms before 0.1 ms, the first 0.26 ms before 0.
    assert_eq!((sync.queued, sync.issued), (Moment::at(0), Moment::at(200_000)));
    assert_eq!(sync.completed, Moment::at(550_000));
    assert_eq!((tar.queued, tar.completed), (Moment::at(190_000), Moment::at(450_000)));
    assert_eq!((tar.sector, tar.bytes, tar.tgid), (2048, 4096, 1234));
    assert_eq!(trace.names.text(sync.command), "my [p] rog");
    assert_eq!((sync.operation, sync.flags), (Operation::Write, Flags::SYNC));
    assert_eq!((flush.sector, flush.bytes), (0, 0));
    assert_eq!(trace.facts.devices[1].name, "sda");
    assert!(!trace.facts.missing.iter().any(|text| text == blkrecord::facts::NO_QUEUEING));
    let without = samples::BIOSNOOP.replace("QUE(ms) ", "").replace("0.01    0.25", "0.25");
    let trace = read(without.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!((trace.ios[0].queued, trace.ios[0].issued), (Moment::at(0), Moment::at(0)));
    assert!(trace.facts.missing.iter().any(|text| text == blkrecord::facts::NO_QUEUEING));
}

#[test]
fn iosnoop_needs_times() {
    let trace = read(samples::IOSNOOP).unwrap();
    let [first, second] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((first.queued, first.completed), (Moment::at(0), Moment::at(618_000)));
    assert_eq!((second.queued, second.flags), (Moment::at(362_000), Flags::META));
    assert_eq!(trace.names.text(second.command), "kworker/0:1");
    let without = "COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                   supervise    1809   W    202,1    17039600     4096       0.62\n";
    let error = read(without).unwrap_err().to_string();
    assert!(error.contains("iosnoop -ts prints them"), "{error}");
}

#[test]
fn perf_events_are_paired() {
    let trace = read(samples::PERF).unwrap();
    let [io] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((io.queued, io.issued), (Moment::at(0), Moment::at(2000)));
    assert_eq!((io.completed, io.bytes, io.tid), (Moment::at(250_000), 8192, 1200));
    assert_eq!((io.flags, io.processor), (Flags::SYNC, 1));
    assert_eq!(trace.names.text(io.command), "dd");
    let ftrace = "dd-1200 [001] d..1. 12.000003: block_rq_issue: 8,0 R 4096 () 8 + 8 [dd]\n\
                  <idle>-0 [000] d.h1. 12.000013: block_rq_complete: 8,0 R () 8 + 8 [0]\n";
    let trace = read(ftrace).unwrap();
    let [io] = trace.ios[..] else { panic!("{trace:?}") };
    assert_eq!((io.issued, io.completed), (Moment::at(0), Moment::at(10_000)));
    assert_eq!(io.tid, 1200);
    assert!(trace.facts.missing.iter().any(|text| text == blkrecord::facts::NO_QUEUEING));
}

#[test]
fn traces_of_storage_arrays_and_clouds() {
    let spc = read(samples::SPC).unwrap();
    assert_eq!((spc.ios[0].operation, spc.ios[0].sector), (Operation::Write, 20_941_264));
    assert_eq!((spc.ios[1].queued, spc.ios[1].bytes), (Moment::at(2_335_000), 4096));
    let tencent = read(samples::TENCENT).unwrap();
    assert_eq!((tencent.ios[0].operation, tencent.ios[0].bytes), (Operation::Read, 65_536));
    assert_eq!((tencent.ios[1].queued, tencent.ios[1].device), (Moment::at(1_000_000_000), 1));
    assert_eq!(tencent.facts.started_unix_ns, Some(1_538_323_200_000_000_000));
    let thesios = read(samples::THESIOS).unwrap();
    let [first, last] = thesios.ios[..] else { panic!("a read from the cache: {thesios:?}") };
    assert_eq!((first.bytes, first.completed), (1_052_672, Moment::at(12_500_000)));
    assert_eq!((last.sector, last.bytes, last.queued), (1, 8192, Moment::at(500_000_000)));
    assert_eq!(last.completed, Moment::at(500_010_000));
    assert_eq!(thesios.names.text(last.command), "app two");
}

#[test]
fn both_versions_of_vscsi_records() {
    let one = read(samples::cloudphysics(1)).unwrap();
    let [first, second] = one.ios[..] else { panic!("{one:?}") };
    assert_eq!((first.sector, first.bytes, first.completed), (2048, 4096, Moment::NEVER));
    assert_eq!((second.operation, second.queued), (Operation::Write, Moment::at(150_000)));
    let two = read(samples::cloudphysics(2)).unwrap();
    assert_eq!((two.ios[1].bytes, two.ios[1].completed), (65_536, Moment::at(850_000)));
    let mut cut = samples::cloudphysics(2);
    cut.truncate(79);
    let cut = read(cut).unwrap();
    assert_eq!((cut.ios.len(), cut.warnings.count), (1, 1));
}
