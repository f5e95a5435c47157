//! Jobs that share the number of I/Os by weight (`flow`), as in flow.c of fio 3.33.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::job::Job;

/// A job that is ahead without a `flow_sleep` looks again after so long; fio spins.
const LOOK_NS: u64 = 10_000;

/// The counters of one flow.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FlowCounters {
    /// I/Os of all its jobs, without the one from which fio counts.
    ios: AtomicU64,
    /// Weights of all its jobs.
    weight: AtomicU64,
}

/// Counters that several clones share: threads of one process, or processes with common memory.
#[derive(Debug, Clone)]
pub enum SharedFlow {
    Owned(Arc<FlowCounters>),
    Mapped(&'static FlowCounters),
}

impl Deref for SharedFlow {
    type Target = FlowCounters;

    fn deref(&self) -> &FlowCounters {
        match self {
            Self::Owned(counters) => counters,
            Self::Mapped(counters) => counters,
        }
    }
}

/// The numbers of all flows, each once.
pub fn flow_ids(jobs: &[Job]) -> Vec<u64> {
    let mut ids: Vec<u64> = jobs.iter().filter_map(|job| job.flow).map(|flow| flow.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The weight of a flow's clones together.
pub fn flow_weight(jobs: &[Job], id: u64) -> u64 {
    let clones = |job: &Job| {
        job.flow.filter(|flow| flow.id == id).map(|flow| flow.weight * u64::from(job.numjobs))
    };
    jobs.iter().filter_map(clones).sum()
}

/// The flows of a simulation.
#[derive(Debug)]
pub struct Flows(Vec<(u64, SharedFlow)>);

impl Flows {
    pub fn new(jobs: &[Job]) -> Self {
        let flow = |id| {
            let counters = FlowCounters::default();
            counters.set_weight(flow_weight(jobs, id));
            (id, SharedFlow::Owned(Arc::new(counters)))
        };
        Self(flow_ids(jobs).into_iter().map(flow).collect())
    }

    /// The counters of a flow, for one more clone.
    pub fn counters(&self, id: u64) -> Option<SharedFlow> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, flow)| flow.clone())
    }
}

/// The counters of a snapshot: a copy for each that is shared, found by the original.
#[derive(Debug, Default)]
pub(crate) struct FlowCopies(Vec<(Arc<FlowCounters>, Arc<FlowCounters>)>);

impl FlowCopies {
    /// The snapshot's counters in place of these. Memory common to processes stays common.
    fn of(&mut self, shared: &SharedFlow) -> SharedFlow {
        let SharedFlow::Owned(original) = shared else { return shared.clone() };
        let known = self.0.iter().find(|(other, _)| Arc::ptr_eq(other, original));
        if let Some((_, copy)) = known {
            return SharedFlow::Owned(copy.clone());
        }
        let copy = Arc::new(FlowCounters {
            ios: original.ios.load(SeqCst).into(),
            weight: original.weight.load(SeqCst).into(),
        });
        self.0.push((original.clone(), copy.clone()));
        SharedFlow::Owned(copy)
    }
}

impl FlowCounters {
    /// Sets the weight of all jobs, before any begins.
    pub fn set_weight(&self, weight: u64) {
        self.weight.store(weight, SeqCst);
    }
}

/// One clone's share.
#[derive(Debug, Clone)]
pub(super) struct FlowShare {
    shared: SharedFlow,
    weight: u64,
    sleep_ns: u64,
    ios: u64,
    left: bool,
}

impl FlowShare {
    pub fn new(shared: SharedFlow, weight: u64, sleep_ns: u64) -> Self {
        Self { shared, weight, sleep_ns, ios: 0, left: false }
    }

    /// Shares the counters of a snapshot from now on.
    pub fn join_snapshot(&mut self, copies: &mut FlowCopies) {
        self.shared = copies.of(&self.shared);
    }

    /// Takes part with one more I/O; or the time until which the clone holds back.
    pub fn take(&mut self, now_ns: u64) -> Result<(), u64> {
        let total = self.shared.ios.load(SeqCst) + 1;
        let weight = self.shared.weight.load(SeqCst).max(1);
        let ahead = self.ios as f64 / total as f64 > self.weight as f64 / weight as f64;
        if ahead {
            return Err(now_ns.saturating_add(if self.sleep_ns > 0 {
                self.sleep_ns
            } else {
                LOOK_NS
            }));
        }
        self.shared.ios.fetch_add(1, SeqCst);
        self.ios += 1;
        Ok(())
    }

    /// Leaves the flow to the others.
    pub fn leave(&mut self) {
        if !std::mem::replace(&mut self.left, true) {
            self.shared.ios.fetch_sub(self.ios, SeqCst);
            self.shared.weight.fetch_sub(self.weight, SeqCst);
        }
    }
}
