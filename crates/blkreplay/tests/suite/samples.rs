//! Recordings made for tests, and replays of them with latencies of the test's choice.

use std::path::Path;

use blkrecord::batch::Batch;
use blkrecord::facts::{DeviceFacts, Facts, Tally};
use blkrecord::file::Writer;
use blkrecord::interrupt::Interrupt;
use blkrecord::io::{Io, Moment, Operation};
use blkrecord::names::Names;
use blkrecord::readers;
use blkrecord::task_event::{TaskEvent, TaskEventKind};
use blkreplay::{Options, ReplayError, Workload, workload};
use blksim::workload::parse;
use blksim::workload::replay::{Cursor, ReplayIo, SharedSignals, TaskPlan, Turn};

/// A recording under construction.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub batch: Batch,
    pub names: Names,
    pub processors: Option<u32>,
}

impl Recording {
    /// Adds an I/O of a task; `None` if it never completed.
    pub fn io(
        &mut self,
        tid: u32,
        operation: Operation,
        sector: u64,
        bytes: u64,
        (queued_ns, completed_ns): (u64, Option<u64>),
    ) -> &mut Io {
        let mut io = Io::new(Moment::at(queued_ns), operation, sector, bytes);
        io.completed = completed_ns.map_or(Moment::NEVER, Moment::at);
        (io.tid, io.tgid) = (tid, tid);
        io.command = self.names.number_of(&format!("task{tid}"));
        self.batch.ios.push(io);
        let last = self.batch.ios.len() - 1;
        &mut self.batch.ios[last]
    }

    /// A read of 4 KiB.
    pub fn read(&mut self, tid: u32, queued_ns: u64, completed_ns: u64) {
        let times = (queued_ns, Some(completed_ns));
        self.io(tid, Operation::Read, queued_ns / 1000 * 8, 4096, times);
    }

    /// One task that reads every 1000 ns, for 400 ns each.
    pub fn one_at_a_time(count: u64) -> Self {
        let mut recording = Self::default();
        for number in 0..count {
            recording.read(1, number * 1000, number * 1000 + 400);
        }
        recording
    }

    pub fn fork(&mut self, parent: u32, tid: u32, at_ns: u64) {
        self.event(TaskEventKind::Fork, parent, tid, at_ns);
    }

    pub fn exit(&mut self, tid: u32, at_ns: u64) {
        self.event(TaskEventKind::Exit, tid, tid, at_ns);
    }

    fn event(&mut self, kind: TaskEventKind, parent: u32, tid: u32, at_ns: u64) {
        let at = Moment::at(at_ns);
        self.batch.tasks.push(TaskEvent { at, kind, tid, parent, command: 0 });
    }

    /// The file of it.
    pub fn bytes(mut self) -> Vec<u8> {
        let devices: std::collections::BTreeSet<u32> =
            self.batch.ios.iter().map(|io| io.device).collect();
        let device = |number: u32| {
            let name = format!("disk{number}");
            DeviceFacts { number, name, ..DeviceFacts::default() }
        };
        let facts = Facts {
            devices: devices.into_iter().map(device).collect(),
            processors: self.processors,
            ..Facts::default()
        };
        let mut writer = Writer::new(Vec::new(), &facts).unwrap();
        let tally = Tally::default();
        writer.write(&mut self.batch, &self.names, &tally).unwrap();
        writer.finish(&self.names, &tally).unwrap()
    }

    pub fn workload(self, options: &Options) -> Result<Workload, ReplayError> {
        of_bytes(self.bytes(), options)
    }

    /// The plans of all tasks, in the order of the job file.
    pub fn plans(self) -> Vec<TaskPlan> {
        plans_of(&self.workload(&Options::new("test")).unwrap())
    }
}

pub fn of_bytes(bytes: Vec<u8>, options: &Options) -> Result<Workload, ReplayError> {
    let mut reader = readers::from_bytes(Path::new("test"), bytes, None)?;
    workload(&mut *reader, options, &Interrupt::default())
}

/// Plans, through the job file's text and its checks.
pub fn plans_of(workload: &Workload) -> Vec<TaskPlan> {
    let file = parse(&workload.job_file, "test").unwrap();
    let replays = file.jobs.into_iter().filter_map(|job| job.replay);
    replays.flat_map(|replay| replay.plans).map(|plan| (*plan).clone()).collect()
}

/// An I/O as a replay made it.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub task: usize,
    /// Its index in the task.
    pub index: usize,
    pub io: ReplayIo,
    pub issued_ns: u64,
    pub completed_ns: u64,
}

/// Carries plans out on a disk of endless depth, with latencies by task and index.
pub fn carry_out(plans: &[TaskPlan], latency_ns: impl Fn(usize, usize) -> u64) -> Vec<Made> {
    let count = plans.iter().map(|plan| plan.awaits.len()).sum();
    let signals = SharedSignals::owned(count);
    let cursor = |plan: &TaskPlan| Cursor::new(plan.clone().into(), signals.clone());
    let mut cursors: Vec<Cursor> = plans.iter().map(cursor).collect();
    let mut made: Vec<Made> = Vec::new();
    // I/Os in flight, and when a task wants to go on.
    let mut in_flight: Vec<usize> = Vec::new();
    let mut now_ns = 0;
    loop {
        let mut next_ns = u64::MAX;
        let mut progress = true;
        while progress {
            progress = false;
            for (task, cursor) in cursors.iter_mut().enumerate() {
                match cursor.turn(now_ns) {
                    Turn::Issue(io) => {
                        let index = cursor.submitted() as usize;
                        let completed_ns = now_ns + latency_ns(task, index).max(1);
                        in_flight.push(made.len());
                        made.push(Made { task, index, io, issued_ns: now_ns, completed_ns });
                        progress = true;
                    }
                    Turn::Until(until_ns) => next_ns = next_ns.min(until_ns),
                    _ => {}
                }
            }
        }
        let first = in_flight.iter().map(|number| made[*number].completed_ns).min();
        let Some(then_ns) = first.into_iter().chain([next_ns]).min().filter(|ns| *ns < u64::MAX)
        else {
            break;
        };
        now_ns = then_ns;
        in_flight.retain(|number| {
            let done = made[*number];
            if done.completed_ns <= now_ns {
                cursors[done.task].completed(done.index as u32, now_ns);
            }
            done.completed_ns > now_ns
        });
    }
    assert!(cursors.iter_mut().all(|cursor| cursor.turn(u64::MAX) == Turn::Finished));
    made
}
