//! Known behaviours of I/Os that are submitted together.

use crate::support::{fixed, run};

#[test]
fn pairs_between_calls_of_fsync_are_all_done() {
    // Two I/Os at once are not plugged, and others run between them; where computing takes no time,
    // a call of fsync with nothing to write is over at once and the next pair follows within it. An
    // I/O that got lost there would keep its job from ending.
    let jobs = "[global]\ndirect=1\ntime_based\nruntime=200ms\nioengine=libaio\n\
        [w]\nrw=write\nbs=256k\niodepth=4\n\
        [both]\nrw=randrw\niodepth=16\niodepth_batch=4\nfsync=1\n";
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        for first_tag in ["0", "3", "7"] {
            let mut setup = fixed(&[("depth", "4"), ("jitter", "20us")], scheduler, jobs);
            setup.machine = [("zero_cpu_time", "1"), ("first_tag", first_tag)]
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .into();
            setup.limits.simulated_ns = 1_000_000_000;
            let outcome = run(&setup);
            assert!(outcome.jobs.iter().all(|job| job.runtime_ns < 250_000_000), "{scheduler}");
        }
    }
}
