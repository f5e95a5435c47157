//! Known behaviours of blk-throttle (`io.max`), each with its reason.

use crate::support::{fixed, job, run};
use blksim::core::record::{Direction, JobRecord};

fn limited(device: &[(&str, &str)], jobs: &str, groups: &[(&str, &str, &str)]) -> Vec<JobRecord> {
    let mut setup = fixed(device, "mq-deadline", jobs);
    setup.cgroups = crate::support::groups(groups);
    run(&setup).jobs
}

#[test]
fn rates_are_those_of_linux() {
    // The first slice is allowed at once. After that the rate holds, but the remainder of an I/O is
    // lost when a slice of 100 ms ends. All values but the first two are those of Linux 6.1 with
    // this load in a guest on this device.
    let jobs = "[a]\nrw=randread\nbs=64k\ndirect=1\nioengine=libaio\niodepth=16\nruntime=10\ntime_based\ncgroup=a\n";
    for (setting, expected) in [
        ("rbps=10m", 10.0 * 16.0),
        ("riops=500", 500.0),
        ("riops=25", 20.168),
        ("riops=7", 5.034),
        ("riops=5", 3.377),
        ("rbps=1m riops=3", 1.691),
    ] {
        let jobs = limited(&[], jobs, &[("a", "io.max", setting)]);
        let iops = jobs[0].iops();
        assert!((iops / expected - 1.0).abs() < 0.015, "{setting}: {iops}");
    }
}

#[test]
fn one_direction_and_one_group_do_not_limit_others() {
    let jobs = "[global]\ndirect=1\nioengine=libaio\niodepth=4\nruntime=4\ntime_based\n\
        [r]\nrw=randread\ncgroup=a\n[w]\nrw=randwrite\ncgroup=a\n[free]\nrw=randread\ncgroup=b\n";
    let jobs = limited(&[("depth", "64")], jobs, &[("a", "io.max", "8:0 riops=100 wiops=max")]);
    let iops: Vec<_> = jobs.iter().map(JobRecord::iops).collect();
    assert!((iops[0] - 100.0).abs() < 5.0, "{iops:?}");
    // Four at a time of 100 us each.
    assert!(iops[1] > 39_000.0 && iops[2] > 39_000.0, "{iops:?}");
}

#[test]
fn limits_are_hierarchical() {
    let jobs = "[global]\ndirect=1\nrw=randread\nioengine=libaio\niodepth=4\nruntime=10\ntime_based\n\
        [a]\ncgroup=p/a\n[b]\ncgroup=p/b\n";
    let jobs = limited(&[], jobs, &[("p", "io.max", "riops=300"), ("p/a", "io.max", "riops=100")]);
    let total = jobs[0].iops() + jobs[1].iops();
    assert!((total / 300.0 - 1.0).abs() < 0.015, "{total}");
    assert!((jobs[0].iops() / 100.0 - 1.0).abs() < 0.05, "{}", jobs[0].iops());
}

#[test]
fn buffered_writes_count_against_the_group_that_dirtied() {
    // cgroup v2 attributes writeback to the owner of the file.
    let jobs = "[w]\nrw=write\nbs=64k\nsize=8m\nend_fsync=1\ncgroup=a\n";
    let mut setup = fixed(&[], "mq-deadline", jobs);
    setup.cgroups = crate::support::groups(&[("a", "io.max", "wbps=2m")]);
    let outcome = run(&setup);
    let writer = job(&outcome, "w");
    assert_eq!(writer.direction(Direction::Write).bytes, 8 << 20);
    let seconds = writer.runtime_ns as f64 / 1e9;
    assert!((3.8..4.1).contains(&seconds), "{seconds}");
}
