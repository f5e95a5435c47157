//! A recorded simulation, replayed: the same bits under the scheduler that was recorded.

use std::collections::HashMap;

use blkrecord::io::Operation;
use blkreplay::{Options, ScaleTo};
use blksim::core::record::JobRecord;
use blksim::devices::Profile;
use blksim::devices::device::Device as _;
use blksim::engine::Limits;
use blksim::simulate::{Setup, Simulation};
use blksim::timeline::{IoRow, RequestRow, Timeline};
use blksim::workload::{parse, transfers};

use crate::samples::Recording;

fn setup(device: &str, scheduler: &str, jobs: &str) -> Setup {
    let path = format!("{}/../../devices/{device}.toml", env!("CARGO_MANIFEST_DIR"));
    Setup {
        profile: Profile::parse(&std::fs::read_to_string(&path).unwrap(), device).unwrap(),
        scheduler: scheduler.to_owned(),
        tunables: Vec::new(),
        queue: Vec::new(),
        machine: Vec::new(),
        cgroups: Vec::new(),
        jobs: parse(jobs, "test.fio").unwrap(),
        runtime_ns: None,
        seed: 7,
        arrangement: None,
        processors: None,
        limits: Limits::default(),
    }
}

/// Simulates; gives what the jobs measured, and what every request did.
fn run(setup: &Setup) -> (Vec<JobRecord>, Timeline) {
    let mut simulation = Simulation::new(setup, Vec::new()).unwrap();
    simulation.record(1 << 30);
    simulation.advance(u64::MAX).unwrap();
    (simulation.outcome().jobs, simulation.take_timeline().unwrap())
}

/// The recording of a simulation: commands are jobs.
fn recording_of(setup: &Setup, timeline: &Timeline) -> Recording {
    let mut recording = Recording::default();
    // The timeline is in the order of completion, and a request that waits for a tag arrives once it has one.
    // A process issues in its generator's order.
    let mut starts: HashMap<u32, Vec<u64>> = HashMap::new();
    for io in IoRow::all(&timeline.ios) {
        starts.entry(io.task).or_default().push(io.start_ns);
    }
    for starts in starts.values_mut() {
        starts.sort_unstable();
    }
    let order = order_of_issue(setup);
    let mut rows: Vec<(u64, u32, usize, RequestRow)> = RequestRow::all(&timeline.requests)
        .filter(|row| row.operation < 2)
        .map(|row| {
            let place = order[&(row.task, row.sector)];
            (starts[&row.task][place], row.task, place, row)
        })
        .collect();
    rows.sort_by_key(|(start_ns, task, place, _)| (*start_ns, *task, *place));
    for (start_ns, _, _, row) in rows {
        let operation = if row.operation == 0 { Operation::Read } else { Operation::Write };
        let times = (start_ns, Some(row.complete_ns));
        let bytes = u64::from(row.sectors) * 512;
        let io = recording.io(row.task, operation, row.sector, bytes, times);
        // Class and level as ioprio numbers them.
        let (class, level) = (u16::from(row.priority >> 3) + 1, u16::from(row.priority & 7));
        io.ioprio = class << 13 | level;
        let command = &setup.jobs.jobs[usize::from(row.job)].name;
        recording.batch.ios.last_mut().unwrap().command = recording.names.number_of(command);
    }
    recording
}

/// The place of each I/O among those of its process, by its first sector.
fn order_of_issue(setup: &Setup) -> HashMap<(u32, u64), usize> {
    let capacity = setup.profile.build(setup.seed).unwrap().facts().capacity_bytes;
    let all = transfers(&setup.jobs.jobs, capacity, setup.seed, usize::MAX).unwrap();
    let clones = (0..).zip(all.into_iter().flatten());
    clones
        .flat_map(|(task, ios)| {
            ios.into_iter().enumerate().map(move |(place, io)| ((task, io.offset / 512), place))
        })
        .collect()
}

fn replay(recording: Recording, device: &str, scheduler: &str) -> (Vec<JobRecord>, Timeline) {
    let options = Options { scale_to: ScaleTo::Recorded, ..Options::new("test") };
    let made = recording.workload(&options).unwrap();
    run(&setup(device, scheduler, &made.job_file))
}

const LOADS: [&str; 5] = [
    "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nsize=2g\nnumber_ios=600\n",
    "[a]\nrw=randrw\nrwmixread=60\ndirect=1\nioengine=libaio\niodepth=16\nsize=1g\nnumber_ios=500\nnumjobs=3\n",
    "[r]\nrw=read\nbs=64k\ndirect=1\nsize=24m\n[w]\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=32\nsize=512m\nnumber_ios=900\n",
    "[t]\nrw=randread\ndirect=1\nthinktime=300\nthinktime_blocks=3\nsize=1g\nnumber_ios=300\nnumjobs=2\n\
     [i]\nrw=randread\ndirect=1\nprioclass=3\nsize=1g\nnumber_ios=200\n[rt]\nrw=randread\ndirect=1\nprioclass=1\nprio=2\nsize=1g\nnumber_ios=200\n",
    "[paced]\nrw=randwrite\nrate_iops=700\ndirect=1\nsize=256m\nnumber_ios=300\n[b]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nsize=1g\nnumber_ios=500\n",
];

#[test]
fn a_recorded_simulation_replays_to_the_same_bits() {
    for device in ["hdd-7200", "ssd-sata", "nvme-tlc"] {
        for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
            for load in LOADS {
                let setup = setup(device, scheduler, load);
                let (measured, timeline) = run(&setup);
                let (again, replayed) = replay(recording_of(&setup, &timeline), device, scheduler);
                let same = timeline.requests == replayed.requests;
                assert!(same, "{device} {scheduler} {load}");
                let ends = |jobs: &[JobRecord]| jobs.iter().map(|job| job.runtime_ns).max();
                assert_eq!(ends(&measured), ends(&again), "{device} {scheduler} {load}");
            }
        }
    }
}

#[test]
fn reads_have_a_plug_where_the_machines_have() {
    let plugged = |jobs: &str| Setup {
        machine: vec![("plug_reads".to_owned(), "1".to_owned())],
        ..setup("nvme-tlc", "mq-deadline", jobs)
    };
    let setup = plugged(LOADS[1]);
    let (_, timeline) = run(&setup);
    let options = Options { scale_to: ScaleTo::Recorded, ..Options::new("test") };
    let made = recording_of(&setup, &timeline).workload(&options).unwrap();
    assert!(timeline.requests == run(&plugged(&made.job_file)).1.requests);
}

#[test]
fn latencies_are_the_programs_where_submission_does_not_sleep() {
    let words = |jobs: &[JobRecord]| jobs.iter().map(JobRecord::words).collect::<Vec<_>>();
    let setup = setup("hdd-7200", "mq-deadline", LOADS[0]);
    let (measured, timeline) = run(&setup);
    let (again, _) = replay(recording_of(&setup, &timeline), "hdd-7200", "mq-deadline");
    assert_eq!(words(&measured), words(&again));
}

#[test]
fn a_replay_under_another_scheduler_differs() {
    let setup = setup("hdd-7200", "none", LOADS[3]);
    let (_, timeline) = run(&setup);
    let (_, replayed) = replay(recording_of(&setup, &timeline), "hdd-7200", "bfq");
    assert!(timeline.requests != replayed.requests);
}
