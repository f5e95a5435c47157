//! The analysis of a whole trace: where its I/Os wait.

use std::path::PathBuf;

use blkrecord::limits::Bounds;
use blkrecord::{readers, waits};
use pyo3::prelude::*;

use crate::{interruptible, memory, records};

/// Reads a trace to its end; gives the analysis as JSON.
#[pyfunction]
#[pyo3(signature = (path, format_name=None))]
pub fn analyse_waits(py: Python<'_>, path: PathBuf, format_name: Option<&str>) -> PyResult<String> {
    let format = format_name.and_then(readers::format_named);
    let done = interruptible::run(py, move |interrupt| {
        let memory = memory::free_for(waits::KEPT_BYTES);
        let bounds = Bounds { interrupt: interrupt.clone(), memory };
        let mut reader = readers::open(&path, format, &bounds)?;
        let found = waits::of(&mut *reader, interrupt)?;
        Ok(serde_json::to_string(&found).unwrap_or_default())
    })?;
    done.map_err(|cause| records::raise(py, &cause))
}
