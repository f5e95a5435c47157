//! The order of jobs: phases between stonewalls, jobs that wait for another, jobs that end with it.

use super::job::{ExitWhat, Job};

/// When jobs begin, and when one ends others.
#[derive(Debug, Clone)]
pub struct JobOrder {
    /// Phase of each job; a stonewall starts a new one.
    pub phases: Vec<usize>,
    /// The job that each job waits for (`wait_for`).
    pub waits_for: Vec<Option<usize>>,
    /// A job that ends ends others (`exitall`; in fio it holds for the whole file).
    pub exitall: bool,
    /// The jobs that each job ends, and its group.
    exits: Vec<(ExitWhat, usize)>,
    /// The job of each clone.
    pub jobs_of_clones: Vec<usize>,
}

impl JobOrder {
    pub fn new(jobs: &[Job]) -> Self {
        let (mut phase, mut group) = (0, 0);
        let (mut phases, mut exits) = (Vec::new(), Vec::new());
        for (index, job) in jobs.iter().enumerate() {
            phase += usize::from(job.stonewall && index > 0);
            group += usize::from((job.stonewall || job.new_group) && index > 0);
            phases.push(phase);
            exits.push((job.exit_what, group));
        }
        let named = |job: &Job| {
            let name = job.wait_for.as_ref()?;
            jobs.iter().position(|other| other.name == *name)
        };
        Self {
            phases,
            waits_for: jobs.iter().map(named).collect(),
            exitall: jobs.iter().any(|job| job.exitall),
            exits,
            jobs_of_clones: jobs
                .iter()
                .enumerate()
                .flat_map(|(index, job)| (0..job.numjobs).map(move |_| index))
                .collect(),
        }
    }

    pub fn nr_phases(&self) -> usize {
        self.phases.last().map_or(1, |last| last + 1)
    }

    /// Some job waits for another.
    pub fn waits(&self) -> bool {
        self.waits_for.iter().any(Option::is_some)
    }

    /// A clone of `job` ends when one of `ended` does. `begun` says that it is not still waiting
    /// (`fio_terminate_threads` in libfio.c, fio 3.33).
    pub fn ends_with(&self, job: usize, ended: usize, begun: bool) -> bool {
        let (what, group) = self.exits[ended];
        match what {
            ExitWhat::All => true,
            ExitWhat::Group => self.exits[job].1 == group,
            ExitWhat::Stonewall => begun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::parse;

    fn order(text: &str) -> JobOrder {
        JobOrder::new(&parse(text, "test").unwrap().jobs)
    }

    #[test]
    fn stonewalls_and_new_groups_number_phases_and_groups() {
        let order = order("[a]\n[b]\nnew_group\n[c]\nstonewall\n[d]\nwait_for=b\n");
        assert_eq!(order.phases, [0, 0, 1, 1]);
        assert_eq!(order.waits_for, [None, None, None, Some(1)]);
        assert!(order.waits() && !order.exitall);
        assert!(!order.ends_with(1, 0, true) && order.ends_with(3, 2, false));
    }

    #[test]
    fn exitall_ends_a_group_a_phase_or_all() {
        let jobs = "[a]\nexitall\nexit_what=stonewall\n[b]\nexit_what=all\n[c]\nnumjobs=2\n";
        let order = order(jobs);
        assert!(order.exitall && order.ends_with(2, 0, true) && !order.ends_with(2, 0, false));
        assert!(order.ends_with(0, 1, false));
        assert_eq!(order.jobs_of_clones, [0, 1, 2, 2]);
    }
}
