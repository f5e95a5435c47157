//! Finds out where I/Os wait: in the queue or in the device, and who held the device meanwhile.
//!
//! | Module | Contents |
//! |---|---|
//! | [`rows`] | the I/Os in the order of queueing, in 48 bytes each |
//! | [`tasks`] | submitters: a process in a control group |
//! | [`histogram`] | durations and sizes, counted by magnitude |
//! | [`occupancy`] | holders of the device while others waited; depths |
//! | [`over_time`] | latencies and throughput over time |
//!
//! *Queue* is from the queueing of a bio to the last issue of its request (Q2D), *device* from there to its
//! completion (D2C). Where a trace has no issues, both are unknown and only their sum is known; where it has no
//! queueing, I/Os begin with their issue, and the queue is unknown.

pub mod histogram;
pub mod occupancy;
pub mod over_time;
pub mod rows;
pub mod tasks;

use std::cmp::Ordering;

use serde::Serialize;

use crate::error::RecordError;
use crate::facts::{Facts, Tally};
use crate::interrupt::Interrupt;
use crate::readers::RecordReader;
use histogram::{Histogram, Summary};
use occupancy::{Depths, Holders, Occupancy};
use over_time::OverTime;
use rows::{Row, Rows};
use tasks::{Task, TaskKey};

/// Everything that `blklab where` shows.
#[derive(Debug, Serialize)]
pub struct Waits {
    pub facts: Facts,
    pub tally: Tally,
    pub warnings: Vec<String>,
    /// Whether queue and device can be told apart.
    pub issues_known: bool,
    /// Whether I/Os begin with their queueing; otherwise they begin with their issue.
    pub queues_known: bool,
    /// Whether there are completions, and so latencies.
    pub completions_known: bool,
    pub all: TaskWaits,
    /// By process and control group; those that waited longest together come first.
    pub tasks: Vec<TaskWaits>,
    pub devices: Vec<DeviceWaits>,
    pub over_time: OverTime,
}

/// One process in one control group, or all together.
#[derive(Debug, Default, Serialize)]
pub struct TaskWaits {
    /// `None` if unknown, or for all together.
    pub tgid: Option<u32>,
    pub command: String,
    pub cgroup: String,
    /// Classes and levels of its I/Os with their numbers (linux/ioprio.h).
    pub ioprio: Vec<(u16, u64)>,
    pub operations: Vec<OperationCount>,
    pub merged: u64,
    pub split: u64,
    pub sync: u64,
    pub errors: u64,
    /// I/Os that begin where the task's I/O before ended.
    pub sequential: u64,
    pub ios: u64,
    pub bytes: u64,
    pub queue_ns: Summary,
    pub device_ns: Summary,
    pub latency_ns: Summary,
    pub read_latency_ns: Summary,
    pub write_latency_ns: Summary,
    pub inter_arrival_ns: Summary,
    pub bytes_per_io: Summary,
    /// Holders of the device while this task's I/Os waited in the queue.
    pub held_in_queue: Holders,
    /// Tasks that shared the device with this task's I/Os.
    pub held_in_device: Holders,
}

/// I/Os and bytes of an operation.
#[derive(Debug, Serialize)]
pub struct OperationCount {
    pub operation: &'static str,
    pub ios: u64,
    pub bytes: u64,
}

/// One device.
#[derive(Debug, Serialize)]
pub struct DeviceWaits {
    pub number: u32,
    pub ios: u64,
    pub bytes: u64,
    /// Time with at least one I/O in the device, or under way if issues are unknown; `None` if that is too.
    pub busy_ns: Option<u64>,
    /// `None` if unknown.
    pub in_queue: Option<Depths>,
    /// `None` if unknown.
    pub in_device: Option<Depths>,
}

/// Bytes that are kept of each I/O at most: its row, its places in two orders, and what sorting needs.
pub const KEPT_BYTES: u64 = 88;

/// Rows between two looks whether to go on.
const CHUNK_ROWS: usize = 1 << 16;

/// Reads a trace to its end and counts.
pub fn of(reader: &mut dyn RecordReader, interrupt: &Interrupt) -> Result<Waits, RecordError> {
    let rows = Rows::read(reader)?;
    interrupt.check()?;
    let warnings = reader.warnings();
    let mut texts: Vec<String> = warnings.first.iter().map(ToString::to_string).collect();
    if warnings.count > texts.len() as u64 {
        texts.push(format!("{} more warnings", warnings.count - texts.len() as u64));
    }
    let mut counted = Counted::new(&rows);
    for some in rows.rows.chunks(CHUNK_ROWS) {
        interrupt.check()?;
        for row in some {
            counted.add(row);
        }
    }
    let occupancy = Occupancy::of(&rows, interrupt)?;
    let over_time = OverTime::of(&rows);
    interrupt.check()?;
    let name = |number: u32| reader.names().text(number).to_owned();
    let mut tasks: Vec<TaskWaits> = Vec::new();
    for (index, (key, count)) in rows.tasks.keys.iter().zip(counted.tasks).enumerate() {
        let mut waits = count.into_waits();
        (waits.tgid, waits.command, waits.cgroup) =
            (key.tgid(), name(key.command), name(key.cgroup));
        if index == tasks::OTHERS as usize {
            "(others)".clone_into(&mut waits.command);
        }
        waits.held_in_queue = occupancy.in_queue(index);
        waits.held_in_device = occupancy.in_device(index);
        tasks.push(waits);
    }
    // References within holders are by place in this list, so they move along.
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.retain(|index| tasks[*index].ios > 0);
    let sums = |index: usize| (tasks[index].latency_ns.sum, tasks[index].ios);
    order.sort_by(|one, other| sums(*other).partial_cmp(&sums(*one)).unwrap_or(Ordering::Equal));
    let mut places = vec![None; tasks.len()];
    for (place, index) in order.iter().enumerate() {
        places[*index] = Some(place as u32);
    }
    let mut sorted: Vec<TaskWaits> = Vec::with_capacity(order.len());
    for index in order {
        let mut waits = std::mem::take(&mut tasks[index]);
        waits.held_in_queue.renumber(&places);
        waits.held_in_device.renumber(&places);
        sorted.push(waits);
    }
    let queues_known = !reader.facts().missing.iter().any(|text| text == crate::facts::NO_QUEUEING);
    let mut devices = occupancy.devices();
    for device in &mut devices {
        if !rows.completions_known {
            device.busy_ns = None;
        }
        if !rows.completions_known || !rows.issues_known {
            (device.in_queue, device.in_device) = (None, None);
        } else if !queues_known {
            device.in_queue = None;
        }
    }
    Ok(Waits {
        facts: reader.facts().clone(),
        tally: reader.tally(),
        warnings: texts,
        issues_known: rows.issues_known,
        queues_known,
        completions_known: rows.completions_known,
        all: counted.all.into_waits(),
        tasks: sorted,
        devices,
        over_time,
    })
}

/// Counts of all tasks.
struct Counted {
    all: Count,
    tasks: Vec<Count>,
}

impl Counted {
    fn new(rows: &Rows) -> Self {
        let mut tasks = Vec::new();
        tasks.resize_with(rows.tasks.keys.len(), Count::default);
        Self { all: Count::default(), tasks }
    }

    fn add(&mut self, row: &Row) {
        self.all.add(row);
        if let Some(task) = self.tasks.get_mut(row.task as usize) {
            task.add(row);
        }
    }
}

/// Counts of one task.
#[derive(Debug, Default)]
struct Count {
    operations: [(u64, u64); crate::io::Operation::ALL.len()],
    ioprio: std::collections::BTreeMap<u16, u64>,
    merged: u64,
    split: u64,
    sync: u64,
    errors: u64,
    sequential: u64,
    queue: Histogram,
    device: Histogram,
    latency: Histogram,
    read_latency: Histogram,
    write_latency: Histogram,
    inter_arrival: Histogram,
    sizes: Histogram,
    /// Where and when the I/O before was.
    last: Option<(u64, u64)>,
}

impl Count {
    fn add(&mut self, row: &Row) {
        let (ios, bytes) = &mut self.operations[row.operation as usize];
        *ios += 1;
        *bytes += u64::from(row.bytes);
        *self.ioprio.entry(row.ioprio).or_default() += 1;
        self.merged += u64::from(row.has(rows::MERGED));
        self.split += u64::from(row.has(rows::SPLIT));
        self.sync += u64::from(row.has(rows::SYNC));
        self.errors += u64::from(row.has(rows::FAILED));
        if let Some(queue) = row.queue_ns() {
            self.queue.add(queue);
        }
        if let Some(device) = row.device_ns() {
            self.device.add(device);
        }
        if let Some(latency) = row.latency_ns() {
            self.latency.add(latency);
            match row.operation {
                crate::io::Operation::Read => self.read_latency.add(latency),
                crate::io::Operation::Write => self.write_latency.add(latency),
                _ => {}
            }
        }
        // Flushes are nowhere.
        if row.bytes > 0 {
            self.sizes.add(u64::from(row.bytes));
            if let Some((end, at_ns)) = self.last {
                self.sequential += u64::from(end == row.sector);
                self.inter_arrival.add(row.queued_ns.saturating_sub(at_ns));
            }
            self.last = Some((row.end_sector(), row.queued_ns));
        }
    }

    fn into_waits(self) -> TaskWaits {
        let named = crate::io::Operation::ALL.iter().zip(self.operations);
        let operations: Vec<OperationCount> = named
            .filter(|(_, (ios, _))| *ios > 0)
            .map(|(operation, (ios, bytes))| OperationCount {
                operation: operation.name(),
                ios,
                bytes,
            })
            .collect();
        TaskWaits {
            ioprio: self.ioprio.into_iter().collect(),
            merged: self.merged,
            split: self.split,
            sync: self.sync,
            errors: self.errors,
            sequential: self.sequential,
            ios: operations.iter().map(|count| count.ios).sum(),
            bytes: operations.iter().map(|count| count.bytes).sum(),
            operations,
            queue_ns: self.queue.summary(),
            device_ns: self.device.summary(),
            latency_ns: self.latency.summary(),
            read_latency_ns: self.read_latency.summary(),
            write_latency_ns: self.write_latency.summary(),
            inter_arrival_ns: self.inter_arrival.summary(),
            bytes_per_io: self.sizes.summary_of_sizes(),
            ..TaskWaits::default()
        }
    }
}

impl TaskKey {
    fn tgid(&self) -> Option<u32> {
        (self.process != crate::io::UNKNOWN_TASK).then_some(self.process)
    }
}

/// The number of a task in [`Rows`].
pub type TaskIndex = Task;

#[cfg(test)]
mod tests;
