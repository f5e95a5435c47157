//! Recording what reaches the block layer of this machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use blkcapture::error::CaptureError;
use blkcapture::recording;
use blkcapture::request::Request;
use blkcapture::support;
use blkrecord::facts::Tally;
use pyo3::prelude::*;

use crate::error;

/// A recording under way. It must be polled every 20 ms or so, and finished.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Recording {
    recording: Mutex<recording::Recording>,
}

impl Recording {
    fn with(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut recording::Recording) -> Result<Tally, CaptureError> + Send,
    ) -> PyResult<String> {
        let done = py.detach(|| {
            catch_unwind(AssertUnwindSafe(|| {
                work(&mut self.recording.lock().unwrap_or_else(PoisonError::into_inner))
            }))
        });
        let tally = match done {
            Ok(result) => result.map_err(|cause| raise(py, &cause))?,
            Err(panic) => return Err(error::raise(py, &error::from_panic(panic.as_ref()))),
        };
        Ok(serde_json::to_string(&tally).unwrap_or_default())
    }
}

#[pymethods]
impl Recording {
    /// Starts to record; `request` is JSON.
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let request: Request = serde_json::from_str(request)
            .map_err(|cause| raise(py, &CaptureError::Request(format!("the request: {cause}"))))?;
        let begun = py.detach(|| recording::Recording::begin(request));
        let recording = Mutex::new(begun.map_err(|cause| raise(py, &cause))?);
        Ok(Self { recording })
    }

    /// The way of capturing.
    #[getter]
    fn capture(&self) -> &'static str {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).capture()
    }

    /// Facts that the record will lack.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).missing()
    }

    /// Takes and writes what has happened; gives the counts as JSON.
    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, recording::Recording::poll)
    }

    /// Stops, and completes the file; gives the counts as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, recording::Recording::finish)
    }
}

/// Ways of capturing, the best first, each with the reason why it cannot be used here, or nothing.
#[pyfunction]
#[pyo3(signature = (bpf_object=None))]
pub fn capture_support(
    py: Python<'_>,
    bpf_object: Option<PathBuf>,
) -> Vec<(&'static str, Option<String>)> {
    let reason = |result: Result<(), CaptureError>| result.err().map(|error| error.to_string());
    py.detach(move || {
        vec![
            ("bpf", reason(support::bpf(bpf_object.as_deref()))),
            ("tracefs", reason(support::tracefs())),
        ]
    })
}

/// The tracefs instances that killed recorders left, and why one could not be removed.
#[pyfunction]
pub fn left_over_instances(
    py: Python<'_>,
    remove: bool,
) -> PyResult<Vec<(String, Option<String>)>> {
    py.detach(|| support::left_over(remove)).map_err(|cause| raise(py, &cause))
}

fn raise(py: Python<'_>, cause: &CaptureError) -> PyErr {
    let kind = match cause {
        CaptureError::NotPermitted { .. } => "not_permitted",
        CaptureError::Unavailable(_) => "unavailable",
        CaptureError::Output { .. } => "output",
        CaptureError::Request(_) => "request",
    };
    error::capture(py, &cause.to_string(), kind)
}
