//! A simulation that somebody watches and changes while it runs.
//!
//! * [`view`]: its state at a moment as plain data.
//! * [`change`]: what can be changed, as on Linux: the scheduler, its tunables, attributes of the
//!   queue, priorities of jobs, weights and limits of control groups.
//! * [`planned`]: changes that are known before the run.
//! * [`settings`]: the checks of a change, and what it does to the machine.
//!
//! ```
//! # use blksim::devices::Profile;
//! # use blksim::engine::Limits;
//! # use blksim::simulate::Setup;
//! # use blksim::workload::parse;
//! use blksim::live::LiveSimulation;
//! use blksim::live::change::Change;
//!
//! # let setup = Setup {
//! #     profile: Profile::of_kind("fixed", "fixed")?,
//! #     scheduler: "mq-deadline".to_owned(),
//! #     tunables: Vec::new(),
//! #     queue: Vec::new(),
//! #     machine: Vec::new(),
//! #     cgroups: Vec::new(),
//! #     jobs: parse("[a]\nrw=randread\ndirect=1\nnumber_ios=500\nsize=64m\n", "a.fio")?,
//! #     runtime_ns: None,
//! #     seed: 1,
//! #     arrangement: None,
//! #     processors: None,
//! #     limits: Limits::default(),
//! # };
//! let mut live = LiveSimulation::new(&setup, Vec::new(), 1_000_000)?;
//! live.advance_until(10_000_000)?;
//! let snapshot = live.clone();
//! live.apply(&Change::Scheduler { name: "bfq".to_owned(), tunables: Vec::new() })?;
//! live.advance_until(20_000_000)?;
//! assert_eq!(live.view().disks[0].scheduler, "bfq");
//! assert_eq!(snapshot.view().disks[0].scheduler, "mq-deadline");
//! # Ok::<(), blksim::core::error::Error>(())
//! ```

pub mod change;
pub mod device;
pub mod planned;
mod settings;
pub mod view;

use crate::block::queue_change::QueueChange;
use crate::core::error::Error;
use crate::core::record::JobRecord;
use crate::engine::Stop;
use crate::rqos::policy::Policy;
use crate::simulate::{Outcome, Setup, Simulation};
use crate::timeline::Timeline;
use change::Change;
use planned::Begun;
use settings::{Effect, Settings};
use view::View;

/// A simulation that can be changed. A clone of it is a snapshot.
#[derive(Debug, Clone)]
pub struct LiveSimulation {
    simulation: Simulation,
    /// In force, or about to be: the queue makes its changes one after the other.
    settings: Settings,
    /// Changes that were scheduled, by time; those of one moment in the order of scheduling.
    scheduled: Vec<(u64, Change)>,
    begun: Vec<Begun>,
}

impl LiveSimulation {
    /// Checks a request and builds its machine. Where the kernel freezes the queue for a change, it
    /// stays frozen for at least `freeze_ns`.
    pub fn new(
        setup: &Setup,
        policies: Vec<Box<dyn Policy>>,
        freeze_ns: u64,
    ) -> Result<Self, Error> {
        let mut simulation = Simulation::new(setup, policies)?;
        let settings = Settings::new(setup, &simulation)?;
        simulation.engine.machine_mut().block.allow_changes(freeze_ns);
        Ok(Self { simulation, settings, scheduled: Vec::new(), begun: Vec::new() })
    }

    /// Makes a change now: behind everything that happens at this moment.
    ///
    /// # Errors
    ///
    /// A change that is not possible, which then changes nothing.
    pub fn apply(&mut self, change: &Change) -> Result<(), Error> {
        let mut settings = self.settings.clone();
        let effects = settings.change(&self.simulation, change)?;
        self.settings = settings;
        let at_ns = self.simulation.now_ns();
        let queue_changes = self.nr_queue_changes();
        let machine = self.simulation.engine.machine_mut();
        for effect in effects {
            match effect {
                Effect::Queue(action) => {
                    machine.block.change_queues(QueueChange { at_ns, action });
                }
                Effect::Priority(job, priority) => machine.tasks.set_priority(job, priority),
            }
        }
        self.note(queue_changes);
        Ok(())
    }

    /// Has a change made at a time, as [`Self::apply`] would make it then; at once if that has passed.
    ///
    /// # Errors
    ///
    /// A change that would not be possible then, with those that are scheduled before.
    pub fn schedule(&mut self, at_ns: u64, change: Change) -> Result<(), Error> {
        let at_ns = at_ns.max(self.simulation.now_ns());
        let place = self.scheduled.partition_point(|(other_ns, _)| *other_ns <= at_ns);
        let mut scheduled = self.scheduled.clone();
        scheduled.insert(place, (at_ns, change));
        let mut settings = self.settings.clone();
        for (_, change) in &scheduled {
            settings.change(&self.simulation, change)?;
        }
        self.scheduled = scheduled;
        Ok(())
    }

    /// Goes on for up to `events` events. Returns whether all jobs have ended.
    pub fn advance(&mut self, events: u64) -> Result<bool, Error> {
        self.advance_within(events, u64::MAX)
    }

    /// Goes on until all events up to and including `time_ns` are handled, and the changes scheduled
    /// until then are made; see [`Simulation::advance_until`].
    pub fn advance_until(&mut self, time_ns: u64) -> Result<bool, Error> {
        self.advance_within(u64::MAX, time_ns)
    }

    fn advance_within(&mut self, events: u64, until_ns: u64) -> Result<bool, Error> {
        let end = self.simulation.engine.events().saturating_add(events);
        loop {
            let next_ns = self.scheduled.first().map(|(at_ns, _)| *at_ns);
            let stop_ns = next_ns.map_or(until_ns, |next_ns| next_ns.min(until_ns));
            let left = end - self.simulation.engine.events();
            match self.simulation.advance_within(left, stop_ns)? {
                Stop::Ended => return Ok(true),
                Stop::Events => return Ok(false),
                Stop::Time => {}
            }
            if next_ns.is_none_or(|next_ns| next_ns > stop_ns) {
                return Ok(false);
            }
            let (_, change) = self.scheduled.remove(0);
            self.apply(&change)?;
        }
    }

    /// The time that the simulation has reached.
    pub fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    /// Time of the next event; `None` before the run has begun.
    pub fn next_ns(&self) -> Option<u64> {
        self.simulation.engine.next_ns()
    }

    /// The state of this moment, for a picture.
    pub fn view(&self) -> View {
        self.simulation.view()
    }

    /// The records of the jobs so far; see [`Simulation::job_records`].
    pub fn job_records(&self) -> Vec<JobRecord> {
        self.simulation.job_records()
    }

    /// Writes a timeline; see [`Simulation::record`].
    pub fn record(&mut self, limit_bytes: u64) {
        self.simulation.record(limit_bytes);
    }

    /// The timeline's rows since it began or was last drained; see [`Simulation::drain_timeline`].
    pub fn drain_timeline(&mut self) -> Option<Timeline> {
        self.simulation.drain_timeline()
    }

    /// The timeline, if one was recorded.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.simulation.take_timeline()
    }

    /// The results so far, with the settings that are in force or about to be.
    pub fn outcome(&self) -> Outcome {
        let Settings { info, tunables, queue, .. } = &self.settings;
        let mut outcome = Outcome {
            scheduler: info,
            tunables: tunables.clone(),
            queue: queue.clone(),
            ..self.simulation.outcome()
        };
        let scheduler = &self.simulation.engine.machine().block.disks[0].scheduler;
        if scheduler.name() == info.name {
            scheduler.effective_tunables(&mut outcome.tunables);
        }
        outcome
    }
}
