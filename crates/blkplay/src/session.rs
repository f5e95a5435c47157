//! One running simulation.

use blksim::block::request::SECTOR_BYTES;
use blksim::core::error::Error;
use blksim::simulate::{Setup, Simulation};
use blksim::timeline::Timeline;
use serde_json::Value;

use crate::view;

/// How far a simulation got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// To the time, or the request, that was asked for.
    Goal = 1,
    /// To the end of all jobs.
    End = 2,
    /// It has handled as many events as it may.
    Limit = 3,
}

/// A simulation with the request that it came from.
#[derive(Debug, Clone)]
pub struct Session {
    setup: Setup,
    simulation: Simulation,
    /// Rows of the timeline that the page has yet to take.
    rows: Timeline,
}

impl Session {
    /// Begins a simulation; time stands at 0. The request is that of `blklab._core.simulate`.
    pub fn open(request: &str) -> Result<Self, Error> {
        let prepared = blksim_json::setup(request)?;
        let mut simulation = Simulation::new(&prepared.setup, Vec::new())?;
        if let Some(limit_bytes) = prepared.timeline_bytes {
            simulation.record(limit_bytes);
        }
        if let Some(turns) = &prepared.switchback {
            simulation.take_turns(&prepared.setup, turns)?;
        }
        Ok(Self { setup: prepared.setup, simulation, rows: Timeline::default() })
    }

    /// Runs to the end of all jobs.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.simulation.advance(u64::MAX).map(|_| ())
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
        view::of(&self.simulation, self.setup.profile.kind.name, capacity_bytes / SECTOR_BYTES)
    }
}
