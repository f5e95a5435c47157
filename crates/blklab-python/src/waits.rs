//! The analysis of a whole trace: where its I/Os wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use blkrecord::{readers, waits};
use pyo3::prelude::*;

use crate::{error, records};

/// Reads a trace to its end; gives the analysis as JSON.
#[pyfunction]
#[pyo3(signature = (path, format_name=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives paths by value")]
pub fn analyse_waits(py: Python<'_>, path: PathBuf, format_name: Option<&str>) -> PyResult<String> {
    let format = format_name.and_then(readers::format_named);
    let done = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            let mut reader = readers::open(&path, format)?;
            waits::of(&mut *reader)
        }))
    });
    match done {
        Ok(Ok(found)) => Ok(serde_json::to_string(&found).unwrap_or_default()),
        Ok(Err(cause)) => Err(records::raise(py, &cause)),
        Err(panic) => Err(error::raise(py, &error::from_panic(panic.as_ref()))),
    }
}
