//! Known behaviours of cfq, each with its reason. Requests of the device
//! `fixed` all take a millisecond, so a share of requests is a share of time.

use crate::support::{fixed, given, job, run, setup};
use blksim::core::record::{Direction, JobRecord};
use blksim::simulate::{Outcome, Setup};

const BOTH: [&str; 2] = ["cfq", "cfq-2.6.32"];
const DISK: [(&str, &str); 3] = [("latency", "1ms"), ("depth", "1"), ("rotational", "1")];

/// Sequential readers, one for each level, that always have requests waiting.
fn readers(levels: &[u8]) -> String {
    let global = "[global]\nrw=read\ndirect=1\nsize=1g\nioengine=libaio\niodepth=4\nruntime=120\ntime_based\n";
    let section = |(index, level): (usize, &u8)| {
        ["[r", &index.to_string(), "]\nprio=", &level.to_string(), "\n"].concat()
    };
    std::iter::once(global.to_owned()).chain(levels.iter().enumerate().map(section)).collect()
}

fn shares(outcome: &Outcome) -> Vec<f64> {
    let ios = |job: &JobRecord| {
        (job.direction(Direction::Read).ios() + job.direction(Direction::Write).ios()) as f64
    };
    let total: f64 = outcome.jobs.iter().map(ios).sum();
    outcome.jobs.iter().map(|job| ios(job) / total).collect()
}

fn assert_near(shares: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let fits = shares.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(fits, "{what}: {shares:.3?}, not {expected:?}");
}

/// A setup whose requests do not merge, so that each takes a millisecond.
fn slices(scheduler: &str, jobs: &str) -> Setup {
    let mut setup = fixed(&DISK, scheduler, jobs);
    setup.queue = given(&[("nomerges", "2")]);
    setup
}

#[test]
fn two_queues_share_the_disk_as_their_slices() {
    // Slices of 180, 100 and 40 ms at levels 0, 4 and 7. With two queues the
    // turns alternate whatever the keys are, so only the slices count.
    for scheduler in BOTH {
        for (levels, ratio) in [([0, 7], 4.5), ([0, 4], 1.8), ([4, 4], 1.0)] {
            let shares = shares(&run(&slices(scheduler, &readers(&levels))));
            let seen = shares[0] / shares[1];
            assert!((seen / ratio - 1.0).abs() < 0.05, "{scheduler} {levels:?}: {seen}");
        }
    }
}

#[test]
fn readers_that_ask_one_by_one_get_the_same_shares() {
    // Each leaves its queue empty whenever a request is under way; the disk
    // waits for the next, so the slice continues.
    for scheduler in BOTH {
        let jobs = readers(&[0, 7]).replace("iodepth=4", "iodepth=1");
        let shares = shares(&run(&slices(scheduler, &jobs)));
        let seen = shares[0] / shares[1];
        assert!((seen / 4.5 - 1.0).abs() < 0.05, "{scheduler}: {seen}");
    }
}

#[test]
fn with_a_third_queue_low_levels_skip_rounds() {
    // A key lies (n - 1) x (180 ms - own slice) in the future: with three
    // queues level 7 is set back by more than a round of the others.
    let shares = shares(&run(&slices("cfq", &readers(&[0, 0, 7]))));
    assert_near(&shares, &[0.466, 0.465, 0.069], 0.01, "0, 0, 7");
}

#[test]
fn eight_levels_spread_as_the_keys_say() {
    let jobs = readers(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let with = shares(&run(&slices("cfq", &jobs)));
    assert_near(&[with[0], with[7]], &[0.47, 0.013], 0.02, "low_latency");
    let mut plain = slices("cfq", &jobs);
    plain.tunables = given(&[("low_latency", "0")]);
    let without = shares(&run(&plain));
    assert_near(&[without[0], without[7]], &[0.25, 0.027], 0.02, "no low_latency");
    for shares in [with, without] {
        assert!(shares.is_sorted_by(|a, b| a > b), "{shares:.3?}");
    }
}

/// A disk without caches, so that only the order of requests counts.
fn bare_disk(scheduler: &str, jobs: &str) -> Setup {
    let mut setup = setup("hdd-7200", scheduler, jobs);
    setup.profile.set("cache_segments", "0").unwrap();
    setup.profile.set("write_cache_sectors", "0").unwrap();
    setup
}

fn total(outcome: &Outcome) -> f64 {
    outcome.jobs.iter().map(JobRecord::bytes_per_second).sum()
}

fn sequential(numjobs: u32) -> String {
    format!("[a]\nrw=read\nbs=128k\ndirect=1\nsize=1g\nnumjobs={numjobs}\nruntime=10\ntime_based\n")
}

#[test]
fn sequential_readers_come_near_one() {
    // The disk idles for the reader whose slice it is, and seeks to another
    // only when the slice is over. Deadline goes back and forth.
    for scheduler in BOTH {
        let one = total(&run(&bare_disk(scheduler, &sequential(1))));
        for numjobs in [2, 4] {
            let several = total(&run(&bare_disk(scheduler, &sequential(numjobs))));
            assert!(several > 0.9 * one, "{scheduler}, {numjobs}: {several} against {one}");
        }
        let deadline = total(&run(&bare_disk("deadline", &sequential(2))));
        assert!(deadline < 0.6 * one, "{deadline} against {one}");
        let mut hasty = bare_disk(scheduler, &sequential(2));
        hasty.tunables = given(&[("slice_idle", "0")]);
        let hasty = total(&run(&hasty));
        assert!(hasty < 0.6 * one, "{scheduler} without idling: {hasty} against {one}");
    }
}

#[test]
fn levels_share_a_disk_by_time_too() {
    let jobs = "[global]\nrw=read\ndirect=1\nsize=1g\nruntime=20\ntime_based\nbs=128k\n[high]\nprio=0\n[low]\nprio=7\n";
    for scheduler in BOTH {
        let outcome = run(&bare_disk(scheduler, jobs));
        // Each turn begins with a seek, which costs the short slices more.
        let ratio = job(&outcome, "high").iops() / job(&outcome, "low").iops();
        assert!((4.2..5.0).contains(&ratio), "{scheduler}: {ratio}");
    }
}

#[test]
fn a_reader_and_a_direct_writer_get_equal_time() {
    // A direct write is sync and idled for, like a read.
    let jobs = "[global]\nbs=128k\ndirect=1\nsize=1g\nruntime=20\ntime_based\n[r]\nrw=read\n[w]\nrw=write\n";
    for scheduler in BOTH {
        for setup in [bare_disk(scheduler, jobs), fixed(&DISK, scheduler, jobs)] {
            let outcome = run(&setup);
            let ratio = job(&outcome, "r").iops() / job(&outcome, "w").iops();
            assert!((ratio - 1.0).abs() < 0.05, "{scheduler}: {ratio}");
        }
    }
}

/// A reader that asks one by one beside a buffered writer.
const BESIDE_BUFFERED: &str = "[global]\nruntime=20\ntime_based\nbs=4k\nsize=1g\n\
    [r]\nrw=read\ndirect=1\n[w]\nrw=randwrite\n";

#[test]
fn buffered_writers_starve_behind_a_reader() {
    // A sync request preempts an async queue, no async request goes while a
    // sync one is in the device, and the disk idles between the reader's.
    let beside = |scheduler: &str| {
        let mut setup = fixed(&DISK, scheduler, BESIDE_BUFFERED);
        setup.machine = given(&[("memory", "64m")]);
        job(&run(&setup), "r").iops()
    };
    for scheduler in BOTH {
        let reads = beside(scheduler);
        assert!(reads > 950.0, "{scheduler}: {reads} of 1000");
    }
    assert!(beside("deadline") < 200.0);
}

#[test]
fn priorities_of_buffered_writers_make_no_difference() {
    // The flusher submits for both, into the shared queue of its own level 4.
    let jobs = "[global]\nruntime=20\ntime_based\nrw=randwrite\nbs=4k\nsize=1g\n[high]\nprio=0\n[low]\nprio=7\n";
    for scheduler in BOTH {
        let mut setup = setup("hdd-7200", scheduler, jobs);
        setup.machine = given(&[("memory", "1g")]);
        let outcome = run(&setup);
        let ratio = job(&outcome, "high").iops() / job(&outcome, "low").iops();
        assert!((ratio - 1.0).abs() < 0.05, "{scheduler}: {ratio}");
    }
}

#[test]
fn the_idle_class_gets_next_to_nothing() {
    for scheduler in BOTH {
        let jobs = "[global]\nrw=read\ndirect=1\nsize=1g\nruntime=20\ntime_based\nioengine=libaio\niodepth=4\n\
            [be]\n[idle]\nprioclass=3\n";
        let outcome = run(&slices(scheduler, jobs));
        let idle = job(&outcome, "idle").direction(Direction::Read).ios();
        // What it has queued when the other ends, and no more.
        assert!(idle <= 4, "{scheduler}: {idle} requests");
        // A reader that asks one by one leaves a gap when its slice ends.
        let gaps = jobs.replace("iodepth=4", "iodepth=1");
        let shares = shares(&run(&slices(scheduler, &gaps)));
        assert!(shares[1] < 0.02, "{scheduler}: {shares:?}");
        // Alone, it has the whole disk.
        let alone = "[idle]\nprioclass=3\nrw=read\ndirect=1\nsize=1g\nruntime=2\ntime_based\n";
        assert!(run(&fixed(&DISK, scheduler, alone)).jobs[0].iops() > 990.0);
    }
}

#[test]
fn real_time_goes_strictly_before_best_effort() {
    let jobs = "[global]\nrw=randread\ndirect=1\nsize=1g\nruntime=20\ntime_based\nioengine=libaio\niodepth=4\n\
        [rt]\nprioclass=1\n[be]\nprio=0\n";
    for scheduler in BOTH {
        let outcome = run(&slices(scheduler, jobs));
        let best_effort = job(&outcome, "be").direction(Direction::Read).ios();
        assert!(best_effort <= 8, "{scheduler}: {best_effort} requests");
    }
}

#[test]
fn random_readers_share_one_turn() {
    // 4.16 idles only for the last of them, so a device that queues commands
    // is kept full. 2.6.32 idles for each of them.
    let jobs = "[a]\nrw=randread\ndirect=1\nsize=1g\nnumjobs=8\nruntime=20\ntime_based\n";
    let deep = [("latency", "1ms"), ("depth", "32"), ("rotational", "1")];
    let iops = |scheduler| run(&fixed(&deep, scheduler, jobs)).jobs[0].iops();
    assert!(iops("cfq") > 0.95 * 8000.0, "{}", iops("cfq"));
    assert!(iops("cfq-2.6.32") < 1100.0, "{}", iops("cfq-2.6.32"));
    let disk = |scheduler| run(&bare_disk(scheduler, jobs)).jobs[0].iops();
    let (cfq, old, deadline) = (disk("cfq"), disk("cfq-2.6.32"), disk("deadline"));
    assert!(cfq > 0.9 * deadline, "{cfq} against {deadline}");
    assert!(old < 0.6 * deadline, "{old} against {deadline}");
}

#[test]
fn a_writer_that_syncs_loses_the_disk_to_a_reader() {
    // Nobody idles for the write of an fsync.
    let jobs = "[global]\nsize=1g\nruntime=10\ntime_based\n[log]\nrw=write\nfdatasync=1\n";
    let reader = "[r]\nrw=read\nbs=128k\ndirect=1\n";
    for scheduler in BOTH {
        let alone = job(&run(&setup("hdd-7200", scheduler, jobs)), "log").iops();
        let beside = run(&setup("hdd-7200", scheduler, &format!("{jobs}{reader}")));
        let beside = job(&beside, "log").iops();
        assert!(beside < 0.3 * alone, "{scheduler}: {beside} against {alone}");
    }
}

#[test]
fn low_latency_bounds_the_wait_of_many_readers() {
    // Slices shrink so that all have a turn in target_latency, 300 ms; without
    // it, eight slices of 100 ms follow each other.
    let jobs = readers(&[4; 8]);
    let worst_ms = |low_latency: &str| {
        let mut setup = slices("cfq", &jobs);
        setup.tunables = given(&[("low_latency", low_latency)]);
        let outcome = run(&setup);
        let worst = |job: &JobRecord| job.direction(Direction::Read).latency.max_ns();
        outcome.jobs.iter().map(worst).max().unwrap() / 1_000_000
    };
    let (with, without) = (worst_ms("1"), worst_ms("0"));
    assert!((250..450).contains(&with), "{with} ms");
    assert!((700..1000).contains(&without), "{without} ms");
}

#[test]
fn a_drive_without_seeks_is_not_idled_on() {
    // 4.16 sets slice_idle to 0 when it meets such a device. 2.6.32 has no
    // such rule, takes one queue at a time and at most 4 x quantum of it.
    let jobs = "[a]\nrw=randread\ndirect=1\nnumjobs=32\nruntime=1\ntime_based\n";
    let new = run(&setup("ssd-sata", "cfq", jobs));
    assert_eq!((new.tunables.get("slice_idle"), new.tunables.get("slice_idle_us")), (0, 0));
    assert_eq!(new.tunables.get("group_idle"), 8);
    let (new, old) =
        (new.jobs[0].iops(), run(&setup("ssd-sata", "cfq-2.6.32", jobs)).jobs[0].iops());
    let deadline = run(&setup("ssd-sata", "deadline", jobs)).jobs[0].iops();
    assert!(new > 0.95 * deadline, "{new} against {deadline}");
    assert!(old < 0.3 * deadline, "{old} against {deadline}");
    let deep = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nruntime=0.1\ntime_based\n";
    assert_eq!(run(&setup("nvme-tlc", "cfq", deep)).peak_in_flight, 32);
    assert_eq!(run(&setup("nvme-tlc", "cfq-2.6.32", deep)).peak_in_flight, 16);
}

#[test]
fn quantum_bounds_a_queue_beside_others() {
    // 4.16 goes down to half of it when the requests in the device, at
    // slice_idle each, may outlast the slice.
    let jobs = "[global]\nrw=read\ndirect=1\nsize=1g\nioengine=libaio\niodepth=32\nruntime=1\ntime_based\n[a]\n[b]\n";
    let deep = [("latency", "1ms"), ("depth", "32"), ("rotational", "1")];
    for (scheduler, quantum, peak) in [("cfq", "8", 8), ("cfq", "4", 4), ("cfq-2.6.32", "4", 4)] {
        let mut setup = fixed(&deep, scheduler, jobs);
        setup.queue = given(&[("nomerges", "2")]);
        setup.tunables = given(&[("quantum", quantum)]);
        let outcome = run(&setup);
        // Before the second arrives, and after the first has ended, there is one queue.
        let reads = total(&outcome) / 4096.0;
        let most = 1000.0 * f64::from(peak);
        assert!(reads < 1.1 * most && reads > 0.6 * most, "{scheduler}, {quantum}: {reads}");
    }
}
