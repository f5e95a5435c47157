//! The contract of everything that keeps state of control groups: what a group gets depends on its
//! settings and its I/O, not on its number, on the order in which groups came to exist, or on the way
//! in which a setting was given.

use std::collections::VecDeque;
use std::sync::Arc;

use blksim::block::cgroup::GivenGroups;
use blksim::block::queue_facts::QueueFacts;
use blksim::core::record::Direction;
use blksim::elevator::ALL;
use blksim::elevator::registered::{RequestFacts, SchedulerCode, register};
use blksim::live::LiveSimulation;
use blksim::live::change::Change;
use blksim::live::planned::PlannedChanges;
use blksim::simulate::{Outcome, Setup};

use crate::support::{cost_table, given, groups, job, run, setup};

const MS: u64 = 1_000_000;
const GROUPS: [&str; 4] = ["a", "b", "c", "a/d"];
/// Orders in which the groups come to exist; a parent is made with its child.
const ORDERS: [[usize; 4]; 6] =
    [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [1, 2, 0, 3], [2, 0, 1, 3]];

/// Jobs in all groups: direct and buffered, some that begin late.
const LOADS: [(&str, &str); 3] = [
    (
        "direct",
        "[a]\nrw=randrw\niodepth=16\ncgroup=a\n[b]\nrw=randread\niodepth=8\ncgroup=b\n\
         [c]\nrw=write\niodepth=8\niodepth_batch=4\ncgroup=c\n[d]\nrw=randread\niodepth=4\ncgroup=a/d\n\
         [root]\nrw=randread\niodepth=2\n",
    ),
    (
        "late",
        "[a]\nrw=randread\niodepth=8\nstartdelay=20ms\ncgroup=a\n[b]\nrw=randread\niodepth=8\ncgroup=b\n\
         [c]\nrw=read\niodepth=4\nstartdelay=50ms\ncgroup=c\n[d]\nrw=randrw\niodepth=4\nstartdelay=35ms\n\
         cgroup=a/d\n",
    ),
    (
        "buffered",
        "[a]\ndirect=0\nrw=write\nbs=64k\nend_fsync=1\ncgroup=a\n[b]\ndirect=0\nrw=randwrite\nbs=6k\nfsync=20\n\
         ioengine=psync\ncgroup=b\n[c]\ndirect=0\nrw=read\nbs=64k\nioengine=psync\ncgroup=c\n\
         [d]\nrw=randread\niodepth=4\ncgroup=a/d\n",
    ),
];

/// Settings for schedulers, then those of policies.
fn settings() -> Vec<(&'static str, GivenGroups)> {
    let weights = [
        ("a", "io.bfq.weight", "100"),
        ("b", "io.bfq.weight", "400"),
        ("c", "io.bfq.weight", "800"),
        ("a/d", "io.bfq.weight", "50"),
        ("b", "io.weight", "400"),
        ("c", "io.weight", "800"),
        ("a/d", "io.weight", "50"),
    ];
    let limits = [("a", "io.max", "rbps=20m wiops=900"), ("a/d", "io.max", "riops=1500")];
    let mut costly = weights.to_vec();
    costly.push(("/", "io.cost.qos", "enable=1 rpct=95 rlat=5000 wpct=95 wlat=5000"));
    vec![
        ("weights", groups(&weights)),
        ("io.cost", groups(&costly)),
        ("io.max", groups(&[limits[0], limits[1], ("c", "io.max", "wbps=10m")])),
        (
            "io.latency",
            groups(&[("b", "io.latency", "target=300"), ("c", "io.latency", "target=9000")]),
        ),
    ]
}

/// A run in which the groups come to exist in this order: first come jobs that name them, and do an I/O
/// long after the others have ended.
fn ordered(
    scheduler: &str,
    device: &str,
    load: &str,
    order: &[usize],
    cgroups: &GivenGroups,
) -> Setup {
    let mut jobs = "[global]\nioengine=libaio\ndirect=1\nsize=32m\nnumber_ios=300\n".to_owned();
    for group in order {
        let name = GROUPS[*group];
        jobs += "[first-";
        jobs += &group.to_string();
        jobs += "]\nrw=randread\nnumber_ios=1\nstartdelay=200s\niodepth=1\ncgroup=";
        jobs += name;
        jobs += "\n";
    }
    let mut setup = setup(device, scheduler, &(jobs + load));
    setup.cgroups.clone_from(cgroups);
    setup.machine = given(&[("memory", "64m")]);
    setup.limits.simulated_ns = 1_000_000 * MS;
    setup
}

/// The measurements of the jobs of the load.
fn measured(outcome: &Outcome) -> Vec<u64> {
    let mut words = Vec::new();
    for job in outcome.jobs.iter().filter(|job| !job.name.starts_with("first-")) {
        for direction in Direction::ALL {
            let record = job.direction(direction);
            words.extend([record.ios(), record.bytes, record.latency.sum_ns()]);
            words.extend(record.latency.bins().flat_map(|(ns, count)| [ns, count]));
        }
    }
    words
}

/// Serves the heaviest group first, in order of arrival.
#[derive(Debug, Clone, Default)]
struct HeaviestFirst(VecDeque<RequestFacts>);

impl SchedulerCode for HeaviestFirst {
    fn insert(&mut self, _now_ns: u64, request: RequestFacts) -> Result<(), String> {
        self.0.push_back(request);
        Ok(())
    }

    fn dispatch(&mut self, _now_ns: u64) -> Result<Option<u64>, String> {
        let heaviest = self.0.iter().map(|request| request.weight).max();
        let place = self.0.iter().position(|request| Some(request.weight) == heaviest);
        Ok(place.and_then(|place| self.0.remove(place)).map(|request| request.number))
    }

    fn completed(&mut self, _now_ns: u64, _number: u64) -> Result<(), String> {
        Ok(())
    }

    fn timer(&mut self, _now_ns: u64) -> Result<(), String> {
        Ok(())
    }

    fn take_timer_ns(&mut self) -> Option<u64> {
        None
    }

    fn copy(&self) -> Result<Box<dyn SchedulerCode>, String> {
        Ok(Box::new(self.clone()))
    }
}

/// All schedulers, and one that a program registers.
fn schedulers() -> Vec<&'static str> {
    let begin = |_: QueueFacts| -> Result<Box<dyn SchedulerCode>, String> {
        Ok(Box::new(HeaviestFirst::default()))
    };
    register("heaviest-first", "of a test", Arc::new(begin)).unwrap();
    ALL.iter().map(|info| info.name).chain(["heaviest-first"]).collect()
}

#[test]
fn the_order_in_which_groups_come_to_exist_changes_nothing() {
    for scheduler in schedulers() {
        for (settings, cgroups) in settings() {
            for (number, (load, jobs)) in LOADS.iter().enumerate() {
                // Each load meets a disk and a drive, and processors.
                let device = if number == 2 { "ssd-sata" } else { "hdd-7200" };
                for cpus in [0, 2] {
                    let mut first: Option<Vec<u64>> = None;
                    for order in ORDERS {
                        let mut setup = ordered(scheduler, device, jobs, &order, &cgroups);
                        setup.processors = (cpus > 0).then(|| cost_table(cpus));
                        let found = measured(&run(&setup));
                        let expected = first.get_or_insert_with(|| found.clone());
                        assert!(
                            *expected == found,
                            "{scheduler}, {load}, {settings}, {cpus} processors: {order:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Random readers with weights 100 and 800; `a` begins first.
fn two_groups(scheduler: &str, of_b: &str, cgroups: GivenGroups) -> Setup {
    let jobs = format!(
        "[global]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nsize=1g\nruntime=3\ntime_based\n\
         [a]\nstartdelay=1\ncgroup=a\n[b]\nstartdelay=1100ms\ncgroup=b\n{of_b}"
    );
    let mut setup = setup("ssd-sata", scheduler, &jobs);
    setup.tunables = if scheduler == "bfq" { given(&[("low_latency", "0")]) } else { Vec::new() };
    setup.cgroups = cgroups;
    setup
}

/// A group, its attribute, the value written.
type Written = (&'static str, &'static str, &'static str);

const CASES: [(&str, &[Written]); 3] =
    [("bfq", &[]), ("cfq", &[]), ("none", &[("/", "io.cost.qos", "enable=1")])];

#[test]
fn a_weight_is_the_same_whichever_way_it_was_given() {
    for (scheduler, others) in CASES {
        let with = |more: &[Written]| groups(&[others, more].concat());
        let by_job = measured(&run(&two_groups(scheduler, "cgroup_weight=800\n", with(&[]))));
        let heavy = [("b", "io.weight", "800"), ("b", "io.bfq.weight", "800")];
        let light = [("a", "io.weight", "100"), ("a", "io.bfq.weight", "100")];
        let none = [("z", "io.weight", "300"), ("y/z", "io.max", "rbps=max")];
        for more in [
            heavy.to_vec(),
            [&heavy[..], &light[..]].concat(),
            [&light[..], &heavy[..]].concat(),
            [&none[..], &heavy[..]].concat(),
        ] {
            let outcome = run(&two_groups(scheduler, "", with(&more)));
            assert_eq!(by_job, measured(&outcome), "{scheduler}: {more:?}");
        }
        let unweighted = run(&two_groups(scheduler, "", with(&[])));
        assert_ne!(by_job, measured(&unweighted), "{scheduler}: the weight does something");
    }
}

#[test]
fn a_weight_that_was_changed_before_the_first_io_was_always_so() {
    for (scheduler, others) in CASES {
        let heavy = [("b", "io.weight", "800"), ("b", "io.bfq.weight", "800")];
        let from_start = run(&two_groups(scheduler, "", groups(&[others, &heavy].concat())));
        // Before any I/O, and after that of the other group.
        for at_ns in [500 * MS, 1050 * MS] {
            let changes = heavy.map(|(group, attribute, value)| {
                let change = Change::Group {
                    group: group.to_owned(),
                    attribute: attribute.to_owned(),
                    value: value.to_owned(),
                };
                (at_ns, change)
            });
            let planned = PlannedChanges { changes: changes.to_vec(), ..PlannedChanges::default() };
            let setup = two_groups(scheduler, "", groups(others));
            let mut live = LiveSimulation::planned(&setup, &planned).unwrap();
            live.advance(u64::MAX).unwrap();
            let what = format!("{scheduler}, {at_ns} ns");
            assert_eq!(measured(&from_start), measured(&live.outcome()), "{what}");
        }
    }
}

#[test]
fn the_heavier_group_gets_its_share_although_it_has_the_lower_number_and_comes_last() {
    // `b` has the lower number; `a` does I/O first.
    let jobs = "[global]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=16\nsize=1g\nruntime=10\ntime_based\n\
                [b]\nstartdelay=10ms\ncgroup=b\n[a]\ncgroup=a\n";
    let mut setup = setup("hdd-7200", "bfq", jobs);
    setup.tunables = given(&[("low_latency", "0")]);
    setup.cgroups = groups(&[("b", "io.bfq.weight", "800")]);
    let outcome = run(&setup);
    // Weights share service; the heavier one's requests are also nearer to each other.
    let ratio = job(&outcome, "b").iops() / job(&outcome, "a").iops();
    assert!((7.0..14.0).contains(&ratio), "{ratio}");
}

#[test]
fn buffered_writes_of_a_group_may_be_its_first_io() {
    for scheduler in schedulers() {
        let jobs = "[w]\nrw=write\nbs=64k\nsize=16m\ncgroup=a/b\n[r]\nrw=randread\ndirect=1\nruntime=40\ntime_based\n\
                    thinktime=100ms\nsize=16m\n";
        let outcome = run(&setup("hdd-7200", scheduler, jobs));
        let read = job(&outcome, "r").ios();
        assert!(read > 0 && outcome.requests > read, "{scheduler}: the flusher wrote nothing");
    }
}
