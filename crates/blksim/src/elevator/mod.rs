//! The schedulers, and the one list of them.
//!
//! To add one: a file beside this one that implements [`Scheduler`], its
//! `mod` line, and its line in `schedulers!` below. The conformance suite runs
//! over [`ALL`], so it is covered at once.

mod anticipatory;
mod bfq;
mod cfq;
pub(crate) mod choose_req;
mod deadline;
pub(crate) mod decaying_mean;
pub mod fifo;
mod idle_timer;
mod kyber;
mod mq_deadline;
mod none;
mod noop;
pub mod scheduler;
pub mod sort_list;

use crate::block::queue_facts::QueueFacts;
use crate::block::request::Merge;
use crate::block::request::{Request, RequestId, Requests};
use crate::core::params::Values;
use crate::elevator::scheduler::{Context, Info, Scheduler};

/// Generates the enum through which all schedulers are called without
/// indirection, and the list of their descriptions.
macro_rules! schedulers {
    ($($variant:ident($type:ty),)*) => {
        /// Any scheduler. One exists for each disk, so its size does not matter.
        // A tag of its own is faster to tell than one hidden in a field of one of them.
        #[derive(Debug)]
        #[repr(u8)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler {
            $($variant($type),)*
        }

        /// Descriptions of all schedulers.
        pub const ALL: &[&Info] = &[$(&<$type as Scheduler>::INFO,)*];

        /// The scheduler called `name`.
        pub fn build(name: &str, tunables: &Values, queue: QueueFacts) -> Option<AnyScheduler> {
            $(if name == <$type as Scheduler>::INFO.name {
                return Some(AnyScheduler::$variant(<$type as Scheduler>::new(tunables, queue)));
            })*
            None
        }

        /// The default tunables of a scheduler, on this queue.
        pub fn defaults(info: &Info, queue: QueueFacts) -> Values {
            let mut tunables = Values::defaults(info.tunables);
            $(if info.name == <$type as Scheduler>::INFO.name {
                <$type as Scheduler>::defaults(&mut tunables, queue);
            })*
            tunables
        }

        macro_rules! each {
            ($self:ident, $s:ident => $call:expr) => {
                match $self { $(AnyScheduler::$variant($s) => $call,)* }
            };
        }
    };
}

schedulers! {
    NoScheduler(none::NoScheduler),
    Noop(noop::Noop),
    Deadline(deadline::Deadline),
    MqDeadline(mq_deadline::MqDeadline),
    Anticipatory(anticipatory::Anticipatory),
    Cfq(cfq::Cfq<true>),
    OldCfq(cfq::Cfq<false>),
    Bfq(bfq::Bfq),
    Kyber(kyber::Kyber),
    Kyber412(kyber::Kyber412),
}

/// The description of the scheduler called `name`.
pub fn info(name: &str) -> Option<&'static Info> {
    ALL.iter().copied().find(|info| info.name == name)
}

// The hooks that every request takes are functions of their own: put together in one, each of them
// would save the registers that the largest needs.

#[inline(never)]
fn insert(scheduler: &mut impl Scheduler, cx: &mut Context, id: RequestId) {
    scheduler.insert(cx, id);
}

#[inline(never)]
fn dispatch(scheduler: &mut impl Scheduler, cx: &mut Context) -> Option<RequestId> {
    scheduler.dispatch(cx)
}

#[inline(never)]
fn complete(scheduler: &mut impl Scheduler, cx: &mut Context, id: RequestId) {
    scheduler.complete(cx, id);
}

#[inline(never)]
fn limit_depth(scheduler: &impl Scheduler, bio: &Request) -> Option<u32> {
    scheduler.limit_depth(bio)
}

impl AnyScheduler {
    #[inline(always)]
    pub fn insert(&mut self, cx: &mut Context, id: RequestId) {
        each!(self, s => insert(s, cx, id));
    }

    #[inline(always)]
    pub fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        each!(self, s => dispatch(s, cx))
    }

    #[inline]
    pub fn allow_merge(&self, requests: &Requests, request: RequestId, bio: RequestId) -> bool {
        each!(self, s => s.allow_merge(requests, request, bio))
    }

    #[inline]
    pub fn front_merges(&self) -> bool {
        each!(self, s => s.front_merges())
    }

    #[inline]
    pub fn merge_candidate(
        &self,
        requests: &Requests,
        bio: RequestId,
    ) -> Option<(RequestId, Merge)> {
        each!(self, s => s.merge_candidate(requests, bio))
    }

    pub fn request_merged(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        side: Merge,
        old_sector: u64,
    ) {
        each!(self, s => s.request_merged(cx, id, side, old_sector));
    }

    pub fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        each!(self, s => s.requests_merged(cx, kept, gone));
    }

    #[inline(always)]
    pub fn complete(&mut self, cx: &mut Context, id: RequestId) {
        each!(self, s => complete(s, cx, id));
    }

    pub fn timer(&mut self, cx: &mut Context) {
        each!(self, s => s.timer(cx));
    }

    pub fn exit_task(&mut self, cx: &mut Context, task: u32) {
        each!(self, s => s.exit_task(cx, task));
    }

    #[inline]
    pub fn limit_depth(&self, bio: &Request) -> Option<u32> {
        each!(self, s => limit_depth(s, bio))
    }

    pub fn limits_sync_reads(&self) -> bool {
        each!(self, s => s.limits_sync_reads())
    }

    pub fn min_shallow_depth(&self) -> u32 {
        each!(self, s => s.min_shallow_depth())
    }

    pub fn effective_tunables(&self, tunables: &mut Values) {
        each!(self, s => s.effective_tunables(tunables));
    }
}
