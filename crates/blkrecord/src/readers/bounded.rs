//! Keeps a reader within its limits.

use std::path::{Path, PathBuf};

use super::RecordReader;
use crate::batch::Batch;
use crate::error::{RecordError, Warnings};
use crate::facts::{Facts, Tally};
use crate::limits::{Bounds, Stored};
use crate::names::Names;

/// A reader that ends with an error once its trace exceeds a limit, or somebody wants it to end.
#[derive(Debug)]
pub struct Bounded {
    reader: Box<dyn RecordReader>,
    path: PathBuf,
    bounds: Bounds,
    /// Of each of its files.
    stored: Vec<Stored>,
    rows: u64,
}

impl Bounded {
    pub fn boxed(
        reader: Box<dyn RecordReader>,
        path: &Path,
        bounds: &Bounds,
        stored: Vec<Stored>,
    ) -> Box<dyn RecordReader> {
        Box::new(Self { reader, path: path.to_owned(), bounds: bounds.clone(), stored, rows: 0 })
    }
}

impl RecordReader for Bounded {
    fn facts(&self) -> &Facts {
        self.reader.facts()
    }

    fn names(&self) -> &Names {
        self.reader.names()
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        self.bounds.interrupt.check()?;
        let before = batch.ios.len() + batch.tasks.len();
        let any = self.reader.read(batch)?;
        self.rows += (batch.ios.len() + batch.tasks.len() - before) as u64;
        let stored = Stored::default();
        stored.add(self.stored.iter().map(Stored::bytes).sum());
        stored.check_rows(&self.path, self.rows)?;
        if let Some(memory) = self.bounds.memory {
            memory.check_rows(&self.path, self.rows)?;
        }
        Ok(any)
    }

    fn tally(&self) -> Tally {
        self.reader.tally()
    }

    fn begin_ns(&self) -> u64 {
        self.reader.begin_ns()
    }

    fn warnings(&self) -> &Warnings {
        self.reader.warnings()
    }
}
