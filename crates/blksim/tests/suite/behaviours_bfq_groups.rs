//! bfq and control groups: bandwidth follows their weights.

use crate::support::{given, groups, job, run, setup};
use blksim::simulate::{Outcome, Setup};

fn weighted(device: &str, jobs: &str) -> Setup {
    let mut setup = setup(device, "bfq", jobs);
    setup.tunables = given(&[("low_latency", "0")]);
    setup.cgroups = groups(&[
        ("a", "io.bfq.weight", "100"),
        ("b", "io.bfq.weight", "300"),
        ("c", "io.bfq.weight", "600"),
    ]);
    setup
}

fn verify(outcome: &Outcome, what: &str) {
    for (name, expected) in [("b", 3.0), ("c", 6.0)] {
        let a = job(outcome, "a").bytes_per_second();
        let ratio = job(outcome, name).bytes_per_second() / a;
        assert!((ratio / expected - 1.0).abs() < 0.1, "{what}: {name} to a: {ratio}");
    }
}

#[test]
fn sequential_readers_of_a_disk_share_by_weight() {
    let jobs = "[global]\ndirect=1\nrw=read\nbs=128k\nruntime=40\ntime_based\nsize=1g\n\
        [a]\ncgroup=a\n[b]\ncgroup=b\noffset=300g\n[c]\ncgroup=c\noffset=600g\n";
    verify(&run(&weighted("hdd-7200", jobs)), "hdd-7200");
}

#[test]
fn random_readers_of_flash_share_by_weight_at_a_price() {
    // With groups every queue is waited for, so the drive's parallelism is
    // left to one group at a time.
    let jobs = "[global]\ndirect=1\nrw=randread\nioengine=libaio\niodepth=8\nruntime=10\ntime_based\n\
        size=1g\n[a]\ncgroup=a\n[b]\ncgroup=b\n[c]\ncgroup=c\n";
    let shared = run(&weighted("nvme-tlc", jobs));
    verify(&shared, "nvme-tlc");
    let open = run(&setup("nvme-tlc", "none", jobs));
    let total = |outcome: &Outcome| {
        outcome.jobs.iter().map(blksim::core::record::JobRecord::iops).sum::<f64>()
    };
    assert!(total(&shared) < 0.6 * total(&open), "{} of {}", total(&shared), total(&open));
}
