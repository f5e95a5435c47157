//! Known behaviours of the anticipatory scheduler, each with its reason.

use crate::support::{fingerprint, fixed, given, job, run, setup};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup};

/// A disk whose cache does not help, so that only the order of requests counts.
fn bare_disk(scheduler: &str, jobs: &str) -> Setup {
    let mut setup = setup("hdd-7200", scheduler, jobs);
    setup.profile.set("cache_segments", "0").unwrap();
    setup
}

fn readers(numjobs: u32) -> String {
    format!("[a]\nrw=read\nbs=128k\ndirect=1\nsize=1g\nnumjobs={numjobs}\nruntime=5\ntime_based\n")
}

fn total(outcome: &Outcome) -> f64 {
    outcome.jobs.iter().map(blksim::core::record::JobRecord::bytes_per_second).sum()
}

#[test]
fn two_sequential_readers_come_near_one() {
    // After each read the disk waits for the same reader's next, which comes
    // at once and is nearer than the other reader's. Deadline goes back and
    // forth instead.
    let one = total(&run(&bare_disk("anticipatory", &readers(1))));
    let two = total(&run(&bare_disk("anticipatory", &readers(2))));
    let deadline = total(&run(&bare_disk("deadline", &readers(2))));
    assert!(two > 0.9 * one, "{two} against {one}");
    assert!(deadline < 0.6 * one, "{deadline} against {one}");
}

#[test]
fn without_anticipation_it_seeks_as_deadline_does() {
    let mut setup = bare_disk("anticipatory", &readers(2));
    let waiting = total(&run(&setup));
    setup.tunables = given(&[("antic_expire", "0")]);
    let hasty = total(&run(&setup));
    assert!(hasty < 0.6 * waiting, "{hasty} against {waiting}");
}

#[test]
fn a_reader_keeps_most_of_the_disk_beside_a_buffered_writer() {
    // A read batch may take 500 ms, a write batch 125 ms; both are sorted. The disk itself takes turns
    // between commands and emptying its write cache, which costs the reader a part of its batches.
    let jobs = "[global]\nruntime=20\ntime_based\n[r]\nrw=read\nbs=128k\ndirect=1\nsize=1g\n\
        [w]\nrw=randwrite\nbs=64k\nsize=1g\n";
    let share = |scheduler: &str| {
        let mut beside = bare_disk(scheduler, jobs);
        beside.machine = given(&[("memory", "256m")]);
        job(&run(&beside), "r").bytes_per_second()
    };
    let alone = total(&run(&bare_disk("anticipatory", &readers(1))));
    let (anticipatory, deadline) = (share("anticipatory"), share("deadline"));
    assert!(anticipatory > 0.55 * alone, "{anticipatory} of {alone}");
    assert!(anticipatory > 3.0 * deadline, "{anticipatory} against {deadline}");
}

#[test]
fn batches_share_the_disk_by_time() {
    // With both sides always waiting, reads have 500 ms and writes 125 ms; the
    // quota of a write batch adapts, by one request a batch, until it takes its
    // time. Requests take a millisecond each, so time is counted in requests.
    let jobs = "[global]\nioengine=libaio\nramp_time=100\nruntime=200\ntime_based\n\
        [r]\nrw=randread\ndirect=1\niodepth=32\n[w]\nrw=randwrite\nbs=4k\n";
    let mut both =
        fixed(&[("latency", "1ms"), ("depth", "1"), ("capacity", "1g")], "anticipatory", jobs);
    both.machine = given(&[("memory", "64m")]);
    let outcome = run(&both);
    let reads = job(&outcome, "r").direction(Direction::Read).ios() as f64;
    let share = reads / 200_000.0;
    assert!((share - 0.8).abs() < 0.03, "{share}");
}

#[test]
fn a_reader_that_thinks_too_long_is_not_waited_for() {
    // Beside a random reader with think time above antic_expire, the other
    // gets the disk at once; below it, the disk waits in each of its gaps.
    let rate = |think: &str| {
        let jobs = format!(
            "[global]\nrw=randread\ndirect=1\nsize=1g\nruntime=20\ntime_based\n\
             [busy]\n[thinks]\nthinktime={think}\n"
        );
        job(
            &run(&fixed(
                &[("latency", "1ms"), ("depth", "1"), ("rotational", "1")],
                "anticipatory",
                &jobs,
            )),
            "busy",
        )
        .iops()
    };
    let (short, long) = (rate("4ms"), rate("15ms"));
    // 15 ms of thinking: 1 ms of 16 at most is the thinker's.
    assert!(long > 900.0, "{long}");
    assert!(short < 850.0, "{short}");
}

#[test]
fn priorities_make_no_difference() {
    // To the last bit: nothing in the scheduler looks at them.
    let jobs = "[global]\nrw=randread\ndirect=1\nsize=1g\nruntime=5\ntime_based\n[a]\nprio=0\n[b]\nprio=7\n";
    let depth = [("latency", "1ms"), ("depth", "1")];
    let first = run(&fixed(&depth, "anticipatory", jobs));
    let exchanged = jobs.replace("prio=0", "prio=x").replace("prio=7", "prio=0");
    let second = run(&fixed(&depth, "anticipatory", &exchanged.replace("prio=x", "prio=7")));
    assert_eq!(fingerprint(&first), fingerprint(&second));
}

#[test]
fn sequential_readers_are_served_one_at_a_time() {
    // Waiting for one task's next request leaves a deep device idle: that is
    // why the scheduler does badly with command queueing and with arrays.
    let jobs = "[a]\nrw=read\ndirect=1\nsize=1g\nnumjobs=32\nruntime=2\ntime_based\n";
    let depth = [("latency", "1ms"), ("depth", "32")];
    let waits = run(&fixed(&depth, "anticipatory", jobs)).jobs[0].iops();
    let keeps_busy = run(&fixed(&depth, "deadline", jobs)).jobs[0].iops();
    assert!(waits < 0.2 * keeps_busy, "{waits} against {keeps_busy}");
}
