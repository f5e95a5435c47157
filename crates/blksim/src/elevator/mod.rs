//! The elevators (I/O schedulers), and the one list of them.
//!
//! To add one, write a file beside this one that implements [`Scheduler`], and add its line to
//! `schedulers!` below. Everything else follows from the list and from the scheduler's
//! [`Info`]; the conformance suite runs over [`ALL`], so it covers the new one at once.
//!
//! Rare hooks have defaults. A scheduler with tunables should have [`Scheduler::retune`], without which a
//! store while it runs has no effect; `tests/suite/live` compares the two.
//!
//! `rustfmt` does not follow modules that a macro declares, so `cargo fmt` skips the schedulers'
//! files. A test checks their format and names the command.

pub(crate) mod choose_req;
pub(crate) mod decaying_mean;
pub mod fifo;
pub mod holding;
pub(crate) mod idle_timer;
pub mod registered;
pub mod scheduler;
pub mod sort_list;

use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, Request, RequestId, Requests};
use crate::core::params::Values;
use crate::devices::device::Facts;
use crate::elevator::holding::Holding;
use crate::elevator::registered::Registered;
use crate::elevator::scheduler::{Context, Info, Scheduler};

/// Generates the enum through which all schedulers are called without
/// indirection, and the list of their descriptions.
macro_rules! schedulers {
    ($(mod $module:ident: $($variant:ident($type:ty)),+;)*) => {
        $(mod $module;)*

        /// Any scheduler. One exists for each disk, so its size does not matter.
        // A separate tag is faster to read than one hidden in a field of a variant.
        #[derive(Debug, Clone)]
        #[repr(u8)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler {
            $($($variant($type),)+)*
            Registered(Registered),
        }

        /// Descriptions of the simulator's own schedulers.
        pub const ALL: &[&Info] = &[$($(&<$type as Scheduler>::INFO,)+)*];

        /// The scheduler called `name`.
        pub fn build(name: &str, tunables: &Values, queue: QueueFacts) -> Option<AnyScheduler> {
            $($(if name == <$type as Scheduler>::INFO.name {
                return Some(AnyScheduler::$variant(<$type as Scheduler>::new(tunables, queue)));
            })+)*
            Registered::begin(name, queue).map(AnyScheduler::Registered)
        }

        /// The default tunables of a scheduler, on this queue.
        pub fn defaults(info: &Info, queue: QueueFacts) -> Values {
            let mut tunables = Values::defaults(info.tunables);
            $($(if info.name == <$type as Scheduler>::INFO.name {
                <$type as Scheduler>::defaults(&mut tunables, queue);
            })+)*
            tunables
        }

        macro_rules! each {
            ($self:ident, $s:ident => $call:expr) => {
                match $self {
                    $($(AnyScheduler::$variant($s) => $call,)+)*
                    AnyScheduler::Registered($s) => $call,
                }
            };
        }
    };
}

schedulers! {
    mod none: NoScheduler(none::NoScheduler);
    mod noop: Noop(noop::Noop);
    mod deadline: Deadline(deadline::Deadline);
    mod mq_deadline: MqDeadline(mq_deadline::MqDeadline);
    mod anticipatory: Anticipatory(anticipatory::Anticipatory);
    mod cfq: Cfq(cfq::Cfq<true>), OldCfq(cfq::Cfq<false>);
    mod bfq: Bfq(bfq::Bfq);
    mod kyber: Kyber(kyber::Kyber), Kyber412(kyber::Kyber412);
}

/// The scheduler that the kernel chooses for a device (`elevator_get_default` of
/// `block/elevator.c`, Linux 6.1).
pub fn default_for(facts: &Facts) -> &'static str {
    if facts.nr_hw_queues > 1 || facts.bio_based { "none" } else { "mq-deadline" }
}

/// Descriptions of all schedulers: the simulator's own, then the registered ones.
pub fn all() -> Vec<&'static Info> {
    ALL.iter().copied().chain(registered::all()).collect()
}

/// The description of the scheduler called `name`.
pub fn info(name: &str) -> Option<&'static Info> {
    ALL.iter().copied().find(|info| info.name == name).or_else(|| registered::info(name))
}

// The hooks that every request takes are separate functions: in a single one, each call would save
// the registers that the largest needs.

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

    pub fn must_queue(&mut self, bio: &Request) -> bool {
        each!(self, s => s.must_queue(bio))
    }

    pub fn limits_sync_reads(&self) -> bool {
        each!(self, s => s.limits_sync_reads())
    }

    pub fn min_shallow_depth(&self) -> u32 {
        each!(self, s => s.min_shallow_depth())
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        fn of<S: Scheduler>(_: &S) -> &'static str {
            S::INFO.name
        }
        match self {
            Self::Registered(scheduler) => scheduler.name(),
            _ => each!(self, s => of(s)),
        }
    }

    /// Why a registered scheduler was set aside.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Registered(scheduler) => scheduler.failure(),
            _ => None,
        }
    }

    pub fn retune(&mut self, cx: &mut Context, tunables: &Values, name: &str) {
        each!(self, s => s.retune(cx, tunables, name));
    }

    pub fn depth_updated(&mut self, cx: &mut Context, before: QueueFacts) {
        each!(self, s => s.depth_updated(cx, before));
    }

    pub fn regroup(&mut self, cx: &mut Context) {
        each!(self, s => s.regroup(cx));
    }

    pub fn describe(&self, requests: &Requests) -> Option<Holding> {
        each!(self, s => s.describe(requests))
    }

    pub fn effective_tunables(&self, tunables: &mut Values) {
        each!(self, s => s.effective_tunables(tunables));
    }
}
