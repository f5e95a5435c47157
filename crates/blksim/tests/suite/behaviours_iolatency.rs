//! Known behaviours of blk-iolatency, each with its reason.

use crate::support::{fixed, given, job, run};
use blksim::core::record::Direction;

/// A group that reads one at a time beside one that keeps 32 in flight.
const JOBS: &str = "[global]\nrw=randread\ndirect=1\nruntime=20\nramp_time=5\ntime_based\n\
    [quick]\ncgroup=quick\n[deep]\nioengine=libaio\niodepth=32\ncgroup=deep\n";

fn mean_us(groups: &[(&str, &str, &str)]) -> (f64, f64) {
    let mut setup = fixed(&[("latency", "1ms"), ("depth", "4")], "mq-deadline", JOBS);
    setup.queue = given(&[("nr_requests", "64")]);
    setup.cgroups = crate::support::groups(groups);
    let outcome = run(&setup);
    let quick = &job(&outcome, "quick").direction(Direction::Read).latency;
    (quick.mean_ns() / 1000.0, job(&outcome, "deep").iops())
}

#[test]
fn a_missed_target_halves_the_siblings_depth_until_it_is_met() {
    // Alone with 33 in a device of 4, a read takes 8 ms. 64 → 32 → 16 → 8 → 4 → 2:
    // then it goes at once.
    let (without, free) = mean_us(&[]);
    assert!(without > 7500.0 && free > 3800.0, "{without} us, {free} I/Os");
    let (with, limited) = mean_us(&[("quick", "io.latency", "target=2500")]);
    assert!(with < 3000.0, "{with} us");
    assert!(limited < 3700.0, "{limited}");
}

#[test]
fn a_target_that_is_met_costs_nobody() {
    let (_, free) = mean_us(&[]);
    let (_, deep) = mean_us(&[("quick", "io.latency", "target=20000")]);
    assert!((deep / free - 1.0).abs() < 0.01, "{deep} of {free}");
}

#[test]
fn tighter_targets_are_spared() {
    // The deep group's own target is the tighter one: it is not throttled for
    // the other's miss.
    let groups = [("quick", "io.latency", "target=2500"), ("deep", "io.latency", "target=2000")];
    let (_, free) = mean_us(&[]);
    let (_, deep) = mean_us(&groups);
    assert!(deep > 0.95 * free, "{deep} of {free}");
}
