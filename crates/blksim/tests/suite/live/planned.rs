//! Planned changes: the same bits as changes made by hand, and phases that add up to the run.

use super::{MS, in_one_go, run_of};
use crate::support::{fingerprint, groups};
use blksim::live::LiveSimulation;
use blksim::live::change::Change;
use blksim::live::planned::PlannedChanges;
use blksim::simulate::Setup;
use blksim::task::slots::{SlotPlan, SlotTimes};

const JOBS: &str = "[global]\nioengine=libaio\ndirect=1\nsize=64m\nrw=randrw\niodepth=8\ntime_based\nruntime=2s\n\
                    [a]\ncgroup=a\n[b]\ncgroup=b\nnumjobs=2\n";
const FREEZE_NS: u64 = 5 * MS;

fn setup(scheduler: &str) -> Setup {
    run_of("hdd-7200", scheduler, JOBS, &groups(&[("a", "io.bfq.weight", "100")]))
}

/// Changes of each kind; some at one moment, and one that freezes for longer than it takes to the next.
fn changes(scheduler: &str) -> Vec<(u64, Change)> {
    let text = |text: &str| text.to_owned();
    let tunable = if scheduler == "bfq" { "slice_idle" } else { "fifo_batch" };
    vec![
        (300 * MS, Change::Tunable { name: text(tunable), value: text("3") }),
        (700 * MS, Change::Queue { name: text("nr_requests"), value: text("7") }),
        (701 * MS, Change::Priority { job: text("a"), class: 1, level: Some(2) }),
        (
            1100 * MS,
            Change::Group { group: text("b"), attribute: text("io.max"), value: text("riops=90") },
        ),
        (1500 * MS, Change::Scheduler { name: text("kyber"), tunables: Vec::new() }),
        (1500 * MS, Change::Priority { job: text("b"), class: 3, level: None }),
    ]
}

fn phases(edges: &[u64]) -> SlotPlan {
    let times = |pair: &[u64]| SlotTimes {
        start_ns: pair[0],
        end_ns: pair[1],
        kept_from_ns: pair[0],
        kept_to_ns: pair[1],
    };
    SlotPlan {
        times: edges.windows(2).map(times).collect(),
        window_ns: 10 * MS,
        focus: vec!["a".to_owned()],
    }
}

fn planned(scheduler: &str, phases: SlotPlan) -> LiveSimulation {
    let planned = PlannedChanges { changes: changes(scheduler), phases, freeze_ns: FREEZE_NS };
    let mut live = LiveSimulation::planned(&setup(scheduler), &planned).unwrap();
    live.record(1 << 30);
    live
}

#[test]
fn a_planned_change_is_one_made_by_hand_at_that_time() {
    for scheduler in ["bfq", "mq-deadline"] {
        let mut by_plan = planned(scheduler, SlotPlan::default());
        assert!(by_plan.advance(u64::MAX).unwrap());
        let mut by_hand = LiveSimulation::new(&setup(scheduler), Vec::new(), FREEZE_NS).unwrap();
        by_hand.record(1 << 30);
        for (at_ns, change) in changes(scheduler) {
            assert!(!by_hand.advance_until(at_ns).unwrap());
            by_hand.apply(&change).unwrap();
        }
        assert!(by_hand.advance(u64::MAX).unwrap());
        assert_eq!(fingerprint(&by_plan.outcome()), fingerprint(&by_hand.outcome()), "{scheduler}");
        assert!(by_plan.take_timeline() == by_hand.take_timeline(), "{scheduler}");
        assert_eq!(by_plan.changes_made_ns(), by_hand.changes_made_ns());
    }
}

#[test]
fn each_change_tells_when_it_was_in_force() {
    let mut live = planned("bfq", SlotPlan::default());
    assert!(!live.advance_until(702 * MS).unwrap());
    assert_eq!(live.changes_made_ns(), [Some(300 * MS), None, Some(701 * MS)]);
    assert!(live.advance(u64::MAX).unwrap());
    let made_ns: Vec<_> = live.changes_made_ns().into_iter().map(Option::unwrap).collect();
    assert!((700 * MS + FREEZE_NS..900 * MS).contains(&made_ns[1]), "{made_ns:?}");
    // A limit where there was none puts its controller before the queue, which is frozen for that.
    assert!((1100 * MS + FREEZE_NS..1400 * MS).contains(&made_ns[3]), "{made_ns:?}");
    assert!((1500 * MS + FREEZE_NS..1900 * MS).contains(&made_ns[4]), "{made_ns:?}");
    assert_eq!(made_ns[5], 1500 * MS);
}

#[test]
fn phases_add_up_to_the_run_and_do_not_change_it() {
    let edges = [1, 300 * MS, 700 * MS, 1100 * MS, 1500 * MS, 3000 * MS];
    let mut whole = planned("bfq", SlotPlan::default());
    let mut parts = planned("bfq", phases(&edges));
    assert!(whole.advance(u64::MAX).unwrap() && parts.advance(u64::MAX).unwrap());
    assert!(whole.take_timeline() == parts.take_timeline());
    let outcome = parts.outcome();
    // The first number is that of events, and an edge of a phase is one.
    assert_eq!(fingerprint(&outcome)[1..], fingerprint(&whole.outcome())[1..]);
    let phases = parts.phases();
    assert_eq!(phases.len(), 5, "the last one counts although the run ends within it");
    for (index, job) in outcome.jobs.iter().enumerate() {
        let sum: u64 = phases.iter().map(|phase| phase.jobs[index].ios()).sum();
        assert_eq!(sum, job.ios(), "{}", job.name);
    }
    for phase in &phases {
        let length_ns = phase.times.end_ns - phase.times.start_ns;
        assert_eq!(phase.ios.len() as u64, length_ns / (10 * MS));
        assert!(phase.ios.iter().sum::<u64>() <= phase.jobs[0].ios());
        assert_eq!(phase.jobs[1].runtime_ns, length_ns);
    }
}

#[test]
fn a_plan_that_is_not_possible_is_refused_before_the_run() {
    let setup = setup("bfq");
    let mut plan = PlannedChanges { changes: changes("mq-deadline"), ..PlannedChanges::default() };
    let error = LiveSimulation::planned(&setup, &plan).unwrap_err().to_string();
    assert!(error.contains("fifo_batch"), "{error}");
    plan.changes = changes("bfq");
    plan.phases = phases(&[2 * MS, MS]);
    let error = LiveSimulation::planned(&setup, &plan).unwrap_err().to_string();
    assert!(error.contains("follow one another"), "{error}");
}

#[test]
fn without_changes_a_plan_is_a_run_as_any_other() {
    let setup = setup("mq-deadline");
    let expected = in_one_go(super::begin(&setup));
    let mut live = LiveSimulation::planned(&setup, &PlannedChanges::default()).unwrap();
    live.record(1 << 30);
    assert!(live.advance(u64::MAX).unwrap());
    assert!(expected == (fingerprint(&live.outcome()), live.take_timeline().unwrap()));
}
