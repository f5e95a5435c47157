//! A RAM disk: its submitter copies, at once.

use blksim::core::processor_table::{ProcessorTable, StepCosts};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, check, simulate};

use crate::support::{cost_table, run, setup};

fn readers(jobs: u32, engine: &str, depth: u32) -> String {
    format!(
        "[a]\nrw=randread\ndirect=1\nioengine={engine}\niodepth={depth}\nnumjobs={jobs}\nsize=64m\n\
         time_based\nruntime=20ms\n"
    )
}

fn iops(outcome: &Outcome) -> f64 {
    let ios: u64 = outcome.jobs.iter().map(|job| job.direction(Direction::Read).ios()).sum();
    let runtime_ns = outcome.jobs.iter().map(|job| job.runtime_ns).max().unwrap();
    ios as f64 * 1e9 / runtime_ns as f64
}

fn on(jobs: &str, table: &ProcessorTable) -> f64 {
    let mut setup = setup("ramdisk", "none", jobs);
    setup.processors = Some(table.clone());
    iops(&run(&setup))
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} instead of {expected}");
}

#[test]
fn nothing_is_scheduled() {
    for scheduler in ["mq-deadline", "kyber", "bfq", "cfq"] {
        let error = check(&setup("ramdisk", scheduler, &readers(1, "libaio", 1))).unwrap_err();
        assert!(error.to_string().contains("take the scheduler none"), "{error}");
        assert!(simulate(&setup("ramdisk", scheduler, &readers(1, "libaio", 1))).is_err());
    }
    let facts = check(&setup("ramdisk", "none", &readers(1, "libaio", 1))).unwrap().facts;
    assert_eq!(blksim::elevator::default_for(&facts), "none");
}

#[test]
fn an_io_pays_for_its_way_its_copy_and_its_end_and_for_nothing_else() {
    let steps = StepCosts {
        prepare_ns: 100,
        system_call_ns: 200,
        submit_ns: 400,
        copy_page_ns: 800,
        end_ns: 1600,
        collect_ns: 3200,
        // Nobody is woken or interrupted, and no driver has a queue.
        issue_ns: 100_000,
        interrupt_ns: 100_000,
        wake_ns: 100_000,
        idle_exit_ns: 100_000,
        ..StepCosts::default()
    };
    let table = |cpus| ProcessorTable { cpus, steps, ..ProcessorTable::default() };
    let once_ns = 100 + 200 + 400 + 800 + 1600 + 3200;
    for (engine, depth) in [("psync", 1), ("libaio", 1), ("io_uring", 32)] {
        assert_near(on(&readers(1, engine, depth), &table(1)), 1e9 / f64::from(once_ns));
        assert_near(on(&readers(4, engine, depth), &table(4)), 4e9 / f64::from(once_ns));
    }
}

#[test]
fn without_a_table_one_processor_copies() {
    // 300 ns and 4 KiB at 10 GiB/s.
    let expected = 1e9 / (300.0 + 4096.0 * 1e9 / f64::from(10 << 20) / 1024.0);
    for jobs in [1, 4] {
        let outcome = run(&setup("ramdisk", "none", &readers(jobs, "libaio", 8)));
        assert_near(iops(&outcome), expected);
    }
}

#[test]
fn all_kinds_of_io_end() {
    let jobs = "[global]\nioengine=libaio\nsize=8m\nnumber_ios=300\n\
                [reader]\nrw=randread\ndirect=1\nnumjobs=3\niodepth=8\n\
                [writer]\nrw=randwrite\ndirect=1\niodepth=8\niodepth_batch=4\nbs=2m\n\
                [buffered]\nrw=randrw\nfsync=16\nnumjobs=2\n";
    for table in [None, Some(cost_table(1)), Some(cost_table(4))] {
        let mut setup = setup("ramdisk", "none", jobs);
        setup.processors = table;
        let outcome = run(&setup);
        let ios = |name: &str| -> u64 {
            let job = outcome.jobs.iter().find(|job| job.name == name).unwrap();
            [Direction::Read, Direction::Write].iter().map(|d| job.direction(*d).ios()).sum()
        };
        assert_eq!([ios("reader"), ios("writer"), ios("buffered")], [900, 4, 600]);
        assert_eq!(outcome.merges, 0);
    }
}
