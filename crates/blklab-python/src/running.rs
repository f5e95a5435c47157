//! Runs one simulation, or many on several threads, without the interpreter's lock and in slices, so
//! that a signal (Ctrl-C) ends them soon.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use blksim::core::error::Error;
use blksim::live::LiveSimulation;
use blksim::simulate::Simulation;
use blksim::timeline::Timeline;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{error, interruptible};
use blksim_json as convert;
use serde_json::Value;

/// Events between two checks for signals: some tens of milliseconds.
const SLICE_EVENTS: u64 = 200_000;
/// Interval between checks for signals while many simulations run.
const LOOK: Duration = Duration::from_millis(50);

/// An answer in JSON, and both tables if requested.
pub struct Answer {
    text: String,
    timeline: Option<Timeline>,
}

/// The Python value: the answer and, if recorded, the rows of both tables.
pub type PyAnswer = (String, Option<(Py<PyBytes>, Py<PyBytes>)>);

impl Answer {
    fn of(request: &convert::Prepared, run: &mut Run) -> Self {
        let answered = |outcome| convert::outcome(&request.setup, &outcome);
        match run {
            Run::AsItIs(simulation) => {
                let mut answer = answered(simulation.outcome());
                if request.switchback.is_some() {
                    answer["slots"] = convert::slots(&simulation.slots());
                }
                Self { text: answer.to_string(), timeline: simulation.take_timeline() }
            }
            Run::Changing(live) => {
                let mut answer = answered(live.outcome());
                answer["changes_made_ns"] =
                    live.changes_made_ns().into_iter().map(Value::from).collect();
                answer["phases"] = convert::phases(&live.phases());
                Self { text: answer.to_string(), timeline: live.take_timeline() }
            }
        }
    }

    fn into_python(self, py: Python<'_>) -> PyAnswer {
        let tables = self.timeline.map(|Timeline { requests, ios }| {
            (PyBytes::new(py, &requests).unbind(), PyBytes::new(py, &ios).unbind())
        });
        (self.text, tables)
    }
}

/// A simulation under way.
enum Run {
    AsItIs(Box<Simulation>),
    Changing(Box<LiveSimulation>),
}

impl Run {
    fn advance(&mut self, events: u64) -> Result<bool, Error> {
        match self {
            Self::AsItIs(simulation) => simulation.advance(events),
            Self::Changing(live) => live.advance(events),
        }
    }
}

fn begin(request: &str) -> Result<(convert::Prepared, Run), Error> {
    let prepared = convert::setup(request)?;
    if let Some(changes) = &prepared.changes {
        let mut live = LiveSimulation::planned(&prepared.setup, changes)?;
        if let Some(limit_bytes) = prepared.timeline_bytes {
            live.record(limit_bytes);
        }
        return Ok((prepared, Run::Changing(Box::new(live))));
    }
    let mut simulation = Simulation::new(&prepared.setup, Vec::new())?;
    if let Some(limit_bytes) = prepared.timeline_bytes {
        simulation.record(limit_bytes);
    }
    if let Some(turns) = &prepared.switchback {
        simulation.take_turns(&prepared.setup, turns)?;
    }
    Ok((prepared, Run::AsItIs(Box::new(simulation))))
}

/// Converts a panic into an error.
fn caught<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(error::from_panic(panic.as_ref())))
}

/// Runs one simulation, checking for signals between slices; `None` once `stopped` returns true.
pub fn one(
    py: Python<'_>,
    request: &str,
    stopped: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<PyAnswer>> {
    let raised = |cause: Error| error::raise(py, &cause);
    let begun = if request.len() > crate::LONG_TEXT {
        let request = request.to_owned();
        interruptible::run(py, move |_| caught(|| begin(&request)))?
    } else {
        py.detach(|| caught(|| begin(request)))
    };
    let (request, mut simulation) = begun.map_err(raised)?;
    while !py.detach(|| caught(|| simulation.advance(SLICE_EVENTS))).map_err(raised)? {
        py.check_signals()?;
        if let Some(stopped) = stopped
            && stopped.call0()?.is_truthy()?
        {
            return Ok(None);
        }
    }
    let answer = py.detach(|| caught(|| Ok(Answer::of(&request, &mut simulation))));
    Ok(Some(answer.map_err(raised)?.into_python(py)))
}

/// Runs one of many; `None` if it was stopped.
fn until_stopped(request: &str, stop: &AtomicBool) -> Result<Option<Answer>, Error> {
    caught(|| {
        let (request, mut simulation) = begin(request)?;
        while !simulation.advance(SLICE_EVENTS)? {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        Ok(Some(Answer::of(&request, &mut simulation)))
    })
}

/// Runs many simulations on `workers` threads. Answers come in the order of
/// the requests; the first request (in that order) that fails decides the error.
pub fn many(py: Python<'_>, requests: Vec<String>, workers: usize) -> PyResult<Vec<PyAnswer>> {
    // The texts live as long as the threads that read them.
    let requests = requests.into_boxed_slice();
    let requests = requests.as_ref();
    let workers = workers.clamp(1, requests.len().max(1));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut answers: Vec<Option<Result<Option<Answer>, Error>>> = Vec::new();
    answers.resize_with(requests.len(), || None);
    let outcome = std::thread::scope(|scope| {
        let (sender, mut receiver) = mpsc::channel();
        for _ in 0..workers {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(index) else { break };
                    let answer = until_stopped(request, stop);
                    // After an error later requests cannot matter, and earlier ones are
                    // already running.
                    let failed = answer.is_err();
                    let gone = sender.send((index, answer)).is_err();
                    if failed || gone || stop.load(Ordering::Relaxed) {
                        next.store(requests.len(), Ordering::Relaxed);
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            // The receiver is moved into the wait and back: it cannot be shared.
            let heard = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
            receiver = heard.1;
            match heard.0 {
                Ok((index, answer)) => answers[index] = Some(answer),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                next.store(requests.len(), Ordering::Relaxed);
                // The threads end with their current slices; none needs the interpreter.
                return Err(signal);
            }
        }
    });
    outcome?;
    let mut given = Vec::with_capacity(requests.len());
    for answer in answers {
        match answer {
            Some(Ok(Some(answer))) => given.push(answer.into_python(py)),
            Some(Err(cause)) => return Err(error::raise(py, &cause)),
            // Reached only after an error.
            Some(Ok(None)) | None => return Err(error::raise(py, &error::not_run())),
        }
    }
    Ok(given)
}
