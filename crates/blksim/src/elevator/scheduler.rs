//! The elevator trait: a scheduler holds requests and chooses the next one (the kernel's `struct
//! elevator_type` and `struct elevator_mq_ops`).
//!
//! The queue (`block/disk.rs`) owns everything that schedulers share: tags, the search for merges
//! by extent, the dispatch loop. It tells a scheduler of every change; the scheduler keeps only its
//! own order. Rare hooks have defaults; `none` is the template.

use crate::block::cgroup::GroupWeights;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, Request, RequestId, Requests};
use crate::core::event::{Class, EventQueue};
use crate::core::params::{Param, Values};
use crate::elevator::holding::Holding;

/// The request path of a scheduler, which decides about tags and defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Before blk-mq: two pools of requests, sync and async (`struct request_list`).
    Legacy,
    /// blk-mq: one sbitmap of tags.
    MultiQueue,
}

/// A scheduler's description, from which lists, help and validation come.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    /// Kernels that had it, and the version that the model follows.
    pub kernel_versions: &'static str,
    pub summary: &'static str,
    pub family: Family,
    /// There is no elevator (`q->elevator` is NULL): requests go to the driver at once and have the
    /// driver's tags.
    pub bypass: bool,
    /// It turns writeback throttling off (`wbt_disable_default`), unless the user sets that.
    pub disables_wbt: bool,
    /// The queue searches all held requests for back merges.
    pub indexed: bool,
    /// It has a queue of its own for each hardware queue, and a lock for each. Otherwise any
    /// hardware queue dispatches for all (`QUEUE_FLAG_SQ_SCHED`).
    pub per_hctx: bool,
    pub tunables: &'static [Param],
}

/// A queue as its scheduler sees it.
#[derive(Debug, Clone)]
pub struct QueueView {
    pub facts: QueueFacts,
    /// Weights of the control groups, by [`Request::group`]; see [`Context::group`].
    pub groups: Vec<GroupWeights>,
    /// Index of the disk.
    pub(crate) disk: u8,
    /// The hardware queue that dispatches, or of the request that is inserted.
    pub(crate) hctx: usize,
    /// True if the last hook asked for dispatch, and for which hardware queues, if it said so.
    pub(crate) kicked: bool,
    pub(crate) kicked_hctxs: Vec<usize>,
}

impl QueueView {
    pub(crate) fn new(facts: QueueFacts, disk: u8) -> Self {
        let (groups, kicked_hctxs) = (Vec::new(), Vec::new());
        Self { facts, groups, disk, hctx: 0, kicked: false, kicked_hctxs }
    }

    /// Asks one hardware queue to dispatch again after the hook returns (`blk_mq_run_hw_queue`).
    pub fn kick_hctx(&mut self, hctx: usize) {
        self.kicked = true;
        if self.facts.nr_hctxs > 1 {
            self.kicked_hctxs.push(hctx);
        }
    }
}

/// The context in which a queue calls a scheduler's hook.
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

    /// Asks for [`Scheduler::timer`] at `time_ns`. Timers are not cancelled: a scheduler that no
    /// longer needs one ignores the call.
    pub fn timer_at(&mut self, time_ns: u64) {
        self.events.at(time_ns, Class::SchedulerTimer, u32::from(self.queue.disk));
    }

    /// Asks the queue to dispatch again after the hook returns (`blk_mq_run_hw_queues`).
    pub fn kick(&mut self) {
        self.queue.kicked = true;
    }
}

/// A scheduler. It is `Clone`, because a snapshot of a machine has a scheduler of its own.
pub trait Scheduler: Clone {
    const INFO: Info;

    fn new(tunables: &Values, queue: QueueFacts) -> Self;

    /// Sets defaults that depend on the queue, before the user's values.
    fn defaults(_tunables: &mut Values, _queue: QueueFacts) {}

    /// Takes a request, which it must dispatch exactly once (`insert_requests`).
    fn insert(&mut self, cx: &mut Context, id: RequestId);

    /// The next request for the device, if one may go now (`dispatch_request`).
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId>;

    /// True if this scheduler lets `bio` join `request` (`allow_merge`).
    fn allow_merge(&self, _requests: &Requests, _request: RequestId, _bio: RequestId) -> bool {
        true
    }

    /// True if the queue is to look for front merges.
    fn front_merges(&self) -> bool {
        false
    }

    /// A candidate for a merge beyond those that the queue finds by extent (`bio_merge`).
    fn merge_candidate(&self, _requests: &Requests, _bio: RequestId) -> Option<(RequestId, Merge)> {
        None
    }

    /// A held request grew (`request_merged`). For a front merge, `old_sector` is where it began.
    fn request_merged(
        &mut self,
        _cx: &mut Context,
        _id: RequestId,
        _side: Merge,
        _old_sector: u64,
    ) {
    }

    /// A held request joined another held one and is gone (`requests_merged`).
    fn requests_merged(&mut self, _cx: &mut Context, _kept: RequestId, _gone: RequestId) {}

    /// A dispatched request is done (`completed_request`).
    fn complete(&mut self, _cx: &mut Context, _id: RequestId) {}

    /// A timer of this scheduler is due.
    fn timer(&mut self, _cx: &mut Context) {}

    /// A task has ended and will submit no more (`exit_task`, `exit_icq`).
    fn exit_task(&mut self, _cx: &mut Context, _task: u32) {}

    /// Legacy: true if the scheduler waits for this bio's task, which then takes a request though the
    /// others sleep for one (`elevator_may_queue_fn`).
    fn must_queue(&mut self, _bio: &Request) -> bool {
        false
    }

    /// The shallow depth of requests like this one: how many tags of each word of the sbitmap they
    /// may use, if fewer than all (`limit_depth`).
    fn limit_depth(&self, _bio: &Request) -> Option<u32> {
        None
    }

    /// True if [`Self::limit_depth`] may limit synchronous reads; otherwise it is not asked for
    /// them.
    fn limits_sync_reads(&self) -> bool {
        false
    }

    /// The least depth that [`Self::limit_depth`] ever returns (`sbitmap_queue_min_shallow_depth`).
    fn min_shallow_depth(&self) -> u32 {
        u32::MAX
    }

    /// The user stored tunable `name` while it runs; `tunables` has the new value. Whatever a store to
    /// sysfs does not change stays as it is: the deadlines of held requests, for example.
    fn retune(&mut self, _cx: &mut Context, _tunables: &Values, _name: &str) {}

    /// `nr_requests` was changed while the queue is empty (`depth_updated`). The context has the new
    /// facts of the queue, `before` the old ones.
    fn depth_updated(&mut self, _cx: &mut Context, _before: QueueFacts) {}

    /// The weight of a control group was changed; see [`Context::group`].
    fn regroup(&mut self, _cx: &mut Context) {}

    /// How it holds its requests, for a picture. `None` for the flat list that the queue knows.
    fn describe(&self, _requests: &Requests) -> Option<Holding> {
        None
    }

    /// Effective values of tunables whose default depends on the queue.
    fn effective_tunables(&self, _tunables: &mut Values) {}
}
