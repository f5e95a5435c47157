//! Known behaviours of writeback throttling, each with its reason.

use crate::support::{fixed, given, job, run};
use blksim::core::record::Direction;
use blksim::simulate::Setup;

/// A reader beside writers, with `wbt_lat_usec`: reads a second.
fn reads(setup: &Setup, target: &str) -> f64 {
    let mut setup = setup.clone();
    setup.queue.extend(given(&[("wbt_lat_usec", target)]));
    let outcome = run(&setup);
    assert_eq!(outcome.queue.get("wbt_lat_usec").to_string(), target);
    job(&outcome, "r").direction(Direction::Read).ios() as f64
}

const READER: &str = "[global]\nruntime=10\ntime_based\n[r]\nrw=randread\ndirect=1\nsize=1g\n";

#[test]
fn buffered_writers_are_restrained_beside_a_reader() {
    // The flusher fills every tag that it can get, and a read waits behind;
    // with a few writes in flight it waits less.
    let jobs = format!("{READER}[w]\nrw=randwrite\nsize=256m\nnumjobs=4\n");
    let mut hdd = crate::support::setup("hdd-7200", "mq-deadline", &jobs);
    hdd.machine = given(&[("memory", "64m")]);
    let (with, without) = (reads(&hdd, "75000"), reads(&hdd, "0"));
    assert!(with > 1.2 * without, "{with} reads with, {without} without");
}

#[test]
fn direct_writers_are_not_touched() {
    // O_DIRECT writes are synchronous and idle-worthy: exempt.
    let jobs = format!(
        "{READER}[w]\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=16\nsize=256m\n\
         [b]\nrw=randwrite\nsize=4m\nnumber_ios=1\n"
    );
    let setup = fixed(&[("latency", "1ms"), ("depth", "1")], "mq-deadline", &jobs);
    let (with, without) = (reads(&setup, "2000"), reads(&setup, "0"));
    assert!((with / without - 1.0).abs() < 0.01, "{with} reads with, {without} without");
}

#[test]
fn it_is_on_for_multi_queue_schedulers_alone() {
    let jobs = "[w]\nrw=write\nsize=1m\n";
    for (device, scheduler, expected) in [
        ("hdd-7200", "mq-deadline", 75_000),
        ("nvme-tlc", "none", 2_000),
        ("hdd-7200", "deadline", 0),
    ] {
        let outcome = run(&crate::support::setup(device, scheduler, jobs));
        assert_eq!(outcome.queue.get("wbt_lat_usec"), expected, "{scheduler}");
    }
}
