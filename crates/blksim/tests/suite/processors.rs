//! Machines whose computing takes time: laws, and loads whose rates can be worked out by hand.

use blksim::core::processor_table::{ProcessorTable, SchedulerCosts, StepCosts};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup};

use crate::support::{cost_table, fingerprint, fixed, run, setup, slots_of};

const LATENCY_NS: u64 = 100_000;

fn iops(outcome: &Outcome) -> f64 {
    let ios: u64 = outcome.jobs.iter().map(|job| job.direction(Direction::Read).ios()).sum();
    let runtime_ns = outcome.jobs.iter().map(|job| job.runtime_ns).max().unwrap();
    ios as f64 * 1e9 / runtime_ns as f64
}

fn readers(jobs: u32, depth: u32) -> String {
    format!(
        "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth={depth}\nnumjobs={jobs}\n\
         size=64m\ntime_based\nruntime=50ms\n"
    )
}

fn on(mut setup: Setup, table: &ProcessorTable) -> Outcome {
    setup.processors = Some(table.clone());
    run(&setup)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} instead of {expected}");
}

#[test]
fn a_table_of_zeros_on_one_processor_changes_nothing() {
    let free = ProcessorTable { cpus: 1, ..ProcessorTable::default() };
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let plain = setup("hdd-7200", scheduler, &readers(1, 1));
        let with_table = on(plain.clone(), &free);
        assert_eq!(fingerprint(&with_table), fingerprint(&run(&plain)), "{scheduler}");
    }
}

#[test]
fn next_to_no_cost_changes_next_to_nothing() {
    let steps = StepCosts { submit_ns: 1, end_ns: 1, ..StepCosts::default() };
    let table = ProcessorTable { cpus: 1, steps, ..ProcessorTable::default() };
    for device in ["hdd-7200", "ssd-sata"] {
        // bfq takes an I/O that ends in the moment of the next for one without a pause, so that any
        // cost matters to it (`bfq_update_io_intensity`).
        for scheduler in ["none", "mq-deadline", "kyber"] {
            for (jobs, depth) in [(1, 1), (1, 32), (4, 8)] {
                let mut plain = setup(device, scheduler, &readers(jobs, depth));
                plain.runtime_ns = Some(2_000_000_000);
                let ratio = iops(&on(plain.clone(), &table)) / iops(&run(&plain));
                assert!((0.97..1.03).contains(&ratio), "{scheduler} on {device}: {ratio}");
            }
        }
    }
}

#[test]
fn one_io_at_a_time_waits_for_the_device_and_for_each_step() {
    let steps = StepCosts {
        prepare_ns: 100,
        system_call_ns: 200,
        submit_ns: 400,
        issue_ns: 800,
        interrupt_ns: 1600,
        end_ns: 3200,
        wake_ns: 6400,
        collect_ns: 12_800,
        idle_exit_ns: 25_600,
        ..StepCosts::default()
    };
    let table = ProcessorTable { cpus: 1, steps, ..ProcessorTable::default() };
    let setup = fixed(&[("latency", "100us")], "none", &readers(1, 1));
    let once_ns = 100 + 200 + 400 + 800 + LATENCY_NS + 25_600 + 1600 + 3200 + 6400 + 12_800;
    assert_near(iops(&on(setup, &table)), 1e9 / once_ns as f64);
}

#[test]
fn io_uring_pays_for_what_finds_no_tag_and_libaio_does_not() {
    let table = ProcessorTable { punt_ns: 50_000, ..cost_table(2) };
    let load = |depth: u32, engine: &str| {
        let jobs = readers(1, depth).replace("ioengine=libaio", &format!("ioengine={engine}"));
        assert!(jobs.contains(engine), "{jobs}");
        iops(&on(fixed(&[("latency", "100us"), ("depth", "16")], "none", &jobs), &table))
    };
    assert_near(load(16, "io_uring"), load(16, "libaio"));
    let (punted, slept) = (load(64, "io_uring"), load(64, "libaio"));
    assert!(punted < 0.8 * slept, "{punted} with workers, {slept} asleep");
}

#[test]
fn the_driver_pays_for_each_page_beyond_the_first() {
    let iops_of = |bs: &str, map_page_ns| {
        let table = ProcessorTable { map_page_ns, ..cost_table(1) };
        let jobs = readers(1, 1).replace("[a]\n", &format!("[a]\nbs={bs}\n"));
        assert!(jobs.contains(bs), "{jobs}");
        iops(&on(fixed(&[("latency", "100us")], "none", &jobs), &table))
    };
    assert_near(iops_of("4k", 5_000), iops_of("4k", 0));
    let (plain_ns, paid_ns) = (1e9 / iops_of("64k", 0), 1e9 / iops_of("64k", 5_000));
    assert_near(paid_ns, plain_ns + 15.0 * 5_000.0);
}

#[test]
fn the_workers_of_a_ring_switch_where_libaio_sleeps_once() {
    let mut table = ProcessorTable { punt_ns: 1, ..cost_table(2) };
    table.steps.context_switch_ns = 20_000;
    let load = |engine: &str| {
        let jobs = readers(1, 64).replace("ioengine=libaio", &format!("ioengine={engine}"));
        iops(&on(fixed(&[("latency", "100us"), ("depth", "16")], "none", &jobs), &table))
    };
    let (punted, slept) = (load("io_uring"), load("libaio"));
    assert!(punted < 0.95 * slept, "{punted} with workers, {slept} asleep");
}

#[test]
fn every_io_of_a_batch_is_prepared_and_all_are_one_system_call() {
    let steps = StepCosts { prepare_ns: 100, system_call_ns: 5000, ..StepCosts::default() };
    let table = ProcessorTable { cpus: 1, steps, ..ProcessorTable::default() };
    let jobs = readers(1, 8).replace("iodepth=8", "iodepth=8\niodepth_batch=8");
    let setup = fixed(&[("latency", "100us")], "none", &jobs);
    assert_near(iops(&on(setup, &table)), 8e9 / (LATENCY_NS + 5000 + 800) as f64);
}

#[test]
fn schedulers_that_take_turns_pay_for_themselves() {
    let mut table = cost_table(2);
    for (name, costs) in &mut table.schedulers {
        costs.insert_ns = if name == "bfq" { 20_000 } else { 100 };
    }
    let mut setup = setup("loop", "kyber", &readers(1, 32));
    setup.runtime_ns = Some(300_000_000);
    setup.processors = Some(table);
    let ios: Vec<u64> = slots_of(&setup, 50, 20, &["kyber", "bfq"])
        .iter()
        .map(|slot| slot.record.jobs[0].direction(Direction::Read).ios())
        .collect();
    assert!(ios[0] > 3 * ios[1], "{ios:?} under kyber and an expensive bfq");
}

#[test]
fn a_busy_processor_bounds_the_rate() {
    let steps = StepCosts { submit_ns: 2000, end_ns: 1000, ..StepCosts::default() };
    let table = |cpus| ProcessorTable { cpus, steps, ..ProcessorTable::default() };
    // A hardware queue for each processor, so that each completes what it submits.
    let parameters = [("latency", "10us"), ("depth", "512"), ("hw_queues", "4")];
    let load = |jobs| fixed(&parameters, "none", &readers(jobs, 32));
    assert_near(iops(&on(load(1), &table(1))), 1e9 / 3000.0);
    assert_near(iops(&on(load(4), &table(1))), 1e9 / 3000.0);
    assert_near(iops(&on(load(4), &table(4))), 4e9 / 3000.0);
}

#[test]
fn a_lock_bounds_the_rate_of_all_processors_together() {
    let steps = StepCosts { submit_ns: 1000, ..StepCosts::default() };
    let costs = SchedulerCosts { insert_ns: 1500, dispatch_ns: 500, ..SchedulerCosts::default() };
    let table = |locked_percent| ProcessorTable {
        cpus: 8,
        steps,
        schedulers: vec![("mq-deadline".to_owned(), SchedulerCosts { locked_percent, ..costs })],
        ..ProcessorTable::default()
    };
    let load = || fixed(&[("latency", "10us"), ("depth", "512")], "mq-deadline", &readers(8, 16));
    let (locked, free) = (iops(&on(load(), &table(100))), iops(&on(load(), &table(0))));
    assert!(locked <= 1e9 / 2000.0 * 1.001, "{locked} under a lock of 2 us per request");
    assert!(free > 1.5 * locked, "{free} without a lock, {locked} with one");
}

#[test]
fn more_processors_do_not_make_it_slower() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let rate = |cpus| iops(&on(setup("loop", scheduler, &readers(2, 32)), &cost_table(cpus)));
        assert!(rate(2) > rate(1), "{scheduler}");
        assert!(rate(4) > 0.9 * rate(2), "{scheduler}");
    }
}

#[test]
fn a_scheduler_that_computes_more_does_less() {
    let rate = |scheduler| iops(&on(setup("loop", scheduler, &readers(1, 32)), &cost_table(2)));
    assert!(rate("none") > rate("mq-deadline"));
    assert!(rate("mq-deadline") > rate("bfq"));
    let outcome = on(setup("loop", "bfq", &readers(1, 32)), &cost_table(2));
    let busy_ns: u64 = outcome.processors.as_ref().unwrap().busy_ns.iter().sum();
    assert!(outcome.processors.unwrap().scheduler_ns < busy_ns);
}

#[test]
fn a_thread_copies_on_one_processor_at_a_time() {
    let steps = StepCosts { submit_ns: 1000, copy_page_ns: 400, ..StepCosts::default() };
    let table = ProcessorTable { cpus: 8, steps, ..ProcessorTable::default() };
    for depth in [4, 32] {
        let jobs = readers(1, depth).replace("size=64m", "size=64m\nbs=64k");
        assert_near(iops(&on(setup("loop", "none", &jobs), &table)), 1e9 / (16.0 * 400.0));
    }
}

#[test]
fn a_thread_takes_the_percentages_of_its_loop_device() {
    let steps = StepCosts { thread_command_ns: 1000, copy_page_ns: 500, ..StepCosts::default() };
    let table = ProcessorTable { cpus: 4, steps, ..ProcessorTable::default() };
    let percentages = [
        ("read_command_percent", "200"),
        ("read_copy_percent", "50"),
        ("write_command_percent", "300"),
        ("write_copy_percent", "400"),
    ];
    let ns = |rw: &str, parameters: &[(&str, &str)]| {
        let mut setup = setup("loop", "none", &readers(1, 32).replace("randread", rw));
        for (name, text) in parameters {
            setup.profile.set(name, text).unwrap();
        }
        let outcome = on(setup, &table);
        let ios: u64 = Direction::OF_DATA
            .map(|direction| outcome.jobs[0].direction(direction).ios())
            .iter()
            .sum();
        outcome.jobs[0].runtime_ns as f64 / ios as f64
    };
    assert_near(ns("randread", &[]), 1500.0);
    assert_near(ns("randwrite", &[]), 1500.0);
    // Nothing is copied.
    assert_near(ns("randtrim", &[]), 1000.0);
    assert_near(ns("randtrim", &percentages), 3000.0);
    assert_near(ns("randread", &percentages), 2250.0);
    assert_near(ns("randwrite", &percentages), 5000.0);
}

#[test]
fn the_same_request_gives_the_same_bits() {
    let once = || on(setup("loop", "kyber", &readers(4, 8)), &cost_table(3));
    let (one, other) = (once(), once());
    assert_eq!(fingerprint(&one), fingerprint(&other));
    assert_eq!(one.processors, other.processors);
}

#[test]
fn calls_that_end_at_once_leave_the_processor_to_others() {
    let table = ProcessorTable {
        cpus: 2,
        slice_ns: 3_000_000,
        steps: StepCosts { system_call_ns: 500, copy_page_ns: 200, ..StepCosts::default() },
        ..ProcessorTable::default()
    };
    // Hundreds of thousands of calls, none of which waits for the disk; a reader waits for its turn.
    let jobs = "[global]\nsize=512m\ntime_based\nruntime=200ms\n[writer]\nrw=write\nbs=4k\nnumjobs=2\n\
                [reader]\nrw=randread\nbs=4k\ndirect=1\n";
    for device in ["ssd-sata", "hdd-7200"] {
        let mut setup = setup(device, "none", jobs);
        setup.machine = vec![("dirty_ratio".to_owned(), "90".to_owned())];
        let outcome = on(setup, &table);
        let ios = |job: usize, direction| outcome.jobs[job].direction(direction).ios();
        assert!(ios(0, Direction::Write) > 100_000, "{device}");
        assert!(ios(1, Direction::Read) > 10, "{device}: {}", ios(1, Direction::Read));
    }
}
