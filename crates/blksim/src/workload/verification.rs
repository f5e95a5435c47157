//! Reading back what a job has written (`verify`), in the order in which fio does.

use std::collections::{BTreeMap, VecDeque};

use super::job::Verify;

/// A write that was not read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub offset: u64,
    pub bytes: u32,
    /// I/Os that the job had issued before.
    pub before: u64,
}

/// The writes to read back.
#[derive(Debug, Clone)]
pub(super) struct Verification {
    options: Verify,
    /// Without a map of visited blocks: by offset, and what was written again counts once
    /// (`log_io_piece` in iolog.c, fio 3.33). With one: in the order of writing.
    sorted: Option<BTreeMap<u64, Written>>,
    in_order: VecDeque<Written>,
    /// Reads left of the current batch.
    batch_left: u64,
    last_was_read: bool,
    /// Within the reads at the end of a pass.
    pub reading: bool,
}

impl Verification {
    pub fn new(options: Verify, mapped: bool) -> Self {
        Self {
            options,
            sorted: (!mapped).then(BTreeMap::new),
            in_order: VecDeque::new(),
            batch_left: 0,
            last_was_read: false,
            reading: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.sorted.as_ref().map_or(self.in_order.len(), BTreeMap::len)
    }

    fn first(&self) -> Option<Written> {
        match &self.sorted {
            Some(sorted) => sorted.values().next().copied(),
            None => self.in_order.front().copied(),
        }
    }

    /// Notes a transfer of the job itself.
    pub fn issued(&mut self, write: Option<Written>) {
        self.last_was_read = write.is_none();
        let Some(write) = write else { return };
        let Some(sorted) = &mut self.sorted else {
            self.in_order.push_back(write);
            return;
        };
        let end = write.offset + u64::from(write.bytes);
        let overlaps = |other: &Written| other.offset + u64::from(other.bytes) > write.offset;
        while let Some(start) = sorted
            .range(..end)
            .next_back()
            .filter(|(_, other)| overlaps(other))
            .map(|(&start, _)| start)
        {
            sorted.remove(&start);
        }
        sorted.insert(write.offset, write);
    }

    /// The next write, to be read back now.
    pub fn take(&mut self) -> Option<Written> {
        self.last_was_read = true;
        match &mut self.sorted {
            Some(sorted) => sorted.pop_first().map(|(_, write)| write),
            None => self.in_order.pop_front(),
        }
    }

    /// The next write, if the backlog is due and the write is complete: it is if fewer I/Os than
    /// `completed` came before it (`check_get_verify` in `io_u.c`, fio 3.33).
    pub fn take_from_backlog(&mut self, completed: u64) -> Option<Written> {
        let Verify { backlog, batch } = self.options;
        if backlog == 0 || self.is_empty() {
            return None;
        }
        if self.batch_left == 0 {
            if self.len() as u64 % backlog != 0 || self.last_was_read {
                return None;
            }
            self.batch_left = batch;
        }
        self.first().filter(|write| write.before < completed)?;
        self.batch_left -= 1;
        self.take()
    }
}
