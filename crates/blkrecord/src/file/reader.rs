//! Reads `.blkrecord` files, damaged ones up to the damage.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::block::{self, Found, Kind};
use super::varint::Input;
use super::{MAGIC, OLDEST_VERSION, VERSION, columns};
use crate::batch::Batch;
use crate::error::{Place, RecordError, Warnings};
use crate::facts::{CgroupFacts, Facts, Tally};
use crate::names::Names;
use crate::readers::{RecordReader, Source};

/// A file that is being read.
#[derive(Debug)]
pub struct Reader {
    input: Source,
    path: PathBuf,
    offset: u64,
    facts: Facts,
    names: Names,
    tally: Tally,
    warnings: Warnings,
    ended: bool,
}

impl Reader {
    /// Reads the magic and the facts.
    pub fn new(mut input: Source, path: &Path) -> Result<Self, RecordError> {
        let damaged =
            |offset, message: &str| RecordError::format(Place::byte(path, offset), message);
        let mut magic = [0; MAGIC.len() + 2];
        input.read_exact(&mut magic).map_err(|_| damaged(0, "the file ends within its magic"))?;
        if magic[..MAGIC.len()] != MAGIC[..] {
            return Err(damaged(0, "this is no record of blklab"));
        }
        let version = u16::from_le_bytes([magic[14], magic[15]]);
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            let message = format!(
                "version {version} of the format; this blklab reads {OLDEST_VERSION} to {VERSION}"
            );
            return Err(damaged(14, &message));
        }
        let offset = magic.len() as u64;
        let facts = match block::read(&mut input) {
            Ok(Found::Block(Kind::FACTS, raw)) => serde_json::from_slice(&raw)
                .map_err(|error| damaged(offset, &format!("the facts cannot be read: {error}")))?,
            Ok(Found::Block(..)) => return Err(damaged(offset, "the first block has no facts")),
            Ok(Found::End) => return Err(damaged(offset, "the file ends before its first block")),
            Ok(Found::Damaged(message)) => return Err(damaged(offset, message)),
            Err(error) => return Err(RecordError::system(path, error)),
        };
        let offset = input.position();
        Ok(Self {
            input,
            path: path.to_owned(),
            offset,
            facts,
            names: Names::default(),
            tally: Tally::default(),
            warnings: Warnings::default(),
            ended: false,
        })
    }

    fn warn(&mut self, offset: u64, message: &str) {
        self.warnings.add(|| Place::byte(&self.path, offset), || message.to_owned());
    }

    fn take_block(
        &mut self,
        kind: Kind,
        raw: &[u8],
        batch: &mut Batch,
    ) -> Result<(), &'static str> {
        match kind {
            Kind::NAMES => {
                let mut input = Input::new(raw);
                while !input.is_empty() {
                    let name = input.get().and_then(|bytes| input.take(bytes));
                    let name = name.and_then(|name| std::str::from_utf8(name).ok());
                    let before = self.names.len();
                    self.names.number_of(name.ok_or("a name is damaged")?);
                    if self.names.len() == before {
                        return Err("a name appears twice");
                    }
                }
            }
            Kind::IOS => {
                let before = batch.ios.len();
                columns::decode_ios(raw, self.names.len(), &mut batch.ios)?;
                let ios = &batch.ios[before..];
                self.tally.ios += ios.len() as u64;
                let known = ios.iter().flat_map(|io| [io.completed.ns(), io.queued.ns()]).flatten();
                self.tally.span_ns = known.fold(self.tally.span_ns, u64::max);
                let open = ios.iter().filter(|io| !io.completed.is_known()).count();
                self.tally.incomplete += open as u64;
            }
            Kind::TASKS => columns::decode_tasks(raw, self.names.len(), &mut batch.tasks)?,
            Kind::CGROUPS => {
                let more: Vec<CgroupFacts> =
                    serde_json::from_slice(raw).map_err(|_| "the control groups cannot be read")?;
                self.facts.cgroups.extend(more);
            }
            Kind::TALLY | Kind::END => {
                let tally: Tally =
                    serde_json::from_slice(raw).map_err(|_| "the counts cannot be read")?;
                self.tally.events = tally.events;
                self.tally.lost = tally.lost;
                self.tally.unmatched = tally.unmatched;
                self.tally.span_ns = self.tally.span_ns.max(tally.span_ns);
                self.tally.whole = kind == Kind::END;
            }
            _ => {}
        }
        Ok(())
    }
}

impl RecordReader for Reader {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        while !self.ended && batch.is_empty() {
            let offset = self.offset;
            let found = block::read(&mut self.input)
                .map_err(|error| RecordError::system(&self.path, error))?;
            self.offset = self.input.position();
            match found {
                Found::Block(kind, raw) => {
                    if let Err(message) = self.take_block(kind, &raw, batch) {
                        self.warn(offset, message);
                        self.ended = true;
                    } else if kind == Kind::END {
                        self.ended = true;
                    }
                }
                Found::End => {
                    self.warn(offset, "the file has no end: the recorder was killed");
                    self.ended = true;
                }
                Found::Damaged(message) => {
                    self.warn(offset, &format!("{message}; the rest is not read"));
                    self.ended = true;
                }
            }
        }
        Ok(!batch.is_empty())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
