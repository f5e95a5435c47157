//! The cost table: how much processor time the steps of an I/O take on a machine, and how many
//! processors it has.

/// A struct of figures whose names can be listed, so that a reader and the kernel's instrument take them from
/// here.
macro_rules! figures {
    ($(#[$of:meta])* $name:ident { $($(#[$about:meta])* $field:ident,)* }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$about])* pub $field: u64,)*
        }

        impl $name {
            /// The figures' names, in the order in which they are declared.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field),)*];

            /// The figures by name, in the order in which they are declared.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }

            /// Sets the figure of a name; false if there is no such figure.
            #[must_use]
            pub fn set(&mut self, name: &str, figure: u64) -> bool {
                match name {
                    $(stringify!($field) => self.$field = figure,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

figures! {
    /// Processor time of a scheduler's hooks.
    SchedulerCosts {
        /// `insert_requests`, for each request.
        insert_ns,
        /// `dispatch_request`, for each request that it hands out.
        dispatch_ns,
        /// `completed_request` and `finish_request`.
        complete_ns,
        /// A look for a merge (`bio_merge`).
        merge_ns,
        /// In addition for each doubling of the requests that it holds: its trees grow by a level. For
        /// an insertion and for a dispatch.
        per_doubling_ns,
        /// Share of all this that happens under the scheduler's lock.
        locked_percent,
    }
}

impl SchedulerCosts {
    /// The time for a hook while it holds so many requests.
    #[inline]
    pub fn grown_ns(&self, base_ns: u64, nr_held: u32) -> u64 {
        base_ns + self.per_doubling_ns * u64::from((nr_held + 1).ilog2())
    }
}

figures! {
    /// Processor time of the steps of an I/O outside the scheduler.
    StepCosts {
        /// The program prepares an I/O.
        prepare_ns,
        /// A system call, without the work that it is for.
        system_call_ns,
        /// A bio becomes a request with a tag (`blk_mq_submit_bio`).
        submit_ns,
        /// The driver takes a request (`queue_rq`).
        issue_ns,
        /// An interrupt and its softirq.
        interrupt_ns,
        /// A processor interrupts another (`smp_call_function_single_async`); the other's own part is
        /// `interrupt_ns`.
        ipi_ns,
        /// A request ends (`blk_mq_end_request`, and what the task's I/O interface does then).
        end_ns,
        /// A sleeping task or worker is woken (`try_to_wake_up`).
        wake_ns,
        /// Another task takes the processor (`__schedule`).
        context_switch_ns,
        /// An idle processor begins to compute.
        idle_exit_ns,
        /// The program collects an I/O that is complete.
        collect_ns,
        /// A thread serves a command of a loop device, without the copying.
        thread_command_ns,
        /// A page is copied.
        copy_page_ns,
        /// A lock that is waited for changes hands: it and the data that it guards move between caches.
        lock_handover_ns,
    }
}

/// A machine's processors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessorTable {
    pub cpus: u32,
    /// Time for which a task may run although others wait.
    pub slice_ns: u64,
    /// An I/O of `io_uring` that finds no tag: the attempt without sleeping is given up, and the I/O goes to a
    /// worker of the ring (`io_queue_iowq` of `io_uring/io_uring.c`, Linux 6.1), which repeats it and pays for
    /// that besides.
    pub punt_ns: u64,
    /// The driver describes a page of a request beyond its first to the device (`nvme_map_data` of
    /// `drivers/nvme/host/pci.c`, Linux 6.1: a DMA mapping and an entry of the PRP list), and takes it back.
    pub map_page_ns: u64,
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
