//! Records of the block layer: reading them as columns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use blkrecord::batch::Batch;
use blkrecord::error::{Position, RecordError};
use blkrecord::io::{Flags, Io, Operation};
use blkrecord::limits::Bounds;
use blkrecord::readers::{self, RecordReader as Reader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::interruptible::Asked;
use crate::{error, memory};

/// A field of an I/O: its column and its value.
type Field<T> = (&'static str, fn(&Io) -> T);

/// A trace that is read in batches of columns.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct RecordReader {
    reader: Mutex<Box<dyn Reader>>,
    asked: Asked,
}

impl RecordReader {
    /// Works with the reader without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Reader) -> Result<T, RecordError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            catch_unwind(AssertUnwindSafe(|| {
                work(&mut **self.reader.lock().unwrap_or_else(PoisonError::into_inner))
            }))
        });
        match done {
            Ok(result) => result.map_err(|cause| raised_or(py, &self.asked, &cause)),
            Err(panic) => Err(error::raise(py, &error::from_panic(panic.as_ref()))),
        }
    }
}

#[pymethods]
impl RecordReader {
    /// The next I/Os and task events, as bytes per column; `None` at the end.
    fn read<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyDict>, Bound<'py, PyDict>)>> {
        let (batch, any) = self.with(py, |reader| {
            let mut batch = Batch::default();
            let any = reader.read(&mut batch)?;
            Ok((batch, any))
        })?;
        if !any {
            return Ok(None);
        }
        Ok(Some((io_columns(py, &batch.ios)?, task_columns(py, &batch)?)))
    }

    /// The conditions of the recording as JSON.
    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |reader| Ok(json(reader.facts())))
    }

    /// The counts so far as JSON.
    fn tally(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |reader| Ok(json(&reader.tally())))
    }

    /// The names from number `first` on.
    fn names(&self, py: Python<'_>, first: usize) -> PyResult<Vec<String>> {
        self.with(py, |reader| Ok(reader.names().from(first).map(str::to_owned).collect()))
    }

    /// The first warnings, each with its place, and the number of all.
    fn warnings(&self, py: Python<'_>) -> PyResult<(Vec<String>, u64)> {
        self.with(py, |reader| {
            let warnings = reader.warnings();
            Ok((warnings.first.iter().map(ToString::to_string).collect(), warnings.count))
        })
    }
}

/// Opens a trace; `format_name` is the name of a format, or `None` to recognise it. A caller that keeps all I/Os says
/// how many bytes of each, so that a trace that is larger than the free memory is refused.
#[pyfunction]
#[pyo3(signature = (path, format_name=None, kept_bytes=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives paths by value")]
pub fn open_record(
    py: Python<'_>,
    path: PathBuf,
    format_name: Option<&str>,
    kept_bytes: Option<u64>,
) -> PyResult<RecordReader> {
    let format = format_name.and_then(readers::format_named);
    let asked = Asked::new();
    let memory = kept_bytes.and_then(memory::free_for);
    let bounds = Bounds { interrupt: asked.interrupt(), memory };
    let reader = py.detach(|| readers::open(&path, format, &bounds));
    let reader = reader.map_err(|cause| raised_or(py, &asked, &cause))?;
    Ok(RecordReader { reader: Mutex::new(reader), asked })
}

/// The exception that a signal's handler has raised, or the one for a file that cannot be read.
fn raised_or(py: Python<'_>, asked: &Asked, cause: &RecordError) -> PyErr {
    asked.take().unwrap_or_else(|| raise(py, cause))
}

/// The formats that can be read: name and summary.
#[pyfunction]
pub fn record_formats() -> Vec<(&'static str, &'static str)> {
    readers::FORMATS.iter().map(|format| (format.name, format.summary)).collect()
}

/// The numbers of operations and the bits of flags in the columns, with their names.
#[pyfunction]
pub fn record_codes() -> (Vec<&'static str>, Vec<(u16, &'static str)>) {
    let operations = Operation::ALL.iter().map(|operation| operation.name()).collect();
    (operations, Flags::NAMES.iter().map(|(flag, name)| (flag.0, *name)).collect())
}

/// Facts and counts have no keys that JSON lacks, so this cannot fail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn io_columns<'py>(py: Python<'py>, ios: &[Io]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let times: [Field<u64>; 8] = [
        ("queued_ns", |io| io.queued.raw()),
        ("split_ns", |io| io.split.raw()),
        ("merged_ns", |io| io.merged.raw()),
        ("inserted_ns", |io| io.inserted.raw()),
        ("issued_ns", |io| io.issued.raw()),
        ("completed_ns", |io| io.completed.raw()),
        ("sector", |io| io.sector),
        ("bytes", |io| io.bytes),
    ];
    for (name, value) in times {
        columns.set_item(name, column(py, ios, |io| value(io).to_le_bytes()))?;
    }
    let numbers: [Field<u32>; 5] = [
        ("tgid", |io| io.tgid),
        ("tid", |io| io.tid),
        ("command", |io| io.command),
        ("cgroup", |io| io.cgroup),
        ("device", |io| io.device),
    ];
    for (name, value) in numbers {
        columns.set_item(name, column(py, ios, |io| value(io).to_le_bytes()))?;
    }
    let shorts: [Field<u16>; 5] = [
        ("flags", |io| io.flags.0),
        ("ioprio", |io| io.ioprio),
        ("error", |io| io.error),
        ("processor", |io| io.processor),
        ("segments", |io| io.segments),
    ];
    for (name, value) in shorts {
        columns.set_item(name, column(py, ios, |io| value(io).to_le_bytes()))?;
    }
    columns.set_item("operation", column(py, ios, |io| [io.operation as u8]))?;
    Ok(columns)
}

fn task_columns<'py>(py: Python<'py>, batch: &Batch) -> PyResult<Bound<'py, PyDict>> {
    let tasks = &batch.tasks;
    let columns = PyDict::new(py);
    columns.set_item("at_ns", column(py, tasks, |task| task.at.raw().to_le_bytes()))?;
    columns.set_item("kind", column(py, tasks, |task| [task.kind as u8]))?;
    columns.set_item("tid", column(py, tasks, |task| task.tid.to_le_bytes()))?;
    columns.set_item("parent", column(py, tasks, |task| task.parent.to_le_bytes()))?;
    columns.set_item("command", column(py, tasks, |task| task.command.to_le_bytes()))?;
    Ok(columns)
}

/// One value of each row, little endian, one after the other.
fn column<'py, T, const N: usize>(
    py: Python<'py>,
    rows: &[T],
    value: impl Fn(&T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    let mut bytes = Vec::with_capacity(rows.len() * N);
    for row in rows {
        bytes.extend_from_slice(&value(row));
    }
    PyBytes::new(py, &bytes)
}

/// The exception for a file that cannot be read.
pub fn raise(py: Python<'_>, cause: &RecordError) -> PyErr {
    let (kind, line, byte) = match cause {
        RecordError::System { .. } => ("system", None, None),
        RecordError::UnknownFormat { .. } => ("unknown_format", None, None),
        RecordError::TooLarge(_) => ("too_large", None, None),
        RecordError::Interrupted(_) => ("interrupted", None, None),
        RecordError::Format { place, .. } => match place.position {
            Position::Line(line) => ("format", Some(line), None),
            Position::Byte(byte) => ("format", None, Some(byte)),
            Position::Whole => ("format", None, None),
        },
    };
    error::record(py, &cause.to_string(), kind, line, byte)
}
