//! What a scheduler is: it holds requests and says which one goes next.
//!
//! The queue (host/disk.rs) owns everything that schedulers share: tags, the
//! search for merges by extent, the dispatch loop. A scheduler is told of
//! every change and keeps only its own order. Hooks that few need have
//! defaults; `none` is the template.

use crate::block::cgroup::GroupWeights;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, Request, RequestId, Requests};
use crate::core::event::{Class, EventQueue};
use crate::core::params::{Param, Values};

/// Which request path a scheduler belongs to; decides pools and defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Before blk-mq: two pools of requests, for sync and for async ones.
    Legacy,
    /// blk-mq: one space of tags.
    MultiQueue,
}

/// A scheduler's description, from which lists, help and validation come.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    /// Kernels that had it, and the one that the model follows.
    pub kernel_versions: &'static str,
    pub summary: &'static str,
    pub family: Family,
    /// There is no elevator (`q->elevator` is NULL): requests go to the driver at once, and have
    /// the driver's tags.
    pub bypass: bool,
    /// Writeback throttling is off under it (`wbt_disable_default`), unless it is set.
    pub disables_wbt: bool,
    /// The queue searches all held requests for back merges.
    pub indexed: bool,
    pub tunables: &'static [Param],
}

/// A queue as its scheduler sees it.
#[derive(Debug)]
pub struct QueueView {
    pub facts: QueueFacts,
    /// Weights of the control groups, by [`Request::group`]; see [`Context::group`].
    pub groups: Vec<GroupWeights>,
    /// Index of the disk.
    pub(crate) disk: u8,
    /// The hook that was called last asked for dispatch.
    pub(crate) kicked: bool,
}

/// What a hook of a scheduler works on.
#[derive(Debug)]
pub struct Context<'a> {
    pub requests: &'a mut Requests,
    pub queue: &'a mut QueueView,
    pub(crate) events: &'a mut EventQueue,
}

impl Context<'_> {
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.events.now_ns()
    }

    /// Weights of a control group.
    #[inline]
    pub fn group(&self, index: u16) -> GroupWeights {
        self.queue.groups.get(index as usize).copied().unwrap_or_default()
    }

    /// Asks for [`Scheduler::timer`] at `time_ns`. Timers are not cancelled:
    /// a scheduler that changed its mind ignores the call.
    pub fn timer_at(&mut self, time_ns: u64) {
        self.events.at(time_ns, Class::SchedulerTimer, u32::from(self.queue.disk));
    }

    /// Asks for dispatch to be tried again once the hook returns.
    pub fn kick(&mut self) {
        self.queue.kicked = true;
    }
}

/// A scheduler.
pub trait Scheduler: Sized {
    const INFO: Info;

    fn new(tunables: &Values, queue: QueueFacts) -> Self;

    /// Sets defaults that depend on the queue, before the user's values.
    fn defaults(_tunables: &mut Values, _queue: QueueFacts) {}

    /// Takes a request, which it must hand out exactly once.
    fn insert(&mut self, cx: &mut Context, id: RequestId);

    /// The next request for the device, if one may go now.
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId>;

    /// May `bio` join `request`, as far as this scheduler is concerned?
    fn allow_merge(&self, _requests: &Requests, _request: RequestId, _bio: RequestId) -> bool {
        true
    }

    /// Are front merges looked for?
    fn front_merges(&self) -> bool {
        false
    }

    /// A candidate for a merge beyond those that the queue finds by extent.
    fn merge_candidate(&self, _requests: &Requests, _bio: RequestId) -> Option<(RequestId, Merge)> {
        None
    }

    /// A held request grew. For a front merge, `old_sector` is where it began.
    fn request_merged(
        &mut self,
        _cx: &mut Context,
        _id: RequestId,
        _side: Merge,
        _old_sector: u64,
    ) {
    }

    /// A held request joined another held one and is no longer on its own.
    fn requests_merged(&mut self, _cx: &mut Context, _kept: RequestId, _gone: RequestId) {}

    /// A request that was dispatched is done.
    fn complete(&mut self, _cx: &mut Context, _id: RequestId) {}

    /// A timer that it asked for.
    fn timer(&mut self, _cx: &mut Context) {}

    /// A task has ended: it will submit nothing more.
    fn exit_task(&mut self, _cx: &mut Context, _task: u32) {}

    /// How many tags of each word of the map requests like this one may use,
    /// if fewer than all.
    fn limit_depth(&self, _bio: &Request) -> Option<u32> {
        None
    }

    /// Whether that may be fewer than all even for a synchronous read; otherwise it is not asked.
    fn limits_sync_reads(&self) -> bool {
        false
    }

    /// The least that [`Self::limit_depth`] ever says.
    fn min_shallow_depth(&self) -> u32 {
        u32::MAX
    }

    /// Effective values of tunables whose default depends on the queue.
    fn effective_tunables(&self, _tunables: &mut Values) {}
}
