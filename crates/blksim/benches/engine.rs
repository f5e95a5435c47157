//! Simulated requests a second, on one core.
//!
//! `cargo bench -p blksim` prints the throughput of each case in elements
//! (requests) a second.

mod bare;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use blksim::core::record::Direction;
use blksim::devices::Profile;
use blksim::engine::Limits;
use blksim::simulate::{Setup, Simulation, simulate};
use blksim::workload::parse;
use blksim::workload::replay::{KEY, ReplayIo, TaskPlan, encode};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// 4 KiB random reads at depth 32 that end after `count` I/Os.
fn setup(device: &str, scheduler: &str, count: u64) -> Setup {
    let job = format!(
        "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nnumber_ios={count}\n"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../devices/{device}.toml"));
    let profile = match std::fs::read_to_string(&path) {
        Ok(text) => Profile::parse(&text, device),
        Err(_) => Profile::of_kind(device, device),
    };
    Setup {
        profile: profile.expect("the profile is valid"),
        scheduler: scheduler.to_owned(),
        tunables: Vec::new(),
        queue: Vec::new(),
        machine: Vec::new(),
        cgroups: Vec::new(),
        jobs: parse(&job, "bench").expect("the job is valid"),
        runtime_ns: None,
        seed: 1,
        arrangement: None,
        processors: None,
        limits: Limits::default(),
    }
}

fn engine(criterion: &mut Criterion) {
    let cases = [
        ("fixed", "none", 1_000_000),
        ("nvme-tlc", "none", 1_000_000),
        ("nvme-tlc", "noop", 1_000_000),
        ("nvme-tlc", "deadline", 1_000_000),
        ("nvme-tlc", "mq-deadline", 1_000_000),
        ("nvme-tlc", "anticipatory", 1_000_000),
        ("nvme-tlc", "cfq", 1_000_000),
        ("nvme-tlc", "cfq-2.6.32", 1_000_000),
        ("nvme-tlc", "kyber", 1_000_000),
        ("nvme-tlc", "bfq", 1_000_000),
        ("hdd-7200", "none", 200_000),
    ];
    let mut group = criterion.benchmark_group("requests");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    for (device, scheduler, count) in cases {
        let setup = setup(device, scheduler, count);
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("{device}/{scheduler}"), |bencher| {
            bencher.iter(|| black_box(simulate(&setup)).expect("the simulation runs"));
        });
    }
    for depth in [32, 1024] {
        group.throughput(Throughput::Elements(1_000_000));
        group.bench_function(format!("bare/{depth}"), |bencher| {
            bencher.iter(|| black_box(bare::simulate(1_000_000, black_box(depth))));
        });
    }
    // What it costs to be watched.
    let setup = setup("nvme-tlc", "none", 1_000_000);
    group.throughput(Throughput::Elements(1_000_000));
    group.bench_function("nvme-tlc/none/recorded", |bencher| {
        bencher.iter(|| {
            let mut simulation = Simulation::new(&setup, Vec::new()).expect("the setup is valid");
            simulation.record(1 << 30);
            simulation.advance(u64::MAX).expect("the simulation runs");
            black_box(simulation.take_timeline())
        });
    });
    group.finish();
}

/// Cost of a request against the number of requests that wait: one job keeps
/// the given number of I/Os outstanding, or as many tasks keep one each.
fn queue_length(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("outstanding");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    for scheduler in ["mq-deadline", "deadline", "kyber", "bfq"] {
        for outstanding in [10_u64, 100, 1_000, 10_000, 100_000] {
            // Filling the queue is part of a run: it must not be the larger part.
            let count = 10 * outstanding.max(100_000);
            let mut setup = setup("nvme-tlc", scheduler, count);
            setup.jobs.jobs[0].iodepth = outstanding as u32;
            setup.queue = vec![("nr_requests".to_owned(), outstanding.to_string())];
            group.throughput(Throughput::Elements(count));
            group.bench_function(format!("{scheduler}/{outstanding}"), |bencher| {
                bencher.iter(|| black_box(simulate(&setup)).expect("the simulation runs"));
            });
        }
    }
    for tasks in [10_u64, 1_000, 50_000] {
        let count = 10 * tasks.max(100_000);
        let mut setup = setup("nvme-tlc", "mq-deadline", count / tasks);
        setup.jobs.jobs[0].iodepth = 1;
        setup.jobs.jobs[0].numjobs = tasks as u32;
        group.throughput(Throughput::Elements(count));
        // 256 tags: the other tasks sleep until one is free.
        group.bench_function(format!("mq-deadline/{tasks} tasks"), |bencher| {
            bencher.iter(|| black_box(simulate(&setup)).expect("the simulation runs"));
        });
    }
    group.finish();
}

/// Random reads as recorded I/Os, each of which waits for the one 32 before it.
fn replay(criterion: &mut Criterion) {
    const COUNT: u32 = 1_000_000;
    let io = |index: u32| {
        let offset = u64::from(index.wrapping_mul(0x9e37_79b1) >> 5) * 4096;
        ReplayIo {
            waits_for: index.saturating_sub(31),
            rank: index,
            ..ReplayIo::plain(Direction::Read, offset, 4096)
        }
    };
    let plan = TaskPlan { ios: (0..COUNT).map(io).collect(), ..TaskPlan::default() };
    let text = format!(
        "[reader]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nsize=512g\n{KEY}={}\n",
        encode(&[plan])
    );
    let mut group = criterion.benchmark_group("replayed");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Elements(COUNT.into()));
    group.bench_function("reading the plan", |bencher| {
        bencher.iter(|| black_box(parse(&text, "bench")).expect("the job is valid"));
    });
    for scheduler in ["none", "mq-deadline", "bfq"] {
        let mut setup = setup("nvme-tlc", scheduler, 1);
        setup.jobs = parse(&text, "bench").expect("the job is valid");
        group.bench_function(format!("nvme-tlc/{scheduler}"), |bencher| {
            bencher.iter(|| black_box(simulate(&setup)).expect("the simulation runs"));
        });
    }
    group.finish();
}

criterion_group!(benches, engine, replay, queue_length);
criterion_main!(benches);
