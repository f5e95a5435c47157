//! Whatever was recorded and however slow the disk is: every I/O is made once, in its task's order, and
//! none before what it waits for.

use blkrecord::io::{Flags, Operation};
use blksim::core::record::Direction;
use blksim::workload::replay::TaskPlan;
use proptest::prelude::*;

use crate::samples::{Made, Recording, carry_out, plans_of};
use blkreplay::Options;

/// Task, operation, sector, blocks, time since the I/O before, latency.
type Drawn = (u32, u8, u64, u64, u64, Option<u64>);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let latency = prop_oneof![9 => (0..4000_u64).prop_map(Some), 1 => Just(None)];
    let io = (0..4_u32, 0..6_u8, 0..1_u64 << 40, 1..64_u64, 0..3000_u64, latency);
    prop::collection::vec(io, 1..80)
}

fn recorded(drawn: &[Drawn], kin: bool) -> Recording {
    let mut recording = Recording::default();
    let mut now_ns = 0;
    for (number, (tid, operation, sector, blocks, since_ns, latency_ns)) in drawn.iter().enumerate()
    {
        now_ns += since_ns;
        if kin && number % 7 == 3 {
            let (tid, at_ns) = (*tid, now_ns);
            recording.fork((tid + 1) % 4, tid, at_ns);
        }
        if kin && number % 11 == 5 {
            recording.exit(*tid, now_ns);
        }
        let operation_of = match operation {
            0..3 => Operation::Read,
            3 => Operation::Flush,
            _ => Operation::Write,
        };
        let bytes = if operation_of == Operation::Flush { 0 } else { blocks * 4096 };
        let times = (now_ns, latency_ns.map(|ns| now_ns + ns));
        let io = recording.io(*tid, operation_of, sector / 8 * 8, bytes, times);
        if *operation == 5 {
            io.flags = Flags::FUA.with(Flags::PREFLUSH);
        }
    }
    recording
}

/// The I/Os of a task in the order of issue.
fn of_task(made: &[Made], task: usize) -> Vec<Made> {
    made.iter().filter(|made| made.task == task).copied().collect()
}

/// The I/Os of a task in the order in which others wait for them.
fn in_order(plan: &TaskPlan, own: &[Made]) -> Vec<Made> {
    let mut ordered = own.to_vec();
    ordered.sort_by_key(
        |made| if plan.waits_for_any { made.completed_ns } else { made.io.rank.into() },
    );
    ordered
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_comes_before_what_it_waits_for(
        drawn in drawn(), kin: bool, latencies in prop::collection::vec(1..20_000_u64, 37),
    ) {
        let any_completed = drawn.iter().any(|io| io.5.is_some() && io.1 != 3);
        prop_assume!(any_completed);
        let plans = recorded(&drawn, kin).plans();
        let made = carry_out(&plans, |task, index| latencies[(task * 13 + index * 7) % 37]);
        let expected: usize = plans.iter().map(|plan| plan.ios.len()).sum();
        let preflushes = drawn.iter().filter(|io| io.1 == 5).count();
        prop_assert_eq!(expected, drawn.len() + preflushes);
        prop_assert_eq!(made.len(), expected);
        for (task, plan) in plans.iter().enumerate() {
            let own = of_task(&made, task);
            let order: Vec<usize> = own.iter().map(|made| made.index).collect();
            prop_assert_eq!(order, (0..plan.ios.len()).collect::<Vec<_>>());
            let by_rank = in_order(plan, &own);
            for io in &own {
                for earlier in &by_rank[..io.io.waits_for as usize] {
                    prop_assert!(earlier.completed_ns + io.io.think_ns <= io.issued_ns);
                }
            }
            for signal in &plan.awaits {
                let (setter, set) = plans.iter().enumerate().find_map(|(setter, plan)| {
                    let set = plan.sets.iter().find(|set| set.number == signal.number)?;
                    Some((setter, *set))
                }).unwrap();
                let theirs = in_order(&plans[setter], &of_task(&made, setter));
                let waiting = own[signal.at as usize];
                for earlier in &theirs[..set.at as usize] {
                    prop_assert!(earlier.completed_ns <= waiting.issued_ns);
                }
            }
        }
    }

    #[test]
    fn on_the_same_disk_every_io_comes_at_its_recorded_time(drawn in drawn(), kin: bool) {
        // All complete, and none has a flush before it, which no recording tells the time of.
        let without_flags: Vec<Drawn> = drawn
            .iter()
            .map(|io| (io.0, io.1.min(4), io.2, io.3, io.4, io.5.or(Some(77))))
            .collect();
        let plans = recorded(&without_flags, kin).plans();
        // Latencies and times as recorded: the tasks of the plans are found by their sequence of I/Os.
        let recorded_ios = recorded(&without_flags, kin);
        let start_ns = recorded_ios.batch.ios[0].queued.raw();
        let latency_of = |io: &blkrecord::io::Io| {
            io.completed.raw().max(io.queued.raw() + 1) - io.queued.raw()
        };
        let mut wanted: Vec<(u64, u64)> = recorded_ios
            .batch.ios.iter().map(|io| (io.queued.raw() - start_ns, latency_of(io))).collect();
        let tasks = tasks_of(&recorded_ios);
        let made = carry_out(&plans, |task, index| tasks[task][index]);
        let mut found: Vec<(u64, u64)> =
            made.iter().map(|made| (made.issued_ns, made.completed_ns - made.issued_ns)).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn damaged_plans_are_refused_or_run(drawn in drawn(), at: prop::sample::Index, to: u8) {
        let workload = recorded(&drawn, true).workload(&Options::new("test"));
        prop_assume!(workload.is_ok());
        let workload = workload.unwrap();
        let mut text = workload.job_file.clone().into_bytes();
        let at = at.index(text.len());
        text[at] = b'-' + to % 78;
        if let Ok(damaged) = String::from_utf8(text) {
            // A panic or an endless loop fails the test.
            if let Ok(file) = blksim::workload::parse(&damaged, "test") {
                let plans: Vec<_> = file.jobs.iter().filter_map(|job| job.replay.as_ref())
                    .flat_map(|replay| &replay.plans).map(|plan| (**plan).clone()).collect();
                carry_out(&plans, |_, _| 1);
            }
        }
        prop_assert!(!plans_of(&workload).is_empty());
    }
}

/// Recorded latencies by task, as `blkreplay` numbers tasks: by command, then by their first I/O.
fn tasks_of(recording: &Recording) -> Vec<Vec<u64>> {
    let plans = blkreplay::recorded::Recorded::read(
        &mut *blkrecord::readers::from_bytes(
            std::path::Path::new("test"),
            recording.clone().bytes(),
            None,
        )
        .unwrap(),
        &Options::new("test"),
    )
    .unwrap();
    let tasks = blkreplay::tasks::Tasks::of(&plans);
    let mut commands: Vec<u32> = Vec::new();
    for task in &tasks.tasks {
        if !commands.contains(&task.command) {
            commands.push(task.command);
        }
    }
    commands
        .iter()
        .flat_map(|command| tasks.tasks.iter().filter(move |task| task.command == *command))
        .map(|task| {
            let io = |index: &u32| plans.ios[*index as usize];
            task.ios.iter().map(|index| io(index).completed_ns - io(index).queued_ns).collect()
        })
        .collect()
}

#[test]
fn a_write_with_a_flush_before_it_becomes_both() {
    let mut recording = Recording::default();
    recording.io(1, Operation::Write, 8, 4096, (0, Some(500))).flags =
        Flags::FUA.with(Flags::PREFLUSH);
    recording.read(1, 700, 900);
    let plan = &recording.plans()[0];
    let kinds: Vec<Direction> = plan.ios.iter().map(|io| io.direction).collect();
    assert_eq!(kinds, [Direction::Sync, Direction::Write, Direction::Read]);
    assert_eq!((plan.ios[1].durable, plan.ios[1].waits_for, plan.ios[1].think_ns), (true, 1, 0));
    assert_eq!((plan.ios[2].waits_for, plan.ios[2].think_ns), (2, 200));
}
