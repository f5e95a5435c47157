//! Known behaviours of dm-ioband, each with its reason.

use crate::support::{fixed, given, job, run};
use blksim::simulate::Setup;

const WEIGHTS: [(&str, &str, &str); 3] =
    [("a", "ioband.weight", "10"), ("b", "ioband.weight", "30"), ("c", "ioband.weight", "60")];

/// Shares of a, b and c in the bytes, in percent.
fn shares(setup: &Setup) -> [f64; 3] {
    let outcome = run(setup);
    let rates = ["a", "b", "c"].map(|name| job(&outcome, name).bytes_per_second());
    rates.map(|rate| 100.0 * rate / rates.iter().sum::<f64>())
}

fn expect(shares: [f64; 3], expected: [f64; 3], what: &str) {
    for (share, expected) in shares.iter().zip(expected) {
        assert!((share - expected).abs() < 2.0, "{what}: {shares:?}");
    }
}

fn three(options: &str, policy: &str) -> Setup {
    let jobs = format!(
        "[global]\nruntime=20\ntime_based\nsize=256m\n{options}[a]\ncgroup=a\n[b]\ncgroup=b\n[c]\ncgroup=c\n"
    );
    let mut setup = fixed(&[("latency", "1ms"), ("depth", "4")], "mq-deadline", &jobs);
    setup.queue = given(&[("nr_requests", "128")]);
    setup.tunables = given(&[("async_depth", "128")]);
    setup.cgroups = crate::support::groups(&WEIGHTS);
    setup.cgroups.extend(crate::support::groups(&[("/", "ioband.policy", policy)]));
    setup
}

#[test]
fn direct_io_is_shared_by_weight() {
    for mode in ["randread", "randwrite"] {
        let options = format!("rw={mode}\ndirect=1\nioengine=libaio\niodepth=32\n");
        expect(shares(&three(&options, "weight")), [10.0, 30.0, 60.0], mode);
    }
}

#[test]
fn by_size_sectors_are_shared_not_bios() {
    let options = "rw=randread\ndirect=1\nioengine=libaio\niodepth=32\n";
    let mut setup = three(options, "weight-iosize");
    expect(shares(&setup), [10.0, 30.0, 60.0], "equal sizes");
    // `c` does 4 KiB and `a` 64 KiB: by bios `a` would get more than `c`. With
    // that many outstanding and that few let through, all groups always hold
    // some; who holds none for a while loses part of its share to the others.
    setup.jobs.jobs[0].block_sizes.read = blksim::workload::job::BlockSizes::fixed(65_536);
    for job in &mut setup.jobs.jobs {
        job.iodepth = 128;
    }
    setup.queue = given(&[("nr_requests", "1024")]);
    setup.cgroups.extend(crate::support::groups(&[("/", "ioband.io_limit", "8")]));
    expect(shares(&setup), [10.0, 30.0, 60.0], "64 KiB against 4 KiB");
}

#[test]
fn buffered_writes_are_all_the_flushers() {
    // What the flusher writes is charged to the default group: weights do not
    // reach buffered writers, who share equally. (With a tenth of the memory they
    // do not, here or on Linux: they pause by whole ticks.)
    let mut setup = three("rw=write\nbs=64k\n", "weight");
    setup.machine = given(&[("memory", "640m")]);
    expect(shares(&setup), [33.3, 33.3, 33.3], "buffered");
}

#[test]
fn an_idle_group_blocks_nobody() {
    let jobs = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nruntime=10\ntime_based\ncgroup=a\n";
    let mut setup = fixed(&[("latency", "1ms"), ("depth", "4")], "mq-deadline", jobs);
    setup.cgroups = crate::support::groups(&WEIGHTS);
    let alone = run(&setup).jobs[0].iops();
    assert!(alone > 3900.0, "{alone} of 4000");
}

#[test]
fn a_range_has_a_floor_and_a_ceiling() {
    // 4000 reads of 4 KiB a second are 16000 KB/s. Priorities matter only
    // where bios are held, so there must be little room below.
    let mut setup = three("rw=randread\ndirect=1\nioengine=libaio\niodepth=32\n", "range-bw");
    setup.cgroups.extend(crate::support::groups(&[
        ("/", "ioband.io_limit", "8"),
        ("a", "ioband.min", "8000"),
        ("a", "ioband.max", "10000"),
        ("b", "ioband.max", "1000"),
    ]));
    let outcome = run(&setup);
    let kb = |name: &str| job(&outcome, name).bytes_per_second() / 1024.0;
    assert!((7600.0..10_200.0).contains(&kb("a")), "{}", kb("a"));
    assert!(kb("b") < 1100.0, "{}", kb("b"));
    assert!(kb("a") + kb("b") + kb("c") > 15_000.0);
}
