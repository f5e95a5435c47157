//! Submitters of I/O: a process in a control group.

use rustc_hash::FxHashMap;

use crate::io::{Io, UNKNOWN_TASK};
use crate::names::UNKNOWN_NAME;

/// A task's place in [`Tasks::keys`].
pub type Task = u16;
/// The place of all tasks beyond the first thousand.
pub const OTHERS: Task = 0;
const MOST_TASKS: usize = 1024;

/// A process in a control group, with the last command of its first thread: a program that a shell starts does
/// its first I/O under the shell's name, before exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskKey {
    /// The process, or the task if its process is unknown.
    pub process: u32,
    pub command: u32,
    pub cgroup: u32,
}

/// All tasks of a trace.
#[derive(Debug)]
pub struct Tasks {
    pub keys: Vec<TaskKey>,
    places: FxHashMap<(u32, u32, u32), Task>,
    /// The task of the I/O before, which is mostly that of the next one too.
    last: Option<((u32, u32, u32), Task)>,
}

impl Default for Tasks {
    fn default() -> Self {
        let others = TaskKey { process: UNKNOWN_TASK, command: UNKNOWN_NAME, cgroup: UNKNOWN_NAME };
        Self { keys: vec![others], places: FxHashMap::default(), last: None }
    }
}

impl Tasks {
    /// The place of the task that submitted an I/O.
    #[inline]
    pub fn index_of(&mut self, io: &Io) -> Task {
        let process = if io.tgid == UNKNOWN_TASK { io.tid } else { io.tgid };
        // Of tasks without a number only the command tells them apart.
        let command = if process == UNKNOWN_TASK { io.command } else { UNKNOWN_NAME };
        let key = (process, io.cgroup, command);
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.place_of(key, io),
        };
        self.last = Some((key, place));
        if io.tid == process && io.command != UNKNOWN_NAME && place != OTHERS {
            self.keys[usize::from(place)].command = io.command;
        }
        place
    }

    fn place_of(&mut self, key: (u32, u32, u32), io: &Io) -> Task {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.keys.len() >= MOST_TASKS {
            return OTHERS;
        }
        let place = self.keys.len() as Task;
        self.keys.push(TaskKey { process: key.0, command: io.command, cgroup: io.cgroup });
        self.places.insert(key, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Moment, Operation};

    #[test]
    fn a_process_has_the_name_that_its_first_thread_got_by_exec() {
        let mut tasks = Tasks::default();
        let mut io = Io::new(Moment::at(0), Operation::Read, 0, 512);
        (io.tgid, io.tid, io.command) = (7, 7, 1);
        let place = tasks.index_of(&io);
        assert_eq!(tasks.keys[usize::from(place)].command, 1);
        io.command = 2;
        assert_eq!(tasks.index_of(&io), place);
        (io.tid, io.command) = (8, 3);
        assert_eq!(tasks.index_of(&io), place);
        assert_eq!(
            tasks.keys[usize::from(place)].command,
            2,
            "another thread's name is not the program's"
        );
    }
}
