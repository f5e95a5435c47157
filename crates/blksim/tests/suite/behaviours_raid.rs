//! Arrays: closed forms of each level on devices of constant latency, and a
//! reader beside writers on a disk with a write cache.

use crate::support::{fixed, given, job, profile, run, setup};
use blksim::block::raid::check;
use blksim::core::record::Direction;
use blksim::simulate::Outcome;

/// Small random I/Os a second from many at a time; members do 1000 a second each.
fn array(level: &str, members: &str, mode: &str, bytes: &str, depth: u32) -> Outcome {
    let jobs = format!(
        "[a]\nrw={mode}\nbs={bytes}\ndirect=1\nioengine=libaio\niodepth={depth}\nruntime=4\ntime_based\n"
    );
    let device = [
        ("latency", "1ms"),
        ("depth", "1"),
        ("raid", level),
        ("members", members),
        ("chunk", "64k"),
    ];
    let mut setup = fixed(&device, "mq-deadline", &jobs);
    // A task that sleeps for a tag of one member leaves the others idle.
    setup.queue = given(&[("nr_requests", "128")]);
    setup.tunables = given(&[("async_depth", "128")]);
    run(&setup)
}

fn near(outcome: &Outcome, expected: f64, what: &str) {
    let iops = outcome.jobs[0].iops();
    assert!((iops / expected - 1.0).abs() < 0.06, "{what}: {iops}, not {expected}");
}

#[test]
fn a_member_of_its_own_kind_holds_up_the_array() {
    let rate = |member: &str| {
        let jobs = "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nruntime=4\ntime_based\n";
        let device = [("latency", "1ms"), ("depth", "1"), ("raid", "0"), (member, "4ms")];
        run(&fixed(&device, "none", jobs)).jobs[0].iops()
    };
    // I/Os pile up on the slow member, and each of the four does no more than it: 250 a second.
    let with_slow = [0, 3].map(|member| rate(&format!("member{member}.latency")));
    assert!(with_slow.iter().all(|rate| (950.0..1150.0).contains(rate)), "{with_slow:?}");
}

#[test]
fn parameters_of_a_member_are_checked() {
    let cases = [
        ("member32.latency", "1ms", "from 0 to 31"),
        ("memberx.latency", "1ms", "from 0 to 31"),
        ("member0.speed", "1ms", "speed"),
        ("member0.latency", "soon", "soon"),
        ("member0.capacity", "1g", "same for all members"),
    ];
    for (name, text, part) in cases {
        let error = profile("fixed").set(name, text).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(name));
        assert!(error.message.contains(part), "{error}");
    }
    for (members, field) in [("2", "member2.latency"), ("4", "")] {
        let mut profile = profile("fixed");
        for (name, value) in [("raid", "0"), ("members", members), ("member2.latency", "1ms")] {
            profile.set(name, value).unwrap();
        }
        let error = check(&profile).err().and_then(|error| error.field);
        assert_eq!(error.unwrap_or_default(), field);
    }
}

#[test]
fn small_random_ios_scale_as_the_level_says() {
    near(&array("0", "4", "randread", "4k", 64), 4000.0, "RAID 0 reads");
    near(&array("0", "4", "randwrite", "4k", 64), 4000.0, "RAID 0 writes");
    near(&array("1", "2", "randread", "4k", 64), 2000.0, "RAID 1 reads");
    near(&array("1", "2", "randwrite", "4k", 64), 1000.0, "RAID 1 writes go to both");
    near(&array("10", "4", "randread", "4k", 64), 4000.0, "RAID 10 reads");
    near(&array("10", "4", "randwrite", "4k", 64), 2000.0, "RAID 10 writes");
    near(&array("5", "4", "randread", "4k", 64), 4000.0, "RAID 5 reads");
    near(&array("5", "4", "randwrite", "4k", 64), 1000.0, "RAID 5: four accesses for a write");
}

#[test]
fn a_write_of_a_whole_stripe_reads_nothing() {
    // Four members, three of data: 192 KiB are three chunks and their parity.
    let outcome = array("5", "4", "write", "192k", 1);
    near(&outcome, 1000.0, "full stripes");
}

#[test]
fn capacity_follows_the_level() {
    let size = |level: &str| {
        let mut profile = profile("fixed");
        for (name, value) in [("raid", level), ("members", "4"), ("capacity", "1g")] {
            profile.set(name, value).unwrap();
        }
        check(&profile).unwrap().capacity_bytes >> 30
    };
    assert_eq!(["none", "0", "1", "10", "5"].map(size), [1, 4, 1, 2, 3]);
}

#[test]
fn impossible_arrays_are_refused() {
    for (level, members, chunk) in [("10", "3", "64k"), ("5", "2", "64k"), ("0", "2", "12k")] {
        let mut profile = profile("fixed");
        for (name, value) in [("raid", level), ("members", members), ("chunk", chunk)] {
            profile.set(name, value).unwrap();
        }
        let error = check(&profile).unwrap_err();
        assert!(matches!(error.field.as_deref(), Some("members" | "chunk")), "{error}");
    }
}

#[test]
fn all_that_is_buffered_or_durable_works_on_arrays() {
    let jobs = "[r]\nrw=read\nbs=64k\nsize=16m\n[w]\nrw=randwrite\nbs=6k\nsize=16m\nfsync=20\nnumber_ios=200\n\
        [s]\nrw=randwrite\ndirect=1\nsync=1\nnumber_ios=50\nsize=8m\n";
    for (level, members) in [("0", "3"), ("1", "2"), ("10", "4"), ("5", "5")] {
        for scheduler in ["none", "deadline", "mq-deadline"] {
            let mut setup = setup("hdd-7200", scheduler, jobs);
            setup.profile.set("raid", level).unwrap();
            setup.profile.set("members", members).unwrap();
            let outcome = run(&setup);
            assert_eq!(job(&outcome, "s").direction(Direction::Write).ios(), 50, "{level}");
            assert!(outcome.flushes > 0);
        }
    }
}

#[test]
fn a_disk_full_of_cached_writes_still_reads() {
    // Cached data and commands take turns at the arm: a read waits for one
    // piece of cached data, not for the end of a stream of writes.
    let path = format!("{}/../../workloads/reader-beside-writers.fio", env!("CARGO_MANIFEST_DIR"));
    let jobs = std::fs::read_to_string(path).unwrap();
    for scheduler in ["deadline", "mq-deadline"] {
        let outcome = run(&setup("hdd-7200", scheduler, &jobs));
        let reads = job(&outcome, "reader").direction(Direction::Read);
        assert!(reads.ios() > 50, "{scheduler}: {}", reads.ios());
    }
}
