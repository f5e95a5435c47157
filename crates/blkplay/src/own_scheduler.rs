//! The scheduler that somebody writes in the page: its hooks are functions that the page imports into this program.
//!
//! They must not call this program back. The page's half is `own_scheduler.js`.

use std::sync::Arc;

use blksim::block::queue_facts::QueueFacts;
use blksim::block::request::{Operation, PriorityClass};
use blksim::core::error::Error;
use blksim::elevator::registered::{self, RequestFacts, SchedulerCode};

use hooks as page;

/// The message of a failure, whose exception the page has.
const FAILED: &str = "the scheduler's code failed";

#[cfg(target_arch = "wasm32")]
mod hooks {
    #[link(wasm_import_module = "page")]
    unsafe extern "C" {
        pub safe fn scheduler_begin(rotational: u32, nr_requests: u32, device_depth: u32) -> f64;
        pub safe fn scheduler_end(handle: u32);
        pub safe fn scheduler_copy(handle: u32) -> f64;
        pub safe fn scheduler_insert(
            handle: u32,
            now_ns: f64,
            number: f64,
            sector: f64,
            bytes: f64,
            operation: u32,
            sync: u32,
            task: u32,
            class: u32,
            level: u32,
            group: u32,
            weight: u32,
        ) -> f64;
        pub safe fn scheduler_dispatch(handle: u32, now_ns: f64) -> f64;
        pub safe fn scheduler_completed(handle: u32, now_ns: f64, number: f64) -> f64;
        pub safe fn scheduler_timer(handle: u32, now_ns: f64) -> f64;
        pub safe fn scheduler_take_timer_ns(handle: u32) -> f64;
    }
}

/// Native tests have no page, so nothing that they register begins.
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::too_many_arguments, reason = "those of the page's functions")]
mod hooks {
    /// The code has thrown an exception.
    const THREW: f64 = -1.0;

    pub fn scheduler_begin(_rotational: u32, _nr_requests: u32, _device_depth: u32) -> f64 {
        THREW
    }
    pub fn scheduler_end(_handle: u32) {}
    pub fn scheduler_copy(_handle: u32) -> f64 {
        THREW
    }
    pub fn scheduler_insert(
        _handle: u32,
        _now_ns: f64,
        _number: f64,
        _sector: f64,
        _bytes: f64,
        _operation: u32,
        _sync: u32,
        _task: u32,
        _class: u32,
        _level: u32,
        _group: u32,
        _weight: u32,
    ) -> f64 {
        THREW
    }
    pub fn scheduler_dispatch(_handle: u32, _now_ns: f64) -> f64 {
        THREW
    }
    pub fn scheduler_completed(_handle: u32, _now_ns: f64, _number: f64) -> f64 {
        THREW
    }
    pub fn scheduler_timer(_handle: u32, _now_ns: f64) -> f64 {
        THREW
    }
    pub fn scheduler_take_timer_ns(_handle: u32) -> f64 {
        0.0
    }
}

/// An answer of a hook; one below 0 says that the code has thrown an exception, which the page keeps.
fn answered(answer: f64) -> Result<f64, String> {
    if answer < 0.0 { Err(FAILED.to_owned()) } else { Ok(answer) }
}

/// A scheduler of the page, by its handle there.
#[derive(Debug)]
struct PageCode {
    handle: u32,
}

impl PageCode {
    fn begun(handle: f64) -> Result<Box<dyn SchedulerCode>, String> {
        Ok(Box::new(Self { handle: answered(handle)? as u32 }))
    }
}

impl Drop for PageCode {
    fn drop(&mut self) {
        page::scheduler_end(self.handle);
    }
}

impl SchedulerCode for PageCode {
    fn insert(&mut self, now_ns: u64, request: RequestFacts) -> Result<(), String> {
        let operation = match request.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush => 2,
            Operation::Discard => 3,
        };
        let class = match request.class {
            PriorityClass::RealTime => 0,
            PriorityClass::BestEffort => 1,
            PriorityClass::Idle => 2,
        };
        answered(page::scheduler_insert(
            self.handle,
            now_ns as f64,
            request.number as f64,
            request.sector as f64,
            request.bytes as f64,
            operation,
            request.sync.into(),
            request.task,
            class,
            request.level.into(),
            request.group.into(),
            request.weight,
        ))
        .map(|_| ())
    }

    fn dispatch(&mut self, now_ns: u64) -> Result<Option<u64>, String> {
        let number = answered(page::scheduler_dispatch(self.handle, now_ns as f64))? as u64;
        Ok((number != 0).then_some(number))
    }

    fn completed(&mut self, now_ns: u64, number: u64) -> Result<(), String> {
        answered(page::scheduler_completed(self.handle, now_ns as f64, number as f64)).map(|_| ())
    }

    fn timer(&mut self, now_ns: u64) -> Result<(), String> {
        answered(page::scheduler_timer(self.handle, now_ns as f64)).map(|_| ())
    }

    fn take_timer_ns(&mut self) -> Option<u64> {
        let time_ns = page::scheduler_take_timer_ns(self.handle) as u64;
        (time_ns != 0).then_some(time_ns)
    }

    fn copy(&self) -> Result<Box<dyn SchedulerCode>, String> {
        Self::begun(page::scheduler_copy(self.handle))
    }
}

/// Gives the page's scheduler a name, under which it is simulated from then on.
pub fn register(name: &str) -> Result<(), Error> {
    let begin = |facts: QueueFacts| {
        let rotational = facts.rotational.into();
        PageCode::begun(page::scheduler_begin(rotational, facts.nr_requests, facts.device_depth))
    };
    registered::register(name, "written in this page", Arc::new(begin))
}
