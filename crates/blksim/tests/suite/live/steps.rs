//! Steps, snapshots, and the pictures of moments.

use std::collections::BTreeSet;

use super::{LOADS, MS, begin, in_one_go, in_steps, policies, run_of};
use crate::support::setup;
use blksim::core::rng::Stream;
use blksim::elevator::ALL;
use blksim::live::view::View;
use blksim::simulate::{Setup, Simulation};
use blksim::timeline::RequestRow;

const DEVICES: [(&str, u64); 5] = [
    ("fixed", MS / 10),
    ("hdd-7200", 20 * MS),
    ("nvme-tlc", MS / 5),
    ("ssd-sata+cpus", MS),
    ("fixed+cpu", MS / 10),
];

/// Every scheduler on every device, with alternating loads and policies.
fn for_each_pair(mut call: impl FnMut(&str, &Setup, u64)) {
    let policies = policies();
    let mut turn = 0;
    for (device, step_ns) in DEVICES {
        for scheduler in ALL {
            for (load, jobs) in LOADS {
                let (policy, cgroups) = &policies[turn % policies.len()];
                turn += 1;
                let what = format!("{} on {device}, {load}, {policy}", scheduler.name);
                call(&what, &run_of(device, scheduler.name, jobs, cgroups), step_ns);
            }
            turn += 1;
        }
    }
}

#[test]
fn steps_do_not_change_a_run() {
    let mut stream = Stream::named(1, "steps");
    for_each_pair(|what, setup, step_ns| {
        let whole = in_one_go(begin(setup));
        assert!(whole == in_steps(begin(setup), step_ns, &mut stream), "{what}");
    });
}

#[test]
fn a_snapshot_goes_on_to_the_same_bits() {
    let mut stream = Stream::named(2, "snapshots");
    for_each_pair(|what, setup, step_ns| {
        let whole = in_one_go(begin(setup));
        let mut simulation = begin(setup);
        simulation.advance_until(stream.below(20 * step_ns)).unwrap();
        let snapshot = simulation.clone();
        // The one that goes on first leaves the other alone.
        assert!(whole == in_one_go(simulation), "{what}: the original");
        let again = snapshot.clone();
        assert!(whole == in_steps(snapshot, step_ns, &mut stream), "{what}: the snapshot");
        assert!(whole == in_one_go(again), "{what}: the snapshot of the snapshot");
    });
}

#[test]
fn the_clock_stands_where_it_was_told_and_never_goes_back() {
    let setup = setup("hdd-7200", "none", "[a]\nrw=randread\ndirect=1\nnumber_ios=20\n");
    let mut simulation = begin(&setup);
    assert!(!simulation.advance_until(5 * MS).unwrap());
    assert_eq!(simulation.now_ns(), 5 * MS);
    assert!(!simulation.advance_until(MS).unwrap());
    assert_eq!(simulation.now_ns(), 5 * MS);
    assert!(simulation.advance_until(u64::MAX).unwrap());
    let end_ns = simulation.now_ns();
    assert!(end_ns < 1_000 * MS, "the clock of a run that has ended shows when: {end_ns}");
    assert_eq!(simulation.outcome().simulated_ns, end_ns);
}

#[test]
fn the_limit_of_a_timeline_is_meant_for_what_is_not_drained() {
    let setup = setup("fixed", "none", "[a]\nrw=randread\ndirect=1\nnumber_ios=500\n");
    let limit_bytes = 20 * RequestRow::BYTES as u64;
    let mut whole = Simulation::new(&setup, Vec::new()).unwrap();
    whole.record(limit_bytes);
    assert!(whole.advance(u64::MAX).unwrap_err().to_string().contains("timeline"));
    let mut drained = Simulation::new(&setup, Vec::new()).unwrap();
    drained.record(limit_bytes);
    let mut rows = 0;
    while !drained.advance(4).unwrap() {
        rows += drained.drain_timeline().unwrap().requests.len() / RequestRow::BYTES;
    }
    assert!(rows >= 490, "{rows}");
}

/// Takes a look every now and then, until the end.
fn look(setup: &Setup, step_ns: u64, mut call: impl FnMut(&View)) {
    let mut simulation = Simulation::new(setup, Vec::new()).unwrap();
    let mut until_ns = 0;
    while !simulation.advance_until(until_ns).unwrap() {
        call(&simulation.view());
        until_ns += step_ns;
    }
    let view = simulation.view();
    assert!(view.jobs.iter().all(|job| job.ended && job.in_flight == 0), "{:?}", view.jobs);
    call(&view);
}

#[test]
fn pictures_agree_with_the_counters() {
    // Requests that pass a scheduler by wait for a tag, of which there are as many as the device takes.
    let holders = ALL.iter().filter(|info| !info.bypass);
    let mut never_held: BTreeSet<_> = holders.map(|info| info.name.to_owned()).collect();
    for_each_pair(|what, setup, step_ns| {
        let mut last = None;
        look(setup, 3 * step_ns, |view| {
            for disk in &view.disks {
                let known = disk.held.len() + disk.ahead.len() + disk.in_flight.len();
                if !disk.held.is_empty() {
                    never_held.remove(&setup.scheduler);
                }
                assert!(known as u32 <= disk.tags_used + 1, "{what}: {disk:?}");
                let mut told = disk.holding.all_requests();
                told.sort_unstable();
                told.dedup();
                let mut held: Vec<_> = disk.held.iter().map(|request| request.id).collect();
                held.sort_unstable();
                assert_eq!(told, held, "{what}: {:#?}", disk.holding);
                // The clock of a processor may be ahead.
                let ahead = setup.processors.is_some();
                assert!(
                    ahead || disk.in_flight.iter().all(|r| r.dispatched_ns <= Some(view.now_ns))
                );
            }
            last = Some(view.clone());
        });
        let outcome = blksim::simulate::simulate(setup).unwrap();
        let view = last.unwrap();
        for (job, record) in view.jobs.iter().zip(&outcome.jobs) {
            let ios = job.read.ios + job.write.ios + job.trim.ios;
            assert_eq!((&job.name, ios), (&record.name, record.ios()), "{what}");
        }
    });
    assert_eq!(never_held, BTreeSet::new(), "schedulers that no picture saw with a request");
}
