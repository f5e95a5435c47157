//! blksim's errors as Python exceptions.

use blksim::core::error::{Error, ErrorKind, JobFileError, ProfileError, SimulationError};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{create_exception, types::PyType};

use crate::registered;

create_exception!(
    blklab._core,
    CoreError,
    PyException,
    "Base of this module's errors; `message` says what was wrong."
);
create_exception!(
    blklab._core,
    PyJobFileError,
    CoreError,
    "A job file is wrong: `message`, `source`, `line` and `option` (None if unknown)."
);
create_exception!(
    blklab._core,
    PyProfileError,
    CoreError,
    "A device profile or parameter is wrong: `message`, `source`, `field` (None if unknown)."
);
create_exception!(
    blklab._core,
    PySimulationError,
    CoreError,
    "A simulation cannot run: `message`, `field` (None if unknown) and `kind`."
);

create_exception!(
    blklab._core,
    PyRecordError,
    CoreError,
    "A trace cannot be read: `message`, `kind`, `line` and `byte` (None if unknown)."
);
create_exception!(
    blklab._core,
    PyReplayError,
    CoreError,
    "A trace cannot be replayed: `message` and `hint`."
);
create_exception!(
    blklab._core,
    PyCaptureError,
    CoreError,
    "A recording cannot begin or go on: `message` and `kind`."
);

/// Registers the exceptions under their Python names.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let add = |name: &str, class: Bound<'_, PyType>| -> PyResult<()> {
        class.setattr("__name__", name)?;
        class.setattr("__qualname__", name)?;
        module.add(name, class)
    };
    let py = module.py();
    add("CoreError", py.get_type::<CoreError>())?;
    add("JobFileError", py.get_type::<PyJobFileError>())?;
    add("ProfileError", py.get_type::<PyProfileError>())?;
    add("SimulationError", py.get_type::<PySimulationError>())?;
    add("RecordError", py.get_type::<PyRecordError>())?;
    add("ReplayError", py.get_type::<PyReplayError>())?;
    add("CaptureError", py.get_type::<PyCaptureError>())
}

/// The exception for an error of blksim, with its attributes set.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::JobFile(error) => job_file(py, error),
        Error::Profile(error) => profile(py, error),
        Error::Simulation(error) if error.kind == ErrorKind::Scheduler => scheduler(py, error),
        Error::Simulation(error) => simulation(py, error),
    }
}

/// With the exception that a scheduler's code raised as its cause, or that itself if it interrupts.
fn scheduler(py: Python<'_>, error: &SimulationError) -> PyErr {
    let raised = registered::take_raised();
    if let Some(interrupt) =
        raised.as_ref().filter(|raised| !raised.is_instance_of::<PyException>(py))
    {
        return interrupt.clone_ref(py);
    }
    let exception = simulation(py, error);
    exception.set_cause(py, raised);
    exception
}

fn job_file(py: Python<'_>, error: &JobFileError) -> PyErr {
    let exception = PyJobFileError::new_err(error.to_string());
    with(py, exception, |value| {
        value.setattr("message", &error.message)?;
        value.setattr("source", &error.source_name)?;
        value.setattr("line", error.line)?;
        value.setattr("option", &error.option)
    })
}

fn profile(py: Python<'_>, error: &ProfileError) -> PyErr {
    let exception = PyProfileError::new_err(error.to_string());
    with(py, exception, |value| {
        value.setattr("message", &error.message)?;
        value.setattr("source", &error.source_name)?;
        value.setattr("field", &error.field)
    })
}

fn simulation(py: Python<'_>, error: &SimulationError) -> PyErr {
    let exception = PySimulationError::new_err(error.to_string());
    with(py, exception, |value| {
        value.setattr("message", &error.message)?;
        value.setattr("field", &error.field)?;
        value.setattr("kind", error.kind.name())
    })
}

/// The exception for a trace that cannot be read.
pub fn record(
    py: Python<'_>,
    message: &str,
    kind: &str,
    line: Option<u64>,
    byte: Option<u64>,
) -> PyErr {
    let exception = PyRecordError::new_err(message.to_owned());
    with(py, exception, |value| {
        value.setattr("message", message)?;
        value.setattr("kind", kind)?;
        value.setattr("line", line)?;
        value.setattr("byte", byte)
    })
}

/// The exception for a trace that can be read and not be replayed.
pub fn unfit(py: Python<'_>, message: &str, hint: &str) -> PyErr {
    let exception = PyReplayError::new_err(message.to_owned());
    with(py, exception, |value| {
        value.setattr("message", message)?;
        value.setattr("hint", hint)
    })
}

/// The exception for a recording that cannot begin or go on.
pub fn capture(py: Python<'_>, message: &str, kind: &str) -> PyErr {
    let exception = PyCaptureError::new_err(message.to_owned());
    with(py, exception, |value| {
        value.setattr("message", message)?;
        value.setattr("kind", kind)
    })
}

fn with(
    py: Python<'_>,
    exception: PyErr,
    set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyErr {
    match set(exception.value(py).as_any()) {
        Ok(()) => exception,
        Err(error) => error,
    }
}

/// The error for a simulation that was skipped because an earlier one failed.
pub fn not_run() -> Error {
    SimulationError::new(ErrorKind::Internal, "a simulation was left out").into()
}

/// The error for a panic, which is always a defect.
pub fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    let message =
        format!("internal error in the simulator: {text}; please report it with the request");
    SimulationError::new(ErrorKind::Internal, message).into()
}
