//! The process and the control group of a task, from `/proc`, where the kernel's events do not tell.
//!
//! A task is looked up when it first submits an I/O, some 20 ms later, so tasks that have ended by then stay
//! unknown; their control group is their parent's.

use std::fs;

use blkrecord::io::UNKNOWN_TASK;
use blkrecord::names::{Names, UNKNOWN_NAME};
use rustc_hash::FxHashMap;

/// A task as `/proc` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub tgid: u32,
    /// In the record's names.
    pub cgroup: u32,
}

const UNKNOWN: Task = Task { tgid: UNKNOWN_TASK, cgroup: UNKNOWN_NAME };

/// The tasks that were looked up.
#[derive(Debug, Default)]
pub struct Tasks {
    known: FxHashMap<u32, Task>,
    /// The control group of the task that forked one.
    inherited: FxHashMap<u32, u32>,
    /// Version of the hierarchy with the I/O controller; `None` if none is mounted.
    cgroup_version: Option<u32>,
}

impl Tasks {
    pub fn new(cgroup_version: Option<u32>) -> Self {
        Self { cgroup_version, ..Self::default() }
    }

    /// The task with that number.
    pub fn get(&mut self, tid: u32, names: &mut Names) -> Task {
        if let Some(task) = self.known.get(&tid) {
            return *task;
        }
        let mut task = look_up(tid, self.cgroup_version, names);
        if task.cgroup == UNKNOWN_NAME {
            task.cgroup = self.inherited.get(&tid).copied().unwrap_or(UNKNOWN_NAME);
        }
        self.known.insert(tid, task);
        task
    }

    pub fn forked(&mut self, parent: u32, child: u32) {
        self.known.remove(&child);
        let cgroup = match self.known.get(&parent) {
            Some(task) => Some(task.cgroup),
            None => self.inherited.get(&parent).copied(),
        };
        if let Some(cgroup) = cgroup {
            self.inherited.insert(child, cgroup);
        }
    }

    /// Its number may be used again.
    pub fn exited(&mut self, tid: u32) {
        self.known.remove(&tid);
        self.inherited.remove(&tid);
    }
}

fn look_up(tid: u32, cgroup_version: Option<u32>, names: &mut Names) -> Task {
    let Ok(status) = fs::read_to_string(format!("/proc/{tid}/status")) else { return UNKNOWN };
    let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let tgid = tgid.and_then(|text| text.trim().parse().ok()).unwrap_or(UNKNOWN_TASK);
    let cgroups = fs::read_to_string(format!("/proc/{tid}/cgroup")).unwrap_or_default();
    let cgroup =
        path_of(&cgroups, cgroup_version).map_or(UNKNOWN_NAME, |path| names.number_of(path));
    Task { tgid, cgroup }
}

/// The path in the hierarchy with the I/O controller; lines are `NUMBER:CONTROLLERS:PATH`.
fn path_of(cgroups: &str, version: Option<u32>) -> Option<&str> {
    cgroups.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let found = match version {
            Some(1) => controllers.split(',').any(|controller| controller == "blkio"),
            _ => number == "0",
        };
        found.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_io_controller_decides_on_the_path() {
        let both = "5:cpu,cpuacct:/a\n4:blkio:/b\n0::/c\n";
        assert_eq!(path_of(both, Some(1)), Some("/b"));
        assert_eq!(path_of(both, Some(2)), Some("/c"));
        assert_eq!(path_of("", Some(2)), None);
    }

    #[test]
    fn this_process_is_known() {
        let mut names = Names::default();
        let task = Tasks::new(Some(2)).get(std::process::id(), &mut names);
        assert_eq!(task.tgid, std::process::id());
    }

    #[test]
    fn an_ended_task_has_its_parents_group() {
        let mut tasks = Tasks::new(None);
        tasks.known.insert(10, Task { tgid: 10, cgroup: 3 });
        tasks.forked(10, u32::MAX - 1);
        let mut names = Names::default();
        assert_eq!(tasks.get(u32::MAX - 1, &mut names), Task { tgid: UNKNOWN_TASK, cgroup: 3 });
    }
}
