//! The I/Os of a trace in the order of queueing: what the analysis needs, in 48 bytes each.

use super::tasks::Tasks;
use crate::batch::Batch;
use crate::error::RecordError;
use crate::io::{Flags, Io, Operation, SECTOR_BYTES};
use crate::readers::RecordReader;

pub const MERGED: u8 = 1;
pub const SPLIT: u8 = 1 << 1;
pub const SYNC: u8 = 1 << 2;
pub const FAILED: u8 = 1 << 3;

/// A moment that never came.
pub const NEVER: u64 = u64::MAX;

/// One I/O.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub queued_ns: u64,
    pub issued_ns: u64,
    pub completed_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    pub task: u16,
    pub device: u16,
    pub ioprio: u16,
    pub operation: Operation,
    pub marks: u8,
}

impl Row {
    pub fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.bytes).div_ceil(SECTOR_BYTES))
    }

    /// Q2D; `None` if it is not known when it was issued.
    pub fn queue_ns(&self) -> Option<u64> {
        (self.issued_ns != NEVER).then(|| self.issued_ns.saturating_sub(self.queued_ns))
    }

    /// D2C.
    pub fn device_ns(&self) -> Option<u64> {
        let known = self.issued_ns != NEVER && self.completed_ns != NEVER;
        known.then(|| self.completed_ns.saturating_sub(self.issued_ns))
    }

    /// Q2C.
    pub fn latency_ns(&self) -> Option<u64> {
        (self.completed_ns != NEVER).then(|| self.completed_ns.saturating_sub(self.queued_ns))
    }

    /// When it entered the device: if that is not known, when it was queued.
    pub fn entered_ns(&self) -> u64 {
        if self.issued_ns == NEVER { self.queued_ns } else { self.issued_ns }
    }
}

/// All I/Os.
#[derive(Debug)]
pub struct Rows {
    pub rows: Vec<Row>,
    pub tasks: Tasks,
    /// Device numbers; rows refer to their places.
    pub devices: Vec<u32>,
    pub issues_known: bool,
    pub completions_known: bool,
    /// Beginning of the record, and its last moment.
    pub begin_ns: u64,
    pub span_ns: u64,
}

/// Devices that are kept apart; the others share the last place.
const MOST_DEVICES: usize = 1024;

impl Rows {
    /// Reads a trace to its end.
    pub fn read(reader: &mut dyn RecordReader) -> Result<Self, RecordError> {
        let mut all = Self {
            rows: Vec::new(),
            tasks: Tasks::default(),
            devices: Vec::new(),
            issues_known: false,
            completions_known: false,
            begin_ns: reader.begin_ns(),
            span_ns: 0,
        };
        let mut batch = Batch::default();
        while reader.read(&mut batch)? {
            for io in &batch.ios {
                all.add(io);
            }
            batch.clear();
        }
        // Completions come nearly in the order of queueing, on which a stable sort is quick.
        all.rows.sort_by_key(|row| row.queued_ns);
        Ok(all)
    }

    fn add(&mut self, io: &Io) {
        let queued_ns = io.queued.ns().unwrap_or(0);
        let later = |moment: crate::io::Moment| moment.ns().map_or(NEVER, |ns| ns.max(queued_ns));
        let (issued_ns, completed_ns) = (later(io.issued), later(io.completed));
        self.issues_known |= issued_ns != NEVER;
        self.completions_known |= completed_ns != NEVER;
        for at_ns in [queued_ns, issued_ns, completed_ns] {
            if at_ns != NEVER {
                self.span_ns = self.span_ns.max(at_ns);
            }
        }
        let marks = [
            (MERGED, io.merged.is_known()),
            (SPLIT, io.split.is_known()),
            (SYNC, io.flags.contains(Flags::SYNC) || io.operation == Operation::Read),
            (FAILED, io.error != 0),
        ];
        let (task, device) = (self.tasks.index_of(io), self.device(io.device));
        self.rows.push(Row {
            queued_ns,
            // A request cannot complete before it is issued.
            issued_ns: if issued_ns == NEVER { NEVER } else { issued_ns.min(completed_ns) },
            completed_ns,
            sector: io.sector,
            bytes: u32::try_from(io.bytes).unwrap_or(u32::MAX),
            task,
            device,
            ioprio: io.ioprio,
            operation: io.operation,
            marks: marks.iter().filter(|(_, set)| *set).fold(0, |marks, (mark, _)| marks | *mark),
        });
    }

    fn device(&mut self, number: u32) -> u16 {
        if let Some(place) = self.devices.iter().position(|known| *known == number) {
            return place as u16;
        }
        if self.devices.len() < MOST_DEVICES {
            self.devices.push(number);
        }
        (self.devices.len() - 1) as u16
    }
}
