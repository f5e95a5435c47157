//! Releases of Linux: the default stays what it was, and each change shows where it should.

use crate::support::{fixed, given, run};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup, Simulation, simulate};
use blksim::timeline::RequestRow;

const READERS_BESIDE_DEEP_WRITER: &str = "[global]\ndirect=1\nioengine=libaio\nruntime=200ms\ntime_based\nsize=1g\n\
     [readers]\nrw=randread\nnumjobs=2\n[writer]\nrw=randwrite\niodepth=60\n";

fn under(kernel: &str, mut setup: Setup) -> Outcome {
    setup.machine = given(&[("kernel", kernel)]);
    run(&setup)
}

fn jobs(outcome: &Outcome) -> String {
    format!("{:?}", outcome.jobs)
}

#[test]
fn linux_6_1_is_the_default() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let setup = fixed(&[("depth", "4")], scheduler, READERS_BESIDE_DEEP_WRITER);
        assert_eq!(jobs(&run(&setup)), jobs(&under("6.1", setup)), "{scheduler}");
    }
}

#[test]
fn legacy_schedulers_are_the_same_under_each_release() {
    for scheduler in ["noop", "deadline", "cfq", "anticipatory"] {
        let setup = fixed(&[("depth", "4")], scheduler, READERS_BESIDE_DEEP_WRITER);
        assert_eq!(jobs(&under("6.1", setup.clone())), jobs(&under("7.3", setup)), "{scheduler}");
    }
}

#[test]
fn an_unknown_release_is_refused_by_name() {
    let mut setup = fixed(&[], "none", READERS_BESIDE_DEEP_WRITER);
    setup.machine = given(&[("kernel", "5.4")]);
    let message = simulate(&setup).unwrap_err().to_string();
    assert!(message.contains("kernel = \"5.4\": expected one of 6.1, 7.3"), "{message}");
}

/// In 6.1 mq-deadline keeps the depth for writes that few tags gave it; later kernels let it grow with
/// `nr_requests`, so that the writer fills the queue and the readers wait.
#[test]
fn the_depth_for_writes_follows_nr_requests() {
    let mut setup = fixed(&[("depth", "1")], "mq-deadline", READERS_BESIDE_DEEP_WRITER);
    setup.queue = given(&[("nr_requests", "64")]);
    let [before, after] = ["6.1", "7.3"].map(|kernel| under(kernel, setup.clone()));
    assert_eq!(before.tunables.get("async_depth"), 2);
    assert_eq!(after.tunables.get("async_depth"), 64);
    let writes = |outcome: &Outcome| outcome.jobs[1].direction(Direction::Write).ios();
    assert!(writes(&after) > writes(&before), "{} {}", writes(&after), writes(&before));
}

/// Requests that go to the driver straight from a plug: the newest first in 6.1, the oldest later.
#[test]
fn a_plug_is_issued_in_order() {
    let text = "[a]\nrw=read\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\niodepth_batch=8\n\
        number_ios=8\nsize=1m\n";
    let first_sector = |kernel: &str| {
        let mut setup = fixed(&[("depth", "8")], "none", text);
        setup.queue = given(&[("nomerges", "2")]);
        setup.machine = given(&[("kernel", kernel)]);
        let mut simulation = Simulation::new(&setup, Vec::new()).unwrap();
        simulation.record(1 << 20);
        assert!(simulation.advance(u64::MAX).unwrap());
        let timeline = simulation.take_timeline().unwrap();
        RequestRow::all(&timeline.requests).map(|row| row.sector).next().unwrap()
    };
    assert_eq!(first_sector("6.1"), 7 * 8);
    assert_eq!(first_sector("7.3"), 0);
}
