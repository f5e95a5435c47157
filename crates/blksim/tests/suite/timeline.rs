//! The inside view: complete, in order, and without influence on what it shows.

use crate::support::{PROFILES, SCHEDULERS, fingerprint, run, setup};
use blksim::core::error::{Error, ErrorKind};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup, Simulation};
use blksim::timeline::{IoRow, NO_HEAD, NO_JOB, RequestRow, Timeline, flag};

/// Direct and buffered work, merging, fsync and ramp time.
const JOBS: &str = "[a]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=16\nnumber_ios=400\nsize=64m\n\
    [b]\nrw=write\nfdatasync=8\nnumber_ios=64\nbs=16k\nsize=8m\n\
    [c]\nrw=read\nbs=64k\nsize=4m\n[d]\nrw=write\nbs=1m\nsize=32m\n";

fn recorded(setup: &Setup, slice: u64) -> (Outcome, Timeline) {
    let mut simulation = Simulation::new(setup, Vec::new()).unwrap();
    simulation.record(1 << 30);
    while !simulation.advance(slice).unwrap() {}
    (simulation.outcome(), simulation.take_timeline().unwrap())
}

#[test]
fn every_request_leaves_a_row_and_nothing_changes_by_being_watched() {
    for device in PROFILES {
        for scheduler in SCHEDULERS {
            let case = format!("{scheduler} on {device}");
            let setup = setup(device, scheduler, JOBS);
            let (outcome, timeline) = recorded(&setup, u64::MAX);
            assert_eq!(fingerprint(&outcome), fingerprint(&run(&setup)), "{case}");
            let is_merged = |row: &RequestRow| row.flags & flag::MERGED != 0;
            let merged = RequestRow::all(&timeline.requests).filter(is_merged).count() as u64;
            let total = RequestRow::all(&timeline.requests).count() as u64;
            // The run ends with the jobs; background writeback may still be in the device.
            let in_device = outcome.requests - (total - merged);
            assert!(in_device <= u64::from(outcome.peak_in_flight), "{case}: {in_device}");
            assert!(merged <= outcome.merges, "{case}");
            let mut last_ns = 0;
            for row in RequestRow::all(&timeline.requests) {
                assert!(row.arrive_ns <= row.insert_ns, "{case}: {row:?}");
                assert!(row.insert_ns <= row.dispatch_ns, "{case}: {row:?}");
                assert!(row.dispatch_ns < row.complete_ns, "{case}: {row:?}");
                assert!(row.complete_ns >= last_ns, "{case}: rows are in order of completion");
                last_ns = row.complete_ns;
                assert!(row.in_flight >= 1 && row.in_flight <= outcome.peak_in_flight, "{case}");
                let has_head = ["hdd-7200", "sas-15k"].contains(&device);
                assert_eq!(row.head_complete != NO_HEAD, has_head, "{case}");
                assert!(row.job == NO_JOB || usize::from(row.job) < outcome.jobs.len());
            }
        }
    }
}

#[test]
fn ios_are_those_of_the_jobs() {
    let jobs = "[a]\nrw=randread\ndirect=1\ntime_based\nruntime=300ms\nramp_time=100ms\n[b]\nrw=write\n\
        size=1m\nfsync=16\n";
    let (outcome, timeline) = recorded(&setup("hdd-7200", "mq-deadline", jobs), u64::MAX);
    for (index, job) in outcome.jobs.iter().enumerate() {
        for direction in Direction::ALL {
            let of = |row: &IoRow| {
                usize::from(row.job) == index
                    && row.direction == direction as u8
                    && row.measured == 1
            };
            let rows: Vec<_> = IoRow::all(&timeline.ios).filter(of).collect();
            let record = job.direction(direction);
            assert_eq!(rows.len() as u64, record.ios(), "{} {}", job.name, direction.name());
            let sum_ns: u64 = rows.iter().map(|row| row.end_ns - row.start_ns).sum();
            assert_eq!(sum_ns, record.latency.sum_ns());
            let bytes: u64 = rows.iter().map(|row| u64::from(row.bytes)).sum();
            assert_eq!(bytes, record.bytes);
        }
    }
    assert!(IoRow::all(&timeline.ios).any(|row| row.measured == 0), "ramp time is recorded too");
}

#[test]
fn a_disk_shows_where_its_head_is() {
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=50\n";
    let (_, timeline) = recorded(&setup("hdd-7200", "none", jobs), u64::MAX);
    let rows: Vec<_> = RequestRow::all(&timeline.requests).collect();
    for (before, row) in rows.iter().zip(&rows[1..]) {
        assert_eq!(row.head_dispatch, before.head_complete, "it rests where it was");
        assert_eq!(
            row.head_complete,
            row.sector + u64::from(row.sectors),
            "then it passed the data"
        );
    }
}

#[test]
fn a_run_in_slices_is_the_same_run() {
    let setup = setup("hdd-7200", "mq-deadline", JOBS);
    let whole = recorded(&setup, u64::MAX);
    for slice in [1, 7, 1000] {
        let (outcome, timeline) = recorded(&setup, slice);
        assert_eq!(fingerprint(&outcome), fingerprint(&whole.0), "{slice}");
        assert_eq!(timeline, whole.1, "{slice}");
    }
}

#[test]
fn a_timeline_that_outgrows_its_limit_is_a_typed_error() {
    let mut simulation =
        Simulation::new(&setup("nvme-tlc", "none", JOBS), Vec::new()).expect("the jobs are valid");
    simulation.record(10_000);
    let error = loop {
        match simulation.advance(100) {
            Ok(false) => {}
            Ok(true) => panic!("the limit was not enforced"),
            Err(error) => break error,
        }
    };
    let Error::Simulation(error) = error else { panic!("{error}") };
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::Limit, Some("timeline_bytes")));
}
