//! The order of completions within a task.

use crate::recorded::Recorded;
use crate::tasks::Task;

/// The completions of a task.
#[derive(Debug)]
pub struct Completions {
    /// Times in order; those that never came are at the end.
    pub times_ns: Vec<u64>,
    /// The rank of each I/O, by its place in the task.
    pub ranks: Vec<u32>,
}

impl Completions {
    pub fn of(task: &Task, recorded: &Recorded) -> Self {
        let time = |place: u32| recorded.ios[task.ios[place as usize] as usize].completed_ns;
        let mut order: Vec<u32> = (0..task.ios.len() as u32).collect();
        order.sort_by_key(|place| (time(*place), *place));
        let mut ranks = vec![0; order.len()];
        for (rank, place) in order.iter().enumerate() {
            ranks[*place as usize] = rank as u32;
        }
        Self { times_ns: order.iter().map(|place| time(*place)).collect(), ranks }
    }

    /// I/Os that were complete at a time.
    pub fn until(&self, now_ns: u64) -> u32 {
        let done = |time_ns: &u64| *time_ns != u64::MAX && *time_ns <= now_ns;
        self.times_ns.partition_point(done) as u32
    }

    /// The time at which so many were complete; `None` for none.
    pub fn time_ns(&self, count: u32) -> Option<u64> {
        self.times_ns.get((count as usize).checked_sub(1)?).copied()
    }
}
