//! Schedulers that a program registers while it runs: their code is a page's or a notebook's.
//!
//! [`register`] gives one a name; from then on it is simulated like any other. The simulator watches over what
//! the conformance suite demands of its own schedulers: each request is dispatched once, nothing is lost, and no
//! request waits for ever. A scheduler that breaks a rule, or whose code fails, is set aside: what it holds goes
//! to the device in order of arrival, and the simulation ends with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Operation, PriorityClass, Request, RequestId, SECTOR_BYTES};
use crate::core::error::{Error, ErrorKind, SimulationError};
use crate::core::params::Values;
use crate::elevator;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

/// A request has waited too long once so many younger ones have passed it, whatever time that took.
const MOST_PASSED: u64 = 5_000;
/// The same for one that has waited for [`LONG_WAIT_NS`] as well.
const MOST_PASSED_IN_LONG_WAIT: u64 = 500;
/// mq-deadline's `write_expire`.
const LONG_WAIT_NS: u64 = 5_000_000_000;

/// A request as the code of a registered scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFacts {
    /// Counts the requests that this scheduler was given, from 1.
    pub number: u64,
    /// First sector, of 512 bytes.
    pub sector: u64,
    pub bytes: u64,
    pub operation: Operation,
    /// Somebody waits for it: reads, direct writes, `fsync`.
    pub sync: bool,
    /// Index of the task on whose behalf it was submitted.
    pub task: u32,
    pub class: PriorityClass,
    /// 0 (best) to 7.
    pub level: u8,
    /// Index of the control group (0 is the root) and its weight (`io.bfq.weight`).
    pub group: u16,
    pub weight: u32,
}

/// The code of a registered scheduler, for one disk. An error of any hook ends the simulation.
pub trait SchedulerCode: Debug + Send + Sync {
    /// Takes a request.
    fn insert(&mut self, now_ns: u64, request: RequestFacts) -> Result<(), String>;

    /// The number of the next request for the device; `None` if none is to go now.
    fn dispatch(&mut self, now_ns: u64) -> Result<Option<u64>, String>;

    /// A dispatched request is done.
    fn completed(&mut self, now_ns: u64, number: u64) -> Result<(), String>;

    /// The time of [`Self::take_timer_ns`] has come. The queue dispatches afterwards.
    fn timer(&mut self, now_ns: u64) -> Result<(), String>;

    /// The time for which the last hook asked for [`Self::timer`].
    fn take_timer_ns(&mut self) -> Option<u64>;

    /// An independent copy, for a snapshot.
    fn copy(&self) -> Result<Box<dyn SchedulerCode>, String>;
}

/// Begins a scheduler's code for a disk.
pub type Begin = dyn Fn(QueueFacts) -> Result<Box<dyn SchedulerCode>, String> + Send + Sync;

#[derive(Clone)]
struct Entry {
    info: &'static Info,
    begin: Arc<Begin>,
}

static REGISTRY: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

fn entry(name: &str) -> Option<Entry> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.iter().find(|entry| entry.info.name == name).cloned()
}

/// Registers a scheduler, or replaces the code of one that was registered before.
///
/// # Errors
///
/// A name that is not a word of small letters, digits, `-` and `_`, or that of a scheduler of the simulator's own.
pub fn register(name: &str, summary: &str, begin: Arc<Begin>) -> Result<(), Error> {
    let refused = |message: String| -> Result<(), Error> {
        Err(SimulationError::of(ErrorKind::Request, "scheduler", message).into())
    };
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if !name.starts_with(|letter: char| letter.is_ascii_lowercase())
        || !name.chars().all(|letter| letters(letter) || letter == '-' || letter == '_')
    {
        return refused(format!(
            "{name:?} cannot be a scheduler's name; take small letters, digits, - and _, beginning with a letter"
        ));
    }
    if elevator::ALL.iter().any(|info| info.name == name) {
        return refused(format!("{name} is a scheduler of the simulator; take another name"));
    }
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = registry.iter_mut().find(|entry| entry.info.name == name) {
        entry.begin = begin;
        return Ok(());
    }
    // A description lives as long as the program, like those of the simulator's own; there are few.
    let info = Info {
        name: String::leak(name.to_owned()),
        summary: String::leak(summary.to_owned()),
        ..Registered::INFO
    };
    registry.push(Entry { info: Box::leak(Box::new(info)), begin });
    Ok(())
}

/// Forgets a registered scheduler. Returns whether there was one.
pub fn unregister(name: &str) -> bool {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let before = registry.len();
    registry.retain(|entry| entry.info.name != name);
    registry.len() < before
}

/// Descriptions of the registered schedulers, in order of registration.
pub fn all() -> Vec<&'static Info> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.iter().map(|entry| entry.info).collect()
}

/// The description of the registered scheduler called `name`.
pub(super) fn info(name: &str) -> Option<&'static Info> {
    entry(name).map(|entry| entry.info)
}

/// A request that the scheduler holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    id: RequestId,
    inserted_ns: u64,
    /// Requests that were here before it: dispatched, or held then.
    older: u64,
}

/// A registered scheduler at work.
#[derive(Debug)]
pub struct Registered {
    info: &'static Info,
    /// `None` once it is set aside.
    code: Option<Box<dyn SchedulerCode>>,
    failure: Option<String>,
    held: BTreeMap<u64, Held>,
    /// Requests that joined another and need no dispatch.
    joined: BTreeSet<u64>,
    /// The numbers of requests that are held or in the device.
    numbers: BTreeMap<RequestId, u64>,
    nr_inserted: u64,
    nr_dispatched: u64,
    /// Time of the last timer that was asked for.
    timer_ns: u64,
}

impl Registered {
    /// The registered scheduler called `name`, begun for a queue.
    pub(super) fn begin(name: &str, queue: QueueFacts) -> Option<Self> {
        let Entry { info, begin } = entry(name)?;
        let (code, failure) = match begin(queue) {
            Ok(code) => (Some(code), None),
            Err(cause) => (None, Some(cause)),
        };
        Some(Self {
            info,
            code,
            failure,
            held: BTreeMap::new(),
            joined: BTreeSet::new(),
            numbers: BTreeMap::new(),
            nr_inserted: 0,
            nr_dispatched: 0,
            timer_ns: 0,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.info.name
    }

    /// The rule that it broke, or the failure of its code.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn set_aside(&mut self, reason: String) {
        self.failure.get_or_insert(reason);
        self.code = None;
    }

    /// Calls a hook of the code, if it still counts, and sets the timer that it asks for.
    fn call<T>(
        &mut self,
        cx: &mut Context,
        hook: impl FnOnce(&mut dyn SchedulerCode) -> Result<T, String>,
    ) -> Option<T> {
        let code = self.code.as_mut()?;
        let answer = hook(code.as_mut());
        if let Some(timer_ns) = code.take_timer_ns() {
            self.timer_ns = timer_ns.max(cx.now_ns());
            cx.timer_at(self.timer_ns);
        }
        match answer {
            Ok(answer) => Some(answer),
            Err(cause) => {
                self.set_aside(cause);
                None
            }
        }
    }

    fn facts(&self, request: &Request, weight: u32) -> RequestFacts {
        RequestFacts {
            number: self.nr_inserted,
            sector: request.sector,
            bytes: u64::from(request.nr_sectors) * SECTOR_BYTES,
            operation: request.operation,
            sync: request.flags.sync,
            task: request.context,
            class: request.priority.class,
            level: request.priority.level,
            group: request.group,
            weight,
        }
    }

    /// Takes a held request out for the device.
    fn give(&mut self, number: u64) -> Option<RequestId> {
        let held = self.held.remove(&number)?;
        self.nr_dispatched += 1;
        Some(held.id)
    }

    fn nr_in_device(&self) -> usize {
        self.numbers.len() - self.held.len()
    }

    /// The mistake in dispatching a number that is not held.
    fn wrong_number(&self, number: u64) -> String {
        let name = self.name();
        if number == 0 || number > self.nr_inserted {
            let nr = self.nr_inserted;
            return format!("{name} dispatched request {number}, but was given only {nr} so far");
        }
        let place = if self.numbers.values().any(|other| *other == number) {
            "is in the device"
        } else {
            "is done"
        };
        format!(
            "{name} dispatched request {number} twice: it {place}; take a request out of your lists when it goes"
        )
    }

    /// The oldest request, if it has waited too long.
    fn starved(&self, now_ns: u64) -> Option<String> {
        let (number, held) = self.held.first_key_value()?;
        let passed = self.nr_dispatched.saturating_sub(held.older);
        let waited_ns = now_ns - held.inserted_ns;
        let long = waited_ns >= LONG_WAIT_NS && passed >= MOST_PASSED_IN_LONG_WAIT;
        (long || passed >= MOST_PASSED).then(|| {
            format!(
                "{} lets request {number} starve: {passed} younger ones have passed it in {:.3} s",
                self.name(),
                waited_ns as f64 / 1e9
            )
        })
    }
}

impl Clone for Registered {
    fn clone(&self) -> Self {
        let (code, failure) = match self.code.as_ref().map(|code| code.copy()) {
            Some(Ok(code)) => (Some(code), self.failure.clone()),
            Some(Err(cause)) => (None, Some(cause)),
            None => (None, self.failure.clone()),
        };
        let Self { info, nr_inserted, nr_dispatched, timer_ns, .. } = *self;
        let (held, joined) = (self.held.clone(), self.joined.clone());
        let numbers = self.numbers.clone();
        Self { info, code, failure, held, joined, numbers, nr_inserted, nr_dispatched, timer_ns }
    }
}

impl Scheduler for Registered {
    /// The facts that registered schedulers have in common. Adjacent requests merge as under noop.
    const INFO: Info = Info {
        name: "registered",
        kernel_versions: "none",
        summary: "",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: false,
        indexed: true,
        per_hctx: false,
        tunables: &[],
    };

    /// A scheduler without code, which dispatches in order of arrival; see [`Self::begin`].
    fn new(_tunables: &Values, _queue: QueueFacts) -> Self {
        Self {
            info: &Self::INFO,
            code: None,
            failure: None,
            held: BTreeMap::new(),
            joined: BTreeSet::new(),
            numbers: BTreeMap::new(),
            nr_inserted: 0,
            nr_dispatched: 0,
            timer_ns: 0,
        }
    }

    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let older = self.nr_dispatched + self.held.len() as u64;
        self.nr_inserted += 1;
        let now_ns = cx.now_ns();
        self.held.insert(self.nr_inserted, Held { id, inserted_ns: now_ns, older });
        self.numbers.insert(id, self.nr_inserted);
        let facts = self.facts(&cx.requests[id], cx.group(cx.requests[id].group).bfq);
        self.call(cx, |code| code.insert(now_ns, facts));
    }

    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        let now_ns = cx.now_ns();
        while !self.held.is_empty() && self.code.is_some() {
            let Some(answer) = self.call(cx, |code| code.dispatch(now_ns)) else { break };
            let Some(number) = answer else {
                if self.nr_in_device() > 0 || self.timer_ns > now_ns {
                    return None;
                }
                let (name, nr) = (self.name(), self.held.len());
                self.set_aside(format!(
                    "{name} holds {nr} requests and dispatches none, although the device is idle and no timer is \
                     set: they would wait for ever"
                ));
                break;
            };
            if self.joined.remove(&number) {
                continue;
            }
            if let Some(id) = self.give(number) {
                if let Some(reason) = self.starved(now_ns) {
                    self.set_aside(reason);
                }
                return Some(id);
            }
            let reason = self.wrong_number(number);
            self.set_aside(reason);
        }
        if self.code.is_some() {
            return None;
        }
        let (&number, _) = self.held.first_key_value()?;
        self.give(number)
    }

    fn requests_merged(&mut self, _cx: &mut Context, _kept: RequestId, gone: RequestId) {
        if let Some(number) = self.numbers.remove(&gone) {
            self.held.remove(&number);
            self.joined.insert(number);
        }
    }

    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        let found = self.numbers.remove(&id);
        debug_assert!(found.is_some(), "{}: request {id:?} completes, not dispatched", self.name());
        let Some(number) = found else { return };
        let now_ns = cx.now_ns();
        self.call(cx, |code| code.completed(now_ns, number));
    }

    fn timer(&mut self, cx: &mut Context) {
        let now_ns = cx.now_ns();
        // An earlier time that was asked for is no longer wanted.
        if now_ns == self.timer_ns {
            self.call(cx, |code| code.timer(now_ns));
            cx.kick();
        }
    }
}
