//! Recordings of a guest's load. Guest kernels have no tracing, so the two ends are put together: clones tell
//! when they asked for each I/O, and the disk's server when it had completed each command. A command is an I/O, a part
//! of a large one, or several that were merged.

use std::collections::BTreeMap;

use blksim::block::request::SECTOR_BYTES;
use blksim::core::error::ErrorKind;
use serde_json::{Value, json};

use crate::clock;
use crate::command_log::{CompletedCommand, MAX_COMMANDS};
use crate::failure::Failure;
use crate::load::{AskedIo, JobProcess, collect_ios};
use crate::shared_memory::SharedMemory;

/// Guest time for the server to take note of the last completions.
const CATCH_UP_NS: u64 = 1_000;

/// An I/O with the time of its completion. Times count from the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordedIo {
    process: u32,
    io: AskedIo,
    completed_ns: u64,
}

/// The recording of a run as columns, in the order in which the I/Os were asked for.
pub fn answer(
    clones: &[JobProcess],
    start_ns: u64,
    shared: SharedMemory,
) -> Result<Value, Failure> {
    // Where the kernel answers the last commands by itself, the server takes note of it afterwards. Virtual time does not
    // move before it sleeps.
    clock::sleep_until(clock::now_ns() + CATCH_UP_NS);
    let commands = shared.commands().read().ok_or_else(|| {
        let message = format!(
            "a recording holds {MAX_COMMANDS} commands of the disk; let the jobs run for a shorter time"
        );
        Failure::of(ErrorKind::Limit, "recording", message)
    })?;
    let mut asked: Vec<(u32, AskedIo)> = Vec::new();
    for clone in clones {
        let since_start = |io: AskedIo| AskedIo {
            start_ns: io.start_ns.saturating_sub(start_ns),
            submitted_ns: io.submitted_ns.saturating_sub(start_ns),
            ..io
        };
        let own = collect_ios(clone.number)?;
        asked.extend(own.into_iter().map(|io| (clone.number, since_start(io))));
    }
    asked.sort_by_key(|(process, io)| (io.start_ns, *process));
    let recorded = completed(&asked, &commands)?;
    let jobs: Vec<usize> = clones.iter().map(|clone| clone.job_index).collect();
    let column = |of: fn(&RecordedIo) -> u64| -> Vec<u64> { recorded.iter().map(of).collect() };
    Ok(json!({
        "jobs": jobs,
        "process": column(|one| u64::from(one.process)),
        "is_write": column(|one| u64::from(one.io.is_write)),
        "offset": column(|one| one.io.offset),
        "bytes": column(|one| u64::from(one.io.bytes)),
        "queued_ns": column(|one| one.io.start_ns),
        "submitted_ns": column(|one| one.io.submitted_ns),
        "completed_ns": column(|one| one.completed_ns),
    }))
}

/// Finds the commands of each I/O. Of several on the same sectors that were under way at one time, the first to arrive
/// counts as that of the first I/O.
fn completed(
    asked: &[(u32, AskedIo)],
    commands: &[CompletedCommand],
) -> Result<Vec<RecordedIo>, Failure> {
    let mut unclaimed = Unclaimed::of(commands);
    let complete = |(process, io): &(u32, AskedIo)| {
        let completed_ns = unclaimed.claim(io).ok_or_else(|| Failure::Internal {
            message: format!("the disk has completed no command for {io:?}"),
        })?;
        Ok(RecordedIo { process: *process, io: *io, completed_ns })
    };
    asked.iter().map(complete).collect()
}

/// A command, with the sectors that I/Os have claimed: of each the first, and the one after the last.
type Claimed<'a> = (&'a CompletedCommand, Vec<(u64, u64)>);

/// Commands by their first sector, with the sectors that no I/O has claimed.
struct Unclaimed<'a> {
    /// In the order of arrival.
    commands: BTreeMap<(bool, u64), Vec<Claimed<'a>>>,
    largest: u64,
}

impl<'a> Unclaimed<'a> {
    fn of(commands: &'a [CompletedCommand]) -> Self {
        let mut by_sector: BTreeMap<_, Vec<Claimed>> = BTreeMap::new();
        for command in commands {
            let places = by_sector.entry((command.is_write, command.sector)).or_default();
            places.push((command, Vec::new()));
        }
        for places in by_sector.values_mut() {
            places.sort_by_key(|(command, _)| command.arrived_ns);
        }
        let largest = commands.iter().map(|command| u64::from(command.nr_sectors)).max();
        Self { commands: by_sector, largest: largest.unwrap_or(0) }
    }

    /// Claims the commands of an I/O; returns when the last of them had completed.
    fn claim(&mut self, io: &AskedIo) -> Option<u64> {
        let (mut sector, mut completed_ns) = (io.offset / SECTOR_BYTES, 0);
        let end = (io.offset + u64::from(io.bytes)) / SECTOR_BYTES;
        while sector < end {
            let first = (io.is_write, sector.saturating_sub(self.largest));
            let around = self.commands.range_mut(first..=(io.is_write, sector));
            let (command, claimed) = around
                .filter_map(|(_, places)| {
                    let after =
                        places.partition_point(|(command, _)| command.arrived_ns < io.start_ns);
                    places[after..].iter_mut().find(|(command, claimed)| {
                        sector < command.sector + u64::from(command.nr_sectors)
                            && !claimed.iter().any(|(from, to)| (*from..*to).contains(&sector))
                    })
                })
                .min_by_key(|(command, _)| command.arrived_ns)?;
            let to = end.min(command.sector + u64::from(command.nr_sectors));
            claimed.push((sector, to));
            completed_ns = completed_ns.max(command.completed_ns);
            sector = to;
        }
        Some(completed_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(sector: u64, sectors: u32, start_ns: u64) -> (u32, AskedIo) {
        let (offset, bytes) = (sector * SECTOR_BYTES, sectors * SECTOR_BYTES as u32);
        (0, AskedIo { is_write: true, offset, bytes, start_ns, submitted_ns: start_ns })
    }

    fn command(sector: u64, nr_sectors: u32, times_ns: (u64, u64)) -> CompletedCommand {
        let (arrived_ns, completed_ns) = times_ns;
        CompletedCommand { is_write: true, sector, nr_sectors, arrived_ns, completed_ns }
    }

    fn times(asked: &[(u32, AskedIo)], commands: &[CompletedCommand]) -> Vec<u64> {
        completed(asked, commands).unwrap().iter().map(|one| one.completed_ns).collect()
    }

    #[test]
    fn a_large_io_ends_with_the_last_of_its_parts() {
        let parts = [command(0, 8, (0, 50)), command(8, 8, (0, 40))];
        assert_eq!(times(&[io(0, 16, 0)], &parts), [50]);
    }

    #[test]
    fn merged_ios_end_together() {
        assert_eq!(times(&[io(8, 8, 0), io(0, 8, 3)], &[command(0, 16, (5, 9))]), [9, 9]);
    }

    #[test]
    fn ios_on_the_same_sectors_have_a_command_each() {
        let commands = [command(0, 8, (5, 9)), command(0, 8, (1, 20)), command(0, 8, (30, 31))];
        let asked = [io(0, 8, 0), io(0, 8, 4), io(0, 8, 30)];
        assert_eq!(times(&asked, &commands), [20, 9, 31]);
    }

    #[test]
    fn an_io_without_a_command_is_a_defect() {
        // It arrived before, is a part only, or is a read.
        let read = CompletedCommand { is_write: false, ..command(0, 8, (7, 8)) };
        for commands in [[command(0, 8, (1, 2))], [command(0, 4, (7, 8))], [read]] {
            let error = completed(&[io(0, 8, 5)], &commands).unwrap_err();
            assert!(error.to_string().contains("no command"), "{error}");
        }
    }
}
