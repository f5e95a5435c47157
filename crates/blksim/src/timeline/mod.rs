//! The timeline: every request and every I/O of a run.
//!
//! It is off by default and then costs one untaken branch a request. When it is on, each request
//! leaves a row when it completes, each bio that was merged into it leaves one right after it, and
//! each I/O or call of a job leaves a row in a table of its own. Rows are of fixed size, little
//! endian, in order of completion; [`TABLES`] describes them column by column.

mod rows;

pub use rows::{Column, IO_COLUMNS, IoRow, REQUEST_COLUMNS, RequestRow, Table};

use crate::block::request::{Hint, NONE, Operation, Purpose, RequestId, Requests};
use crate::core::record::Direction;

/// Version of the tables. A new column at the end of a row, or a change of
/// meaning, makes a new version.
pub const VERSION: u32 = 1;

/// Both tables, by their names in files.
pub const TABLES: &[Table] = &[
    Table { name: "requests", row_bytes: RequestRow::BYTES, columns: REQUEST_COLUMNS },
    Table { name: "ios", row_bytes: IoRow::BYTES, columns: IO_COLUMNS },
];

/// The job number of rows that belong to no job: background writeback, flushes.
pub const NO_JOB: u16 = u16::MAX;

/// The head position of a device without a head.
pub const NO_HEAD: u64 = u64::MAX;

/// Bits of [`RequestRow::flags`].
pub mod flag {
    /// It joined the request of the nearest row above without this bit.
    pub const MERGED: u8 = 1;
    /// Somebody waits for it.
    pub const SYNC: u8 = 2;
    /// Readahead, not asked for yet.
    pub const READAHEAD: u8 = 4;
    /// Background writeback.
    pub const BACKGROUND: u8 = 8;
    /// It goes through the page cache.
    pub const BUFFERED: u8 = 16;
}

/// The tables of a finished run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    pub requests: Vec<u8>,
    pub ios: Vec<u8>,
}

/// The state of a queue when the device gets a request.
#[derive(Debug, Clone, Copy, Default)]
struct AtDispatch {
    head_sector: u64,
    queued: u32,
    in_flight: u32,
}

/// Writes the tables while a machine runs.
#[derive(Debug, Clone)]
pub struct Recorder {
    timeline: Timeline,
    /// By request, while it is in the device.
    at_dispatch: Vec<AtDispatch>,
    /// The job of each I/O context.
    job_of_context: Vec<u16>,
    limit_bytes: u64,
}

impl Recorder {
    pub fn new(job_of_context: Vec<u16>, limit_bytes: u64) -> Self {
        Self { timeline: Timeline::default(), at_dispatch: Vec::new(), job_of_context, limit_bytes }
    }

    /// The rows since it began or was last drained. The limit applies anew.
    pub fn drain(&mut self) -> Timeline {
        std::mem::take(&mut self.timeline)
    }

    /// True if it exceeds its limit.
    pub fn is_full(&self) -> bool {
        let bytes = self.timeline.requests.len() + self.timeline.ios.len();
        bytes as u64 > self.limit_bytes
    }

    pub fn into_timeline(self) -> Timeline {
        self.timeline
    }

    /// The device got a request: the scheduler holds `queued` others, and `in_flight` are in the
    /// device with it.
    pub fn dispatched(
        &mut self,
        id: RequestId,
        head_sector: Option<u64>,
        queued: u32,
        in_flight: u32,
    ) {
        let index = id as usize;
        if self.at_dispatch.len() <= index {
            self.at_dispatch.resize(index + 1, AtDispatch::default());
        }
        self.at_dispatch[index] =
            AtDispatch { head_sector: head_sector.unwrap_or(NO_HEAD), queued, in_flight };
    }

    /// The device completed a request and everything on its chain.
    pub fn completed(
        &mut self,
        requests: &Requests,
        id: RequestId,
        now_ns: u64,
        head_sector: Option<u64>,
    ) {
        let note = self.at_dispatch[id as usize];
        let dispatch_ns = requests[id].dispatched_ns;
        let mut part = id;
        while part != NONE {
            let request = &requests[part];
            let job = match request.purpose {
                Purpose::CacheFlush => NO_JOB,
                _ => self.job_of_context.get(request.context as usize).copied().unwrap_or(NO_JOB),
            };
            let buffered = matches!(request.purpose, Purpose::PageRead | Purpose::Writeback);
            let bits = [
                (part != id, flag::MERGED),
                (request.flags.sync, flag::SYNC),
                (request.flags.hint == Hint::Readahead, flag::READAHEAD),
                (request.flags.hint == Hint::Background, flag::BACKGROUND),
                (buffered, flag::BUFFERED),
            ];
            let flushes = request.operation == Operation::Flush;
            let row = RequestRow {
                arrive_ns: request.submitted_ns,
                // A merged piece and a flush never were in the scheduler by themselves.
                insert_ns: if part != id || flushes {
                    request.submitted_ns
                } else {
                    request.inserted_ns
                },
                dispatch_ns,
                complete_ns: now_ns,
                sector: request.first_sector,
                head_dispatch: note.head_sector,
                head_complete: head_sector.unwrap_or(NO_HEAD),
                sectors: request.own_sectors,
                task: request.context,
                queued: note.queued,
                in_flight: note.in_flight,
                job,
                group: request.group,
                operation: request.operation as u8,
                flags: bits.iter().filter(|(on, _)| *on).fold(0, |all, (_, bit)| all | bit),
                priority: (request.priority.class as u8) << 3 | request.priority.level,
                disk: request.disk,
            };
            row.write(&mut self.timeline.requests);
            part = request.chain;
        }
    }

    /// A job's I/O or call is done.
    pub fn finished_io(
        &mut self,
        task: u32,
        direction: Direction,
        bytes: u64,
        (start_ns, end_ns): (u64, u64),
        measured: bool,
    ) {
        let row = IoRow {
            start_ns,
            end_ns,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            task,
            job: self.job_of_context.get(task as usize).copied().unwrap_or(NO_JOB),
            direction: direction as u8,
            measured: u8::from(measured),
            reserved: 0,
        };
        row.write(&mut self.timeline.ios);
    }
}
