//! Recordings that cannot be replayed, and what is said of those that can.

use blkrecord::io::{Io, Moment, Operation};
use blkreplay::{Kind, Options, ReplayError, ScaleTo};
use blksim::workload::parse;

use crate::samples::{Recording, of_bytes, plans_of};

fn refused(result: Result<blkreplay::Workload, ReplayError>) -> (String, String) {
    match result {
        Err(ReplayError::Unfit { message, hint }) => (message, hint),
        other => panic!("{other:?}"),
    }
}

fn without_completions() -> Recording {
    let mut recording = Recording::default();
    for number in 0..4 {
        recording.io(1, Operation::Read, number * 8, 4096, (number * 1000, None));
    }
    recording
}

#[test]
fn without_completions_a_replay_is_open_and_says_so() {
    let made = without_completions().workload(&Options::new("t")).unwrap();
    assert_eq!(made.summary.replay, "open");
    assert!(made.summary.notes[0].contains("only latencies count"), "{:?}", made.summary.notes);
    assert!(made.job_file.contains("decide-by: latency_mean"));
    let plan = &plans_of(&made)[0];
    assert!(plan.ios.iter().all(|io| io.waits_for == 0));
    let times: Vec<u64> = plan.ios.iter().map(|io| io.think_ns).collect();
    assert_eq!(times, [0, 1000, 2000, 3000]);
    let closed = Options { kind: Kind::Closed, ..Options::new("t") };
    let (message, hint) = refused(without_completions().workload(&closed));
    assert!(message.contains("no completions") && hint.contains("replay=closed"));
}

#[test]
fn speed_divides_times() {
    let fast = Options { speed: 4.0, kind: Kind::Open, ..Options::new("t") };
    let plan = &plans_of(&without_completions().workload(&fast).unwrap())[0];
    let times: Vec<u64> = plan.ios.iter().map(|io| io.think_ns).collect();
    assert_eq!(times, [0, 250, 500, 750]);
}

#[test]
fn one_of_several_devices_must_be_chosen() {
    let two = || {
        let mut recording = without_completions();
        recording.batch.ios[3].device = 5;
        recording
    };
    let (message, hint) = refused(two().workload(&Options::new("t")));
    assert!(message.contains("2 devices") && hint.contains("device=NAME: disk0 (3 I/Os), disk5"));
    let chosen = Options { device: Some("disk5".to_owned()), ..Options::new("t") };
    assert_eq!(two().workload(&chosen).unwrap().summary.ios, 1);
    let wrong = Options { device: Some("sda".to_owned()), ..Options::new("t") };
    assert!(refused(two().workload(&wrong)).0.contains("\"sda\""));
}

#[test]
fn what_no_replay_makes_is_counted() {
    let mut recording = Recording::default();
    recording.read(1, 0, 10);
    recording.io(1, Operation::Discard, 0, 4096, (20, Some(30)));
    let made = recording.workload(&Options::new("t")).unwrap();
    assert_eq!(made.summary.ios, 1);
    assert!(made.summary.notes.contains(&"left out: 1 discard".to_owned()));
    let mut recording = Recording::default();
    recording.io(1, Operation::Discard, 0, 4096, (20, Some(30)));
    let (message, _) = refused(recording.workload(&Options::new("t")));
    assert!(message.contains("neither reads, writes nor flushes"));
    assert!(refused(Recording::default().workload(&Options::new("t"))).0.contains("no I/O"));
}

#[test]
fn impossible_values_do_no_harm() {
    let mut recording = Recording::default();
    let far = u64::MAX - 5;
    recording.batch.ios.push(Io::new(Moment::at(Moment::MAX_NS), Operation::Read, far, u64::MAX));
    recording.batch.ios.push(Io::new(Moment::NEVER, Operation::Write, far, 4096));
    recording.batch.ios.push(Io::new(Moment::at(1), Operation::Read, 1 << 50, 4096));
    recording.batch.ios.push(Io::new(Moment::at(2), Operation::Write, 3, 1000));
    for scale_to in [ScaleTo::Automatic, ScaleTo::Touched, ScaleTo::Recorded] {
        let mut again = Recording::default();
        again.batch.ios.clone_from(&recording.batch.ios);
        let options = Options { scale_to, ..Options::new("t") };
        let made = of_bytes(again.bytes(), &options).unwrap();
        assert_eq!(made.summary.ios, 2);
        assert!(parse(&made.job_file, "t").is_ok());
    }
}

#[test]
fn names_of_commands_and_groups_become_names_of_sections_and_groups() {
    let mut recording = Recording::default();
    for (tid, command, group) in
        [(1, "a[b] c", "/x/s.slice"), (2, "globals", "/y/s.slice"), (3, "", "/"), (4, "q", "/z z")]
    {
        let (command, group) =
            (recording.names.number_of(command), recording.names.number_of(group));
        let io = recording.io(tid, Operation::Read, 0, 4096, (u64::from(tid), Some(99)));
        (io.command, io.cgroup, io.ioprio) = (command, group, 3 << 13 | 5);
    }
    let made = recording.workload(&Options::new("t\n[x]")).unwrap();
    let file = parse(&made.job_file, "t").unwrap();
    let jobs: Vec<_> = file.jobs.iter().map(|job| (&*job.name, job.cgroup.as_deref())).collect();
    assert_eq!(
        jobs,
        [
            ("a_b__c", Some("s.slice")),
            ("_globals", Some("s.slice.2")),
            ("task", None),
            ("q", Some("z_z"))
        ]
    );
    assert!(file.jobs.iter().all(|job| job.prioclass == Some(3)));
}
