//! A simulation that somebody watches and changes: steps and snapshots do not change it, and a
//! change does the same whether it is made by hand or was scheduled.

mod changes;
mod planned;
mod steps;

use blksim::block::cgroup::GivenGroups;
use blksim::core::rng::Stream;
use blksim::simulate::{Outcome, Setup, Simulation};
use blksim::timeline::Timeline;

use crate::support::{cost_table, fingerprint, groups, setup};

pub const MS: u64 = 1_000_000;

/// Loads that between them take every path of a request, with groups a and b.
pub const LOADS: [(&str, &str); 4] = [
    (
        "direct",
        "[global]\nioengine=libaio\ndirect=1\nsize=64m\nnumber_ios=400\n\
         [r]\nrw=randrw\niodepth=24\ncgroup=a\n[s]\nrw=read\nbs=16k\niodepth=4\niodepth_batch=4\ncgroup=b\n\
         [p]\nrw=randread\nprio=7\nthinktime=2ms\n[i]\nrw=randwrite\nprioclass=3\n",
    ),
    (
        "buffered",
        "[global]\nsize=8m\n[w]\nrw=randwrite\nbs=6k\nfsync=20\nnumber_ios=200\ncgroup=a\n\
         [r]\nrw=read\nbs=64k\ncgroup=b\n[d]\nrw=randread\ndirect=1\nnumber_ios=150\n[l]\nrw=write\nsync=1\nsize=1m\nnumber_ios=40\n",
    ),
    (
        "flow",
        "[global]\nrw=randread\ndirect=1\nsize=32m\nioengine=libaio\niodepth=4\nnumber_ios=300\nflow_id=1\n\
         [a]\nflow=3\n[b]\nflow=1\n",
    ),
    (
        "pressed",
        "[global]\nioengine=libaio\ndirect=1\nsize=64m\niodepth=64\nnumber_ios=700\nrw=randrw\n\
         [a]\ncgroup=a\n[b]\ncgroup=b\nbs=64k\nnumber_ios=200\n",
    ),
];

/// Settings of control groups that put one policy or more at the queue.
pub fn policies() -> Vec<(&'static str, GivenGroups)> {
    vec![
        ("no policy", Vec::new()),
        ("io.max", groups(&[("a", "io.max", "rbps=20m riops=3000"), ("b", "io.max", "wiops=900")])),
        ("io.cost", groups(&[("/", "io.cost.qos", "enable=1"), ("b", "io.weight", "300")])),
        (
            "io.latency",
            groups(&[("a", "io.latency", "target=500"), ("b", "io.latency", "target=9000")]),
        ),
        ("ioband", groups(&[("/", "ioband.policy", "range-bw"), ("a", "ioband.min", "2000")])),
    ]
}

/// A run of a load under policies; on two processors if the name of the device ends in `+cpus`, on one if it
/// ends in `+cpu`.
pub fn run_of(device: &str, scheduler: &str, jobs: &str, cgroups: &GivenGroups) -> Setup {
    let (name, processors) = device.split_once('+').unwrap_or((device, ""));
    let mut setup = setup(name, scheduler, jobs);
    setup.cgroups.clone_from(cgroups);
    setup.machine = crate::support::given(&[("memory", "64m")]);
    setup.limits.simulated_ns = 600_000 * MS;
    setup.limits.events = 10_000_000;
    setup.processors = match processors {
        "cpu" => Some(cost_table(1)),
        "cpus" => Some(cost_table(2)),
        _ => None,
    };
    setup
}

/// All that a run leaves: results and timeline.
pub type Bits = (Vec<u64>, Timeline);

pub fn begin(setup: &Setup) -> Simulation {
    let mut simulation = Simulation::new(setup, Vec::new()).unwrap();
    simulation.record(1 << 30);
    simulation
}

pub fn bits_of(simulation: &mut Simulation) -> Bits {
    let outcome: Outcome = simulation.outcome();
    (fingerprint(&outcome), simulation.take_timeline().unwrap())
}

/// Runs to the end at once.
pub fn in_one_go(mut simulation: Simulation) -> Bits {
    assert!(simulation.advance(u64::MAX).unwrap());
    bits_of(&mut simulation)
}

/// Runs to the end in steps of random length, by time and by events, looking and draining.
pub fn in_steps(mut simulation: Simulation, mean_ns: u64, stream: &mut Stream) -> Bits {
    let mut drained = Timeline::default();
    loop {
        let ended = if stream.below(4) == 0 {
            simulation.advance(stream.below(50)).unwrap()
        } else {
            let until_ns = simulation.now_ns() + stream.below(2 * mean_ns);
            let ended = simulation.advance_until(until_ns).unwrap();
            assert!(ended || simulation.now_ns() == until_ns, "the clock shows where it stopped");
            ended
        };
        if stream.below(8) == 0 {
            std::hint::black_box(simulation.view());
        }
        let rows = simulation.drain_timeline().unwrap();
        drained.requests.extend(rows.requests);
        drained.ios.extend(rows.ios);
        if ended {
            let (print, rest) = bits_of(&mut simulation);
            assert_eq!(rest, Timeline::default(), "everything was drained");
            return (print, drained);
        }
    }
}
