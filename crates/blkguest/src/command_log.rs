//! The commands that a disk's server has completed, in memory that it shares with the first process.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use blksim::block::request::Operation;
use blksim::devices::device::Command;

/// The commands of a recording at most: 32 MiB of the guest's memory, which are taken as they fill.
pub const MAX_COMMANDS: usize = 1 << 20;

/// A read or write that the disk has completed. Times count from the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedCommand {
    pub is_write: bool,
    pub sector: u64,
    pub nr_sectors: u32,
    pub arrived_ns: u64,
    pub completed_ns: u64,
}

/// A command's place in shared memory. Every field starts as zero.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LoggedCommand {
    sector: AtomicU64,
    arrived_ns: AtomicU64,
    completed_ns: AtomicU64,
    nr_sectors: AtomicU32,
    is_write: AtomicU32,
}

/// The log. One process writes it.
#[derive(Debug, Clone, Copy)]
pub struct CommandLog {
    /// None if nothing is recorded.
    pub places: &'static [LoggedCommand],
    /// Commands that were completed, those for which there was no place included.
    pub count: &'static AtomicU64,
}

impl CommandLog {
    /// Whether the run is recorded.
    pub fn is_kept(&self) -> bool {
        !self.places.is_empty()
    }

    /// Adds a command; flushes and discards are left out.
    pub fn add(&self, command: &Command, arrived_ns: u64, completed_ns: u64) {
        let is_write = match command.operation {
            Operation::Read => false,
            Operation::Write => true,
            Operation::Flush | Operation::Discard => return,
        };
        let number = self.count.fetch_add(1, SeqCst) as usize;
        let Some(place) = self.places.get(number) else { return };
        place.sector.store(command.sector, SeqCst);
        place.arrived_ns.store(arrived_ns, SeqCst);
        place.completed_ns.store(completed_ns, SeqCst);
        place.nr_sectors.store(command.nr_sectors, SeqCst);
        place.is_write.store(u32::from(is_write), SeqCst);
    }

    /// All commands, in the order of their completion; `None` if there were more than places.
    pub fn read(&self) -> Option<Vec<CompletedCommand>> {
        let places = self.places.get(..self.count.load(SeqCst) as usize)?;
        let read = |place: &LoggedCommand| CompletedCommand {
            is_write: place.is_write.load(SeqCst) == 1,
            sector: place.sector.load(SeqCst),
            nr_sectors: place.nr_sectors.load(SeqCst),
            arrived_ns: place.arrived_ns.load(SeqCst),
            completed_ns: place.completed_ns.load(SeqCst),
        };
        Some(places.iter().map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(places: usize) -> CommandLog {
        let places = (0..places).map(|_| LoggedCommand::default()).collect::<Vec<_>>();
        CommandLog { places: places.leak(), count: Box::leak(Box::default()) }
    }

    fn command(operation: Operation) -> Command {
        Command { id: 3, operation, sector: 8, nr_sectors: 16, queue: 0 }
    }

    #[test]
    fn reads_and_writes_are_kept_until_it_is_full() {
        let log = log(2);
        log.add(&command(Operation::Flush), 1, 2);
        log.add(&command(Operation::Read), 3, 5);
        log.add(&command(Operation::Write), 4, 6);
        let kept = log.read().unwrap();
        let completed = |is_write, arrived_ns, completed_ns| CompletedCommand {
            is_write,
            sector: 8,
            nr_sectors: 16,
            arrived_ns,
            completed_ns,
        };
        assert_eq!(kept, [completed(false, 3, 5), completed(true, 4, 6)]);
        log.add(&command(Operation::Write), 7, 8);
        assert_eq!(log.read(), None);
    }

    #[test]
    fn without_places_nothing_is_kept() {
        assert!(!log(0).is_kept());
    }
}
