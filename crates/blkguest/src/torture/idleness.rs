//! Requests that wait in the scheduler while the disk has nothing to do.
//!
//! A scheduler that misses a wake-up does not lose requests: 3 ms after it had work and gave none, the block layer
//! asks again (`BLK_MQ_BUDGET_DELAY`, `block/blk-mq-sched.c`, Linux 6.1). Until then the disk idles, and in the
//! guest's time an idle disk is exact: processors take none of it.

use std::fmt::Write;
use std::fs;

use super::excuse::Excuse;
use super::kept_file::KeptFile;
use super::leaks::busy;
use super::plan::{Load, Plan};
use super::{Torture, disk, leave_count};
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::DEBUGFS;
use crate::process;
use crate::shared_memory::SharedMemory;

/// Interval between two looks: short where the load is made to show missed wake-ups, and such that it costs
/// little elsewhere.
const SHORT_LOOK_NS: u64 = 500_000;
const LOOK_NS: u64 = 10_000_000;
/// Characters of a file in a message.
const SHOWN: usize = 160;
/// Name of the count of the longest time.
pub const LONGEST_IDLE: &str = "longest_idle_ns";

/// Starts the process that looks until the end of the load.
pub fn watch(
    torture: &Torture,
    plan: &Plan,
    disk: &Disk,
    excuse: Excuse,
    shared: SharedMemory,
    end_ns: u64,
) -> Result<(), Failure> {
    // Beneath changes of everything an idle disk is only measured: what schedulers may do there, nobody knows.
    let (interval_ns, bound_ns) = match plan.load {
        Load::Bursts => (SHORT_LOOK_NS, torture.idle_bound_ns),
        Load::Long | Load::Equals => (LOOK_NS, torture.idle_bound_ns.max(10 * LOOK_NS)),
        Load::Mixed => (LOOK_NS, u64::MAX),
    };
    leave_count(LONGEST_IDLE, 0)?;
    process::spawn("the watch on idle disks", shared, || {
        let mut idle = Idle::new(interval_ns);
        let files = Files::of(disk);
        let mut longest_ns = 0;
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= end_ns {
                return Ok(());
            }
            let look = files.look();
            if look == Look::Empty {
                excuse.emptied();
            }
            let idle_ns = idle.look(now_ns, look);
            if excuse.without(now_ns, idle_ns) > bound_ns {
                return Err(mistake(torture, disk, idle_ns, bound_ns));
            }
            if idle_ns > longest_ns {
                longest_ns = idle_ns;
                leave_count(LONGEST_IDLE, longest_ns)?;
            }
            clock::sleep_until(now_ns + interval_ns);
        }
    })?;
    Ok(())
}

fn mistake(torture: &Torture, disk: &Disk, idle_ns: u64, bound_ns: u64) -> Failure {
    let waiting = busy(&read(disk, "hctx0/sched_tags"));
    let mut message = format!(
        "the disk had nothing to do for {:.1} ms while {waiting} requests waited in {}; its bound is {:.1} ms",
        idle_ns as f64 / 1e6,
        torture.scheduler,
        bound_ns as f64 / 1e6
    );
    for (file, text) in told_by_the_scheduler(disk) {
        let _ = write!(message, "\n{file}: {text}");
    }
    Failure::mistake("idle", message)
}

/// The files of a scheduler in debugfs (`block/*/sched`) that are not empty, each in one line.
fn told_by_the_scheduler(disk: &Disk) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["sched", "hctx0/sched"] {
        let path = format!("{DEBUGFS}/block/{}/{folder}", disk.name);
        let Ok(entries) = fs::read_dir(path) else { continue };
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let text = read(disk, &format!("{folder}/{name}"));
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if !line.is_empty() {
                found.push((name, line.chars().take(SHOWN).collect()));
            }
        }
    }
    found.sort();
    found
}

/// The state of the disk at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Look {
    /// The disk has a request, or somebody else holds the requests.
    Fine,
    /// Nobody has a request.
    Empty,
    /// Only the scheduler holds requests; the I/Os of each kind that the disk has completed until now.
    Idle([u64; 4]),
}

/// The files that say what the disk and its scheduler hold.
#[derive(Debug)]
struct Files {
    tags: KeptFile,
    scheduler_tags: KeptFile,
    handed_back: [KeptFile; 2],
    iostats: KeptFile,
    served: KeptFile,
}

impl Files {
    fn of(disk: &Disk) -> Self {
        let kept = |name: &str| KeptFile::of(format!("{DEBUGFS}/block/{}/{name}", disk.name));
        Self {
            tags: kept("hctx0/tags"),
            scheduler_tags: kept("hctx0/sched_tags"),
            handed_back: [kept("hctx0/dispatch"), kept("requeue_list")],
            iostats: KeptFile::of(disk.queue("iostats")),
            served: disk::counters(disk),
        }
    }

    /// Looks at the disk; mostly it has requests, and the rest need not be read.
    fn look(&self) -> Look {
        if busy(&self.tags.text()) > 0 {
            return Look::Fine;
        }
        if busy(&self.scheduler_tags.text()) == 0 {
            return Look::Empty;
        }
        // Requests that the disk handed back wait for the block layer, not for the scheduler.
        if self.handed_back.iter().any(|list| !list.text().is_empty()) {
            return Look::Fine;
        }
        match self.served.read() {
            Some(served) if self.iostats.text().trim_end() == "1" => {
                Look::Idle(disk::completed(&served))
            }
            _ => Look::Fine,
        }
    }
}

fn read(disk: &Disk, file: &str) -> String {
    fs::read_to_string(format!("{DEBUGFS}/block/{}/{file}", disk.name)).unwrap_or_default()
}

/// The time for which the disk has been idle although the scheduler has requests.
#[derive(Debug)]
struct Idle {
    interval_ns: u64,
    since: Option<(u64, [u64; 4])>,
    last_ns: u64,
}

impl Idle {
    fn new(interval_ns: u64) -> Self {
        Self { interval_ns, since: None, last_ns: 0 }
    }

    /// Takes account of a look.
    fn look(&mut self, now_ns: u64, look: Look) -> u64 {
        // A look that comes late says that the processor was busy, which keeps disks idle too.
        let late = now_ns - self.last_ns > 2 * self.interval_ns;
        self.last_ns = now_ns;
        self.since = match (look, self.since.take()) {
            (Look::Fine | Look::Empty, _) => None,
            (Look::Idle(served), Some((since_ns, before))) if !late && served == before => {
                Some((since_ns, before))
            }
            (Look::Idle(served), _) => Some((now_ns, served)),
        };
        self.since.as_ref().map_or(0, |(since_ns, _)| now_ns - since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(count: u64) -> Look {
        Look::Idle([count, 0, 0, 0])
    }

    #[test]
    fn an_idle_disk_is_one_that_serves_nothing_between_looks() {
        let mut idle = Idle::new(10);
        assert_eq!(idle.look(10, served(5)), 0);
        assert_eq!(idle.look(20, served(5)), 10);
        assert_eq!(idle.look(30, served(5)), 20);
        assert_eq!(idle.look(40, served(6)), 0);
        assert_eq!(idle.look(50, served(6)), 10);
        assert_eq!(idle.look(60, Look::Fine), 0);
        assert_eq!(idle.look(70, served(6)), 0);
    }

    #[test]
    fn a_busy_processor_is_no_idle_disk() {
        let mut idle = Idle::new(10);
        assert_eq!(idle.look(10, served(5)), 0);
        assert_eq!(idle.look(110, served(5)), 0);
        assert_eq!(idle.look(120, served(5)), 10);
    }
}
