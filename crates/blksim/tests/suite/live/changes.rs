//! Changes of a running simulation.

use super::{Bits, LOADS, MS, bits_of, in_one_go, policies, run_of};
use crate::support::{Auditor, fingerprint, given, groups, setup};
use blksim::block::cgroup::GivenGroups;
use blksim::core::params::{Param, Unit};
use blksim::core::record::Direction;
use blksim::core::rng::Stream;
use blksim::elevator::scheduler::{Family, Info};
use blksim::elevator::{ALL, info};
use blksim::live::LiveSimulation;
use blksim::live::change::Change;
use blksim::simulate::{Setup, Simulation};
use blksim::switchback::{Slot, Switchback};
use blksim::task::slots::SlotTimes;
use blksim::timeline::Timeline;

const FREEZE_NS: u64 = 300_000;
const DEVICES: [(&str, u64); 4] =
    [("fixed", MS), ("hdd-7200", 60 * MS), ("nvme-tlc", MS), ("ssd-sata+cpus", 4 * MS)];

fn begin(setup: &Setup) -> LiveSimulation {
    let mut live = LiveSimulation::new(setup, Vec::new(), FREEZE_NS).unwrap();
    live.record(1 << 30);
    live
}

fn bits(mut live: LiveSimulation) -> Bits {
    assert!(live.advance(u64::MAX).unwrap());
    (fingerprint(&live.outcome()), live.take_timeline().unwrap())
}

fn switch(name: &str) -> Change {
    Change::Scheduler { name: name.to_owned(), tunables: Vec::new() }
}

fn tunable(name: &str, value: &str) -> Change {
    Change::Tunable { name: name.to_owned(), value: value.to_owned() }
}

fn queue(name: &str, value: &str) -> Change {
    Change::Queue { name: name.to_owned(), value: value.to_owned() }
}

fn priority(job: &str, class: u8, level: u8) -> Change {
    Change::Priority { job: job.to_owned(), class, level: Some(level) }
}

fn group(group: &str, attribute: &str, value: &str) -> Change {
    let [group, attribute, value] = [group, attribute, value].map(str::to_owned);
    Change::Group { group, attribute, value }
}

/// Another value of a tunable.
fn other_value(param: &Param, default: u64) -> String {
    match param.unit {
        Unit::Boolean => (1 - default).to_string(),
        _ if default == u64::from(u32::MAX) => 2000.to_string(),
        _ => (default / 4 + 3).clamp(param.min, param.max).to_string(),
    }
}

/// Changes of all kinds that a scheduler allows, one after the other.
fn barrage(info: &Info) -> Vec<Change> {
    let mut changes: Vec<_> = info
        .tunables
        .iter()
        .map(|param| tunable(param.name, &other_value(param, param.default)))
        .collect();
    changes.extend([
        group("a", "io.max", "riops=500 wbps=8m"),
        queue("nr_requests", if info.bypass { "3" } else { "9" }),
        group("b", "io.bfq.weight", "700"),
        group("a", "io.weight", "20"),
        queue("wbt_lat_usec", "900"),
        queue("nr_requests", if info.bypass { "7" } else { "300" }),
        group("b", "io.latency", "target=700"),
        queue("nomerges", "2"),
        group("a", "io.max", "riops=max"),
        group("/", "io.cost.qos", "enable=1 min=50 max=150"),
        group("b", "io.weight", "900"),
        queue("max_sectors_kb", "16"),
        group("/", "io.cost.model", "rrandiops=5000"),
        group("a", "io.latency", "target=90000"),
        queue("wbt_lat_usec", "0"),
        group("/", "io.cost.qos", "enable=0"),
        queue("nomerges", "0"),
        queue("rq_affinity", "2"),
    ]);
    let family = |other: &&&Info| other.family == info.family && other.name != info.name;
    changes.extend(ALL.iter().filter(family).map(|other| switch(other.name)));
    changes.push(switch(info.name));
    changes
}

/// Runs of every scheduler with changes of all kinds: some in each run, at odd times.
fn for_each_run(mut call: impl FnMut(&str, &Setup, &[(u64, Change)])) {
    let policies = policies();
    let mut stream = Stream::named(3, "changes");
    let mut turn = 0;
    for (device, mean_ns) in DEVICES {
        for info in ALL {
            let mut changes = barrage(info);
            let mut load = turn;
            while !changes.is_empty() {
                let (load_name, jobs) = LOADS[load % LOADS.len()];
                let (policy, cgroups) = &policies[turn % policies.len()];
                (load, turn) = (load + 1, turn + 1);
                if load_name == "flow" {
                    continue;
                }
                let job = ["r", "r", "", "a"][(load - 1) % LOADS.len()];
                let rest = changes.split_off(changes.len().min(9));
                let mut list = std::mem::replace(&mut changes, rest);
                list.insert(
                    list.len().min(3),
                    priority(job, 1 + (turn % 3) as u8, (turn % 8) as u8),
                );
                let mut cgroups: GivenGroups = cgroups.clone();
                // The groups of the changes exist in every run.
                if cgroups.is_empty() {
                    cgroups = groups(&[("a", "io.weight", "100"), ("b", "io.weight", "100")]);
                }
                for name in ["a", "b"] {
                    if !cgroups.iter().any(|(group, _)| group == name) {
                        cgroups.extend(groups(&[(name, "io.weight", "100")]));
                    }
                }
                let mut at_ns = 0;
                let list: Vec<_> = list
                    .into_iter()
                    .map(|change| {
                        at_ns += stream.below(mean_ns / 2) + 1;
                        (at_ns, change)
                    })
                    .collect();
                let what = format!("{} on {device}, {load_name}, {policy}: {list:?}", info.name);
                call(&what, &run_of(device, info.name, jobs, &cgroups), &list);
            }
        }
    }
}

#[test]
fn a_run_that_may_be_changed_is_as_any_other() {
    let policies = policies();
    let others = [("loop", 0), ("ramdisk", 0)];
    for (device, _) in DEVICES.into_iter().chain(others) {
        for (number, info) in ALL.iter().enumerate() {
            for (index, (load, jobs)) in LOADS.iter().enumerate() {
                if device == "ramdisk" && !info.bypass {
                    continue;
                }
                let (policy, cgroups) = &policies[(number + index) % policies.len()];
                let setup = run_of(device, info.name, jobs, cgroups);
                let what = format!("{} on {device}, {load}, {policy}", info.name);
                assert!(in_one_go(super::begin(&setup)) == bits(begin(&setup)), "{what}");
            }
        }
    }
}

#[test]
fn a_change_does_the_same_scheduled_and_by_hand_and_after_a_snapshot() {
    let mut stream = Stream::named(4, "by hand");
    let mut nr_made = 0;
    for_each_run(|what, setup, changes| {
        let mut scheduled = begin(setup);
        // In any order.
        for (at_ns, change) in changes.iter().rev() {
            if let Err(error) = scheduled.schedule(*at_ns, change.clone()) {
                panic!("{what}: {change:?}: {error}");
            }
        }
        let expected = bits(scheduled);
        let mut by_hand = begin(setup);
        let mut drained = Timeline::default();
        let mut ended = false;
        for (at_ns, change) in changes {
            while !ended && by_hand.now_ns() < *at_ns {
                let until_ns = by_hand.now_ns() + stream.below(*at_ns) + 1;
                ended = by_hand.advance_until(until_ns.min(*at_ns)).unwrap();
                if stream.below(3) == 0 {
                    by_hand = by_hand.clone();
                    std::hint::black_box(by_hand.view());
                }
            }
            if !ended {
                by_hand.apply(change).unwrap_or_else(|error| panic!("{what}: {error}"));
                nr_made += 1;
            }
        }
        by_hand.advance(u64::MAX).unwrap();
        let rows = by_hand.drain_timeline().unwrap();
        drained.requests.extend(rows.requests);
        drained.ios.extend(rows.ios);
        assert!((fingerprint(&by_hand.outcome()), drained) == expected, "{what}");
    });
    assert!(nr_made > 500, "most changes come before the end: {nr_made}");
}

#[test]
fn every_request_completes_exactly_once_while_things_change() {
    for_each_run(|what, setup, changes| {
        let auditor = Auditor::default();
        let policies: Vec<Box<dyn blksim::rqos::policy::Policy>> = vec![Box::new(auditor.clone())];
        let mut live = LiveSimulation::new(setup, policies, FREEZE_NS).unwrap();
        for (at_ns, change) in changes {
            live.schedule(*at_ns, change.clone()).unwrap();
        }
        live.advance(u64::MAX).unwrap_or_else(|error| panic!("{what}: {error}"));
        let seen = auditor.seen.lock().unwrap();
        assert!(seen.complaints.is_empty(), "{what}: {:?}", seen.complaints);
        assert_eq!(seen.submitted, seen.completed, "{what}");
    });
}

/// The turns of a switchback, and the same as changes.
fn turns(names: &[&str], first_ns: u64, slot_ns: u64) -> (Switchback, Vec<(u64, Change)>) {
    let starts = (0..).map(|number| first_ns + number * slot_ns);
    let slot = |(name, start_ns): (&&str, u64)| Slot {
        scheduler: (*name).to_owned(),
        tunables: Vec::new(),
        times: SlotTimes {
            start_ns,
            end_ns: start_ns + slot_ns,
            kept_from_ns: start_ns + slot_ns / 2,
            kept_to_ns: start_ns + slot_ns,
        },
    };
    let turns = Switchback {
        slots: names.iter().zip(starts.clone()).map(slot).collect(),
        window_ns: slot_ns,
        focus: Vec::new(),
        freeze_ns: FREEZE_NS,
    };
    (turns, starts.zip(names).map(|(at_ns, name)| (at_ns, switch(name))).collect())
}

#[test]
fn a_switch_is_that_of_a_switchback() {
    // With processors, a task gives way to an event that is due, and an edge of a slot is one.
    for (device, mean_ns) in DEVICES.into_iter().filter(|(device, _)| !device.ends_with("+cpus")) {
        for family in [Family::Legacy, Family::MultiQueue] {
            let names: Vec<_> =
                ALL.iter().filter(|info| info.family == family).map(|info| info.name).collect();
            for (number, (load, jobs)) in LOADS.iter().enumerate() {
                let setup = run_of(device, names[number], jobs, &Vec::new());
                // At a time at which nothing else happens: a switchback counts from its events.
                let (turns, changes) = turns(&names, 777_777, mean_ns + 1_234_567);
                let mut expected = super::begin(&setup);
                expected.take_turns(&setup, &turns).unwrap();
                expected.advance(u64::MAX).unwrap();
                let mut live = begin(&setup);
                for (at_ns, change) in changes {
                    live.schedule(at_ns, change).unwrap();
                }
                let what = format!("{} first on {device}, {load}", names[number]);
                let (expected, found) = (bits_of(&mut expected), bits(live));
                // The edges of slots are events of their own.
                assert!(expected.0[1..] == found.0[1..] && expected.1 == found.1, "{what}");
            }
        }
    }
}

/// Tunables from which a scheduler derives something when it starts, which a store does not touch:
/// anticipatory's quota, and bfq's first budgets.
const DERIVED: [(&str, &str); 2] =
    [("anticipatory", "write_batch_expire"), ("bfq", "timeout_sync")];

#[test]
fn a_tunable_stored_at_once_is_one_given_from_the_start() {
    let jobs = "[global]\nsize=64m\nioengine=libaio\n[r]\nrw=read\nbs=16k\niodepth=2\ndirect=1\nnumber_ios=300\n\
                [w]\nrw=randwrite\niodepth=40\ndirect=1\nnumber_ios=900\nprio=6\n[b]\nrw=randwrite\nnumber_ios=600\n\
                [i]\nrw=randread\nprioclass=3\ndirect=1\nnumber_ios=100\n[t]\nrw=randread\ndirect=1\nthinktime=3ms\nnumber_ios=60\n";
    let (mut nr_stored, mut nr_effects) = (0, 0);
    for info in ALL {
        for param in info.tunables {
            nr_stored += 1;
            let base = run_of("hdd-7200", info.name, jobs, &Vec::new());
            let value = other_value(param, param.default);
            let mut from_start = base.clone();
            from_start.tunables = given(&[(param.name, &value)]);
            let mut stored = begin(&base);
            stored.apply(&tunable(param.name, &value)).unwrap();
            let (expected, found) = (bits(begin(&from_start)), bits(stored));
            nr_effects += u32::from(found.1 != bits(begin(&base)).1);
            if !DERIVED.contains(&(info.name, param.name)) {
                assert!(expected.1 == found.1, "{} {}={value}", info.name, param.name);
            }
        }
    }
    assert!(2 * nr_effects > nr_stored, "{nr_effects} of {nr_stored} tunables have an effect");
}

#[test]
fn a_stored_tunable_shows_in_the_outcome() {
    let setup = setup("hdd-7200", "bfq", "[a]\nrw=randread\ndirect=1\nnumber_ios=30\n");
    let mut live = begin(&setup);
    live.advance_until(10 * MS).unwrap();
    live.apply(&tunable("slice_idle", "3")).unwrap();
    live.apply(&queue("nr_requests", "20")).unwrap();
    live.advance(u64::MAX).unwrap();
    let outcome = live.outcome();
    assert_eq!(outcome.tunables.get("slice_idle_us"), 3000);
    assert_eq!(outcome.queue.get("nr_requests"), 20);
    assert_eq!(live.view().disks[0].nr_requests, 20);
}

/// Bytes of each job in the second and in the fourth quarter of a run, with a change in the middle.
fn quarters(setup: &Setup, length_ns: u64, changes: &[Change]) -> Vec<[u64; 2]> {
    let mut live = begin(setup);
    let bytes = |live: &LiveSimulation| -> Vec<u64> {
        let jobs = live.view().jobs;
        jobs.iter().map(|job| job.read.bytes + job.write.bytes).collect()
    };
    let mut marks = Vec::new();
    for quarter in 1..=4 {
        assert!(!live.advance_until(length_ns / 4 * quarter - 1).unwrap());
        marks.push(bytes(&live));
        if quarter == 2 {
            for change in changes {
                live.apply(change).unwrap();
            }
        }
    }
    (0..marks[0].len())
        .map(|job| [marks[1][job] - marks[0][job], marks[3][job] - marks[2][job]])
        .collect()
}

/// Two jobs that compete for 20 s, in groups a and b.
const PAIR: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randread\ntime_based\nruntime=20s\nsize=1g\niodepth=8\n\
                    [a]\ncgroup=a\n[b]\ncgroup=b\noffset=2g\n";

fn ratio([a, b]: [u64; 2]) -> f64 {
    a as f64 / b.max(1) as f64
}

/// Shares a : b before and after a change.
fn shares(setup: &Setup, change: Change) -> (f64, f64) {
    let quarters = quarters(setup, 20_000 * MS, &[change]);
    let share = |quarter: usize| ratio([quarters[0][quarter], quarters[1][quarter]]);
    (share(0), share(1))
}

#[test]
fn weights_take_effect_while_it_runs() {
    for (scheduler, attribute, root) in
        [("bfq", "io.bfq.weight", ""), ("cfq", "io.weight", ""), ("none", "io.weight", "enable=1")]
    {
        let mut setup = setup("hdd-7200", scheduler, PAIR);
        setup.cgroups = groups(&[("a", attribute, "100"), ("b", attribute, "100")]);
        if !root.is_empty() {
            setup.cgroups.extend(groups(&[
                ("/", "io.cost.qos", root),
                ("/", "io.cost.model", "rrandiops=100"),
            ]));
        }
        if scheduler == "bfq" {
            setup.tunables = given(&[("low_latency", "0")]);
        }
        let (before, after) = shares(&setup, group("a", attribute, "400"));
        // As if it had been so from the start.
        setup.cgroups[0].1[0].1 = "400".to_owned();
        let (_, expected) = shares(&setup, queue("nomerges", "0"));
        assert!(expected > 2.0 * before, "{scheduler}: {before} {expected}");
        assert!((after / expected - 1.0).abs() < 0.15, "{scheduler}: {after}, {expected}");
    }
}

#[test]
fn priorities_take_effect_with_the_next_ios() {
    for scheduler in ["bfq", "cfq", "cfq-2.6.32"] {
        let mut setup = setup(
            "hdd-7200",
            scheduler,
            &PAIR.replace("rw=randread", "rw=read").replace("cgroup=", "description="),
        );
        if scheduler == "bfq" {
            setup.tunables = given(&[("low_latency", "0")]);
        }
        let (before, after) = shares(&setup, priority("a", 2, 0));
        assert!((0.8..1.25).contains(&before), "{scheduler}: {before}");
        assert!(after > 1.4, "{scheduler}: {after}");
        let (_, after) = shares(&setup, priority("a", 3, 7));
        assert!(after < 0.3, "{scheduler}: {after}");
    }
    let setup = setup("hdd-7200", "mq-deadline", &PAIR.replace("cgroup=", "description="));
    let (before, after) = shares(&setup, priority("a", 1, 4));
    assert!((0.8..1.25).contains(&before) && after > 5.0, "{before} {after}");
}

#[test]
fn limits_take_effect_while_it_runs_and_can_be_taken_away() {
    let mut setup = setup("ssd-sata", "none", PAIR);
    setup.cgroups = groups(&[("a", "io.weight", "100")]);
    let limit = group("a", "io.max", "rbps=4m");
    let limited = quarters(&setup, 20_000 * MS, std::slice::from_ref(&limit))[0];
    let per_second = limited[1] / 5;
    assert!(limited[0] > 20 * limited[1], "{limited:?}");
    assert!((3_900_000..4_500_000).contains(&per_second), "{per_second}");
    // Raised, lowered below what is queued, and gone.
    let raised =
        quarters(&setup, 20_000 * MS, &[limit.clone(), group("a", "io.max", "rbps=16m")])[0][1];
    assert!((15_900_000..17_500_000).contains(&(raised / 5)), "{raised}");
    let freed = quarters(&setup, 20_000 * MS, &[limit, group("a", "io.max", "rbps=max")])[0];
    assert!(freed[1] * 10 > freed[0] * 9, "{freed:?}");
}

#[test]
fn a_latency_target_holds_the_neighbour_back_once_it_is_set() {
    let jobs = PAIR
        .replace("iodepth=8\n", "")
        .replace("[a]\n", "[a]\niodepth=1\n")
        .replace("[b]\n", "[b]\niodepth=64\n");
    let setup = setup("ssd-sata", "none", &jobs);
    let quarters = quarters(&setup, 20_000 * MS, &[group("a", "io.latency", "target=150")]);
    assert!(quarters[0][1] > quarters[0][0] * 2, "{quarters:?}");
    assert!(quarters[1][1] < quarters[1][0] * 19 / 20, "{quarters:?}");
}

#[test]
fn a_queue_gets_deeper_and_flatter() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "deadline", "cfq"] {
        let setup = setup("ssd-sata", scheduler, &PAIR.replace("iodepth=8", "iodepth=200"));
        let mut live = begin(&setup);
        let most = |live: &mut LiveSimulation, from_ms: u64| {
            let used = (0..200).map(|step| {
                live.advance_until((from_ms + step) * MS).unwrap();
                live.view().disks[0].tags_used
            });
            used.max().unwrap()
        };
        let few = if scheduler == "none" { 4 } else { 10 };
        let many = if scheduler == "none" { 20 } else { 150 };
        let unlimited = most(&mut live, 100);
        live.apply(&queue("nr_requests", &few.to_string())).unwrap();
        live.advance_until(1_000 * MS).unwrap();
        let flat = most(&mut live, 1_000);
        live.apply(&queue("nr_requests", &many.to_string())).unwrap();
        live.advance_until(2_000 * MS).unwrap();
        let deep = most(&mut live, 2_000);
        // On the legacy path each of the two groups has a pool of its own, which a batch exceeds by up
        // to a half.
        let legacy = ["deadline", "cfq"].contains(&scheduler);
        let most_of = |limit: u32| if legacy { 2 * (limit * 3 / 2) } else { limit };
        assert!(unlimited > most_of(few), "{scheduler}: {unlimited}");
        assert!((few..=most_of(few)).contains(&flat), "{scheduler}: {flat}");
        assert!(deep > most_of(few) && deep <= most_of(many), "{scheduler}: {deep}");
    }
}

#[test]
fn the_wait_of_bfq_and_its_raising_end_when_they_are_turned_off() {
    let jobs = PAIR
        .replace("cgroup=", "description=")
        .replace("rw=randread", "rw=read")
        .replace("iodepth=8\n", "")
        .replace("[b]\n", "[b]\nstartdelay=1\n");
    let setup = setup("hdd-7200", "bfq", &jobs);
    let [a, b] =
        [0, 1].map(|job| quarters(&setup, 20_000 * MS, &[tunable("slice_idle", "0")])[job]);
    let (with, without) = (a[0] + b[0], a[1] + b[1]);
    assert!(with > 2 * without, "two sequential readers without idling: {with} {without}");
    let mut live = begin(&setup);
    live.advance_until(50 * MS).unwrap();
    let raised = |live: &LiveSimulation| live.view().disks[0].holding.get("raised_queues");
    assert_ne!(raised(&live), Some(0_u32.into()));
    live.apply(&tunable("low_latency", "0")).unwrap();
    live.advance_until(1_500 * MS).unwrap();
    assert_eq!(raised(&live), Some(0_u32.into()));
}

#[test]
fn what_linux_does_not_change_is_refused_and_changes_nothing() {
    let mut setup =
        setup("hdd-7200", "bfq", "[a]\nrw=randread\ndirect=1\nnumber_ios=200\ncgroup=a\n");
    setup.cgroups = groups(&[("a", "io.weight", "50")]);
    let expected = bits(begin(&setup));
    let mut live = begin(&setup);
    for (change, kind, text) in [
        (switch("cfq"), "unknown_scheduler", "no kernel has both"),
        (switch("bfg"), "unknown_scheduler", "is not simulated"),
        (tunable("slice_idles", "1"), "unknown_tunable", "did you mean slice_idle"),
        (tunable("slice_idle", "soon"), "out_of_range", "expected"),
        (queue("read_ahead_kb", "512"), "unchangeable", "from when it was opened"),
        (queue("nr_requests", "0"), "out_of_range", "between"),
        (queue("nr_request", "8"), "unknown_queue_attribute", "did you mean nr_requests"),
        (priority("b", 2, 0), "request", "there is no job"),
        (priority("a", 0, 0), "out_of_range", "class"),
        (priority("a", 2, 8), "out_of_range", "level"),
        (group("c", "io.weight", "10"), "request", "there is no control group"),
        (group("a", "io.weight", "0"), "out_of_range", "between"),
        (group("a", "ioband.weight", "10"), "unchangeable", "dm-ioband"),
        (group("/", "ioband.token", "10"), "unchangeable", "dm-ioband"),
    ] {
        for error in
            [live.apply(&change).unwrap_err(), live.schedule(5, change.clone()).unwrap_err()]
        {
            let blksim::core::error::Error::Simulation(error) = error else { panic!("{error}") };
            assert_eq!(error.kind.name(), kind, "{change:?}: {error}");
            assert!(error.message.contains(text), "{change:?}: {error}");
        }
    }
    let ram = begin(&crate::support::setup("ramdisk", "none", "[a]\nnumber_ios=9\n"));
    for change in [switch("mq-deadline"), queue("nr_requests", "8")] {
        let error = ram.clone().apply(&change).unwrap_err().to_string();
        assert!(error.contains("has no request queue"), "{error}");
    }
    // A tunable is checked against the scheduler that will be in force then.
    live.schedule(9, switch("kyber")).unwrap();
    assert!(live.schedule(10, tunable("slice_idle", "1")).is_err());
    assert!(live.schedule(8, tunable("slice_idle", "1")).is_ok());
    assert!(bits(begin(&setup)) == expected);
}

#[test]
fn members_of_an_array_change_together() {
    let mut setup = setup("ssd-sata", "mq-deadline", &PAIR.replace("runtime=20s", "runtime=2s"));
    for (name, value) in [("raid", "0"), ("members", "3"), ("chunk", "64k")] {
        setup.profile.set(name, value).unwrap();
    }
    let mut live = begin(&setup);
    live.advance_until(100 * MS).unwrap();
    for change in [switch("kyber"), tunable("read_lat_nsec", "100us"), queue("nr_requests", "5")] {
        live.apply(&change).unwrap();
    }
    live.advance_until(300 * MS).unwrap();
    let view = live.view();
    let disks: Vec<_> = view.disks.iter().map(|disk| (disk.scheduler, disk.nr_requests)).collect();
    assert_eq!(disks, [("kyber", 5); 3]);
    live.advance(u64::MAX).unwrap();
    assert!(live.outcome().jobs.iter().all(|job| job.direction(Direction::Read).ios() > 1000));
}

#[test]
fn a_simulation_without_the_gate_is_the_one_that_it_holds() {
    let setup = setup("fixed", "none", "[a]\nrw=randread\ndirect=1\nnumber_ios=50\n");
    let mut plain = Simulation::new(&setup, Vec::new()).unwrap();
    plain.advance(u64::MAX).unwrap();
    let live = bits(begin(&setup));
    assert_eq!(fingerprint(&plain.outcome()), live.0);
    assert!(info("none").is_some());
}
