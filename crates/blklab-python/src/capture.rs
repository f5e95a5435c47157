//! Recording what reaches the block layer of this machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use blkcapture::attendant::Attended;
use blkcapture::error::CaptureError;
use blkcapture::live::Live;
use blkcapture::request::Request;
use blkcapture::support;
use pyo3::prelude::*;
use serde::Serialize;

use crate::error;

/// Works on a capture without the interpreter's lock; a panic becomes an error.
fn with<T: Send, R: Send>(
    py: Python<'_>,
    capture: &Mutex<T>,
    work: impl FnOnce(&mut T) -> Result<R, CaptureError> + Send,
) -> PyResult<R> {
    let done = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            work(&mut capture.lock().unwrap_or_else(PoisonError::into_inner))
        }))
    });
    match done {
        Ok(result) => result.map_err(|cause| raise(py, &cause)),
        Err(panic) => Err(error::raise(py, &error::from_panic(panic.as_ref()))),
    }
}

fn request_of(py: Python<'_>, json: &str) -> PyResult<Request> {
    serde_json::from_str(json)
        .map_err(|cause| raise(py, &CaptureError::Request(format!("the request: {cause}"))))
}

fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A recording under way. It must be checked every 100 ms or so, and finished.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Recording {
    recording: Mutex<Attended>,
}

#[pymethods]
impl Recording {
    /// Starts to record; `request` is JSON.
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let request = request_of(py, request)?;
        let begun = py.detach(|| Attended::begin(request));
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

    /// Makes sure that it gets on; raises what has stopped it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.recording, |recording| recording.check())
    }

    /// Stops, and completes the file; gives the counts as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        Ok(as_json(&with(py, &self.recording, Attended::finish)?))
    }
}

/// A capture without a file. It must be polled every 20 ms or so, and finished.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct LiveCapture {
    live: Mutex<Live>,
}

#[pymethods]
impl LiveCapture {
    /// Starts to capture; `request` is JSON.
    #[new]
    fn new(py: Python<'_>, request: &str) -> PyResult<Self> {
        let request = request_of(py, request)?;
        let begun = py.detach(|| Live::begin(request));
        Ok(Self { live: Mutex::new(begun.map_err(|cause| raise(py, &cause))?) })
    }

    /// Facts that the I/Os lack.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).missing()
    }

    /// Takes what has happened.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.live, Live::poll)
    }

    /// The waits of the I/Os that have completed since the last call, as JSON.
    fn window(&self, py: Python<'_>) -> PyResult<String> {
        Ok(as_json(&with(py, &self.live, Live::window)?))
    }

    /// Stops.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.live, Live::finish)
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
