//! Memory shared by all processes of the guest: start time, phases, clones, flows, signals of replays, the
//! device's time and commands, the first failure.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use blksim::workload::flow::{FlowCounters, SharedFlow};
use blksim::workload::replay::{SharedSignals, SignalState};

use crate::command_log::{CommandLog, LoggedCommand};
use crate::failure::{Failure, checked};
use crate::load::JobProcess;

/// Longest failure message passed between processes.
const FAILURE_BYTES: usize = 4096;
/// How often a waiting process checks that the others are still alive, in guest time.
const LOOK: Duration = Duration::from_secs(1);

/// Most disks of a guest: the simulator's largest array.
pub const MAX_DISKS: usize = 32;

/// A disk's I/O counters, kept by its server.
#[derive(Debug, Default)]
#[repr(C)]
pub struct DeviceStats {
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub flushes: AtomicU64,
    pub busy_ns: AtomicU64,
    pub peak_in_flight: AtomicU32,
}

/// The fixed part of the shared memory. Every field starts as zero.
#[derive(Debug)]
#[repr(C)]
pub struct SharedPage {
    /// `CLOCK_MONOTONIC` time of the device's last event.
    pub device_now_ns: AtomicU64,
    /// Start of the first phase; 0 until it is known.
    pub start_ns: AtomicU64,
    /// Time at which the last clone ended.
    pub end_ns: AtomicU64,
    /// Set once the device model's latencies apply; before, every command completes at once.
    pub modelled: AtomicU32,
    pub server_ready: AtomicU32,
    pub clones_ready: AtomicU32,
    /// Phases numbered below this may run.
    pub open_phases: AtomicU32,
    pub clones_ended: AtomicU32,
    /// Lines of a command that have been run to their end, its set-ups included.
    pub lines_ended: AtomicU32,
    /// Counts whatever a clone may wait for in files with `wait_for` or `exitall`.
    changes: AtomicU32,
    /// Set when the last scheduler of a switchback has had its turn.
    pub turns_taken: AtomicU32,
    /// Of a torture: until when an idle disk is excused, and how often that ended early.
    pub excused_until_ns: AtomicU64,
    pub nr_excuses_ended: AtomicU64,
    /// Commands that were logged.
    nr_commands: AtomicU64,
    /// Per disk.
    pub stats: [DeviceStats; MAX_DISKS],
    failed: AtomicU32,
    failure_bytes: AtomicU32,
    failure: [u8; FAILURE_BYTES],
}

/// The states of a clone.
const WAITING: u32 = 0;
const BEGUN: u32 = 1;
/// Another job's end ends it.
const TERMINATED: u32 = 2;

/// The shared memory: the page, then the flows, the signals, the log of commands, and counters for each phase, job and clone.
#[derive(Debug, Clone, Copy)]
pub struct SharedMemory {
    page: &'static SharedPage,
    /// Signalled whenever something happens that the first process may be waiting for. It is an
    /// eventfd and not a futex with a timeout, because User-mode Linux charges 1 µs of virtual time
    /// for a system call that fails (`handle_syscall`, `arch/um/kernel/skas/syscall.c`, Linux 6.1),
    /// ETIMEDOUT included, and an I/O in flight at that time would take that much longer.
    eventfd: libc::c_int,
    flows: &'static [FlowCounters],
    signals: &'static [SignalState],
    commands: &'static [LoggedCommand],
    left_in_phase: &'static [AtomicU32],
    left_in_job: &'static [AtomicU32],
    clones: &'static [AtomicU32],
}

impl std::ops::Deref for SharedMemory {
    type Target = SharedPage;

    fn deref(&self) -> &SharedPage {
        self.page
    }
}

impl SharedMemory {
    /// Memory that children made by `fork` share.
    ///
    /// # Arguments
    ///
    /// Clones of each phase and of each job, the weight of each flow, the number of signals between tasks of
    /// a replay, and of commands that are logged at most.
    pub fn new(
        clones_of_phases: &[u32],
        clones_of_jobs: &[u32],
        flow_weights: &[u64],
        nr_signals: usize,
        nr_commands: usize,
    ) -> Result<Self, Failure> {
        let nr_clones = clones_of_jobs.iter().sum::<u32>() as usize;
        let nr_words = clones_of_phases.len() + clones_of_jobs.len() + nr_clones;
        let flows_bytes = size_of::<FlowCounters>() * flow_weights.len();
        let signals_bytes = size_of::<SignalState>() * nr_signals;
        let commands_bytes = size_of::<LoggedCommand>() * nr_commands;
        let eights = flows_bytes + signals_bytes + commands_bytes;
        let bytes = size_of::<SharedPage>() + eights + size_of::<AtomicU32>() * nr_words;
        // SAFETY: a plain call.
        let eventfd = checked("making an eventfd", unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: a fresh anonymous mapping, never unmapped, zeroed by the kernel; zero is a
        // valid value of every field. The flows, signals and commands behind the page are aligned for
        // u64, as the page's size is, and the words behind them for u32.
        let (page, flows, signals, commands, words) = unsafe {
            let start = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(Failure::last("allocating shared memory"));
            }
            let behind = start.byte_add(size_of::<SharedPage>());
            let flows: &'static [FlowCounters] =
                slice::from_raw_parts(behind.cast(), flow_weights.len());
            let words: &'static [AtomicU32] =
                slice::from_raw_parts(behind.byte_add(eights).cast(), nr_words);
            let signals: &'static [SignalState] =
                slice::from_raw_parts(behind.byte_add(flows_bytes).cast(), nr_signals);
            let commands: &'static [LoggedCommand] = slice::from_raw_parts(
                behind.byte_add(flows_bytes + signals_bytes).cast(),
                nr_commands,
            );
            (&*start.cast::<SharedPage>(), flows, signals, commands, words)
        };
        let (left_in_phase, words) = words.split_at(clones_of_phases.len());
        let (left_in_job, clones) = words.split_at(clones_of_jobs.len());
        let counts = clones_of_phases.iter().chain(clones_of_jobs);
        for (left, count) in left_in_phase.iter().chain(left_in_job).zip(counts) {
            left.store(*count, SeqCst);
        }
        for (flow, weight) in flows.iter().zip(flow_weights) {
            flow.set_weight(*weight);
        }
        Ok(Self { page, eventfd, flows, signals, commands, left_in_phase, left_in_job, clones })
    }

    /// The fixed part, which lives as long as the guest.
    pub fn page(self) -> &'static SharedPage {
        self.page
    }

    /// The counters of a flow.
    pub fn flow(&self, index: usize) -> SharedFlow {
        SharedFlow::Mapped(&self.flows[index])
    }

    /// The signals between tasks of a replay.
    pub fn signals(&self) -> SharedSignals {
        SharedSignals::Mapped(self.signals)
    }

    /// The log of the disks' commands.
    pub fn commands(&self) -> CommandLog {
        CommandLog { places: self.commands, count: &self.page.nr_commands }
    }

    /// Records that a clone has ended, and ends those that `exitall` ends with it; the last clone of
    /// a phase opens the next one.
    pub fn clone_ended(&self, clone: &JobProcess, now_ns: u64) {
        self.end_ns.fetch_max(now_ns, SeqCst);
        let order = clone.order;
        self.left_in_job[clone.job_index].fetch_sub(1, SeqCst);
        if order.exitall {
            for (state, job) in self.clones.iter().zip(&order.jobs_of_clones) {
                let begun = state.load(SeqCst) != WAITING;
                if order.ends_with(*job, clone.job_index, begun) {
                    state.store(TERMINATED, SeqCst);
                }
            }
        }
        let mut phase = clone.phase();
        if self.left_in_phase[phase].fetch_sub(1, SeqCst) == 1 {
            // Clones that never begin leave phases that are over before they are open.
            while phase + 1 < self.left_in_phase.len()
                && self.left_in_phase[phase + 1].load(SeqCst) == 0
            {
                phase += 1;
            }
            if self.open_phases.load(SeqCst) > clone.phase() as u32 {
                self.open_phase(phase + 1);
            }
        }
        if order.exitall || order.waits() {
            self.changes.fetch_add(1, SeqCst);
            wake(&self.changes);
        }
        self.clones_ended.fetch_add(1, SeqCst);
        self.notify();
    }

    /// Sleeps until a clone may begin. Returns false if it was terminated before.
    pub fn await_turn(&self, clone: &JobProcess) -> bool {
        let order = clone.order;
        let opened = clone.phase() as u32 + 1;
        if !order.exitall && !order.waits() {
            Self::await_value(&self.open_phases, opened);
            return true;
        }
        let state = &self.clones[clone.number as usize];
        loop {
            let seen = self.changes.load(SeqCst);
            let waits = order.waits_for[clone.job_index]
                .is_some_and(|job| self.left_in_job[job].load(SeqCst) > 0);
            if state.load(SeqCst) == TERMINATED {
                return false;
            }
            if !waits && self.open_phases.load(SeqCst) >= opened {
                return state.compare_exchange(WAITING, BEGUN, SeqCst, SeqCst).is_ok();
            }
            wait(&self.changes, seen);
        }
    }

    /// Another job's end ends this clone.
    pub fn terminated(&self, number: u32) -> bool {
        self.clones[number as usize].load(SeqCst) == TERMINATED
    }

    /// Lets every clone end.
    pub fn terminate_clones(&self) {
        for state in self.clones {
            state.store(TERMINATED, SeqCst);
        }
        self.changes.fetch_add(1, SeqCst);
        wake(&self.changes);
    }

    /// Records that a line of a command has ended.
    pub fn line_ended(&self) {
        self.lines_ended.fetch_add(1, SeqCst);
        self.notify();
    }

    /// Starts a phase.
    pub fn open_phase(&self, phase: usize) {
        self.open_phases.store(phase as u32 + 1, SeqCst);
        wake(&self.open_phases);
        self.changes.fetch_add(1, SeqCst);
        wake(&self.changes);
    }

    /// Wakes the first process so that it checks for changes.
    pub fn notify(&self) {
        let once = 1_u64;
        // SAFETY: the bytes live through the call. The count stays far below its limit.
        unsafe { libc::write(self.eventfd, (&raw const once).cast(), size_of::<u64>()) };
    }

    /// Sleeps until `word` has reached `value`. Writers of `word` must call [`Self::notify`]; `look` is
    /// called at intervals and may give up. For the first process.
    pub fn wait_for(
        self,
        word: &AtomicU32,
        value: u32,
        mut look: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            if word.load(SeqCst) >= value {
                return Ok(());
            }
            look()?;
            self.await_event();
        }
    }

    /// Sleeps until the next notification, or until it is time to look.
    fn await_event(self) {
        let mut event = libc::pollfd { fd: self.eventfd, events: libc::POLLIN, revents: 0 };
        let mut signalled = 0_u64;
        // SAFETY: both pointers are valid for their calls. Whatever it returns, the caller looks again.
        unsafe {
            if libc::poll(&raw mut event, 1, LOOK.as_millis() as libc::c_int) == 1 {
                libc::read(self.eventfd, (&raw mut signalled).cast(), size_of::<u64>());
            }
        }
    }

    /// Sleeps until `word` has reached `value`, without a timeout.
    pub fn await_value(word: &AtomicU32, value: u32) {
        loop {
            let seen = word.load(SeqCst);
            if seen >= value {
                return;
            }
            wait(word, seen);
        }
    }

    /// Wakes every process that waits for `word`.
    pub fn wake(word: &AtomicU32) {
        wake(word);
    }

    /// Records a failure for the first process; only the first failure is kept.
    pub fn fail(&self, failure: &Failure) {
        let text = failure.answer().to_string();
        let bytes = &text.as_bytes()[..text.len().min(FAILURE_BYTES)];
        if self.failed.swap(1, SeqCst) == 0 {
            // SAFETY: only the one process that set the flag writes, and readers wait for the length.
            unsafe {
                let target = self.page.failure.as_ptr().cast_mut();
                ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
            }
            self.failure_bytes.store(bytes.len() as u32, SeqCst);
        }
        self.notify();
    }

    /// The answer left by a process that failed.
    pub fn failure(&self) -> Option<String> {
        let bytes = self.failure_bytes.load(SeqCst) as usize;
        let text = String::from_utf8_lossy(&self.page.failure[..bytes]);
        (bytes > 0).then(|| text.into_owned())
    }
}

/// Sleeps while `word` has the value `seen`.
fn wait(word: &AtomicU32, seen: u32) {
    let for_ever: *const libc::timespec = ptr::null();
    // SAFETY: the word lives in shared memory for ever. Whatever it returns, the caller looks again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, for_ever) };
}

/// Wakes every process that waits for `word`.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives in shared memory for ever.
    unsafe {
        let nobody: *const c_void = ptr::null();
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, nobody);
    }
}
