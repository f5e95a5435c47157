//! The I/O contexts of a task that replays.
//!
//! The kernel gives each thread a context of its own (`copy_io` in block/blk-ioc.c, Linux 6.18). So a task with several has
//! a thread for each, of which one at a time does the task's work: the one in whose context the next I/O is queued.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use super::aio::Queue;
use super::job_process::Worker;
use super::run_delay::RunDelay;
use super::synchronous;
use crate::failure::Failure;

/// The reason why a thread stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// All I/O is done, at this time.
    Ended(u64),
    /// The next I/O is to be queued in this context.
    HandedOn(u16),
}

/// Does the work of a task until all its I/O is done; returns the end time.
///
/// # Arguments
/// * `queue` - Of a task that submits several I/Os at a time.
/// * `begin` - Called once all threads are there; gives the time.
pub fn work(
    worker: &mut Worker,
    queue: Option<&mut Queue>,
    nr_contexts: u16,
    begin: impl FnOnce(&mut Worker) -> u64,
) -> Result<u64, Failure> {
    if nr_contexts == 1 {
        let now_ns = begin(worker);
        let mut task = Task { worker, queue, now_ns, outcome: None };
        task.go_on();
        return task.ended();
    }
    let turns = Turns { run_delay_counts: worker.run_delay_counts(), ..Turns::default() };
    let task = Mutex::new(Task { worker, queue, now_ns: 0, outcome: None });
    thread::scope(|scope| {
        let (turns, task) = (&turns, &task);
        let mut threads = vec![thread::current()];
        let created: io::Result<()> = (1..nr_contexts).try_for_each(|context| {
            let take_turns = move || turns.take(context, task);
            let created = thread::Builder::new().spawn_scoped(scope, take_turns)?;
            threads.push(created.thread().clone());
            Ok(())
        });
        // Set once, here.
        let _ = turns.threads.set(threads);
        let _over_if_it_panics = OverIfItPanics(turns);
        if let Err(error) = created {
            turns.end();
            let doing = format!("creating {nr_contexts} threads for a task's I/O contexts");
            return Err(Failure::kernel(doing, error));
        }
        {
            let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
            task.now_ns = begin(task.worker);
        }
        turns.take(0, task);
        Ok(())
    })?;
    task.into_inner().unwrap_or_else(PoisonError::into_inner).ended()
}

/// The work of a task.
struct Task<'a, 'w> {
    worker: &'a mut Worker<'w>,
    queue: Option<&'a mut Queue>,
    now_ns: u64,
    outcome: Option<Result<u64, Failure>>,
}

// SAFETY: the pointers within lead to memory of the process, and the mutex lets one thread at a time follow them.
unsafe impl Send for Task<'_, '_> {}

impl Task<'_, '_> {
    fn begin_turn(&mut self, context: u16, run_delay: &mut Option<RunDelay>) {
        self.now_ns = self.worker.begin_turn(context, run_delay, self.now_ns);
    }

    /// Works until the next I/O is another context's, or all is done; gives that context.
    fn go_on(&mut self) -> Option<u16> {
        let now_ns = self.now_ns;
        let pause = match &mut self.queue {
            Some(queue) => queue.work(self.worker, now_ns),
            None => synchronous::work(self.worker, now_ns),
        };
        match pause {
            Ok(Pause::HandedOn(context)) => return Some(context),
            Ok(Pause::Ended(end_ns)) => self.outcome = Some(Ok(end_ns)),
            Err(failure) => self.outcome = Some(Err(failure)),
        }
        None
    }

    fn ended(self) -> Result<u64, Failure> {
        let message = "a task that replays has ended without an outcome".to_owned();
        self.outcome.unwrap_or(Err(Failure::Internal { message }))
    }
}

/// Which context is to work, and the thread of each.
#[derive(Debug, Default)]
struct Turns {
    context: AtomicU32,
    run_delay_counts: bool,
    threads: OnceLock<Vec<Thread>>,
}

impl Turns {
    /// The turn of no context: the work is over.
    const OVER: u32 = u32::MAX;

    /// Works whenever it is a context's turn, until the work is over.
    fn take(&self, context: u16, task: &Mutex<Task>) {
        let _over_if_it_panics = OverIfItPanics(self);
        // Of this thread, whose waits for a processor count while it works.
        let mut run_delay = self.run_delay_counts.then(RunDelay::of_this_thread).flatten();
        while self.comes(context) {
            let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
            task.begin_turn(context, &mut run_delay);
            let next = task.go_on();
            task.worker.end_turn(&mut run_delay);
            drop(task);
            match next {
                Some(next) => self.give(next),
                None => self.end(),
            }
        }
    }

    /// Sleeps until it is a context's turn; false if the work is over.
    fn comes(&self, context: u16) -> bool {
        loop {
            match self.context.load(SeqCst) {
                Self::OVER => return false,
                of if of == u32::from(context) => return true,
                _ => thread::park(),
            }
        }
    }

    fn give(&self, context: u16) {
        self.context.store(context.into(), SeqCst);
        if let Some(next) = self.threads.get().and_then(|all| all.get(usize::from(context))) {
            next.unpark();
        }
    }

    fn end(&self) {
        self.context.store(Self::OVER, SeqCst);
        self.threads.get().into_iter().flatten().for_each(Thread::unpark);
    }
}

/// A thread that panics leaves no other waiting.
struct OverIfItPanics<'a>(&'a Turns);

impl Drop for OverIfItPanics<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}
