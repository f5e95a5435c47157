//! Writes a record as it grows, in blocks, with bounded memory.

use std::io::{self, Write};

use super::block::{self, Kind};
use super::{MAGIC, VERSION, columns, varint};
use crate::batch::{BATCH_IOS, Batch};
use crate::facts::{CgroupFacts, Facts, Tally};
use crate::names::Names;

/// Control groups in a block, which has its limit.
const MOST_CGROUPS: usize = 256;

/// A file that is being written. Without [`Self::finish`] it stays readable up to its last block.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    waiting: Batch,
    names_written: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(mut out: W, facts: &Facts) -> io::Result<Self> {
        let mut magic = MAGIC.to_vec();
        magic.extend_from_slice(&VERSION.to_le_bytes());
        out.write_all(&magic)?;
        block::write(&mut out, Kind::FACTS, &serde_json::to_vec(facts)?)?;
        Ok(Self { out, waiting: Batch::default(), names_written: 1 })
    }

    /// Takes all of a batch, and writes once there is enough for a block.
    ///
    /// `names` are those that the batch refers to, `tally` the counts so far.
    pub fn write(&mut self, batch: &mut Batch, names: &Names, tally: &Tally) -> io::Result<()> {
        self.waiting.ios.append(&mut batch.ios);
        self.waiting.tasks.append(&mut batch.tasks);
        if self.waiting.ios.len() >= BATCH_IOS || self.waiting.tasks.len() >= BATCH_IOS {
            self.flush(names, tally)?;
        }
        Ok(())
    }

    /// Writes what is known of more control groups, at once.
    pub fn cgroups(&mut self, cgroups: &[CgroupFacts]) -> io::Result<()> {
        for some in cgroups.chunks(MOST_CGROUPS) {
            block::write(&mut self.out, Kind::CGROUPS, &serde_json::to_vec(some)?)?;
        }
        Ok(())
    }

    /// Writes what waits, however little.
    pub fn flush(&mut self, names: &Names, tally: &Tally) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if names.len() > self.names_written {
            let mut raw = Vec::new();
            for name in names.from(self.names_written) {
                varint::put(&mut raw, name.len() as u64);
                raw.extend_from_slice(name.as_bytes());
                // A block has its limit.
                if raw.len() > 1 << 20 {
                    block::write(&mut self.out, Kind::NAMES, &raw)?;
                    raw.clear();
                }
            }
            block::write(&mut self.out, Kind::NAMES, &raw)?;
            self.names_written = names.len();
        }
        for tasks in self.waiting.tasks.chunks(BATCH_IOS) {
            block::write(&mut self.out, Kind::TASKS, &columns::encode_tasks(tasks))?;
        }
        for ios in self.waiting.ios.chunks(BATCH_IOS) {
            block::write(&mut self.out, Kind::IOS, &columns::encode_ios(ios))?;
        }
        block::write(&mut self.out, Kind::TALLY, &serde_json::to_vec(tally)?)?;
        self.waiting.clear();
        self.out.flush()
    }

    /// Writes the rest and the end; gives what it wrote to.
    pub fn finish(mut self, names: &Names, tally: &Tally) -> io::Result<W> {
        self.flush(names, tally)?;
        let tally = Tally { whole: true, ..*tally };
        block::write(&mut self.out, Kind::END, &serde_json::to_vec(&tally)?)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
