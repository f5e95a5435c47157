//! The Python module `blklab._core`: blksim behind JSON texts, and records of the block layer as columns.
//!
//! A thin layer: values cross as JSON, errors become the exceptions of error.rs, and a panic becomes a
//! `SimulationError` of kind `internal`.

#[cfg(target_os = "linux")]
mod capture;
mod error;
mod interruptible;
mod memory;
mod records;
mod registered;
mod replay;
mod running;
mod waits;

use std::panic::{AssertUnwindSafe, catch_unwind};

use blksim::core::error::Error;
use blksim::devices::{FLASH_LEAST_BEYOND, FLASH_RESERVE};
use blksim::live::LiveSimulation;
use blksim_json as convert;
use pyo3::prelude::*;
use serde_json::Value;

/// Texts that are longer take so long to parse (replays of millions of I/Os) that a signal must end it.
const LONG_TEXT: usize = 1 << 20;

/// Runs `work` on a text without the interpreter's lock and returns its result as text.
fn detached(
    py: Python<'_>,
    text: &str,
    work: impl FnOnce(&str) -> Result<Value, Error> + Send + 'static,
) -> PyResult<String> {
    let result = if text.len() > LONG_TEXT {
        let text = text.to_owned();
        interruptible::run(py, move |_| work(&text))?.map(|value| value.to_string())
    } else {
        py.detach(|| {
            let caught = catch_unwind(AssertUnwindSafe(|| work(text)));
            caught.unwrap_or_else(|panic| Err(error::from_panic(panic.as_ref())))
        })
        .map(|value| value.to_string())
    };
    result.map_err(|cause| error::raise(py, &cause))
}

/// Parses a job file; returns its jobs, warnings and host-only options as JSON.
#[pyfunction]
fn parse_jobs(py: Python<'_>, text: &str, source: &str) -> PyResult<String> {
    let source = source.to_owned();
    detached(py, text, move |text| Ok(convert::job_file(&blksim::workload::parse(text, &source)?)))
}

/// The first I/Os of every clone of a job file's jobs, at most `most` of each, as JSON.
#[pyfunction]
fn job_transfers(
    py: Python<'_>,
    text: &str,
    source: &str,
    capacity_bytes: u64,
    seed: u64,
    most: usize,
) -> PyResult<String> {
    let source = source.to_owned();
    detached(py, text, move |text| {
        let file = blksim::workload::parse(text, &source)?;
        convert::job_transfers(&file, capacity_bytes, seed, most)
    })
}

/// The table of job options as JSON.
#[pyfunction]
fn job_options(py: Python<'_>) -> PyResult<String> {
    detached(py, "", |_| Ok(convert::job_options()))
}

/// The simulated schedulers with their tunables as JSON.
#[pyfunction]
fn schedulers(py: Python<'_>) -> PyResult<String> {
    detached(py, "", |_| Ok(convert::schedulers()))
}

/// The kinds of simulated devices with their parameters as JSON.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<String> {
    detached(py, "", |_| Ok(convert::devices()))
}

/// Releases of Linux that the simulator follows, the default first.
#[pyfunction]
fn kernel_releases() -> &'static [&'static str] {
    blksim::block::kernel_version::RELEASES
}

/// Checks a device profile; returns what it describes as JSON.
#[pyfunction]
fn check_device(py: Python<'_>, toml_text: &str, source: &str) -> PyResult<String> {
    let source = source.to_owned();
    detached(py, toml_text, move |text| convert::profile(text, &source))
}

/// Checks a request, parts of which may be missing, without simulating.
#[pyfunction]
fn check_request(py: Python<'_>, request: &str) -> PyResult<String> {
    detached(py, request, |request| {
        let convert::Partial { setup, changes } = convert::partial(request)?;
        let checked = blksim::simulate::check(&setup)?;
        if let Some(changes) = &changes {
            LiveSimulation::planned(&setup, changes)?;
        }
        Ok(convert::checked(&setup, &checked))
    })
}

/// The tables of a timeline and the version of their format as JSON.
#[pyfunction]
fn timeline_format(py: Python<'_>) -> PyResult<String> {
    detached(py, "", |_| Ok(convert::timeline_format()))
}

/// Runs one simulation; request and answer are JSON.
#[pyfunction]
fn simulate(py: Python<'_>, request: &str) -> PyResult<String> {
    // Without anybody to stop it, there is an answer.
    Ok(running::one(py, request, None)?.map_or_else(String::new, |answer| answer.0))
}

/// Runs one simulation; returns the answer and, if the request has a `timeline`, the rows of its tables.
///
/// `stopped` is called between slices of the work; once it returns true, the answer is `None`.
#[pyfunction]
#[pyo3(signature = (request, stopped = None))]
fn simulate_recorded(
    py: Python<'_>,
    request: &str,
    stopped: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<running::PyAnswer>> {
    running::one(py, request, stopped)
}

/// Runs many simulations on `workers` threads; returns the answers in the order of the requests.
#[pyfunction]
fn simulate_many(
    py: Python<'_>,
    requests: Vec<String>,
    workers: usize,
) -> PyResult<Vec<running::PyAnswer>> {
    running::many(py, requests, workers)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FLASH_RESERVE", FLASH_RESERVE)?;
    module.add("FLASH_LEAST_BEYOND", FLASH_LEAST_BEYOND)?;
    module.add_function(wrap_pyfunction!(parse_jobs, module)?)?;
    module.add_function(wrap_pyfunction!(job_transfers, module)?)?;
    module.add_function(wrap_pyfunction!(job_options, module)?)?;
    module.add_function(wrap_pyfunction!(schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_releases, module)?)?;
    module.add_function(wrap_pyfunction!(check_device, module)?)?;
    module.add_function(wrap_pyfunction!(check_request, module)?)?;
    module.add_function(wrap_pyfunction!(timeline_format, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_recorded, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_many, module)?)?;
    module.add_function(wrap_pyfunction!(registered::register_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(registered::unregister_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(registered::registered_schedulers, module)?)?;
    module.add_class::<records::RecordReader>()?;
    module.add_function(wrap_pyfunction!(records::open_record, module)?)?;
    module.add_function(wrap_pyfunction!(records::record_formats, module)?)?;
    module.add_function(wrap_pyfunction!(records::record_codes, module)?)?;
    module.add_function(wrap_pyfunction!(waits::analyse_waits, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_workload, module)?)?;
    module.add_function(wrap_pyfunction!(replay::plans_in_turn, module)?)?;
    #[cfg(target_os = "linux")]
    module.add_class::<capture::LiveCapture>()?;
    module.add_class::<capture::Recording>()?;
    #[cfg(target_os = "linux")]
    module.add_function(wrap_pyfunction!(capture::capture_support, module)?)?;
    #[cfg(target_os = "linux")]
    module.add_function(wrap_pyfunction!(capture::left_over_instances, module)?)?;
    Ok(())
}
