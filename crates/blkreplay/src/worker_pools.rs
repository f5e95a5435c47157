//! Kernel workers, which take each other's place.
//!
//! Work that is handed to a pool runs on whichever thread of it is free, so that a chain of I/Os, one after the other,
//! comes from several threads. Replayed as tasks of their own they would run side by side. To schedulers they are tasks
//! of their own.

use rustc_hash::FxHashMap;

use crate::recorded::Recorded;

/// The pools of a recording, by the number of a thread's command.
#[derive(Debug, Default)]
pub struct WorkerPools {
    of_commands: FxHashMap<u32, Option<u32>>,
    names: Vec<String>,
}

impl WorkerPools {
    /// The pool of threads with that command, numbered from 0; `None` if they are no workers of a pool.
    pub fn of_command(&mut self, command: u32, recorded: &Recorded) -> Option<u32> {
        if let Some(known) = self.of_commands.get(&command) {
            return *known;
        }
        let number = pool_name(recorded.name(command)).map(|name| {
            let known = self.names.iter().position(|pool| *pool == name);
            known.unwrap_or_else(|| {
                self.names.push(name);
                self.names.len() - 1
            }) as u32
        });
        self.of_commands.insert(command, number);
        number
    }
}

/// The pool in a worker's name: `kworker/u8:3` and `kworker/1:0H` are of `u8` and of `1H` (`format_worker_id` in
/// kernel/workqueue.c, Linux 6.18). Rescuers, `kworker/R-…`, belong to none.
fn pool_name(command: &str) -> Option<String> {
    let (pool, worker) = command.strip_prefix("kworker/")?.split_once(':')?;
    let is_high = worker.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('H');
    Some(format!("{pool}{}", if is_high { "H" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_the_pool_in_its_name() {
        let pools =
            ["kworker/u8:3", "kworker/u8:12", "kworker/1:0", "kworker/1:0H", "kworker/u9:1"];
        assert_eq!(pools.map(|name| pool_name(name).unwrap()), ["u8", "u8", "1", "1H", "u9"]);
        // What the worker does may be in the name too.
        assert_eq!(pool_name("kworker/0:1H-kblockd").unwrap(), "0H");
        for other in ["kworker/R-ext4", "kworker", "jbd2/vda-8", "fio"] {
            assert_eq!(pool_name(other), None);
        }
    }
}
