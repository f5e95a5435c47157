//! Several hardware queues, and the processors that complete their requests.

use blksim::core::processor_table::{ProcessorTable, SchedulerCosts, StepCosts};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup};

use crate::support::{cost_table, fingerprint, fixed, run};

const DIRECT: &str = "direct=1\nioengine=libaio\ntime_based\nsize=64m\n";

fn readers(jobs: u32, depth: u32) -> String {
    format!("[a]\n{DIRECT}rw=randread\nruntime=50ms\nnumjobs={jobs}\niodepth={depth}\n")
}

fn on(mut setup: Setup, table: &ProcessorTable) -> Outcome {
    setup.processors = Some(table.clone());
    run(&setup)
}

fn iops(outcome: &Outcome) -> f64 {
    let ios: u64 = outcome.jobs.iter().map(|job| job.direction(Direction::Read).ios()).sum();
    let runtime_ns = outcome.jobs.iter().map(|job| job.runtime_ns).max().unwrap();
    ios as f64 * 1e9 / runtime_ns as f64
}

fn fast(hw_queues: &str, scheduler: &str, jobs: &str) -> Setup {
    fixed(&[("latency", "10us"), ("depth", "512"), ("hw_queues", hw_queues)], scheduler, jobs)
}

#[test]
fn one_processor_uses_one_queue() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        for table in [None, Some(cost_table(1))] {
            let with = |hw_queues| {
                let mut setup = fast(hw_queues, scheduler, &readers(2, 16));
                setup.processors.clone_from(&table);
                fingerprint(&run(&setup))
            };
            assert_eq!(with("1"), with("8"), "{scheduler}");
        }
    }
}

#[test]
fn queues_scale_where_the_scheduler_works_by_queues() {
    let costs = SchedulerCosts {
        insert_ns: 1000,
        dispatch_ns: 1000,
        locked_percent: 100,
        ..SchedulerCosts::default()
    };
    let of = |name: &str| (name.to_owned(), costs);
    let table = ProcessorTable {
        cpus: 8,
        steps: StepCosts { submit_ns: 1000, issue_ns: 100, ..StepCosts::default() },
        schedulers: vec![of("kyber"), of("mq-deadline")],
        ..ProcessorTable::default()
    };
    let gain = |scheduler| {
        let rate = |hw_queues| iops(&on(fast(hw_queues, scheduler, &readers(8, 16)), &table));
        rate("8") / rate("1")
    };
    assert!(gain("kyber") > 3.0, "{}", gain("kyber"));
    assert!((0.8..1.25).contains(&gain("mq-deadline")), "{}", gain("mq-deadline"));
}

#[test]
fn the_drivers_lock_bounds_what_one_queue_takes() {
    let steps =
        StepCosts { submit_ns: 500, issue_ns: 1000, lock_handover_ns: 500, ..StepCosts::default() };
    let table = ProcessorTable { cpus: 8, steps, ..ProcessorTable::default() };
    let rate = |hw_queues| iops(&on(fast(hw_queues, "none", &readers(8, 16)), &table));
    assert!(rate("1") < 1.001e9 / 1000.0, "{}", rate("1"));
    assert!(rate("8") > 3e9 / 1000.0, "{}", rate("8"));
}

#[test]
fn each_queue_has_tags_of_its_own_unless_they_are_shared() {
    let peaks = |shared, hw_queues| {
        let parameters =
            [("latency", "1ms"), ("depth", "4"), ("hw_queues", hw_queues), ("shared_tags", shared)];
        let outcome = on(fixed(&parameters, "none", &readers(4, 16)), &cost_table(4));
        // The device serves four at once either way.
        assert!((3800.0..4001.0).contains(&iops(&outcome)), "{}", iops(&outcome));
        (outcome.peak_in_flight, outcome.peak_tags)
    };
    assert_eq!(peaks("0", "4"), (16, 16));
    assert_eq!(peaks("0", "2"), (8, 8), "two processors share a queue");
    assert_eq!(peaks("1", "4"), (4, 4));
}

#[test]
fn the_interrupted_processor_completes_unless_the_submitter_has_to() {
    let rate = |rq_affinity: &str, ipi_ns| {
        let steps = StepCosts { submit_ns: 500, end_ns: 2000, ipi_ns, ..StepCosts::default() };
        let table = ProcessorTable { cpus: 4, steps, ..ProcessorTable::default() };
        let mut setup = fast("1", "none", &readers(4, 16));
        setup.queue.push(("rq_affinity".to_owned(), rq_affinity.to_owned()));
        let outcome = on(setup, &table);
        (iops(&outcome), outcome.processors.unwrap().busy_ns)
    };
    for rq_affinity in ["0", "1"] {
        let (rate, busy_ns) = rate(rq_affinity, 0);
        assert!(rate < 1.001e9 / 2000.0, "all complete on one processor: {rate}");
        assert!(busy_ns[1..].iter().all(|other_ns| *other_ns < busy_ns[0] / 2), "{busy_ns:?}");
    }
    let ((free, busy_ns), (costly, _)) = (rate("2", 0), rate("2", 1000));
    assert!(free > 2e9 / 2000.0, "{free}");
    assert!(busy_ns[1..].iter().all(|other_ns| *other_ns > busy_ns[0] / 2), "{busy_ns:?}");
    assert!(costly < 1.001e9 / 1000.0, "one processor sends an interrupt for each: {costly}");
}

#[test]
fn a_thread_has_the_submitter_complete_if_asked_to() {
    let rate = |rq_affinity: &str| {
        let mut setup = crate::support::setup("loop", "none", &readers(2, 16));
        setup.queue.push(("rq_affinity".to_owned(), rq_affinity.to_owned()));
        let table = cost_table(4);
        iops(&on(setup, &table))
    };
    assert!((rate("2") / rate("1") - 1.0).abs() > 1e-6);
    assert!(rate("2") > 0.5 * rate("1"));
}

#[test]
fn few_tags_on_several_queues_lose_no_request() {
    let jobs = "[global]\ndirect=1\nioengine=libaio\nsize=8m\nnumber_ios=300\n\
                [reader]\nrw=randread\nnumjobs=5\niodepth=8\n\
                [writer]\nrw=randwrite\nnumjobs=3\niodepth=4\niodepth_batch=4\n\
                [syncing]\nrw=write\nfsync=4\n\
                [buffered]\nrw=randrw\ndirect=0\nfsync=16\nnumjobs=2\n";
    for scheduler in ["none", "mq-deadline", "kyber", "kyber-4.12", "bfq"] {
        for (hw_queues, cpus, shared) in
            [("8", 8, "0"), ("3", 8, "0"), ("3", 2, "0"), ("4", 4, "1")]
        {
            for depth in ["1", "2"] {
                let parameters = [
                    ("latency", "100us"),
                    ("depth", depth),
                    ("hw_queues", hw_queues),
                    ("shared_tags", shared),
                ];
                let setup = fixed(&parameters, scheduler, jobs);
                let outcome = on(setup.clone(), &cost_table(cpus));
                let ios = |name: &str| {
                    let job = outcome.jobs.iter().find(|job| job.name == name).unwrap();
                    [Direction::Read, Direction::Write]
                        .iter()
                        .map(|d| job.direction(*d).ios())
                        .sum()
                };
                let done: [u64; 4] =
                    [ios("reader"), ios("writer"), ios("syncing"), ios("buffered")];
                assert_eq!(done, [1500, 900, 300, 600], "{scheduler}, {hw_queues} queues");
                assert_eq!(fingerprint(&outcome), fingerprint(&on(setup, &cost_table(cpus))));
            }
        }
    }
}
