//! The contract of policies: whatever stands at a queue, alone or together,
//! every bio goes through exactly once and every job ends.

use crate::support::{Auditor, fingerprint, groups, setup};
use blksim::simulate::simulate_with;

const LOADS: [&str; 3] = [
    "[global]\nioengine=libaio\nsize=64m\nnumber_ios=800\n[a]\nrw=randrw\ndirect=1\niodepth=32\ncgroup=a\n\
     [b]\nrw=write\ndirect=1\niodepth=32\niodepth_batch=8\ncgroup=b\n[c]\nrw=randread\ndirect=1\ncgroup=a/c\n",
    "[global]\nsize=16m\n[a]\nrw=write\nbs=64k\nend_fsync=1\ncgroup=a\n[b]\nrw=randwrite\nbs=6k\nfsync=20\n\
     number_ios=200\ncgroup=b\n[c]\nrw=read\nbs=64k\ncgroup=a/c\n[d]\nrw=randread\nnumber_ios=200\n",
    "[global]\nsize=64m\n[a]\nrw=randwrite\nnumber_ios=4000\ncgroup=a\n[b]\nrw=randread\ndirect=1\nnumber_ios=300\ncgroup=b\n",
];

const POLICIES: [&[(&str, &str, &str)]; 8] = [
    &[("a", "io.max", "rbps=20m wbps=20m riops=3000"), ("b", "io.max", "wiops=2000")],
    &[("/", "io.cost.qos", "enable=1"), ("b", "io.weight", "300"), ("a/c", "io.weight", "50")],
    &[("/", "io.cost.qos", "enable=1 rpct=95.00 rlat=5000 wpct=95 wlat=5000 min=10 max=200")],
    &[("a", "io.latency", "target=500"), ("b", "io.latency", "target=2000")],
    &[
        ("/", "ioband.policy", "weight"),
        ("/", "ioband.io_limit", "4"),
        ("a", "ioband.weight", "10"),
    ],
    &[("/", "ioband.policy", "weight-iosize"), ("b", "ioband.weight", "400")],
    &[("/", "ioband.policy", "range-bw"), ("a", "ioband.min", "2000"), ("b", "ioband.max", "8000")],
    &[
        ("/", "ioband.policy", "weight"),
        ("/", "io.cost.qos", "enable=1"),
        ("a", "io.max", "wbps=20m riops=3000"),
        ("b", "io.latency", "target=500"),
    ],
];

#[test]
fn every_bio_goes_through_exactly_once() {
    for device in ["fixed", "hdd-7200", "nvme-tlc"] {
        for scheduler in ["none", "deadline", "mq-deadline"] {
            for (number, policies) in POLICIES.iter().enumerate() {
                for (load, jobs) in LOADS.iter().enumerate() {
                    let what = format!("policies {number}, {scheduler} on {device}, load {load}");
                    let mut setup = setup(device, scheduler, jobs);
                    setup.cgroups = groups(policies);
                    setup.machine = crate::support::given(&[("memory", "64m")]);
                    setup.limits.simulated_ns = 600_000_000_000;
                    let auditor = Auditor::default();
                    let outcome = simulate_with(&setup, vec![Box::new(auditor.clone())])
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    auditor.verify(&outcome, &what);
                    let again = simulate_with(&setup, Vec::new()).unwrap();
                    assert_eq!(fingerprint(&outcome), fingerprint(&again), "{what}");
                }
            }
        }
    }
}

#[test]
fn wrong_settings_are_refused_by_name() {
    for (group, attribute, value, text) in [
        ("a", "io.weight", "0", "between 1 and 10000"),
        ("a", "io.max", "rbps", "KEY=VALUE"),
        ("a", "io.max", "rbbs=1", "did you mean rbps"),
        ("a", "io.cost.qos", "enable=1", "root group"),
        ("a", "io.wait", "1", "no control group attribute"),
        ("a", "ioband.policy", "weight", "no control group attribute"),
        ("..", "io.weight", "1", "name of a control group"),
        ("a", "io.latency", "target=soon", "expected"),
    ] {
        let mut setup = setup("fixed", "none", "[a]\nnumber_ios=1\n");
        setup.cgroups = groups(&[(group, attribute, value)]);
        let error = blksim::simulate::simulate(&setup).unwrap_err().to_string();
        assert!(error.contains(text), "{attribute}={value}: {error}");
    }
}
