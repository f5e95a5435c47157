//! Slots: what the jobs did in parts of one run, such as the turns of a switchback, or the phases between
//! planned changes.
//!
//! The records of jobs are exchanged at the edges of each slot's kept part, so that an I/O is
//! recorded as in any run.

use crate::core::error::{ErrorKind, SimulationError};
use crate::core::record::JobRecord;

/// The times of a slot, from the beginning of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotTimes {
    pub start_ns: u64,
    pub end_ns: u64,
    /// The part whose I/Os are kept: those that complete at `kept_from_ns` or later, and before
    /// `kept_to_ns`.
    pub kept_from_ns: u64,
    pub kept_to_ns: u64,
}

/// The slots that a run records apart, in order.
#[derive(Debug, Clone, Default)]
pub struct SlotPlan {
    pub times: Vec<SlotTimes>,
    /// Length of the windows in which I/Os are counted; a last, shorter one is left out.
    pub window_ns: u64,
    /// Jobs whose I/Os are counted there; empty for all.
    pub focus: Vec<String>,
}

impl SlotPlan {
    /// Refuses slots that overlap, or that have no kept part within them.
    pub fn check(&self) -> Result<(), SimulationError> {
        let refuse = |field, message: &str| {
            Err(SimulationError::of(ErrorKind::OutOfRange, field, message.to_owned()))
        };
        if self.window_ns == 0 {
            return refuse("window_ns", "window_ns must be larger than 0");
        }
        let mut end_ns = 1;
        for times in &self.times {
            let order =
                [end_ns, times.start_ns, times.kept_from_ns, times.kept_to_ns, times.end_ns];
            if !order.is_sorted() || times.kept_from_ns == times.kept_to_ns {
                return refuse(
                    "slots",
                    "slots begin after 0, follow one another, and each has a kept part within it",
                );
            }
            end_ns = times.end_ns;
        }
        Ok(())
    }
}

/// The I/O of the jobs in a slot.
#[derive(Debug, Clone)]
pub struct SlotRecord {
    pub times: SlotTimes,
    /// Of the kept part.
    pub jobs: Vec<JobRecord>,
    /// Reads and writes of the focus that completed in each window of the slot.
    pub ios: Vec<u64>,
}

/// The event at an edge of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    WindowEnds,
    KeptEnds,
    KeptBegins,
    WindowBegins,
}

/// Records slots while a machine runs.
#[derive(Debug, Clone)]
pub struct SlotRecorder {
    slots: Vec<SlotRecord>,
    /// Jobs whose I/Os the windows count; empty for all.
    focus: Vec<String>,
    /// Time, kind and slot, in order.
    edges: Vec<(u64, Edge, usize)>,
    next: usize,
    /// The jobs' records up to the last exchange, the slots' included.
    before: Vec<JobRecord>,
    ios_before: u64,
    window_began_at: u64,
}

impl SlotRecorder {
    /// Of a plan that was checked.
    pub fn new(plan: &SlotPlan) -> Self {
        let SlotPlan { times, window_ns, focus } = plan;
        let mut edges = Vec::new();
        for (index, slot) in times.iter().enumerate() {
            edges.push((slot.kept_from_ns, Edge::KeptBegins, index));
            edges.push((slot.kept_to_ns, Edge::KeptEnds, index));
            for window in 0..(slot.end_ns - slot.start_ns) / window_ns {
                let start_ns = slot.start_ns + window * window_ns;
                edges.push((start_ns, Edge::WindowBegins, index));
                edges.push((start_ns + window_ns, Edge::WindowEnds, index));
            }
        }
        edges.sort_unstable();
        let slot = |times: &SlotTimes| SlotRecord { times: *times, jobs: Vec::new(), ios: vec![] };
        Self {
            slots: times.iter().map(slot).collect(),
            focus: focus.clone(),
            edges,
            next: 0,
            before: Vec::new(),
            ios_before: 0,
            window_began_at: 0,
        }
    }

    /// The last moment before the next edge.
    pub fn next_ns(&self) -> Option<u64> {
        self.edges.get(self.next).map(|(time_ns, _, _)| time_ns.saturating_sub(1))
    }

    /// All edges up to the moment after this one are reached.
    pub fn advance(&mut self, now_ns: u64, records: &mut [JobRecord]) {
        while let Some(&(time_ns, edge, slot)) = self.edges.get(self.next) {
            if time_ns > now_ns + 1 {
                break;
            }
            self.next += 1;
            match edge {
                Edge::WindowBegins => self.window_began_at = self.ios_so_far(records),
                Edge::WindowEnds => {
                    let ios = self.ios_so_far(records) - self.window_began_at;
                    self.slots[slot].ios.push(ios);
                }
                Edge::KeptBegins => {
                    self.exchange(records);
                }
                Edge::KeptEnds => {
                    let mut jobs = self.exchange(records);
                    let times = self.slots[slot].times;
                    for job in &mut jobs {
                        job.runtime_ns = times.kept_to_ns - times.kept_from_ns;
                    }
                    self.slots[slot].jobs = jobs;
                }
            }
        }
    }

    /// Takes the records since the last exchange.
    fn exchange(&mut self, records: &mut [JobRecord]) -> Vec<JobRecord> {
        self.ios_before = self.ios_so_far(records);
        let fresh: Vec<_> =
            records.iter().map(|record| JobRecord::new(&record.name, record.clones)).collect();
        let taken: Vec<_> = records
            .iter_mut()
            .zip(fresh)
            .map(|(record, new)| std::mem::replace(record, new))
            .collect();
        if self.before.is_empty() {
            self.before.clone_from(&taken);
        } else {
            for (sum, record) in self.before.iter_mut().zip(&taken) {
                sum.merge(record);
            }
        }
        taken
    }

    fn ios_so_far(&self, records: &[JobRecord]) -> u64 {
        let counts =
            |record: &&JobRecord| self.focus.is_empty() || self.focus.contains(&record.name);
        self.ios_before + records.iter().filter(counts).map(JobRecord::ios).sum::<u64>()
    }

    /// The records of the whole run, from those since the last exchange.
    pub fn whole(&self, records: &[JobRecord]) -> Vec<JobRecord> {
        let mut whole = records.to_vec();
        for (sum, record) in whole.iter_mut().zip(&self.before) {
            sum.merge(record);
        }
        whole
    }

    /// Ends all slots that have begun or would begin yet: nothing more is done in this run.
    pub fn close(&mut self, records: &mut [JobRecord]) {
        self.advance(u64::MAX - 1, records);
    }

    /// The slots that have ended.
    pub fn ended(&self) -> &[SlotRecord] {
        let ended = |slot: &&SlotRecord| !slot.jobs.is_empty();
        &self.slots[..self.slots.iter().take_while(ended).count()]
    }
}
