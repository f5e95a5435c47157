//! `deadline`: sweeps in sector order, in batches, with deadlines between them.
//!
//! Kernel: `block/deadline-iosched.c`, 2.6 to 4.20; follows 4.19.
//!
//! Simplified: no zoned devices. Deadlines are counted in ticks, as the kernel's.

use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, RequestId, Requests};
use crate::core::params::{Param, Unit, Values};
use crate::elevator::fifo::FifoQueue;
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};
use crate::elevator::sort_list::SortList;

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
/// Their names.
pub(super) const SIDES: [&str; 2] = ["reads", "writes"];

/// The largest time that the kernel's tunables take: `INT_MAX` ms.
const MAX_MS: u64 = i32::MAX as u64;

pub(super) const READ_EXPIRE: Param =
    Param::new("read_expire", Unit::Milliseconds, 500, (0, MAX_MS), "deadline of a read");
pub(super) const WRITE_EXPIRE: Param =
    Param::new("write_expire", Unit::Milliseconds, 5000, (0, MAX_MS), "deadline of a write");
pub(super) const WRITES_STARVED: Param = Param::new(
    "writes_starved",
    Unit::Count,
    2,
    (0, i32::MAX as u64),
    "batches of reads that may pass waiting writes",
);
pub(super) const FIFO_BATCH: Param =
    Param::new("fifo_batch", Unit::Count, 16, (0, i32::MAX as u64), "requests of a batch");
pub(super) const FRONT_MERGES: Param =
    Param::flag("front_merges", 1, "look for requests that a new one precedes");

/// The tunables that deadline and mq-deadline share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub expire_ns: [u64; 2],
    pub writes_starved: u64,
    pub fifo_batch: u64,
    pub front_merges: bool,
}

impl Settings {
    pub fn new(tunables: &Values) -> Self {
        Self {
            expire_ns: [tunables.get_ns("read_expire"), tunables.get_ns("write_expire")],
            writes_starved: tunables.get("writes_starved"),
            fifo_batch: tunables.get("fifo_batch"),
            front_merges: tunables.flag("front_merges"),
        }
    }

    /// The direction of a new batch. `starved` counts how often reads went before waiting writes.
    pub fn choose_side(self, sides: &[Side; 2], starved: &mut u64) -> Option<usize> {
        let [reads, writes] = [READ, WRITE].map(|side| !sides[side].fifo.is_empty());
        if reads {
            // The counter is compared before it is incremented: the third contested
            // choice goes to writes.
            if writes {
                let before = *starved;
                *starved += 1;
                if before >= self.writes_starved {
                    *starved = 0;
                    return Some(WRITE);
                }
            }
            return Some(READ);
        }
        writes.then(|| {
            *starved = 0;
            WRITE
        })
    }
}

#[inline]
pub(super) fn direction(requests: &Requests, id: RequestId) -> usize {
    usize::from(requests[id].is_write())
}

/// Requests of one direction: by sector and by age.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    pub tree: SortList,
    pub fifo: FifoQueue,
}

impl Side {
    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, id: RequestId, expire_ns: u64, now_ns: u64) {
        let request = &mut requests[id];
        request.deadline_ns = now_ns.saturating_add(expire_ns);
        self.tree.insert(request.sector, id);
        self.fifo.push_back(requests, id);
    }

    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        self.fifo.remove(requests, id);
        self.tree.remove(requests[id].sector, id);
    }

    /// Takes a request out. Returns the one that follows it by sector.
    #[inline]
    pub fn take(&mut self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        self.fifo.remove(requests, id);
        self.tree.take(requests[id].sector, id)
    }

    /// Its two lists, with what tells the side from the other.
    pub fn describe(
        &self,
        kind: &'static str,
        requests: &Requests,
        next: Option<RequestId>,
    ) -> Holding {
        let first = self.fifo.head();
        Holding::new(kind)
            .fact_if("next", next)
            .fact_if("first_deadline_ns", first.map(|id| requests[id].deadline_ns))
            .part(Holding::new("sorted").requests(self.tree.iter()))
            .part(Holding::new("fifo").requests(self.fifo.iter()))
    }

    /// True if the oldest request has reached its deadline.
    pub fn expired(&self, requests: &Requests, now_ns: u64) -> bool {
        self.fifo.head().is_some_and(|id| requests[id].deadline_ns <= now_ns)
    }

    /// `kept` absorbs `gone`: it inherits the earlier deadline with its place.
    pub fn absorb(&mut self, requests: &mut Requests, kept: RequestId, gone: RequestId) {
        self.tree.remove(requests[gone].sector, gone);
        if requests[gone].deadline_ns < requests[kept].deadline_ns {
            requests[kept].deadline_ns = requests[gone].deadline_ns;
            self.fifo.remove(requests, kept);
            self.fifo.replace(requests, gone, kept);
        } else {
            self.fifo.remove(requests, gone);
        }
    }
}

#[derive(Debug, Clone)]
pub struct Deadline {
    settings: Settings,
    sides: [Side; 2],
    /// The request after the last dispatched one (`next_rq`); only one direction has it.
    next: [Option<RequestId>; 2],
    batch: u64,
    starved: u64,
    jiffy_ns: u64,
}

/// The settings in whole ticks.
fn settings(tunables: &Values, jiffy_ns: u64) -> Settings {
    let mut settings = Settings::new(tunables);
    for expire_ns in &mut settings.expire_ns {
        *expire_ns = expire_ns.next_multiple_of(jiffy_ns);
    }
    settings
}

impl Deadline {
    /// The time of the last tick.
    #[inline]
    fn tick_ns(&self, cx: &Context) -> u64 {
        cx.now_ns() - cx.now_ns() % self.jiffy_ns
    }
}

impl Scheduler for Deadline {
    const INFO: Info = Info {
        name: "deadline",
        kernel_versions: "2.6.0 to 4.20; follows 4.19",
        summary: "sorted batches with deadlines; reads before writes",
        family: Family::Legacy,
        bypass: false,
        disables_wbt: false,
        indexed: true,
        per_hctx: false,
        tunables: &[READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, FIFO_BATCH, FRONT_MERGES],
    };

    fn new(tunables: &Values, queue: QueueFacts) -> Self {
        Self {
            settings: settings(tunables, queue.jiffy_ns),
            sides: Default::default(),
            next: [None; 2],
            batch: 0,
            starved: 0,
            jiffy_ns: queue.jiffy_ns,
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let side = direction(cx.requests, id);
        let now_ns = self.tick_ns(cx);
        self.sides[side].insert(cx.requests, id, self.settings.expire_ns[side], now_ns);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        let last_side = if self.next[WRITE].is_some() { WRITE } else { READ };
        let (side, id) = match self.next[last_side] {
            Some(id) if self.batch < self.settings.fifo_batch => (last_side, id),
            _ => {
                let side = self.settings.choose_side(&self.sides, &mut self.starved)?;
                let id = match self.next[side] {
                    Some(id) if !self.sides[side].expired(cx.requests, self.tick_ns(cx)) => id,
                    _ => self.sides[side].fifo.head()?,
                };
                self.batch = 0;
                (side, id)
            }
        };
        self.batch += 1;
        self.next = [None; 2];
        self.next[side] = self.sides[side].take(cx.requests, id);
        Some(id)
    }

    #[inline]
    fn front_merges(&self) -> bool {
        self.settings.front_merges
    }

    fn request_merged(&mut self, cx: &mut Context, id: RequestId, side: Merge, old_sector: u64) {
        if side == Merge::Front {
            let tree = &mut self.sides[direction(cx.requests, id)].tree;
            tree.remove(old_sector, id);
            tree.insert(cx.requests[id].sector, id);
        }
    }

    fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let side = direction(cx.requests, gone);
        if self.next[side] == Some(gone) {
            self.next[side] = self.sides[side].tree.after(cx.requests[gone].sector, gone);
        }
        self.sides[side].absorb(cx.requests, kept, gone);
    }

    fn retune(&mut self, _cx: &mut Context, tunables: &Values, _name: &str) {
        self.settings = settings(tunables, self.jiffy_ns);
    }

    fn describe(&self, requests: &Requests) -> Option<Holding> {
        let sides = [READ, WRITE];
        let parts =
            sides.map(|side| self.sides[side].describe(SIDES[side], requests, self.next[side]));
        let batch = Holding::new("deadline").fact("batch", self.batch);
        Some(batch.fact("starved", self.starved).parts(parts))
    }
}
