//! Reads `.blkrecord` files, damaged ones up to the damage.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::block::{self, Found, Kind};
use super::varint::Input;
use super::{MAGIC, OLDEST_VERSION, VERSION, columns};
use crate::batch::Batch;
use crate::error::{Place, RecordError, Warnings};
use crate::facts::{CgroupFacts, Facts, Tally};
use crate::limits::{CGROUP_BYTES, CGROUPS, DEVICES, FACT_BYTES, TooLarge};
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
    /// Of all blocks, decompressed.
    raw_bytes: u64,
    cgroup_bytes: usize,
    /// Whether some were left out.
    lacks_cgroups: bool,
    ended: bool,
}

/// Why a block cannot be used.
enum Refused {
    Damaged(&'static str),
    TooLarge(String),
}

impl From<&'static str> for Refused {
    fn from(message: &'static str) -> Self {
        Self::Damaged(message)
    }
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
        let facts: Facts = match block::read(&mut input) {
            Ok(Found::Block(Kind::FACTS, raw)) if raw.len() > FACT_BYTES => {
                let message = format!(
                    "{} bytes of conditions are larger than those of any recording: {FACT_BYTES}",
                    raw.len()
                );
                return Err(TooLarge::new(path, message).into());
            }
            Ok(Found::Block(Kind::FACTS, raw)) => serde_json::from_slice(&raw)
                .map_err(|error| damaged(offset, &format!("the facts cannot be read: {error}")))?,
            Ok(Found::Block(..)) => return Err(damaged(offset, "the first block has no facts")),
            Ok(Found::End) => return Err(damaged(offset, "the file ends before its first block")),
            Ok(Found::Damaged(message)) => return Err(damaged(offset, message)),
            Err(error) => return Err(RecordError::system(path, error)),
        };
        if facts.devices.len() > DEVICES || facts.cgroups.len() > CGROUPS {
            let message = format!(
                "{} devices and {} control groups in its conditions are larger than those of any recording: {DEVICES} \
                 and {CGROUPS}",
                facts.devices.len(),
                facts.cgroups.len()
            );
            return Err(TooLarge::new(path, message).into());
        }
        let offset = input.position();
        Ok(Self {
            input,
            path: path.to_owned(),
            offset,
            facts,
            names: Names::default(),
            tally: Tally::default(),
            warnings: Warnings::default(),
            raw_bytes: 0,
            cgroup_bytes: 0,
            lacks_cgroups: false,
            ended: false,
        })
    }

    fn warn(&mut self, offset: u64, message: &str) {
        self.warnings.add(|| Place::byte(&self.path, offset), || message.to_owned());
    }

    fn take_block(&mut self, kind: Kind, raw: &[u8], batch: &mut Batch) -> Result<(), Refused> {
        match kind {
            Kind::NAMES => self.take_names(raw)?,
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
            Kind::CGROUPS => self.take_cgroups(raw)?,
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

    fn take_names(&mut self, raw: &[u8]) -> Result<(), Refused> {
        let mut input = Input::new(raw);
        while !input.is_empty() {
            let name = input.get().and_then(|bytes| input.take(bytes));
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let before = self.names.len();
            let is_full = self.names.is_full();
            self.names.number_of(name.ok_or("a name is damaged")?);
            if self.names.len() == before {
                if is_full {
                    let message = format!("{before} names are larger than those of any recording");
                    return Err(Refused::TooLarge(message));
                }
                return Err("a name appears twice".into());
            }
        }
        Ok(())
    }

    /// Keeps those that fit: an analysis needs no settings.
    fn take_cgroups(&mut self, raw: &[u8]) -> Result<(), Refused> {
        self.cgroup_bytes = self.cgroup_bytes.saturating_add(raw.len());
        let mut more: Vec<CgroupFacts> = Vec::new();
        if self.cgroup_bytes <= CGROUP_BYTES {
            more = serde_json::from_slice(raw).map_err(|_| "the control groups cannot be read")?;
        }
        let room = CGROUPS - self.facts.cgroups.len();
        if self.cgroup_bytes > CGROUP_BYTES || more.len() > room {
            if !self.lacks_cgroups {
                let message = format!(
                    "the settings of its control groups are larger than those of any recording ({CGROUPS} groups, \
                     {CGROUP_BYTES} bytes); the rest is left out"
                );
                self.warn(self.offset, &message);
            }
            self.lacks_cgroups = true;
            more.truncate(room);
        }
        self.facts.cgroups.append(&mut more);
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
                    self.raw_bytes += raw.len() as u64;
                    self.input.stored().check_growth(&self.path, self.raw_bytes)?;
                    match self.take_block(kind, &raw, batch) {
                        Ok(()) => self.ended = kind == Kind::END,
                        Err(Refused::Damaged(message)) => {
                            self.warn(offset, message);
                            self.ended = true;
                        }
                        Err(Refused::TooLarge(message)) => {
                            return Err(TooLarge::new(&self.path, message).into());
                        }
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
