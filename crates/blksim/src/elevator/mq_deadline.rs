//! `mq-deadline`: deadline for blk-mq, with priority classes.
//!
//! Kernel: `block/mq-deadline.c`, since 4.11; follows 6.1 (classes, ageing, `async_depth`)
//! and later releases as [`Behaviours`] says. Levels
//! within a class are ignored.
//!
//! Simplified: no zoned devices; requests are never inserted at the head, because the device model
//! never requeues.

use super::deadline::{
    FIFO_BATCH, FRONT_MERGES, READ, READ_EXPIRE, SIDES, Settings, Side, WRITE, WRITE_EXPIRE,
    WRITES_STARVED, direction,
};
use crate::block::kernel_version::Behaviours;
use crate::block::queue_facts::{QueueFacts, in_proportion};
use crate::block::request::{Merge, Operation, PriorityClass, Request, RequestId, Requests};
use crate::core::branch::{cold_path, unlikely};
use crate::core::params::{Param, Unit, Values};
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};

const NR_CLASSES: usize = 3;

/// The requests of one priority class.
#[derive(Debug, Clone, Default)]
struct Class {
    sides: [Side; 2],
    next: [Option<RequestId>; 2],
    /// Sector of the request taken last, for kernels that continue there.
    latest_sector: [u64; 2],
    /// Requests that were inserted and are not complete, including those in the device.
    unfinished: u32,
}

#[derive(Debug, Clone)]
pub struct MqDeadline {
    settings: Settings,
    prio_aging_expire_ns: u64,
    async_depth: u32,
    /// The same as a shallow depth.
    depth_of_writes: u32,
    behaviours: Behaviours,
    jiffy_ns: u64,
    /// The tick of the last call.
    tick_ns: u64,
    classes: [Class; NR_CLASSES],
    batch: u64,
    starved: u64,
    last_side: usize,
}

#[inline]
fn class_of(requests: &Requests, id: RequestId) -> usize {
    requests[id].priority.class as usize
}

/// The settings in whole ticks, and `prio_aging_expire`.
fn settings(tunables: &Values, jiffy_ns: u64) -> (Settings, u64) {
    let mut settings = Settings::new(tunables);
    for expire_ns in &mut settings.expire_ns {
        *expire_ns = expire_ns.next_multiple_of(jiffy_ns);
    }
    (settings, tunables.get_ns("prio_aging_expire").next_multiple_of(jiffy_ns))
}

/// The tags for all but reads if nobody sets them. Kernels without an `async_depth` of the queue notify
/// their schedulers of a new `nr_requests` just before it is set, so that it stays what it was before.
fn default_depth(queue: &QueueFacts) -> u32 {
    if queue.behaviours.async_depth_of_queue { queue.nr_requests } else { queue.initial_requests }
}

/// So many of all tags as a shallow depth: the same, or a part of each word (`dd_to_word_depth`).
fn shallow_depth(depth: u32, queue: &QueueFacts) -> u32 {
    if queue.behaviours.shallow_depth_of_map {
        return depth.min(queue.nr_requests);
    }
    (u64::from(depth) * u64::from(queue.bits_per_word))
        .div_ceil(u64::from(queue.nr_requests))
        .min(64) as u32
}

impl Scheduler for MqDeadline {
    const INFO: Info = Info {
        name: "mq-deadline",
        kernel_versions: "since 4.11; follows 6.1",
        summary: "deadline for blk-mq, with strict priority classes and ageing",
        family: Family::MultiQueue,
        bypass: false,
        disables_wbt: false,
        indexed: true,
        per_hctx: false,
        tunables: &[
            READ_EXPIRE,
            WRITE_EXPIRE,
            WRITES_STARVED,
            FIFO_BATCH,
            FRONT_MERGES,
            Param::new(
                "prio_aging_expire",
                Unit::Milliseconds,
                10_000,
                (0, i32::MAX as u64),
                "age at which a request of a lower class goes before a higher class",
            ),
            Param::new(
                "async_depth",
                Unit::Count,
                0,
                (0, i32::MAX as u64),
                "tags for everything but reads; 0 stands for nr_requests as it is by default",
            ),
        ],
    };

    fn new(tunables: &Values, queue: QueueFacts) -> Self {
        let async_depth = match tunables.get("async_depth") {
            0 => default_depth(&queue),
            depth => depth as u32,
        };
        let (settings, prio_aging_expire_ns) = settings(tunables, queue.jiffy_ns);
        Self {
            settings,
            prio_aging_expire_ns,
            async_depth,
            depth_of_writes: shallow_depth(async_depth, &queue),
            behaviours: queue.behaviours,
            jiffy_ns: queue.jiffy_ns,
            tick_ns: 0,
            classes: Default::default(),
            batch: 0,
            starved: 0,
            last_side: WRITE,
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let side = direction(cx.requests, id);
        let now_ns = self.tick_ns(cx);
        let class = &mut self.classes[class_of(cx.requests, id)];
        class.unfinished += 1;
        class.sides[side].insert(cx.requests, id, self.settings.expire_ns[side], now_ns);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        let tick_ns = self.tick_ns(cx);
        let busy = self.classes.iter().filter(|class| class.unfinished > 0).count();
        if unlikely(busy > 1) {
            if let Some(id) = self.pick_aged(cx, tick_ns) {
                return Some(id);
            }
        }
        // A class with unfinished requests holds back the classes below.
        let class = self.classes.iter().position(|class| class.unfinished > 0)?;
        self.pick(cx, class, tick_ns, None)
    }

    /// Requests of different priority do not merge.
    #[inline]
    fn allow_merge(&self, requests: &Requests, request: RequestId, bio: RequestId) -> bool {
        requests[request].priority == requests[bio].priority
    }

    #[inline]
    fn front_merges(&self) -> bool {
        self.settings.front_merges
    }

    fn request_merged(&mut self, cx: &mut Context, id: RequestId, side: Merge, old_sector: u64) {
        if side == Merge::Front {
            let class = &mut self.classes[class_of(cx.requests, id)];
            let tree = &mut class.sides[direction(cx.requests, id)].tree;
            tree.remove(old_sector, id);
            tree.insert(cx.requests[id].sector, id);
        }
    }

    fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let side = direction(cx.requests, gone);
        let class = &mut self.classes[class_of(cx.requests, gone)];
        if class.next[side] == Some(gone) {
            class.next[side] = class.sides[side].tree.after(cx.requests[gone].sector, gone);
        }
        class.sides[side].absorb(cx.requests, kept, gone);
        class.unfinished -= 1;
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        // The queue is not run, even if this request held back the classes below.
        self.classes[class_of(cx.requests, id)].unfinished -= 1;
    }

    #[inline]
    fn limit_depth(&self, bio: &Request) -> Option<u32> {
        (bio.operation != Operation::Read).then_some(self.depth_of_writes)
    }

    /// Least depth that it declares (`dd_depth_updated`).
    fn min_shallow_depth(&self) -> u32 {
        if self.behaviours.async_depth_of_queue { self.depth_of_writes } else { 1 }
    }

    fn retune(&mut self, cx: &mut Context, tunables: &Values, name: &str) {
        let facts = &cx.queue.facts;
        (self.settings, self.prio_aging_expire_ns) = settings(tunables, facts.jiffy_ns);
        if name == "async_depth" {
            self.async_depth = match tunables.get(name) {
                0 => facts.nr_requests,
                depth => depth as u32,
            };
            self.depth_of_writes = shallow_depth(self.async_depth, facts);
        }
    }

    /// It sees `nr_requests` as it was (`dd_depth_updated`), or keeps its share of it
    /// (`blk_mq_update_nr_requests`).
    fn depth_updated(&mut self, cx: &mut Context, before: QueueFacts) {
        let facts = &cx.queue.facts;
        self.async_depth = if self.behaviours.async_depth_of_queue {
            in_proportion(self.async_depth, before.nr_requests, facts.nr_requests)
        } else {
            before.nr_requests
        };
        self.depth_of_writes = shallow_depth(self.async_depth, facts);
    }

    /// For each class with requests, both directions as `deadline` has them.
    fn describe(&self, requests: &Requests) -> Option<Holding> {
        let classes = PriorityClass::ALL.into_iter().zip(&self.classes);
        let parts = classes.filter(|(_, class)| class.unfinished > 0).map(|(name, class)| {
            let side =
                |side: usize| class.sides[side].describe(SIDES[side], requests, class.next[side]);
            Holding::new("class")
                .fact("class", name.name())
                .fact("unfinished", class.unfinished)
                .parts([READ, WRITE].map(side))
        });
        let scheduler = Holding::new("mq-deadline")
            .fact("batch", self.batch)
            .fact("starved", self.starved)
            .fact("direction", SIDES[self.last_side])
            .fact("async_depth", self.async_depth);
        Some(scheduler.parts(parts))
    }

    fn effective_tunables(&self, tunables: &mut Values) {
        tunables.put("async_depth", u64::from(self.async_depth));
    }
}

impl MqDeadline {
    /// The time of the last tick: mq-deadline counts in jiffies.
    #[inline]
    fn tick_ns(&mut self, cx: &Context) -> u64 {
        let now_ns = cx.now_ns();
        if unlikely(now_ns - self.tick_ns >= self.jiffy_ns) {
            self.tick_ns = now_ns - now_ns % self.jiffy_ns;
        }
        self.tick_ns
    }

    /// Checks lower classes even while nothing can be old enough, which ends the batch of the
    /// higher one (`dd_dispatch_prio_aged_requests`).
    #[inline(never)]
    fn pick_aged(&mut self, cx: &mut Context, tick_ns: u64) -> Option<RequestId> {
        let latest_ns = tick_ns as i64 - self.prio_aging_expire_ns as i64;
        (1..NR_CLASSES).find_map(|class| self.pick(cx, class, tick_ns, Some(latest_ns)))
    }

    /// The deadline algorithm within one class; with `latest_ns`, only for requests inserted up to
    /// then.
    #[inline(always)]
    fn pick(
        &mut self,
        cx: &mut Context,
        class: usize,
        tick_ns: u64,
        latest_ns: Option<i64>,
    ) -> Option<RequestId> {
        let Class { sides, next, latest_sector, .. } = &mut self.classes[class];
        if self.behaviours.sweep_continues_at_sector {
            cold_path();
            *next = [READ, WRITE].map(|side| sides[side].tree.from(latest_sector[side]));
        }
        let (side, id) = match next[self.last_side] {
            Some(id) if self.batch < self.settings.fifo_batch => (self.last_side, id),
            _ => {
                let side = self.settings.choose_side(sides, &mut self.starved)?;
                let id = match next[side] {
                    Some(id) if !sides[side].expired(cx.requests, tick_ns) => id,
                    _ => sides[side].fifo.head()?,
                };
                self.last_side = side;
                self.batch = 0;
                (side, id)
            }
        };
        if let Some(latest_ns) = latest_ns {
            cold_path();
            // By the present setting, as in the kernel, whatever it was then.
            let deadline_ns = cx.requests[id].deadline_ns;
            let inserted_ns = deadline_ns.wrapping_sub(self.settings.expire_ns[side]);
            if inserted_ns as i64 > latest_ns {
                return None;
            }
        }
        self.batch += 1;
        latest_sector[side] = cx.requests[id].sector;
        next[side] = sides[side].take(cx.requests, id);
        Some(id)
    }
}
