//! Signals between tasks, in memory that they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// A signal that one task sets and another waits for. Zero means that it is not set.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SignalState {
    at_ns: AtomicU64,
    /// 1 once it is set; a word of this size is what a process can sleep on.
    pub is_set: AtomicU32,
    unused: u32,
}

/// The signals of a job file: of tasks in one process, or of processes with common memory.
#[derive(Debug, Clone)]
pub enum SharedSignals {
    Owned(Arc<[SignalState]>),
    Mapped(&'static [SignalState]),
}

impl SharedSignals {
    pub fn owned(count: usize) -> Self {
        Self::Owned((0..count).map(|_| SignalState::default()).collect())
    }

    /// Signals of a snapshot, set as these are. Memory common to processes stays common.
    pub(crate) fn snapshot(&self) -> Self {
        let Self::Owned(signals) = self else { return self.clone() };
        let copy = |signal: &SignalState| SignalState {
            at_ns: signal.at_ns.load(SeqCst).into(),
            is_set: signal.is_set.load(SeqCst).into(),
            unused: 0,
        };
        Self::Owned(signals.iter().map(copy).collect())
    }

    /// The signal of that number.
    pub fn get(&self, number: u32) -> &SignalState {
        match self {
            Self::Owned(signals) => &signals[number as usize],
            Self::Mapped(signals) => &signals[number as usize],
        }
    }

    /// Sets a signal, once and for all.
    pub(super) fn set(&self, number: u32, now_ns: u64) {
        let signal = self.get(number);
        signal.at_ns.store(now_ns, SeqCst);
        signal.is_set.store(1, SeqCst);
    }

    /// The time at which it was set; `None` if it is not.
    pub(super) fn time_ns(&self, number: u32) -> Option<u64> {
        let signal = self.get(number);
        (signal.is_set.load(SeqCst) == 1).then(|| signal.at_ns.load(SeqCst))
    }
}
