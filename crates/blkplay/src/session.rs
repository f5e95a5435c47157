//! Simulations as the page has them: one that runs to its end, and one that is watched and changed.

use blksim::block::request::SECTOR_BYTES;
use blksim::core::error::{Error, ErrorKind, SimulationError};
use blksim::live::LiveSimulation;
use blksim::simulate::{Setup, simulate};
use blksim::timeline::Timeline;
use serde_json::Value;

use crate::{change, view};

/// Least time for which the kernel freezes a queue to change its scheduler or depth: as measured for
/// switchbacks (`FREEZE_NS` in `python/blklab/backends/model_stretch.py`).
const FREEZE_NS: u64 = 28_000_000;

/// The goal or limit that an advance reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// To the time, or the request, that was asked for.
    Goal = 1,
    /// To the end of all jobs.
    End = 2,
    /// It has handled as many events as it may.
    Limit = 3,
}

/// Runs a request to its end; request and answer are those of `blklab._core.simulate`.
pub fn run(request: &str) -> Result<Value, Error> {
    let prepared = blksim_json::setup(request)?;
    let outcome = simulate(&prepared.setup)?;
    Ok(blksim_json::outcome(&prepared.setup, &outcome))
}

/// A running simulation with the request that it came from. A clone of it is a snapshot.
#[derive(Debug, Clone)]
pub struct Session {
    setup: Setup,
    simulation: LiveSimulation,
    /// Rows of the timeline that the page has yet to take.
    rows: Timeline,
}

impl Session {
    /// Begins a simulation; time stands at 0.
    pub fn open(request: &str) -> Result<Self, Error> {
        let prepared = blksim_json::setup(request)?;
        let mut simulation = LiveSimulation::new(&prepared.setup, Vec::new(), FREEZE_NS)?;
        if let Some(limit_bytes) = prepared.timeline_bytes {
            simulation.record(limit_bytes);
        }
        Ok(Self { setup: prepared.setup, simulation, rows: Timeline::default() })
    }

    /// Continues up to and including a time.
    pub fn advance_until(&mut self, time_ns: u64) -> Result<Reached, Error> {
        let ended = self.simulation.advance_until(time_ns)?;
        Ok(if ended { Reached::End } else { Reached::Goal })
    }

    /// Continues until the device gets its next request, for at most so many events.
    pub fn step(&mut self, events: u32) -> Result<Reached, Error> {
        let before = self.simulation.nr_dispatched();
        for _ in 0..events {
            if self.simulation.advance(1)? {
                return Ok(Reached::End);
            }
            if self.simulation.nr_dispatched() != before {
                return Ok(Reached::Goal);
            }
        }
        Ok(Reached::Limit)
    }

    /// Makes a change now; see [`change`].
    pub fn change(&mut self, text: &str) -> Result<(), Error> {
        let change = change::parse(text).ok_or_else(|| {
            SimulationError::new(ErrorKind::Request, format!("{text:?} is not a change"))
        })?;
        self.simulation.apply(&change)
    }

    /// The rows of requests since the last call; empty if no timeline was asked for.
    pub fn take_requests(&mut self) -> Vec<u8> {
        self.drain();
        std::mem::take(&mut self.rows.requests)
    }

    /// The rows of I/Os since the last call; empty if no timeline was asked for.
    pub fn take_ios(&mut self) -> Vec<u8> {
        self.drain();
        std::mem::take(&mut self.rows.ios)
    }

    fn drain(&mut self) {
        if let Some(rows) = self.simulation.drain_timeline() {
            self.rows.requests.extend(rows.requests);
            self.rows.ios.extend(rows.ios);
        }
    }

    /// The results so far.
    pub fn outcome(&self) -> Value {
        blksim_json::outcome(&self.setup, &self.simulation.outcome())
    }

    /// The state at this moment.
    pub fn view(&self) -> Value {
        let capacity_bytes = self.simulation.facts().capacity_bytes;
        let kind = self.setup.profile.kind.name;
        view::of(&self.simulation, kind, capacity_bytes / SECTOR_BYTES)
    }
}
