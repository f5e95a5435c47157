//! The contract of schedulers and devices, checked for every pair of them.

use crate::support::{
    Auditor, PROFILES, SCHEDULERS, cost_table, fingerprint, fixed, given, run, setup,
};
use blksim::core::record::Direction;
use blksim::devices::KINDS;
use blksim::elevator::scheduler::Family;
use blksim::elevator::{ALL, info};
use blksim::simulate::{Simulation, simulate_with};

const DEVICES: [&str; 6] = ["fixed", "hdd-7200", "loop", "nvme-tlc", "ssd-sata", "virtual"];

/// Loads that between them take every path: merging, sorting, plugging,
/// splitting, priorities, page cache, flushes, waiting for tags.
const LOADS: &[(&str, &str)] = &[
    ("random", "[a]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=64\nnumber_ios=3000\nsize=1g\n"),
    (
        "sequential",
        "[a]\nrw=rw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=64\niodepth_batch=16\nnumber_ios=4000\nsize=64m\n",
    ),
    (
        "large",
        "[a]\nrw=write\nbs=64k\ndirect=1\nioengine=libaio\niodepth=64\niodepth_batch=16\nsize=64m\n",
    ),
    ("split", "[a]\nrw=randrw\nbs=4m\ndirect=1\nnumjobs=3\nnumber_ios=30\nsize=256m\n"),
    (
        "classes",
        "[global]\ndirect=1\nioengine=libaio\niodepth=16\nnumber_ios=500\nsize=64m\nrw=randrw\n\
         [rt]\nprioclass=1\n[be]\nprio=0\n[low]\nprio=7\n[idle]\nprioclass=3\n",
    ),
    (
        "buffered",
        "[r]\nrw=read\nbs=64k\nsize=32m\n[rr]\nrw=randread\nsize=32m\nnumber_ios=200\n\
         [w]\nrw=randwrite\nbs=6k\nsize=16m\nfsync=20\nnumber_ios=200\n[s]\nrw=write\nsync=1\nnumber_ios=50\nsize=1m\n",
    ),
    (
        "durable",
        "[log]\nrw=write\nbs=8k\nfdatasync=1\nnumber_ios=100\nsize=8m\n\
         [other]\nrw=randwrite\ndirect=1\nsync=1\nnumber_ios=100\nsize=8m\n",
    ),
];

/// Every scheduler there is: a new one is covered as soon as it is listed.
fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|info| info.name)
}

#[test]
fn every_request_completes_exactly_once_on_every_pair() {
    for device in DEVICES {
        for scheduler in names() {
            for (load, jobs) in LOADS {
                let what = format!("{scheduler} on {device}, {load}");
                let auditor = Auditor::default();
                let outcome =
                    simulate_with(&setup(device, scheduler, jobs), vec![Box::new(auditor.clone())])
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                auditor.verify(&outcome, &what);
                assert_eq!(auditor.nr_under_way(), 0, "{what}");
                assert!(outcome.device_busy_ns <= outcome.simulated_ns, "{what}");
            }
        }
    }
}

/// Levels of arrays with their numbers of members.
const ARRAYS: [(&str, &str); 5] = [("0", "2"), ("0", "4"), ("1", "3"), ("10", "4"), ("5", "4")];

#[test]
fn every_request_of_every_member_completes_exactly_once_in_arrays() {
    for device in ["fixed", "hdd-7200", "ssd-sata"] {
        for scheduler in names() {
            for (index, (load, jobs)) in LOADS.iter().enumerate() {
                // Every level meets every scheduler, and every load every level.
                let (level, members) = ARRAYS[(index + scheduler.len()) % ARRAYS.len()];
                let what = format!("{scheduler} on RAID {level} of {members} {device}, {load}");
                let mut setup = setup(device, scheduler, jobs);
                for (name, value) in [("raid", level), ("members", members), ("chunk", "64k")] {
                    setup.profile.set(name, value).unwrap();
                }
                // One auditor for all members: request numbers are the machine's.
                let auditor = Auditor::default();
                let mut simulation =
                    Simulation::with_policies(&setup, |_| vec![Box::new(auditor.clone())])
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                simulation.advance(u64::MAX).unwrap_or_else(|error| panic!("{what}: {error}"));
                let outcome = simulation.outcome();
                auditor.verify(&outcome, &what);
                assert_eq!(auditor.nr_under_way(), 0, "{what}");
                let alone = run(&setup);
                assert_eq!(
                    fingerprint(&outcome),
                    fingerprint(&alone),
                    "{what}: being watched matters"
                );
            }
        }
    }
}

#[test]
fn every_request_completes_exactly_once_where_computing_takes_time() {
    for device in DEVICES {
        for scheduler in names() {
            for (load, jobs) in LOADS {
                for cpus in [1, 3] {
                    let what = format!("{scheduler} on {device}, {load}, {cpus} processors");
                    let auditor = Auditor::default();
                    let mut setup = setup(device, scheduler, jobs);
                    setup.processors = Some(cost_table(cpus));
                    let outcome = simulate_with(&setup, vec![Box::new(auditor.clone())])
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    auditor.verify(&outcome, &what);
                    assert_eq!(auditor.nr_under_way(), 0, "{what}");
                    let processors = outcome.processors.unwrap();
                    assert_eq!(processors.busy_ns.len(), cpus as usize);
                    for busy_ns in processors.busy_ns {
                        assert!(busy_ns <= outcome.simulated_ns, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn jobs_do_exactly_what_they_were_told() {
    for device in DEVICES {
        for scheduler in names() {
            let jobs = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=777\nnumjobs=3\nbs=8k\nsize=64m\n";
            let outcome = run(&setup(device, scheduler, jobs));
            let reads = outcome.jobs[0].direction(Direction::Read);
            assert_eq!(
                (reads.ios(), reads.bytes),
                (777 * 3, 777 * 3 * 8192),
                "{scheduler} on {device}"
            );
            assert_eq!(reads.latency.count(), 777 * 3);
        }
    }
}

#[test]
fn few_tags_suffice() {
    for device in DEVICES {
        for scheduler in names() {
            let legacy = info(scheduler).is_some_and(|info| info.family == Family::Legacy);
            let least = if legacy { "4" } else { "1" };
            for (load, jobs) in LOADS {
                let what = format!("{scheduler} on {device}, {load}");
                let mut setup = setup(device, scheduler, jobs);
                setup.queue = given(&[("nr_requests", least)]);
                let auditor = Auditor::default();
                let outcome = simulate_with(&setup, vec![Box::new(auditor.clone())])
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                auditor.verify(&outcome, &what);
                assert_eq!(auditor.nr_under_way(), 0, "{what}");
            }
        }
    }
}

#[test]
fn a_policy_that_lets_everything_pass_changes_nothing() {
    for scheduler in names() {
        for (load, jobs) in LOADS {
            let setup = setup("hdd-7200", scheduler, jobs);
            let watched = simulate_with(&setup, vec![Box::new(Auditor::default())]).unwrap();
            assert_eq!(fingerprint(&watched), fingerprint(&run(&setup)), "{scheduler}, {load}");
        }
    }
}

#[test]
fn the_device_is_kept_busy_while_there_is_work() {
    for scheduler in SCHEDULERS {
        let jobs = "[a]\nrw=randrw\ndirect=1\nnumjobs=64\nruntime=1\ntime_based\n";
        let outcome = run(&fixed(&[("latency", "100us"), ("depth", "8")], scheduler, jobs));
        let iops = outcome.jobs[0].iops();
        assert!((iops / 80_000.0 - 1.0).abs() < 0.001, "{scheduler}: {iops}");
    }
}

/// A bio that touches the end of a full request and the start of another one joins neither: the
/// kernel finds the full one, has it refuse, and looks no further.
#[test]
fn a_full_request_keeps_a_bio_from_the_one_behind_it() {
    // While reads occupy the device, the fourth block is written, and then the first three, of
    // which two fill a request.
    let jobs = "[global]\nfilename=same\ndirect=1\nbs=4k\n\
        [busy]\nrw=randread\nioengine=libaio\niodepth=4\nnumber_ios=4\noffset=1g\nsize=1g\n\
        [fourth]\nrw=write\noffset=12k\nsize=4k\n\
        [three]\nrw=write\nioengine=libaio\niodepth=3\nsize=12k\n";
    for scheduler in ["deadline", "mq-deadline", "bfq"] {
        let mut setup = fixed(&[("depth", "1"), ("latency", "10ms")], scheduler, jobs);
        setup.queue = given(&[("nr_requests", "64"), ("max_sectors_kb", "8")]);
        let outcome = run(&setup);
        assert_eq!((outcome.merges, outcome.requests), (1, 7), "{scheduler}");
    }
}

#[test]
fn adjacent_requests_merge_where_the_scheduler_merges() {
    let jobs = "[a]\nrw=write\nbs=4k\ndirect=1\nioengine=libaio\niodepth=64\nsize=4m\n";
    for (scheduler, merges) in
        [("none", false), ("noop", true), ("deadline", true), ("mq-deadline", true)]
    {
        let mut setup = fixed(&[("depth", "1")], scheduler, jobs);
        if scheduler == "mq-deadline" {
            // By default it has two tags here: one request is in the device and one is
            // about to be, so that none waits for another.
            setup.queue = given(&[("nr_requests", "64")]);
        }
        let outcome = run(&setup);
        assert_eq!(outcome.merges > 0, merges, "{scheduler}: {}", outcome.merges);
        let mut never = fixed(&[("depth", "1")], scheduler, jobs);
        never.queue = given(&[("nomerges", "2")]);
        assert_eq!(run(&never).merges, 0, "{scheduler}");
    }
}

#[test]
fn everything_listed_is_covered() {
    for (index, name) in names().enumerate() {
        assert!(names().skip(index + 1).all(|other| other != name), "{name} is listed twice");
    }
    // A RAM disk schedules nothing; its own tests cover it.
    for kind in KINDS.iter().filter(|kind| kind.name != "ramdisk") {
        assert!(
            DEVICES.iter().any(|device| crate::support::profile(device).kind.name == kind.name)
        );
    }
    let directory = format!("{}/../../devices", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".toml") {
            assert!(PROFILES.contains(&stem), "{name} is not covered by the conformance suite");
        }
    }
}
