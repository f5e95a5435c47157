//! Schedulers that take turns within one run: nothing is lost, and the slots add up to the run.

use crate::support::{Auditor, fingerprint, fixed, given, run, setup};
use blksim::core::record::{Direction, JobRecord};
use blksim::elevator::scheduler::Family;
use blksim::elevator::{ALL, info};
use blksim::simulate::{Outcome, Setup, Simulation};
use blksim::switchback::{Slot, SlotOutcome, Switchback};
use blksim::task::slots::SlotTimes;

const MILLISECOND: u64 = 1_000_000;
/// Slots of this length follow one another from this time on.
const SLOT_NS: u64 = 20 * MILLISECOND;
/// Slots on disks that drain slowly.
const LONG_SLOT_NS: u64 = 1_000 * MILLISECOND;
const FIRST_NS: u64 = 5 * MILLISECOND;
const FREEZE_NS: u64 = 2 * MILLISECOND;

/// Loads that between them pass the gate on every path: plugs, merges, splits, the page cache,
/// flushes, waiting for tags, several classes.
const LOADS: &[(&str, &str)] = &[
    ("random", "[a]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=64\nsize=1g\n"),
    (
        "sequential",
        "[a]\nrw=rw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=64\niodepth_batch=16\nsize=64m\n",
    ),
    ("split", "[a]\nrw=randrw\nbs=4m\ndirect=1\nnumjobs=3\nsize=256m\n"),
    (
        "classes",
        "[global]\ndirect=1\nioengine=libaio\niodepth=16\nsize=64m\nrw=randrw\n\
         [rt]\nprioclass=1\n[be]\nprio=0\n[idle]\nprioclass=3\n",
    ),
    (
        "buffered",
        "[r]\nrw=read\nbs=64k\nsize=32m\n[w]\nrw=randwrite\nbs=6k\nsize=16m\nfsync=20\n\
         [s]\nrw=write\nsync=1\nsize=1m\n[d]\nrw=randwrite\ndirect=1\nsync=1\nsize=8m\n",
    ),
];

/// Loads end by themselves after all slots.
fn timed(jobs: &str, slots: usize, slot_ns: u64) -> String {
    let end_ms = (FIRST_NS + slots as u64 * slot_ns) / MILLISECOND + 10;
    format!("[global]\ntime_based\nruntime={end_ms}ms\n{jobs}")
}

/// Turns of these schedulers, nothing cut off.
fn turns(schedulers: &[&str]) -> Switchback {
    turns_of(schedulers, SLOT_NS)
}

fn turns_of(schedulers: &[&str], slot_ns: u64) -> Switchback {
    let slot = |(index, name): (usize, &&str)| {
        let start_ns = FIRST_NS + index as u64 * slot_ns;
        let end_ns = start_ns + slot_ns;
        let times = SlotTimes { start_ns, end_ns, kept_from_ns: start_ns, kept_to_ns: end_ns };
        Slot { scheduler: (*name).to_owned(), tunables: Vec::new(), times }
    };
    Switchback {
        slots: schedulers.iter().enumerate().map(slot).collect(),
        window_ns: 5 * MILLISECOND,
        focus: Vec::new(),
        freeze_ns: FREEZE_NS,
    }
}

fn switched(setup: &Setup, turns: &Switchback, auditor: &Auditor) -> (Outcome, Vec<SlotOutcome>) {
    let mut simulation =
        Simulation::with_policies(setup, |_| vec![Box::new(auditor.clone())]).unwrap();
    simulation.take_turns(setup, turns).unwrap();
    simulation.advance(u64::MAX).unwrap_or_else(|error| panic!("{error}"));
    (simulation.outcome(), simulation.slots())
}

fn ios(record: &JobRecord) -> u64 {
    record.direction(Direction::Read).ios() + record.direction(Direction::Write).ios()
}

/// Every scheduler of a family after every other, and after itself.
fn pairs(family: Family) -> Vec<&'static str> {
    let names: Vec<_> = ALL.iter().filter(|i| i.family == family).map(|i| i.name).collect();
    let mut order = Vec::new();
    for (index, first) in names.iter().enumerate() {
        order.push(*first);
        for second in &names[index..] {
            order.extend([*second, *first]);
        }
    }
    order
}

#[test]
fn every_request_completes_exactly_once_while_schedulers_take_turns() {
    for family in [Family::Legacy, Family::MultiQueue] {
        let order = pairs(family);
        for device in ["fixed", "hdd-7200", "nvme-tlc", "ssd-sata"] {
            for (load, jobs) in LOADS {
                let what = format!("{family:?} on {device}, {load}");
                let slot_ns = if device == "hdd-7200" { LONG_SLOT_NS } else { SLOT_NS };
                let setup = setup(device, order[0], &timed(jobs, order.len(), slot_ns));
                let auditor = Auditor::default();
                let turns = turns_of(&order, slot_ns);
                let (outcome, slots) = switched(&setup, &turns, &auditor);
                let seen = auditor.seen.lock().unwrap();
                assert!(seen.complaints.is_empty(), "{what}: {:?}", seen.complaints.first());
                assert_eq!(seen.issued + outcome.flushes, outcome.requests, "{what}");
                assert!(slots.len() + 2 >= order.len(), "{what}: {} slots", slots.len());
                assert!(slots.iter().all(|slot| slot.switch_ns >= FREEZE_NS), "{what}");
                drop(seen);
                // Only writeback goes on when the jobs have ended.
                assert!(*load == "buffered" || auditor.nr_under_way() == 0, "{what}");
            }
        }
    }
}

#[test]
fn windows_count_the_jobs_in_focus() {
    let jobs = "[global]\ndirect=1\nsize=64m\n[a]\nrw=randread\n[b]\nrw=randwrite\nnumjobs=3\n";
    let order = ["none", "mq-deadline", "none"];
    let setup = setup("fixed", "none", &timed(jobs, order.len(), SLOT_NS));
    for (focus, counted) in [(vec!["b"], 1..2), (vec!["a", "b"], 0..2), (vec![], 0..2)] {
        let mut turns = turns(&order);
        turns.focus = focus.into_iter().map(str::to_owned).collect();
        let (_, slots) = switched(&setup, &turns, &Auditor::default());
        for slot in slots {
            let expected: u64 = slot.record.jobs[counted.clone()].iter().map(ios).sum();
            assert_eq!(slot.record.ios.iter().sum::<u64>(), expected);
            assert!(expected > 0);
        }
    }
}

#[test]
fn members_of_an_array_switch_too() {
    let order = pairs(Family::MultiQueue);
    for (level, members) in [("0", "2"), ("1", "3"), ("10", "4"), ("5", "4")] {
        for (load, jobs) in LOADS {
            let mut setup = setup("ssd-sata", order[0], &timed(jobs, order.len(), SLOT_NS));
            for (name, value) in [("raid", level), ("members", members), ("chunk", "64k")] {
                setup.profile.set(name, value).unwrap();
            }
            let auditor = Auditor::default();
            let (_, slots) = switched(&setup, &turns(&order), &auditor);
            assert!(slots.len() + 2 >= order.len(), "{load} on RAID {level}: {}", slots.len());
            let seen = auditor.seen.lock().unwrap();
            assert!(seen.complaints.is_empty(), "{load} on RAID {level}: {:?}", seen.complaints);
        }
    }
}

#[test]
fn slots_and_windows_add_up_to_the_run() {
    let order = ["none", "bfq", "kyber", "mq-deadline", "bfq", "bfq"];
    for (load, jobs) in LOADS.iter().take(4) {
        let setup = setup("nvme-tlc", "none", &timed(jobs, order.len(), SLOT_NS));
        let (outcome, slots) = switched(&setup, &turns(&order), &Auditor::default());
        assert_eq!(slots.len(), order.len(), "{load}");
        let mut inside = 0;
        for slot in &slots {
            assert_eq!(slot.record.ios.len(), 4);
            let kept: u64 = slot.record.jobs.iter().map(ios).sum();
            assert_eq!(kept, slot.record.ios.iter().sum::<u64>(), "{load}");
            assert!(slot.record.jobs.iter().all(|job| job.runtime_ns == SLOT_NS));
            inside += kept;
        }
        let whole: u64 = outcome.jobs.iter().map(ios).sum();
        assert!(inside > 0 && inside < whole, "{load}: {inside} of {whole}");

        // One slot from nearly the first to the last moment holds everything.
        let end_ns = FIRST_NS + order.len() as u64 * SLOT_NS + 1_000 * MILLISECOND;
        let mut all = turns(&["bfq"]);
        all.slots[0].times =
            SlotTimes { start_ns: 1, end_ns, kept_from_ns: 1, kept_to_ns: end_ns - 1 };
        let mut long = setup.clone();
        long.runtime_ns = Some(end_ns);
        let (outcome, slots) = switched(&long, &all, &Auditor::default());
        let after: u64 = outcome.jobs.iter().map(ios).sum::<u64>()
            - slots[0].record.jobs.iter().map(ios).sum::<u64>();
        assert!(after <= 200, "{load}: {after} I/Os were under way at the end");
    }
}

#[test]
fn watching_slots_changes_nothing() {
    let jobs = timed(LOADS[0].1, 3, SLOT_NS);
    for scheduler in ALL.iter().map(|info| info.name) {
        let setup = setup("hdd-7200", scheduler, &jobs);
        let mut simulation = Simulation::new(&setup, Vec::new()).unwrap();
        // The only switch comes after the end.
        let mut late = turns(&[scheduler]);
        let (start_ns, end_ns) = (1_000_000 * MILLISECOND, 1_000_001 * MILLISECOND);
        late.slots[0].times =
            SlotTimes { start_ns, end_ns, kept_from_ns: start_ns, kept_to_ns: end_ns };
        simulation.take_turns(&setup, &late).unwrap();
        simulation.advance(u64::MAX).unwrap();
        assert_eq!(fingerprint(&simulation.outcome()), fingerprint(&run(&setup)), "{scheduler}");
        assert!(simulation.slots().is_empty());
    }
}

/// On a device that remembers nothing, a scheduler that takes its own place only pauses the load:
/// the I/Os that are missing are those of the time in which the queue was frozen.
#[test]
fn a_scheduler_that_takes_its_own_place_only_pauses_the_load() {
    for scheduler in ["none", "mq-deadline", "kyber", "deadline", "noop"] {
        let jobs = timed("[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\n", 20, SLOT_NS);
        let setup = fixed(&[("latency", "100us"), ("depth", "8")], scheduler, &jobs);
        let alone: u64 = run(&setup).jobs.iter().map(ios).sum();
        let order = [scheduler; 20];
        let auditor = Auditor::default();
        let (outcome, slots) = switched(&setup, &turns(&order), &auditor);
        assert_eq!(auditor.nr_under_way(), 0, "{scheduler}");
        let done: u64 = outcome.jobs.iter().map(ios).sum();
        let paused_ns: u64 = slots.iter().map(|slot| slot.switch_ns).sum();
        assert_eq!(paused_ns, 20 * FREEZE_NS, "{scheduler}");
        // The queue runs on for at most one command's time in each freeze.
        let missing = alone - done;
        let least = (paused_ns - 20 * 100_000) / 100_000 * 8;
        let most = paused_ns / 100_000 * 8 + 20 * 8;
        assert!((least..=most).contains(&missing), "{scheduler}: {missing} of {least} to {most}");
    }
}

#[test]
fn an_idle_queue_switches_at_once() {
    let jobs = "[a]\nrw=randread\ndirect=1\nthinktime=50ms\ntime_based\nruntime=200ms\n";
    let setup = fixed(&[("latency", "100us")], "none", jobs);
    let mut turns = turns(&["bfq", "none", "kyber"]);
    turns.freeze_ns = 0;
    let (_, slots) = switched(&setup, &turns, &Auditor::default());
    let waits: Vec<_> = slots.iter().map(|slot| slot.switch_ns).collect();
    assert_eq!(waits, [0, 0, 0]);
}

#[test]
fn the_default_depth_comes_with_the_scheduler() {
    let jobs = timed("[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=256\n", 2, SLOT_NS);
    let setup = fixed(&[("latency", "100us"), ("depth", "8")], "none", &jobs);
    let (outcome, _) = switched(&setup, &turns(&["mq-deadline", "none"]), &Auditor::default());
    assert_eq!(outcome.peak_tags, 16, "a scheduler has twice the tags of the device");
    let mut given_depth = setup.clone();
    given_depth.queue = given(&[("nr_requests", "4")]);
    let (outcome, _) = switched(&given_depth, &turns(&["mq-deadline"]), &Auditor::default());
    assert_eq!(outcome.peak_tags, 4);
}

/// Writeback throttling spares a reader beside writers, except while bfq is in force.
#[test]
fn bfq_turns_writeback_throttling_off_for_its_turn() {
    let jobs = "[global]\ntime_based\nruntime=30\n[r]\nrw=randread\ndirect=1\nsize=1g\n\
        [w]\nrw=randwrite\nsize=256m\nnumjobs=4\n";
    let mut setup = setup("hdd-7200", "mq-deadline", jobs);
    setup.machine = given(&[("memory", "64m")]);
    let mut switchback = turns(&["bfq", "mq-deadline"]);
    for (index, slot) in switchback.slots.iter_mut().enumerate() {
        let start_ns = (1 + index as u64 * 14) * 1_000 * MILLISECOND;
        let end_ns = start_ns + 14_000 * MILLISECOND;
        slot.times = SlotTimes { start_ns, end_ns, kept_from_ns: start_ns, kept_to_ns: end_ns };
    }
    let reads = |setup: &Setup| -> u64 {
        let (_, slots) = switched(setup, &switchback, &Auditor::default());
        slots[1].record.jobs[0].direction(Direction::Read).ios()
    };
    let by_default = reads(&setup);
    setup.queue = given(&[("wbt_lat_usec", "0")]);
    let without = reads(&setup);
    assert!(by_default as f64 > 1.1 * without as f64, "{by_default} reads, {without} without");
}

#[test]
fn turns_that_cannot_be_are_refused() {
    let setup = setup("nvme-tlc", "none", "[a]\nrw=randread\nnumber_ios=9\n");
    let refused = |turns: &Switchback| {
        let mut simulation = Simulation::new(&setup, Vec::new()).unwrap();
        simulation.take_turns(&setup, turns).unwrap_err().to_string()
    };
    assert!(refused(&turns(&["cfq"])).contains("no kernel has both"));
    assert!(refused(&turns(&["fifo"])).contains("not simulated"));
    let mut overlapping = turns(&["none", "bfq"]);
    overlapping.slots[1].times.start_ns -= 1;
    assert!(refused(&overlapping).contains("follow one another"));
    let mut without = turns(&["none"]);
    without.window_ns = 0;
    assert!(refused(&without).contains("window_ns"));
    assert!(info("none").is_some());
}
