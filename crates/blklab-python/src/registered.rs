//! Schedulers written in Python: each hook of blksim calls a method of an object, with the interpreter's lock.

use std::sync::{Arc, Mutex, PoisonError};

use blksim::block::queue_facts::QueueFacts;
use blksim::block::request::{Operation, PriorityClass};
use blksim::elevator::registered::{self as registry, RequestFacts, SchedulerCode};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error;

/// The last exception that a scheduler's code raised, for the error that tells of it.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// The exception that a scheduler's code raised, once.
pub fn take_raised() -> Option<PyErr> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Keeps an exception and returns it as text.
fn told(py: Python<'_>, raised: PyErr) -> String {
    let text = raised.to_string();
    // The one that interrupts stays: what the same stop brings about later says less.
    let mut kept = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.as_ref().is_none_or(|kept| kept.is_instance_of::<PyException>(py)) {
        *kept = Some(raised);
    }
    text
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Discard => "discard",
    }
}

fn class_name(class: PriorityClass) -> &'static str {
    match class {
        PriorityClass::RealTime => "rt",
        PriorityClass::BestEffort => "be",
        PriorityClass::Idle => "idle",
    }
}

/// A `blklab.simulator.schedulers.RunningScheduler`.
#[derive(Debug)]
struct PythonCode {
    object: Py<PyAny>,
}

impl PythonCode {
    /// Calls a method; its answer is a number, 0 for none.
    fn ask(
        &self,
        method: &str,
        given: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyTuple>>,
    ) -> Result<u64, String> {
        Python::attach(|py| {
            let answer =
                given(py).and_then(|given| self.object.bind(py).call_method1(method, given));
            let number = answer.and_then(|answer| answer.extract::<u64>());
            number.map_err(|raised| told(py, raised))
        })
    }
}

impl SchedulerCode for PythonCode {
    fn insert(&mut self, now_ns: u64, request: RequestFacts) -> Result<(), String> {
        let RequestFacts { number, sector, bytes, sync, task, level, group, weight, .. } = request;
        let (operation, class) = (operation_name(request.operation), class_name(request.class));
        self.ask("insert", |py| {
            (now_ns, number, sector, bytes, operation, sync, task, class, level, group, weight)
                .into_pyobject(py)
        })
        .map(|_| ())
    }

    fn dispatch(&mut self, now_ns: u64) -> Result<Option<u64>, String> {
        let number = self.ask("dispatch", |py| (now_ns,).into_pyobject(py))?;
        Ok((number != 0).then_some(number))
    }

    fn completed(&mut self, now_ns: u64, number: u64) -> Result<(), String> {
        self.ask("completed", |py| (now_ns, number).into_pyobject(py)).map(|_| ())
    }

    fn timer(&mut self, now_ns: u64) -> Result<(), String> {
        self.ask("timer", |py| (now_ns,).into_pyobject(py)).map(|_| ())
    }

    fn take_timer_ns(&mut self) -> Option<u64> {
        let time_ns = self.ask("take_timer_ns", |py| Ok(PyTuple::empty(py)));
        time_ns.ok().filter(|time_ns| *time_ns != 0)
    }

    fn copy(&self) -> Result<Box<dyn SchedulerCode>, String> {
        Python::attach(|py| {
            let copied = self.object.bind(py).call_method0("copy");
            let copied = copied.map_err(|raised| told(py, raised))?;
            Ok(Box::new(Self { object: copied.unbind() }) as Box<dyn SchedulerCode>)
        })
    }
}

/// Registers a scheduler. `begin` is called for each disk with facts of its queue and returns an object with the
/// hooks of `SchedulerCode` as methods; a number 0 stands for none.
#[pyfunction]
pub fn register_scheduler(
    py: Python<'_>,
    name: &str,
    summary: &str,
    begin: Py<PyAny>,
) -> PyResult<()> {
    let begin = move |facts: QueueFacts| {
        Python::attach(|py| {
            let given = (facts.rotational, facts.nr_requests, facts.device_depth);
            let object = begin.bind(py).call1(given).map_err(|raised| told(py, raised))?;
            Ok(Box::new(PythonCode { object: object.unbind() }) as Box<dyn SchedulerCode>)
        })
    };
    registry::register(name, summary, Arc::new(begin)).map_err(|cause| error::raise(py, &cause))
}

/// Forgets a registered scheduler; returns whether there was one.
#[pyfunction]
pub fn unregister_scheduler(name: &str) -> bool {
    registry::unregister(name)
}

/// Names of the registered schedulers.
#[pyfunction]
pub fn registered_schedulers() -> Vec<&'static str> {
    registry::all().iter().map(|info| info.name).collect()
}
