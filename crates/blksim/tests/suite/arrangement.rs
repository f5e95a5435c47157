//! Arrangements: what nobody controls is drawn from a seed, and only if it is asked for.

use std::collections::BTreeSet;

use blksim::core::record::Direction;
use blksim::simulate::Setup;
use blksim::workload::arrangement::Arrangement;

use crate::support::{fingerprint, run, setup, slots_of};

const READERS: &str =
    "[a]\nrw=read\nbs=64k\ndirect=1\nnumjobs=3\nsize=1g\ntime_based\nruntime=1s\n";

fn arranged(seed: Option<u64>) -> Setup {
    let mut setup = setup("hdd-7200", "mq-deadline", READERS);
    setup.arrangement = seed.map(|seed| Arrangement { seed });
    setup
}

#[test]
fn equal_seeds_give_equal_runs_and_others_do_not() {
    let print = |seed| fingerprint(&run(&arranged(seed)));
    assert_eq!(print(Some(4)), print(Some(4)));
    let different: BTreeSet<_> = (0..8).map(|seed| print(Some(seed))).collect();
    assert_eq!(different.len(), 8);
    assert!(!different.contains(&print(None)));
}

#[test]
fn no_arrangement_changes_what_the_jobs_do() {
    let jobs = "[a]\nrw=randrw\nbs=4k\ndirect=1\nsize=8m\n[b]\nrw=write\nsize=4m\nfsync=16\n";
    for seed in 0..5 {
        let mut setup = setup("ssd-sata", "bfq", jobs);
        setup.arrangement = Some(Arrangement { seed });
        let outcome = run(&setup);
        let bytes: Vec<u64> = outcome
            .jobs
            .iter()
            .map(|job| job.direction(Direction::Read).bytes + job.direction(Direction::Write).bytes)
            .collect();
        assert_eq!(bytes, [8 << 20, 4 << 20]);
    }
}

#[test]
fn the_slots_of_a_switchback_depend_on_their_arrangement() {
    let slots = |seed: u64| {
        let slots = slots_of(&arranged(Some(seed)), 100, 40, &["bfq", "kyber", "bfq"]);
        slots.into_iter().map(|slot| slot.record.ios).collect::<Vec<_>>()
    };
    assert_eq!(slots(1), slots(1));
    assert_eq!(slots(1).len(), 3);
    assert_ne!(slots(1), slots(2));
}
