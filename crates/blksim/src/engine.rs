//! The engine: takes events off the event queue, one by one, until the jobs have ended. Time moves
//! only here, in the stand-alone device runner, and where computing takes time
//! (`EventQueue::compute`).

use crate::core::branch::unlikely;
use crate::core::error::{ErrorKind, SimulationError};
use crate::core::quantity::format_duration;
use crate::machine::Machine;

/// Limits of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub events: u64,
    pub simulated_ns: u64,
}

impl Default for Limits {
    /// A thousand million events, a week of simulated time.
    fn default() -> Self {
        Self { events: 1_000_000_000, simulated_ns: 7 * 86_400 * 1_000_000_000 }
    }
}

/// The reason for which the engine stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All jobs have ended.
    Ended,
    /// As many events were handled as were asked for.
    Events,
    /// All events were handled up to the time that was asked for.
    Time,
}

/// Runs a machine.
#[derive(Debug, Clone)]
pub struct Engine {
    machine: Machine,
    limits: Limits,
    events: u64,
    started: bool,
}

impl Engine {
    pub fn new(machine: Machine, limits: Limits) -> Self {
        Self { machine, limits, events: 0, started: false }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Events that were handled.
    pub fn events(&self) -> u64 {
        self.events + self.machine.block.events.nr_spared()
    }

    /// The time that the simulation has reached.
    pub fn now_ns(&self) -> u64 {
        self.machine.block.events.now_ns()
    }

    /// Time of the next event; `None` before the run has begun.
    pub fn next_ns(&self) -> Option<u64> {
        let next_ns = self.machine.block.events.next_ns();
        let own = self.machine.processors.as_ref().and_then(|processors| processors.own_event());
        next_ns.into_iter().chain(own.map(|(time_ns, _)| time_ns)).min()
    }

    /// Runs until all jobs have ended.
    pub fn run(&mut self) -> Result<(), SimulationError> {
        self.advance(u64::MAX).map(|_| ())
    }

    /// Handles up to `events` events. Returns whether all jobs have ended. The number of calls that
    /// a run is divided into does not change it.
    pub fn advance(&mut self, events: u64) -> Result<bool, SimulationError> {
        self.advance_within(events, u64::MAX).map(|stop| stop == Stop::Ended)
    }

    /// Handles all events up to and including `time_ns`, which the clock shows afterwards. Returns
    /// whether all jobs have ended; then the clock shows when. The steps that a run is divided into
    /// do not change it.
    pub fn advance_until(&mut self, time_ns: u64) -> Result<bool, SimulationError> {
        self.advance_within(u64::MAX, time_ns).map(|stop| stop == Stop::Ended)
    }

    /// Handles up to `events` events, and none after `until_ns`.
    pub(crate) fn advance_within(
        &mut self,
        events: u64,
        until_ns: u64,
    ) -> Result<Stop, SimulationError> {
        if !self.started {
            self.started = true;
            self.machine.start();
        }
        if unlikely(self.machine.processors.is_some()) {
            self.advance_machine::<true>(events, until_ns)
        } else {
            self.advance_machine::<false>(events, until_ns)
        }
    }

    /// The same for a machine where computing takes time (`PROCESSORS`), or one where it does not.
    fn advance_machine<const PROCESSORS: bool>(
        &mut self,
        events: u64,
        until_ns: u64,
    ) -> Result<Stop, SimulationError> {
        let stop = self.events.saturating_add(events);
        // The nearer of the two, so that most events compare only once.
        let end = stop.min(self.limits.events);
        // The clock of a processor may be ahead of the next event.
        let now_ns = self.now_ns();
        let reached_ns = self.next_ns().map_or(now_ns, |next_ns| next_ns.min(now_ns));
        let latest_ns = until_ns.min(self.limits.simulated_ns);
        while !self.machine.finished() {
            let at_end = self.events >= end;
            if at_end && self.events >= stop {
                return Ok(Stop::Events);
            }
            let next = if PROCESSORS {
                self.machine.next_on_processors()
            } else {
                self.machine.block.events.advance()
            };
            let Some(event) = next else {
                return Err(SimulationError::new(
                    ErrorKind::Internal,
                    "the simulation stands still although jobs have not ended; this is a defect of blksim",
                ));
            };
            if unlikely(event.time_ns > latest_ns) {
                let stops = until_ns <= self.limits.simulated_ns;
                let now_ns = if stops { until_ns.max(reached_ns) } else { event.time_ns };
                self.machine.put_back(event, now_ns);
                if stops {
                    return Ok(Stop::Time);
                }
                return Err(
                    self.exceeded("simulated_ns", &format_duration(self.limits.simulated_ns))
                );
            }
            self.events += 1;
            if at_end {
                return Err(self.exceeded("events", &self.limits.events.to_string()));
            }
            if PROCESSORS {
                self.machine.react_on_processor(event);
            } else {
                self.machine.react(event.class, event.subject);
            }
        }
        Ok(Stop::Ended)
    }

    fn exceeded(&self, limit: &str, value: &str) -> SimulationError {
        let what = if limit == "events" { "events" } else { "of simulated time" };
        let message = format!(
            "the limit of {value} {what} was reached before the jobs ended (at {} after {} events); \
             give the jobs a runtime, size or number_ios, or raise the limit",
            format_duration(self.machine.block.events.now_ns()),
            self.events()
        );
        SimulationError::of(ErrorKind::Limit, limit, message)
    }
}
