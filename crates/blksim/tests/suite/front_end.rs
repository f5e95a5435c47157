//! A flash drive's front end: what loads do to each other in the controller.

use blksim::core::record::{Direction, Histogram};
use blksim::simulate::{Outcome, Setup};
use blksim::workload::parse;

use crate::support::{fingerprint, given, job, run, setup};

const READER: &str = "[reader]\nrw=randread\nbs=4k\niodepth=1\n";
const WRITERS: &str = "[writers]\nrw=randwrite\nbs=64k\niodepth=128\nnumjobs=4\n";

/// A reader beside 512 writes on a steady drive with these parameters.
fn beside_writers(scheduler: &str, parameters: &[(&str, &str)]) -> Setup {
    let global = "[global]\ndirect=1\nioengine=libaio\ntime_based\nramp_time=50ms\nruntime=150ms\n";
    let mut setup = setup("nvme-tlc", scheduler, &format!("{global}{READER}{WRITERS}"));
    for (name, text) in [("condition", "random"), ("slc_cache", "0"), ("buffer", "4m")] {
        setup.profile.set(name, text).unwrap();
    }
    for (name, text) in parameters {
        setup.profile.set(name, text).unwrap();
    }
    setup
}

fn reads(outcome: &Outcome) -> &Histogram {
    &job(outcome, "reader").direction(Direction::Read).latency
}

fn read_us(scheduler: &str, parameters: &[(&str, &str)]) -> f64 {
    reads(&run(&beside_writers(scheduler, parameters))).mean_ns() / 1e3
}

#[test]
fn a_reader_stands_behind_writes_that_fill_the_controller_unless_the_scheduler_keeps_them_out() {
    let unlimited = read_us("none", &[]);
    assert!(unlimited < 300.0, "{unlimited} us without limit");
    let limited = |scheduler| {
        let mut setup = beside_writers(scheduler, &[("slots", "256")]);
        // Tags for all of them, as with ten hardware queues.
        setup.queue = given(&[("nr_requests", "1023")]);
        reads(&run(&setup)).mean_ns() / 1e3
    };
    let (none, deadline) = (limited("none"), limited("mq-deadline"));
    assert!(none > 20.0 * unlimited, "{none} against {unlimited} us");
    // kyber lets no more than 128 writes into the drive, so a read finds a slot; mq-deadline passes on
    // what the drive takes.
    let kyber = limited("kyber");
    assert!(kyber * 20.0 < none && kyber * 10.0 < deadline, "{kyber} of {none}, {deadline} us");
}

#[test]
fn slots_beyond_what_the_host_sends_change_no_bit() {
    for scheduler in ["none", "mq-deadline", "bfq"] {
        let of = |slots| fingerprint(&run(&beside_writers(scheduler, &[("slots", slots)])));
        assert_eq!(of("0"), of("65535"), "{scheduler}");
    }
}

#[test]
fn reads_that_may_not_suspend_programs_wait_for_them() {
    let of = |hold| read_us("kyber", &[("hold", hold)]);
    let (suspending, waiting) = (of("nothing"), of("program"));
    // Programs of 1.23 ms keep the dies busy nearly always.
    assert!(waiting > suspending + 300.0, "{waiting} against {suspending} us");
}

#[test]
fn collection_in_bursts_moves_as_much_and_stalls_longer() {
    let of = |burst, dies| {
        let text = "[a]\nrw=randwrite\nbs=64k\niodepth=16\ndirect=1\nioengine=libaio\ntime_based\n\
            ramp_time=100ms\nruntime=600ms\n";
        let mut setup = beside_writers("none", &[("spare_permille", "400")]);
        setup.jobs = parse(text, "test.fio").unwrap();
        setup.profile.set("collection_burst", burst).unwrap();
        setup.profile.set("collection_dies", dies).unwrap();
        let outcome = run(&setup);
        let writes = outcome.jobs[0].direction(Direction::Write);
        (writes.ios() as f64, writes.latency.max_ns() as f64)
    };
    let (in_step, bursts, slow) = (of("0", "0"), of("16m", "0"), of("16m", "16"));
    assert!((bursts.0 / in_step.0 - 1.0).abs() < 0.15, "{} of {} writes", bursts.0, in_step.0);
    assert!(bursts.1 > 2.0 * in_step.1, "{} and {} ns", bursts.1, in_step.1);
    // Sixteen dies at a time: the others serve the host meanwhile.
    assert!(slow.1 < 0.95 * bursts.1, "{} and {} ns", slow.1, bursts.1);
}

#[test]
fn reads_beyond_what_was_written_need_no_medium() {
    let alone = |fill| {
        let text = "[a]\nrw=randread\ndirect=1\nnumber_ios=400\n";
        let mut setup = setup("nvme-tlc", "none", text);
        setup.profile.set("fill", fill).unwrap();
        run(&setup).jobs[0].direction(Direction::Read).latency.mean_ns() / 1e3
    };
    let (full, half, empty) = (alone("100"), alone("50"), alone("0"));
    assert!(empty < 20.0 && full > 50.0, "{empty} and {full} us");
    assert!((half - f64::midpoint(empty, full)).abs() < 5.0, "{half} us");
}

#[test]
fn flushes_pass_a_controller_with_one_slot() {
    let text = "[a]\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=16\nfsync=4\nnumber_ios=100\n\
        [b]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=100\n";
    for device in ["ssd-sata", "nvme-tlc"] {
        for slots in ["1", "3"] {
            let mut setup = setup(device, "none", text);
            setup.profile.set("slots", slots).unwrap();
            let outcome = run(&setup);
            assert_eq!(job(&outcome, "a").direction(Direction::Write).ios(), 100);
            assert_eq!(job(&outcome, "b").direction(Direction::Read).ios(), 100);
        }
    }
}
