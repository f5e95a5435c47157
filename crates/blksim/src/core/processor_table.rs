//! The cost table: how much processor time the steps of an I/O take on a machine, and how many
//! processors it has.

/// Processor time of a scheduler's hooks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulerCosts {
    /// `insert_requests`, for each request.
    pub insert_ns: u64,
    /// `dispatch_request`, for each request that it hands out.
    pub dispatch_ns: u64,
    /// `completed_request` and `finish_request`.
    pub complete_ns: u64,
    /// A look for a merge (`bio_merge`).
    pub merge_ns: u64,
    /// In addition for each doubling of the requests that it holds: its trees grow by a level. For
    /// an insertion and for a dispatch.
    pub per_doubling_ns: u64,
    /// Share of all this that happens under the scheduler's lock.
    pub locked_percent: u64,
}

impl SchedulerCosts {
    /// The time for a hook while it holds so many requests.
    #[inline]
    pub fn grown_ns(&self, base_ns: u64, nr_held: u32) -> u64 {
        base_ns + self.per_doubling_ns * u64::from((nr_held + 1).ilog2())
    }
}

/// Processor time of the steps of an I/O outside the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCosts {
    /// The program prepares an I/O.
    pub prepare_ns: u64,
    /// A system call, without the work that it is for.
    pub system_call_ns: u64,
    /// A bio becomes a request with a tag (`blk_mq_submit_bio`).
    pub submit_ns: u64,
    /// The driver takes a request (`queue_rq`).
    pub issue_ns: u64,
    /// An interrupt and its softirq.
    pub interrupt_ns: u64,
    /// A request ends (`blk_mq_end_request`, and what the task's I/O interface does then).
    pub end_ns: u64,
    /// A sleeping task or worker is woken (`try_to_wake_up`).
    pub wake_ns: u64,
    /// Another task takes the processor (`__schedule`).
    pub context_switch_ns: u64,
    /// An idle processor begins to compute.
    pub idle_exit_ns: u64,
    /// The program collects an I/O that is complete.
    pub collect_ns: u64,
    /// A thread serves a command of a loop device, without the copying.
    pub thread_command_ns: u64,
    /// A page is copied.
    pub copy_page_ns: u64,
    /// A lock that is waited for changes hands: it and the data that it guards move between caches.
    pub lock_handover_ns: u64,
}

/// A machine's processors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessorTable {
    pub cpus: u32,
    /// Time for which a task may run although others wait.
    pub slice_ns: u64,
    pub steps: StepCosts,
    /// By the scheduler's name; a scheduler that is not here costs nothing.
    pub schedulers: Vec<(String, SchedulerCosts)>,
}

impl ProcessorTable {
    /// True if computing takes no time and there is one processor to do it, as without a table.
    pub fn is_free(&self) -> bool {
        let nothing = |(_, costs): &(String, SchedulerCosts)| {
            SchedulerCosts { locked_percent: 0, ..*costs } == SchedulerCosts::default()
        };
        self.cpus <= 1 && self.steps == StepCosts::default() && self.schedulers.iter().all(nothing)
    }

    /// The costs of a scheduler.
    pub fn of_scheduler(&self, name: &str) -> SchedulerCosts {
        let found = self.schedulers.iter().find(|(known, _)| known == name);
        found.map_or_else(SchedulerCosts::default, |(_, costs)| *costs)
    }
}
