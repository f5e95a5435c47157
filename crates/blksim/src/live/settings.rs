//! The settings in force, and what a change does to them: the checks of a change, before it touches
//! the machine.
//!
//! Refused is what Linux does not change for a running process or queue: the readahead window, which
//! a file has from when it was opened; control groups that do not exist; a scheduler of another
//! kernel; dm-ioband's device.
//!
//! Simplified: the first limit or target of a kind puts its controller before the queue, which is
//! frozen for that; the kernel has blk-throttle there from the start.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::Change;
use crate::block::attributes::{default_nr_requests, queue_values, rq_affinity};
use crate::block::cgroup::{BAND, Cgroups};
use crate::block::disk::{CompletionAffinity, Merging};
use crate::block::queue_change::Action;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::Priority;
use crate::block::sbitmap::bits_per_word;
use crate::core::error::{Error, ErrorKind, SimulationError};
use crate::core::params::Values;
use crate::elevator::scheduler::{Family, Info};
use crate::rqos;
use crate::rqos::policy::GroupChange;
use crate::simulate::{Given, Setup, Simulation, behaviours, queue_facts, set_tunable};
use crate::workload::Job;

/// The effect of a change on the machine.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Queue(Action),
    /// The processes of a job, by its index.
    Priority(usize, Priority),
}

/// The settings of a simulation as they are, or as they will be once the changes before are made.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    setup: Arc<Setup>,
    jobs: Arc<[Job]>,
    pub info: &'static Info,
    pub tunables: Values,
    pub queue: Values,
    /// Attributes that the user set, which a switch of the scheduler leaves as they are.
    given_queue: Given,
    cgroups: Arc<Cgroups>,
    /// Names of the controllers at the queue.
    policies: BTreeSet<&'static str>,
    /// The most tags that the queue has had under this scheduler.
    most_tags: u64,
    /// Maps of tags that took the place of the first, so far.
    new_maps: usize,
}

fn refused(kind: ErrorKind, field: &str, message: String) -> Error {
    SimulationError::of(kind, field, message).into()
}

impl Settings {
    pub fn new(setup: &Setup, simulation: &Simulation) -> Result<Self, Error> {
        let jobs = setup.timed_jobs()?;
        let disk = &simulation.engine.machine().block.disks[0];
        let queue = simulation.queue.clone();
        Ok(Self {
            cgroups: Arc::new(Cgroups::new(&setup.cgroups, &jobs)?),
            setup: Arc::new(setup.clone()),
            jobs: jobs.into(),
            info: simulation.info,
            tunables: simulation.tunables.clone(),
            given_queue: setup.queue.clone(),
            policies: disk.policies.iter().map(|policy| policy.name()).collect(),
            most_tags: queue
                .get("nr_requests")
                .max(default_nr_requests(&simulation.facts, simulation.info)),
            queue,
            new_maps: 0,
        })
    }

    /// Makes a change. Returns what it does to the machine, in order.
    pub fn change(
        &mut self,
        simulation: &Simulation,
        change: &Change,
    ) -> Result<Vec<Effect>, Error> {
        match change {
            Change::Scheduler { name, tunables } => self.switch(simulation, name, tunables),
            Change::Tunable { name, value } => {
                set_tunable(&mut self.tunables, self.info, name, value)?;
                let action = Action::Tunable(self.tunables.clone(), name.clone());
                Ok(vec![Effect::Queue(action)])
            }
            Change::Queue { name, value } => self.set_attribute(simulation, name, value),
            Change::Priority { job, class, level } => self.set_priority(job, *class, *level),
            Change::Group { group, attribute, value } => {
                self.write_group(simulation, group, attribute, value)
            }
        }
    }

    fn switch(
        &mut self,
        simulation: &Simulation,
        name: &str,
        tunables: &Given,
    ) -> Result<Vec<Effect>, Error> {
        if simulation.facts.bio_based {
            let message = format!("a {} has no request queue, so its scheduler stays none", {
                self.setup.profile.kind.name
            });
            return Err(refused(ErrorKind::UnknownScheduler, "scheduler", message));
        }
        let (given, number) = (&self.given_queue, self.new_maps + 1);
        let (switch, queue) =
            simulation.switch_to(&self.setup, given, &self.jobs, (name, tunables), number)?;
        self.new_maps = number;
        self.info = switch.info;
        self.tunables = switch.tunables.clone();
        self.most_tags =
            queue.get("nr_requests").max(default_nr_requests(&simulation.facts, switch.info));
        self.queue = queue;
        Ok(vec![Effect::Queue(Action::Elevator(Box::new(switch)))])
    }

    fn facts(&self, simulation: &Simulation) -> QueueFacts {
        let processors = self.setup.costly_processors();
        let mut facts =
            queue_facts(&simulation.facts, &self.queue, &simulation.machine, self.info, processors);
        // A map that is made smaller keeps its words.
        facts.bits_per_word = bits_per_word(self.most_tags.max(facts.nr_requests.into()) as u32);
        facts
    }

    fn set_attribute(
        &mut self,
        simulation: &Simulation,
        name: &str,
        value: &str,
    ) -> Result<Vec<Effect>, Error> {
        let mut given = self.given_queue.clone();
        given.retain(|(other, _)| other != name);
        given.push((name.to_owned(), value.to_owned()));
        let behaviours = behaviours(&simulation.machine, self.info);
        // Refuses unknown names and impossible values.
        let values = queue_values(&given, &simulation.facts, self.info, behaviours)?;
        let bio_based = simulation.facts.bio_based;
        let unchanged =
            values.iter().any(|(param, value)| param.name == name && value == self.queue.get(name));
        let action = match name {
            "read_ahead_kb" => {
                let message = "read_ahead_kb cannot be changed for a running job: a file has its \
                               window from when it was opened; give it to the run from its start";
                return Err(refused(ErrorKind::Unchangeable, name, message.to_owned()));
            }
            "nr_requests" if bio_based => {
                let kind = self.setup.profile.kind.name;
                let message =
                    format!("a {kind} has no request queue, so nr_requests means nothing");
                return Err(refused(ErrorKind::Unchangeable, name, message));
            }
            "nr_requests" => return Ok(self.set_depth(simulation, values.get(name))),
            _ if unchanged => None,
            "wbt_lat_usec" => Some(Action::Wbt(rqos::wbt_target_ns(&values, &self.jobs))),
            "nomerges" => Some(Action::Merging(Merging::of_number(values.get(name), bio_based))),
            "max_sectors_kb" => Some(Action::MaxSectors(values.get(name) as u32 * 2)),
            "rq_affinity" => {
                Some(Action::Affinity(CompletionAffinity::of_number(rq_affinity(&given)?)))
            }
            // What has no effect on a result.
            _ => None,
        };
        if values.iter().any(|(param, _)| param.name == name) {
            self.queue.put(name, values.get(name));
        }
        self.given_queue = given;
        Ok(action.map(Effect::Queue).into_iter().collect())
    }

    /// `nr_requests`, which a switch sets back.
    fn set_depth(&mut self, simulation: &Simulation, nr_requests: u64) -> Vec<Effect> {
        if self.queue.get("nr_requests") == nr_requests {
            return Vec::new();
        }
        self.queue.put("nr_requests", nr_requests);
        let facts = self.facts(simulation);
        let grows = self.info.family == Family::MultiQueue && nr_requests > self.most_tags;
        self.most_tags = self.most_tags.max(nr_requests);
        self.new_maps += usize::from(grows);
        let first_tag = simulation.first_tag(&self.setup, self.new_maps, facts.nr_requests);
        let new_tags_at = grows.then_some(first_tag);
        vec![Effect::Queue(Action::Depth(facts, new_tags_at))]
    }

    fn set_priority(&self, job: &str, class: u8, level: Option<u8>) -> Result<Vec<Effect>, Error> {
        let Some(index) = self.jobs.iter().position(|other| other.name == job) else {
            let names: Vec<_> = self.jobs.iter().map(|job| job.name.as_str()).collect();
            let message = format!("there is no job {job:?}; there are {}", names.join(", "));
            return Err(refused(ErrorKind::Request, "job", message));
        };
        if !(1..=3).contains(&class) {
            let message =
                "the class of an I/O priority is 1 (real time), 2 (best effort) or 3 (idle)";
            return Err(refused(ErrorKind::OutOfRange, "class", message.to_owned()));
        }
        if level.is_some_and(|level| level > 7) {
            let message = "the level of an I/O priority lies between 0 (best) and 7";
            return Err(refused(ErrorKind::OutOfRange, "level", message.to_owned()));
        }
        Ok(vec![Effect::Priority(index, Priority::resolve(Some(class), level, None))])
    }

    fn write_group(
        &mut self,
        simulation: &Simulation,
        group: &str,
        attribute: &str,
        value: &str,
    ) -> Result<Vec<Effect>, Error> {
        let of_band = attribute.strip_prefix("ioband.");
        let of_device = of_band.is_some_and(|name| BAND.iter().any(|param| param.name == name));
        if of_device || (of_band.is_some() && self.cgroups.band.is_none()) {
            let message = format!(
                "{attribute} cannot be changed: a dm-ioband device is made before the run; give it to \
                 the run from its start"
            );
            return Err(refused(ErrorKind::Unchangeable, attribute, message));
        }
        let mut cgroups = (*self.cgroups).clone();
        let group = cgroups.change(group, attribute, value)?;
        self.cgroups = Arc::new(cgroups);
        let mut effects = self.fit_policies(simulation);
        let change =
            GroupChange { cgroups: self.cgroups.clone(), group, attribute: attribute.to_owned() };
        effects.push(Effect::Queue(Action::Group(change)));
        Ok(effects)
    }

    /// Puts the controllers before the queue that the groups call for now.
    fn fit_policies(&mut self, simulation: &Simulation) -> Vec<Effect> {
        let facts = self.facts(simulation);
        let wanted = rqos::build(&self.cgroups, &self.queue, facts, &self.jobs, self.setup.seed);
        let mut effects = Vec::new();
        if let Some(gone) = rqos::removable(&self.policies, &wanted) {
            self.policies.remove(gone);
            effects.push(Effect::Queue(Action::RemovePolicy(gone)));
        }
        for policy in wanted {
            if rqos::follows_groups(policy.name()) && self.policies.insert(policy.name()) {
                effects.push(Effect::Queue(Action::AddPolicy(policy)));
            }
        }
        effects
    }
}
