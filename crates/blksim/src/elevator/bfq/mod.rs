//! `bfq`: budget fair queueing. Each process has a queue. Queues are served one at a time, each for
//! a budget of sectors, in an order that serves every queue (and every control group) in proportion
//! to its weight.
//!
//! * [`hierarchy`], [`red_black`]: B-WF2Q+ over queues and groups.
//! * [`budget`]: slots, their budgets, charging and end.
//! * [`rate`]: the device's peak rate, on which budgets depend.
//! * [`idle`]: idling for the queue in service.
//! * [`inject`]: requests of other queues while it idles.
//! * [`weight_raising`]: `low_latency`, `wr_coeff`.
//! * [`merge`]: the queue of each request; queues of cooperating processes.
//! * [`position`]: the next sectors of queues.
//! * [`saved`]: the state that a process's queue keeps while it shares another.
//! * [`depths`]: the tags that requests may use (`limit_depth`).
//! * [`describe`]: the picture of all that.
//! * [`stores`]: tunables that are stored while it runs.
//! * [`requests`]: arrival and departure of requests within a queue.
//!
//! Kernel: `block/bfq-iosched.c`, `block/bfq-wf2q.c`, since 4.12; follows 6.1.
//!
//! Simplified: one actuator; no metadata marks; no requeues. A bio looks for cooperating queues
//! when it becomes a request, not when merging is tried.
//!
//! Parameters: `slice_idle`, `slice_idle_us`, `low_latency`, `timeout_sync`,
//! `max_budget`, `strict_guarantees`, `fifo_expire_sync`, `fifo_expire_async`,
//! `back_seek_max`, `back_seek_penalty`.
//!
//! References: P. Valente and F. Checconi, "High Throughput Disk Scheduling
//! with Fair Bandwidth Distribution", IEEE Transactions on Computers 2010;
//! P. Valente and A. Avanzini, "Evolution of the BFQ Storage-I/O Scheduler",
//! MST 2015; the kernel's `Documentation/block/bfq-iosched.rst`.

mod budget;
mod depths;
mod describe;
mod hierarchy;
mod idle;
mod inject;
mod merge;
mod position;
mod queue;
mod rate;
mod red_black;
mod requests;
mod saved;
mod stores;
mod weight_raising;

use self::depths::Depths;
use self::hierarchy::{GroupId, Hierarchy, QueueId};
use self::position::Positions;
use self::queue::{Process, Queue};
use self::rate::PeakRate;
use self::weight_raising::Burst;
use super::choose_req::BackSeek;
use super::idle_timer::IdleTimer;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, Request, RequestId, Requests};
use crate::core::params::{Param, Unit, Values};
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

/// Largest time that the kernel's tunables take: `INT_MAX` ms.
const MAX_MS: u64 = i32::MAX as u64;

/// Async queues of a group: eight levels of two classes, and IDLE.
const NR_ASYNC: usize = 17;

#[derive(Debug, Clone, Copy)]
struct Settings {
    slice_idle_ns: i64,
    low_latency: bool,
    timeout_ns: i64,
    /// Maximum budget; 0 follows the peak rate.
    max_budget: u64,
    strict: bool,
    /// Of async and of sync requests.
    fifo_expire_ns: [u64; 2],
    back_seek: BackSeek,
    rotational: bool,
    /// Length of the kernel's tick.
    jiffy_ns: i64,
    /// Computing takes no time.
    zero_cpu_time: bool,
}

impl Settings {
    fn new(tunables: &Values, queue: &QueueFacts) -> Self {
        let slice_idle_ns = match tunables.get("slice_idle_us") {
            us if us < u64::from(u32::MAX) => us * 1000,
            _ => tunables.get_ns("slice_idle"),
        };
        let jiffy_ns = queue.jiffy_ns as i64;
        Self {
            slice_idle_ns: slice_idle_ns as i64,
            low_latency: tunables.flag("low_latency"),
            timeout_ns: timeout_ns(tunables.get_ns("timeout_sync") as i64, jiffy_ns),
            max_budget: tunables.get("max_budget"),
            strict: tunables.flag("strict_guarantees"),
            fifo_expire_ns: [
                tunables.get_ns("fifo_expire_async"),
                tunables.get_ns("fifo_expire_sync"),
            ],
            back_seek: BackSeek {
                max_sectors: tunables.get("back_seek_max") * 2,
                penalty: tunables.get("back_seek_penalty"),
            },
            rotational: queue.rotational,
            jiffy_ns,
            zero_cpu_time: queue.zero_cpu_time,
        }
    }

    /// The moment of the last tick, for times that the kernel keeps in jiffies.
    #[inline]
    fn tick(&self, now_ns: i64) -> i64 {
        now_ns - now_ns.rem_euclid(self.jiffy_ns)
    }

    /// A span in whole jiffies.
    #[inline]
    fn jiffies(&self, span_ns: i64) -> i64 {
        span_ns.saturating_add(self.jiffy_ns - 1) / self.jiffy_ns * self.jiffy_ns
    }
}

const DEFAULT_TIMEOUT_NS: i64 = 125 * queue::MS;

/// The time slice in jiffies: an eighth of a second, rounded down, or the tunable, rounded up.
fn timeout_ns(timeout_sync_ns: i64, jiffy_ns: i64) -> i64 {
    let rounding = if timeout_sync_ns == DEFAULT_TIMEOUT_NS { 0 } else { jiffy_ns - 1 };
    (timeout_sync_ns.saturating_add(rounding) / jiffy_ns).max(1) * jiffy_ns
}

#[derive(Debug, Clone)]
pub struct Bfq {
    settings: Settings,
    depths: Depths,
    next_tick_ns: i64,
    hierarchy: Hierarchy,
    queues: Vec<Queue>,
    free: Vec<QueueId>,
    processes: Vec<Process>,
    async_queues: Vec<[Option<QueueId>; NR_ASYNC]>,
    in_service: Option<QueueId>,
    /// The device idles for the queue in service.
    waiting: bool,
    waiting_since_ns: i64,
    idle_timer: IdleTimer,
    slot_began_ns: i64,
    /// Busy queues by class, and raised ones (`wr_busy_queues`).
    busy: [u32; 3],
    nr_raised: u32,
    nr_queued: u32,
    in_device: u32,
    /// Whether the device queues commands; unknown at first (`hw_tag`).
    queueing: Option<bool>,
    queueing_samples: u32,
    max_in_device: u32,
    fast: bool,
    rate: PeakRate,
    max_budget: u64,
    budgets_assigned: u64,
    /// End of the last request of the queue in service.
    slot_last_sector: u64,
    last_completed: Option<QueueId>,
    injection: inject::Injection,
    burst: Burst,
    positions: Positions,
    /// The queue last created in each group, for merging queues that start together.
    last_created: Vec<Option<QueueId>>,
}

impl Scheduler for Bfq {
    const INFO: Info = Info {
        name: "bfq",
        kernel_versions: "since 4.12; follows 6.1",
        summary: "shares bandwidth by weight among processes and groups; favours interactive ones",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: true,
        indexed: true,
        per_hctx: false,
        tunables: &[
            Param::new(
                "slice_idle",
                Unit::Milliseconds,
                8,
                (0, MAX_MS),
                "how long the device waits for the next request of a queue",
            ),
            Param::new(
                "slice_idle_us",
                Unit::Microseconds,
                u32::MAX as u64,
                (0, u32::MAX as u64),
                "the same in microseconds; the default stands for slice_idle",
            ),
            Param::flag(
                "low_latency",
                1,
                "raise the weight of interactive and soft real-time queues",
            ),
            Param::new(
                "timeout_sync",
                Unit::Milliseconds,
                125,
                (1, MAX_MS),
                "longest time that a queue is served at once",
            ),
            Param::new(
                "max_budget",
                Unit::Sectors,
                0,
                (0, i32::MAX as u64),
                "most sectors that a queue is served at once; 0: from the peak rate",
            ),
            Param::flag("strict_guarantees", 0, "always wait, and serve one request at a time"),
            Param::new(
                "fifo_expire_sync",
                Unit::Milliseconds,
                125,
                (1, MAX_MS),
                "deadline of a sync request",
            ),
            Param::new(
                "fifo_expire_async",
                Unit::Milliseconds,
                250,
                (1, MAX_MS),
                "deadline of an async request",
            ),
            Param::new(
                "back_seek_max",
                Unit::Kibibytes,
                16 * 1024,
                (0, i32::MAX as u64),
                "farthest seek backwards within a sweep",
            ),
            Param::new(
                "back_seek_penalty",
                Unit::Count,
                2,
                (1, i32::MAX as u64),
                "cost of a seek backwards, relative to one forwards",
            ),
        ],
    };

    fn new(tunables: &Values, queue: QueueFacts) -> Self {
        let settings = Settings::new(tunables, &queue);
        let jiffy_ns = settings.jiffy_ns;
        Self {
            settings,
            depths: Depths::new(&queue, queue.initial_requests),
            next_tick_ns: 0,
            hierarchy: Hierarchy::new(queue.behaviours.one_busy_group_is_symmetric),
            queues: Vec::new(),
            free: Vec::new(),
            processes: Vec::new(),
            async_queues: Vec::new(),
            in_service: None,
            waiting: false,
            waiting_since_ns: 0,
            idle_timer: IdleTimer::default(),
            slot_began_ns: 0,
            busy: [0; 3],
            nr_raised: 0,
            nr_queued: 0,
            in_device: 0,
            queueing: None,
            queueing_samples: 0,
            max_in_device: 0,
            fast: !queue.rotational,
            rate: PeakRate::new(queue.rotational, jiffy_ns),
            max_budget: match settings.max_budget {
                0 => budget::DEFAULT_MAX_BUDGET,
                sectors => sectors,
            },
            budgets_assigned: 0,
            slot_last_sector: 0,
            last_completed: None,
            injection: inject::Injection::default(),
            burst: Burst::new(),
            positions: Positions::default(),
            last_created: Vec::new(),
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let now_ns = self.look_at_clock(cx);
        let q = self.queue_of_request(cx, id, now_ns);
        self.arrive(cx, q, id, now_ns);
        self.release_forgotten();
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        if self.nr_busy() == 0 || (self.settings.strict && self.in_device > 0) {
            return None;
        }
        let now_ns = self.look_at_clock(cx);
        let chosen = self.choose(cx, now_ns);
        let sent = chosen.map(|q| self.send(cx, q, now_ns));
        self.release_forgotten();
        sent
    }

    /// Merges only within a process's queue, and only requests of a kind.
    #[inline]
    fn allow_merge(&self, requests: &Requests, request: RequestId, bio: RequestId) -> bool {
        let (held, new) = (&requests[request], &requests[bio]);
        held.priority == new.priority
            && held.flags.sync == new.flags.sync
            && self.queue_for_merge(new) == Some(held.queue)
    }

    #[inline]
    fn front_merges(&self) -> bool {
        true
    }

    fn request_merged(&mut self, cx: &mut Context, id: RequestId, side: Merge, old_sector: u64) {
        if side == Merge::Front {
            self.moved(cx.requests, id, old_sector);
        }
    }

    fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        self.look_at_clock(cx);
        self.absorb(cx, kept, gone);
        self.release_forgotten();
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        let now_ns = self.look_at_clock(cx);
        if self.finish(cx, id, now_ns) {
            cx.kick();
        }
        self.release_forgotten();
    }

    fn timer(&mut self, cx: &mut Context) {
        if self.idle_timer.rings(cx) {
            let now_ns = self.look_at_clock(cx);
            self.waited_long_enough(cx, now_ns);
            self.release_forgotten();
            if self.nr_queued > 0 {
                cx.kick();
            }
        }
    }

    fn exit_task(&mut self, cx: &mut Context, task: u32) {
        self.look_at_clock(cx);
        self.process_ended(cx, task);
        self.release_forgotten();
    }

    #[inline]
    fn limit_depth(&self, bio: &Request) -> Option<u32> {
        self.limit_depth(bio)
    }

    /// Requests of a queue above its share of tags.
    fn limits_sync_reads(&self) -> bool {
        true
    }

    fn min_shallow_depth(&self) -> u32 {
        1
    }

    fn retune(&mut self, cx: &mut Context, tunables: &Values, name: &str) {
        self.look_at_clock(cx);
        self.store(tunables, name, &cx.queue.facts);
    }

    fn depth_updated(&mut self, cx: &mut Context, before: QueueFacts) {
        self.depths = Depths::new(&cx.queue.facts, before.nr_requests);
    }

    /// A group's weight takes effect when it is next entered (`bfq_group_set_weight`).
    fn regroup(&mut self, cx: &mut Context) {
        for group in 1..self.hierarchy.nr_groups() {
            self.hierarchy.set_weight(group, bfq_weight(cx, group));
        }
    }

    fn describe(&self, requests: &Requests) -> Option<Holding> {
        Some(self.description(requests))
    }

    fn effective_tunables(&self, tunables: &mut Values) {
        tunables.put("slice_idle", (self.settings.slice_idle_ns / queue::MS) as u64);
        tunables.put("slice_idle_us", (self.settings.slice_idle_ns / 1000) as u64);
    }
}

fn bfq_weight(cx: &Context, group: GroupId) -> u64 {
    u64::from(cx.group(group).bfq.clamp(1, 1000))
}

impl Bfq {
    /// The time; many rules see ticks only.
    #[inline]
    fn look_at_clock(&mut self, cx: &Context) -> i64 {
        let now_ns = cx.now_ns() as i64;
        if now_ns >= self.next_tick_ns {
            let tick_ns = self.settings.tick(now_ns);
            self.hierarchy.tick_ns = tick_ns;
            self.next_tick_ns = tick_ns + self.settings.jiffy_ns;
        }
        now_ns
    }

    #[inline]
    fn nr_busy(&self) -> u32 {
        self.busy.iter().sum()
    }

    fn queue_mut(&mut self, q: QueueId) -> &mut Queue {
        &mut self.queues[q as usize]
    }

    fn queue(&self, q: QueueId) -> &Queue {
        &self.queues[q as usize]
    }

    /// Creates the groups that do not exist yet: all of the machine, because the number of one says
    /// nothing about which others have done I/O. Their weights are those of now; later ones come with
    /// [`Scheduler::regroup`].
    #[cold]
    fn know_groups(&mut self, cx: &Context, group: GroupId) {
        let nr_groups = cx.queue.groups.len().max(usize::from(group) + 1);
        for id in self.hierarchy.nr_groups()..nr_groups as GroupId {
            // Groups are numbered after their parents.
            let parent =
                if cx.group(id).parent < id { cx.group(id).parent } else { hierarchy::ROOT };
            self.hierarchy.add_group(parent, bfq_weight(cx, id));
        }
        self.async_queues.resize(nr_groups, [None; NR_ASYNC]);
        self.last_created.resize(nr_groups, None);
    }
}
