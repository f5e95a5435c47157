//! Tasks: threads from fork to exit, each within one control group. The workers of a kernel's pool are one thread.

use blkrecord::task_event::TaskEventKind;
use blksim::workload::replay::MAX_CONTEXTS;
use rustc_hash::FxHashMap;

use crate::recorded::Recorded;
use crate::worker_pools::WorkerPools;

/// A thread from its fork to its exit; numbers of threads occur again.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// Its tasks: one for each control group in which it did I/O.
    pub tasks: Vec<u32>,
}

/// A thread's I/Os in one control group.
#[derive(Debug, Clone)]
pub struct Task {
    pub thread: u32,
    /// Command at its first I/O, in the record's names.
    pub command: u32,
    pub cgroup: u32,
    /// It is a pool of kernel workers.
    pub is_pool: bool,
    /// Its I/Os, as indices of [`Recorded::ios`].
    pub ios: Vec<u32>,
}

impl Task {
    /// The I/O context of each of its I/Os, by its place: a number for each worker of a pool, in the order in which they
    /// come, and 0 for all others. Workers beyond [`MAX_CONTEXTS`] share the last.
    pub fn contexts(&self, recorded: &Recorded) -> Vec<u16> {
        if !self.is_pool {
            return vec![0; self.ios.len()];
        }
        let mut known: FxHashMap<u32, u16> = FxHashMap::default();
        let context = |io: &u32| {
            let next = (known.len() as u16).min(MAX_CONTEXTS - 1);
            *known.entry(recorded.ios[*io as usize].tid).or_insert(next)
        };
        self.ios.iter().map(context).collect()
    }
}

/// A fork or an exit, on the clock of the I/Os.
#[derive(Debug, Clone, Copy)]
pub struct Kinship {
    pub at_ns: u64,
    pub kind: TaskEventKind,
    pub thread: u32,
    pub parent: u32,
}

/// All tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    pub tasks: Vec<Task>,
    pub threads: Vec<Thread>,
    /// In the order of time.
    pub kinships: Vec<Kinship>,
    /// The task of each I/O, and its place in it.
    pub of_ios: Vec<(u32, u32)>,
}

impl Tasks {
    /// Finds the tasks of a recording.
    pub fn of(recorded: &Recorded) -> Self {
        let mut found = Self::default();
        // The thread that has a number now, and the parent of threads of which only that is known.
        let mut current: FxHashMap<u32, u32> = FxHashMap::default();
        let mut parents: FxHashMap<u32, u32> = FxHashMap::default();
        let mut pools = WorkerPools::default();
        let mut threads_of_pools: FxHashMap<u32, u32> = FxHashMap::default();
        let mut events = recorded.events.iter().peekable();
        for io in &recorded.ios {
            while let Some((at_ns, event)) = events.next_if(|(at_ns, _)| *at_ns <= io.queued_ns) {
                match event.kind {
                    TaskEventKind::Fork => {
                        let parent = found.thread(&mut current, event.parent);
                        let thread = found.new_thread();
                        current.insert(event.tid, thread);
                        parents.insert(thread, parent);
                        found.note(*at_ns, event.kind, thread, parent);
                    }
                    TaskEventKind::Exit => {
                        let Some(thread) = current.remove(&event.tid) else { continue };
                        if let Some(parent) = parents.get(&thread) {
                            found.note(*at_ns, event.kind, thread, *parent);
                        }
                    }
                }
            }
            let pool = pools.of_command(io.command, recorded);
            let thread = match pool {
                Some(pool) => found.thread(&mut threads_of_pools, pool),
                None => found.thread(&mut current, io.tid),
            };
            let known = found.threads[thread as usize].tasks.iter().rev();
            let task = known.copied().find(|task| found.tasks[*task as usize].cgroup == io.cgroup);
            let task = task.unwrap_or_else(|| {
                let task = found.tasks.len() as u32;
                found.threads[thread as usize].tasks.push(task);
                let (command, cgroup) = (io.command, io.cgroup);
                let is_pool = pool.is_some();
                found.tasks.push(Task { thread, command, cgroup, is_pool, ios: Vec::new() });
                task
            });
            let ios = &mut found.tasks[task as usize].ios;
            found.of_ios.push((task, ios.len() as u32));
            ios.push(found.of_ios.len() as u32 - 1);
        }
        found
    }

    fn new_thread(&mut self) -> u32 {
        self.threads.push(Thread::default());
        self.threads.len() as u32 - 1
    }

    fn thread(&mut self, known: &mut FxHashMap<u32, u32>, number: u32) -> u32 {
        if let Some(thread) = known.get(&number) {
            return *thread;
        }
        let thread = self.new_thread();
        known.insert(number, thread);
        thread
    }

    fn note(&mut self, at_ns: u64, kind: TaskEventKind, thread: u32, parent: u32) {
        self.kinships.push(Kinship { at_ns, kind, thread, parent });
    }
}
