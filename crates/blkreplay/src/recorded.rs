//! The I/Os of one device, in the order of queueing.

use std::collections::BTreeMap;

use blkrecord::batch::Batch;
use blkrecord::facts::{DeviceFacts, Facts, Tally};
use blkrecord::io::{Flags, Io, Operation, SECTOR_BYTES, UNKNOWN_PROCESSOR};
use blkrecord::names::Names;
use blkrecord::readers::RecordReader;
use blkrecord::task_event::TaskEvent;

use blksim::workload::replay::Memory;

use crate::error::ReplayError;
use crate::options::{Kind, Options};
use crate::splits::united;

/// The action of an I/O in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Write,
    Flush,
}

/// An I/O, with times from the first queueing on.
#[derive(Debug, Clone, Copy)]
pub struct RecordedIo {
    pub queued_ns: u64,
    /// When its task had got a tag for it and could go on, as far as is known; not before `queued_ns`.
    pub submitted_ns: u64,
    /// Later than `queued_ns`; `u64::MAX` if the recording ended before.
    pub completed_ns: u64,
    pub sector: u64,
    pub sectors: u32,
    pub action: Action,
    pub durable: bool,
    /// A flush, or a write with one: others may wait for it as fsync does.
    pub barrier: bool,
    pub ioprio: u16,
    pub tid: u32,
    pub command: u32,
    pub cgroup: u32,
    pub processor: u16,
    /// Cold if the page cache has read ahead into it.
    pub memory: Memory,
}

impl RecordedIo {
    pub fn end_sector(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }
}

/// The largest I/O, as a kernel's call transfers at most.
const MOST_SECTORS: u64 = (1 << 30) / SECTOR_BYTES;
/// The last sector that any disk has.
const LAST_SECTOR: u64 = 1 << 53;

/// A recording in memory.
#[derive(Debug)]
pub struct Recorded {
    pub ios: Vec<RecordedIo>,
    /// In the order of time, on the same clock; those before the first queueing are at 0.
    pub events: Vec<(u64, TaskEvent)>,
    pub names: Names,
    pub facts: Facts,
    pub tally: Tally,
    /// The device that is replayed; empty if the recording has no name for it.
    pub device: String,
    /// I/Os of that device that no replay makes, by operation.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Flushes before a write's data, which become I/Os of their own.
    pub preflushes: u64,
    /// Parts of an I/O that are one with its first part again.
    pub united: u64,
    /// Processors of the recorded machine, as far as is known; 0 if nothing is known of its I/Os'.
    pub processors: u16,
    /// Whether it tells when I/Os had got into the queue.
    pub knows_submissions: bool,
    /// Whether I/Os are issued at recorded times.
    pub open: bool,
    pub warnings: Vec<String>,
}

impl Recorded {
    /// Reads a recording to its end, and takes the I/Os of one device.
    pub fn read(reader: &mut dyn RecordReader, options: &Options) -> Result<Self, ReplayError> {
        let mut batch = Batch::default();
        let mut ios: Vec<Io> = Vec::new();
        let mut events: Vec<TaskEvent> = Vec::new();
        while reader.read(&mut batch)? {
            ios.append(&mut batch.ios);
            events.append(&mut batch.tasks);
            batch.clear();
        }
        let device = choose_device(reader.facts(), &ios, options)?;
        ios.retain(|io| io.device == device.number);
        if ios.is_empty() {
            let message = format!("{}: it has no I/O", options.source);
            return Err(ReplayError::unfit(message, "record for longer, or another device"));
        }
        // Equal times keep the order of the recording.
        ios.sort_by_key(|io| (io.queued, io.order));
        let parts = ios.len();
        let ios = united(ios);
        let mut recorded = Self {
            ios: Vec::with_capacity(ios.len()),
            events: Vec::new(),
            names: reader.names().clone(),
            facts: reader.facts().clone(),
            tally: reader.tally(),
            device: device.name,
            left_out: BTreeMap::new(),
            preflushes: 0,
            united: (parts - ios.len()) as u64,
            processors: processors(reader.facts(), &ios),
            knows_submissions: ios.iter().any(|io| io.inserted.is_known() || io.issued.is_known()),
            open: false,
            warnings: reader.warnings().first.iter().map(ToString::to_string).collect(),
        };
        let start_ns = ios[0].queued.ns().unwrap_or(0);
        for io in &ios {
            recorded.take(io, start_ns);
        }
        recorded.ios.sort_by_key(|io| io.queued_ns);
        if recorded.ios.is_empty() {
            let message = format!("{}: it has neither reads, writes nor flushes", options.source);
            return Err(ReplayError::unfit(message, "record other work"));
        }
        recorded.open = is_open(&recorded, options)?;
        recorded.events =
            events.iter().map(|event| (since(event.at.raw(), start_ns), *event)).collect();
        recorded.events.sort_by_key(|(at_ns, _)| *at_ns);
        Ok(recorded)
    }

    fn take(&mut self, io: &Io, start_ns: u64) {
        let (action, sectors) = match io.operation {
            Operation::Read | Operation::Write if io.bytes >= SECTOR_BYTES => {
                let action = match io.operation {
                    Operation::Read => Action::Read,
                    _ => Action::Write,
                };
                (action, io.bytes.div_ceil(SECTOR_BYTES))
            }
            // A write without data is what carries a flush (`blkdev_issue_flush`).
            Operation::Flush | Operation::Write => (Action::Flush, 0),
            other => {
                *self.left_out.entry(other.name()).or_default() += 1;
                return;
            }
        };
        if sectors > MOST_SECTORS || io.sector > LAST_SECTOR {
            *self.left_out.entry("impossibly large").or_default() += 1;
            return;
        }
        let queued_ns = since(io.queued.raw(), start_ns);
        let completed_ns = match io.completed.ns() {
            // The order of a queueing and a completion must never be in doubt.
            Some(_) => since(io.completed.raw(), start_ns).max(queued_ns + 1),
            None => u64::MAX,
        };
        // A request is inserted, or else issued, by the task that has got a tag for it. One that was merged needed none.
        let entered = if io.inserted.is_known() { io.inserted } else { io.issued };
        let submitted_ns = match entered.ns() {
            Some(_) if !io.merged.is_known() => since(entered.raw(), start_ns).max(queued_ns),
            _ => queued_ns,
        };
        let recorded = RecordedIo {
            queued_ns,
            submitted_ns,
            completed_ns,
            sector: if action == Action::Flush { 0 } else { io.sector },
            sectors: sectors as u32,
            action,
            durable: action == Action::Write && io.flags.contains(Flags::FUA),
            barrier: action == Action::Flush || io.flags.is_durable(),
            ioprio: io.ioprio,
            tid: io.tid,
            command: io.command,
            cgroup: io.cgroup,
            processor: io.processor,
            memory: Memory {
                segments: io.segments,
                cold: action == Action::Read && io.flags.contains(Flags::AHEAD),
            },
        };
        if action == Action::Write && io.flags.contains(Flags::PREFLUSH) {
            self.preflushes += 1;
            // It is not known when the flush ended, so the write follows it at once.
            self.ios.push(RecordedIo {
                action: Action::Flush,
                sector: 0,
                sectors: 0,
                durable: false,
                barrier: false,
                completed_ns: queued_ns + 1,
                submitted_ns: queued_ns,
                memory: Memory::default(),
                ..recorded
            });
            let queued_ns = queued_ns + 1;
            let completed_ns = completed_ns.max(queued_ns + 1);
            let submitted_ns = submitted_ns.max(queued_ns);
            self.ios.push(RecordedIo { queued_ns, submitted_ns, completed_ns, ..recorded });
            return;
        }
        self.ios.push(recorded);
    }

    /// The name of a command or control group.
    pub fn name(&self, number: u32) -> &str {
        self.names.text(number)
    }
}

fn since(ns: u64, start_ns: u64) -> u64 {
    ns.saturating_sub(start_ns).min(blkrecord::io::Moment::MAX_NS)
}

fn choose_device(facts: &Facts, ios: &[Io], options: &Options) -> Result<DeviceFacts, ReplayError> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for io in ios {
        *counts.entry(io.device).or_default() += 1;
    }
    let described = |number: u32| {
        let known = facts.devices.iter().find(|device| device.number == number).cloned();
        let mut device = known.unwrap_or_default();
        device.number = number;
        if device.name.is_empty() {
            device.name = format!("{}:{}", number >> 20, number & 0xf_ffff);
        }
        device
    };
    let devices: Vec<(DeviceFacts, u64)> =
        counts.into_iter().map(|(number, count)| (described(number), count)).collect();
    let listed = || {
        let mut by_count: Vec<_> = devices.iter().collect();
        by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let shown = by_count.iter().take(8);
        let names: Vec<String> =
            shown.map(|(device, count)| format!("{} ({count} I/Os)", device.name)).collect();
        format!("choose one with device=NAME: {}", names.join(", "))
    };
    let source = &options.source;
    match (&options.device, &devices[..]) {
        (None, [(device, _)]) => Ok(device.clone()),
        (None, []) => Err(ReplayError::unfit(
            format!("{source}: it has no I/O"),
            "record for longer, or another device",
        )),
        (None, several) => {
            let message = format!("{source}: it has {} devices", several.len());
            Err(ReplayError::unfit(message, listed()))
        }
        (Some(name), _) => {
            let found = devices.iter().find(|(device, _)| device.name == *name);
            found.map(|(device, _)| device.clone()).ok_or_else(|| {
                let message = format!("{source}: it has no I/O of a device {name:?}");
                ReplayError::unfit(message, listed())
            })
        }
    }
}

/// Those that the facts tell, or else those up to the last one with an I/O. A trace of another program in which all
/// I/Os come from the first processor may just not have them.
fn processors(facts: &Facts, ios: &[Io]) -> u16 {
    let known = ios.iter().map(|io| io.processor).filter(|number| *number != UNKNOWN_PROCESSOR);
    let seen = known.max().map_or(0, |last| u32::from(last) + 1);
    match facts.processors {
        None if seen < 2 => 0,
        told => u16::try_from(told.unwrap_or(0).max(seen)).unwrap_or(u16::MAX),
    }
}

fn is_open(recorded: &Recorded, options: &Options) -> Result<bool, ReplayError> {
    // A flush before a write has an end of ours.
    let has_completions =
        recorded.ios.iter().any(|io| io.completed_ns != u64::MAX && io.action != Action::Flush)
            || recorded.ios.iter().all(|io| io.completed_ns != u64::MAX);
    match options.kind {
        Kind::Automatic => Ok(!has_completions),
        Kind::Open => Ok(true),
        Kind::Closed if has_completions => Ok(false),
        Kind::Closed => Err(ReplayError::unfit(
            format!(
                "{}: it has no completions, so that nobody knows what an I/O had waited for",
                options.source
            ),
            "leave out replay=closed: its I/Os are issued at their recorded times",
        )),
    }
}
