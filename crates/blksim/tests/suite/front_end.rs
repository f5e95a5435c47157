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
fn writes_wait_while_garbage_is_collected_and_reads_do_not() {
    let of = |parameters: &[(&str, &str)]| {
        let jobs = "[global]\ndirect=1\nioengine=libaio\ntime_based\nramp_time=100ms\nruntime=600ms\n\
            [reader]\nrw=randread\nbs=4k\n[writer]\nrw=randwrite\nbs=64k\niodepth=16\n";
        let mut setup = beside_writers("none", parameters);
        setup.profile.set("spare_permille", "400").unwrap();
        setup.jobs = parse(jobs, "test.fio").unwrap();
        let outcome = run(&setup);
        let writes = job(&outcome, "writer").direction(Direction::Write);
        (writes.ios() as f64, writes.latency.max_ns() as f64, reads(&outcome).max_ns() as f64)
    };
    let beside = of(&[("collection_commands", "512"), ("collection_dies", "16")]);
    let stopped =
        of(&[("collection_commands", "512"), ("collection_dies", "16"), ("collection_stops", "1")]);
    assert!(stopped.0 < 0.95 * beside.0, "{} of {} writes", stopped.0, beside.0);
    assert!(stopped.1 > 1.2 * beside.1, "{} and {} ns", stopped.1, beside.1);
    assert!(stopped.2 < 0.3 * stopped.1, "a read waited {} of {} ns", stopped.2, stopped.1);
}

#[test]
fn small_and_large_writes_cause_as_many_bursts_if_commands_count() {
    let longest_ns = |bs, burst: (&str, &str)| {
        let jobs = format!(
            "[writer]\nrw=randwrite\nbs={bs}\niodepth=16\ndirect=1\nioengine=libaio\ntime_based\n\
             ramp_time=100ms\nruntime=400ms\n"
        );
        let stops = [burst, ("collection_stops", "1"), ("collection_dies", "64")];
        let mut setup = beside_writers("none", &stops);
        setup.profile.set("spare_permille", "400").unwrap();
        setup.jobs = parse(&jobs, "test.fio").unwrap();
        run(&setup).jobs[0].direction(Direction::Write).latency.max_ns() as f64
    };
    let ratio = |burst| longest_ns("64k", burst) / longest_ns("4k", burst);
    let (bytes, commands) =
        (ratio(("collection_burst", "64m")), ratio(("collection_commands", "1024")));
    assert!(bytes < 2.0, "a burst of bytes: {bytes} times as long");
    assert!(commands > 3.0, "a burst of commands: {commands} times as long");
}

#[test]
fn a_controller_takes_commands_while_its_link_is_busy() {
    let iops = |command, fetch| {
        let text =
            "[a]\nrw=randread\nbs=4k\niodepth=512\ndirect=1\nioengine=libaio\nnumber_ios=20000\n";
        let mut setup = setup("nvme-tlc", "none", text);
        for (name, text) in
            [("link_read_rate", "1920000000"), ("command", command), ("fetch", fetch)]
        {
            setup.profile.set(name, text).unwrap();
        }
        let outcome = run(&setup);
        let latency = &outcome.jobs[0].direction(Direction::Read).latency;
        512e9 / latency.mean_ns()
    };
    let (apart, beside) = (iops("700ns", "0"), iops("0", "700ns"));
    assert!((apart / 353_000.0 - 1.0).abs() < 0.05, "{apart} a second, command after command");
    assert!((beside / 468_000.0 - 1.0).abs() < 0.05, "{beside} a second, as the link carries");
    let slow = iops("0", "4us");
    assert!((slow / 250_000.0 - 1.0).abs() < 0.05, "{slow} a second through a slow controller");
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
