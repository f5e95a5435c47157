//! The policy trait: an I/O controller above or beside the scheduler that decides when a bio may go
//! on (the kernel's `struct rq_qos_ops`, blk-throttle and dm-ioband).
//!
//! A queue has a list of policies, empty by default. Those *above* see every bio before merging
//! (dm-ioband, blk-throttle); those *beside* see a bio that did not merge, before it gets a tag
//! (iocost, iolatency, writeback throttling: the kernel's rqos).

use std::sync::Arc;

use crate::block::cgroup::Cgroups;
use crate::block::queue_usage::QueueUsage;
use crate::block::request::{RequestId, Requests};
use crate::core::event::{Class, EventQueue};

/// The place of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Before merging.
    Above,
    /// After an attempt to merge, before a tag is taken.
    Beside,
}

/// A policy's decision about a bio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It proceeds.
    Pass,
    /// The policy keeps it; the submitter continues.
    Hold,
    /// The policy keeps it and the submitter sleeps until it is released.
    Sleep,
}

/// The context in which a queue calls a policy's hook.
#[derive(Debug)]
pub struct PolicyContext<'a> {
    pub requests: &'a mut Requests,
    /// Commands in the device, and requests that wait for a tag.
    pub in_flight: u32,
    pub waiting_for_tag: u32,
    pub device_depth: u32,
    pub nr_requests: u32,
    pub volatile_cache: bool,
    /// Time at which a task that dirties pages was last held back.
    pub dirtier_paused_ns: Option<u64>,
    pub rotational: bool,
    pub(crate) usage: &'a mut QueueUsage,
    pub(crate) events: &'a mut EventQueue,
    pub(crate) disk: u8,
    pub(crate) released: &'a mut Vec<RequestId>,
}

impl PolicyContext<'_> {
    pub fn now_ns(&self) -> u64 {
        self.events.now_ns()
    }

    /// Asks for [`Policy::timer`] at `time_ns`.
    pub fn timer_at(&mut self, time_ns: u64) {
        self.events.at(time_ns, Class::PolicyTimer, u32::from(self.disk));
    }

    /// Releases a bio that was held or whose submitter sleeps.
    pub fn release(&mut self, bio: RequestId) {
        self.released.push(bio);
    }
}

/// A file of a control group that was written while the queue runs.
#[derive(Debug, Clone)]
pub struct GroupChange {
    /// All groups, with the new value.
    pub cgroups: Arc<Cgroups>,
    pub group: u16,
    /// The name of the file.
    pub attribute: String,
}

/// Copies a policy behind its trait; whatever implements [`Policy`] and `Clone` has it.
pub trait ClonePolicy {
    fn boxed(&self) -> Box<dyn Policy>;
}

impl<P: Policy + Clone + 'static> ClonePolicy for P {
    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Policy> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}

/// A policy. It is `Clone`, because a snapshot of a machine has policies of its own.
pub trait Policy: ClonePolicy + std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    fn placement(&self) -> Placement;

    /// Decides about a bio (`rq_qos_throttle`). A bio that is not passed must be released later.
    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission;

    /// A bio joined a request and will not ask again (`rq_qos_merge`).
    fn merged(&mut self, _cx: &mut PolicyContext, _bio: RequestId, _request: RequestId) {}

    /// A request went to the device (`rq_qos_issue`).
    fn issued(&mut self, _cx: &mut PolicyContext, _request: RequestId) {}

    /// A request is done; the bios merged into it are on its chain (`rq_qos_done`).
    fn completed(&mut self, _cx: &mut PolicyContext, _request: RequestId) {}

    /// A timer is due, this policy's or another's: check the time.
    fn timer(&mut self, _cx: &mut PolicyContext) {}

    /// It is put before a queue that has been in use until now.
    fn begin(&mut self, _now_ns: u64) {}

    /// A control group's file was written; one of its own takes effect as in the kernel.
    fn group_changed(&mut self, _cx: &mut PolicyContext, _changed: &GroupChange) {}

    /// True if the bios that it releases are submitted within one plug.
    fn plugs_what_it_releases(&self) -> bool {
        false
    }
}
