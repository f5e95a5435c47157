//! Planned changes: a process that makes them beneath the load, as a person would.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use blksim::live::change::Change;
use blksim::live::planned::PlannedChanges;
use blksim::simulate::{Given, Setup};
use serde_json::Value;

use crate::cgroups::Groups;
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::load::identity;
use crate::mounts::RUN;
use crate::queue;
use crate::request::Request;
use crate::shared_memory::SharedMemory;

/// The machine that changes act upon.
#[derive(Debug)]
pub struct Subjects<'a> {
    pub request: &'a Request,
    pub disks: &'a [Disk],
    pub groups: Groups,
    /// The processes of each job.
    pub processes: Vec<Vec<libc::pid_t>>,
}

/// Makes each change at its moment, and leaves the times at which they were made for [`answer`].
pub fn make(
    mut subjects: Subjects,
    planned: &PlannedChanges,
    shared: SharedMemory,
) -> Result<(), Failure> {
    SharedMemory::await_value(&shared.open_phases, 1);
    let start_ns = shared.start_ns.load(SeqCst);
    let mut setup = subjects.request.setup.clone();
    let mut made_ns = Vec::new();
    for (at_ns, change) in &planned.changes {
        clock::sleep_until(start_ns + at_ns);
        subjects.make(change, &mut setup)?;
        made_ns.push(clock::now_ns() - start_ns);
    }
    fs::write(path(), Value::from(made_ns).to_string())
        .map_err(|error| Failure::kernel("leaving the times of changes", error))?;
    shared.turns_taken.store(1, SeqCst);
    shared.notify();
    Ok(())
}

impl Subjects<'_> {
    /// Makes a change now; `setup` has the settings in force, which a later switch sets again.
    fn make(&mut self, change: &Change, setup: &mut Setup) -> Result<(), Failure> {
        match change {
            Change::Scheduler { name, tunables } => {
                setup.scheduler.clone_from(name);
                setup.tunables.clone_from(tunables);
                self.disks.iter().try_for_each(|disk| queue::set_anew(disk, setup))
            }
            Change::Tunable { name, value } => {
                let given = vec![(name.clone(), value.clone())];
                replace(&mut setup.tunables, name, value);
                let retune = |disk| queue::retune(disk, &setup.scheduler, &given);
                self.disks.iter().try_for_each(retune)
            }
            Change::Queue { name, value } => {
                let given = vec![(name.clone(), value.clone())];
                replace(&mut setup.queue, name, value);
                self.disks.iter().try_for_each(|disk| queue::set_queue(disk, &given))
            }
            Change::Priority { job, class, level } => {
                let (class, level) = identity::settled(*class, *level);
                let jobs = self.request.jobs.iter().zip(&self.processes);
                let processes = jobs.filter(|(other, _)| other.name == *job);
                for process in processes.flat_map(|(_, processes)| processes) {
                    identity::set_priority(*process, class, level)?;
                }
                Ok(())
            }
            Change::Group { group, attribute, value } => {
                self.groups.change((group, attribute, value), self.disks)
            }
        }
    }
}

fn replace(given: &mut Given, name: &str, value: &str) {
    given.retain(|(other, _)| other != name);
    given.push((name.to_owned(), value.to_owned()));
}

/// When each change was made, from the start of the load, for the answer.
pub fn answer() -> Result<Value, Failure> {
    let text = fs::read_to_string(path())
        .map_err(|error| Failure::kernel("reading the times of changes", error))?;
    serde_json::from_str(&text).map_err(|_| Failure::Internal {
        message: "the record of the changes is broken".to_owned(),
    })
}

fn path() -> String {
    format!("{RUN}/changes")
}
