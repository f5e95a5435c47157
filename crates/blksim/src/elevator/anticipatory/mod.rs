//! `anticipatory`: sorted batches of reads and of writes, and a short wait after each read for the
//! next one of the same task.
//!
//! A disk that serves whatever is queued leaves a process's region whenever that process needs a
//! moment to ask for more. This scheduler keeps the disk idle for that moment if the task's history
//! says that it pays: the task thinks for less than `antic_expire` and seeks less far than the next
//! candidate. Reads and writes (strictly, sync and async requests: a direct write counts as a read)
//! have batches that end by time; a write batch also has a quota, which adapts so that it lasts
//! `write_batch_expire`. The device is drained whenever the batch changes direction.
//!
//! Kernel: `block/as-iosched.c`, 2.6.0 to 2.6.32; follows 2.6.32.
//!
//! Simplified: time is in nanoseconds, not in ticks; rules that count ticks use 1000 a second. The
//! read-only attribute `est_time`, which shows the estimates, is absent. The scheduler hands out a
//! request only when the device has room, so no request is moved on the dispatch list behind it.
//!
//! Parameters: `read_expire`, `write_expire`, `read_batch_expire`,
//! `write_batch_expire`, `antic_expire`.
//!
//! References: S. Iyer, P. Druschel, "Anticipatory scheduling: a disk
//! scheduling framework to overcome deceptive idleness in synchronous I/O",
//! SOSP 2001; `Documentation/block/as-iosched.txt`.

mod history;
mod waiting;

use super::choose_req::BackSeek;
use super::deadline::Side;
use super::idle_timer::IdleTimer;
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Merge, Request, RequestId, Requests};
use crate::core::params::{Param, Unit, Values};
use crate::elevator::holding::Holding;
use crate::elevator::scheduler::{Context, Family, Info, Scheduler};
use history::{Newcomers, Task};
use waiting::Wait;

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// One tick of a kernel with HZ = 1000.
const TICK_NS: u64 = 1_000_000;
const BACK_SEEK: BackSeek = BackSeek { max_sectors: 1024 * 1024, penalty: 2 };

/// The largest time that the kernel's tunables take.
const MAX_MS: u64 = i32::MAX as u64;

#[derive(Debug, Clone)]
pub struct Anticipatory {
    /// Deadlines and lengths of batches, of async and of sync requests.
    expire_ns: [u64; 2],
    batch_expire_ns: [u64; 2],
    antic_expire_ns: u64,
    sides: [Side; 2],
    next: [Option<RequestId>; 2],
    /// The end of the request that was dispatched last.
    head: [u64; 2],
    last_fifo_check_ns: [u64; 2],
    /// The direction of the current batch.
    batch: usize,
    batch_end_ns: u64,
    /// The batch has changed while requests of the other direction are in the device.
    draining: bool,
    /// A read batch has begun; its time starts with its first completion.
    clock_waits: bool,
    /// The quota of a write batch, and what is left of the current one.
    write_quota: u64,
    writes_left: u64,
    /// The write batch had no competition, so its length tells nothing.
    writes_idled: bool,
    wait: Wait,
    /// The task whose read was dispatched last.
    awaited: Option<u32>,
    /// The time at which a request of that task completed since.
    awaited_done_ns: Option<u64>,
    timer: IdleTimer,
    tasks: Vec<Task>,
    newcomers: Newcomers,
    in_device: u32,
}

#[inline]
fn side_of(request: &Request) -> usize {
    usize::from(request.flags.sync)
}

/// Deadlines and lengths of batches, of async and of sync requests.
fn expiries(tunables: &Values) -> ([u64; 2], [u64; 2]) {
    let of = |names: [&str; 2]| names.map(|name| tunables.get_ns(name));
    (of(["write_expire", "read_expire"]), of(["write_batch_expire", "read_batch_expire"]))
}

impl Scheduler for Anticipatory {
    const INFO: Info = Info {
        name: "anticipatory",
        kernel_versions: "2.6.0 to 2.6.32; follows 2.6.32",
        summary: "sorted batches; waits a few milliseconds for a reader's next request",
        family: Family::Legacy,
        bypass: false,
        disables_wbt: false,
        indexed: true,
        per_hctx: false,
        tunables: &[
            Param::new(
                "read_expire",
                Unit::Milliseconds,
                125,
                (0, MAX_MS),
                "deadline of a sync request",
            ),
            Param::new(
                "write_expire",
                Unit::Milliseconds,
                250,
                (0, MAX_MS),
                "deadline of an async request",
            ),
            Param::new(
                "read_batch_expire",
                Unit::Milliseconds,
                500,
                (0, MAX_MS),
                "time that a batch of sync requests has while async ones wait",
            ),
            Param::new(
                "write_batch_expire",
                Unit::Milliseconds,
                125,
                (0, MAX_MS),
                "time that a batch of async requests has while sync ones wait",
            ),
            Param::new(
                "antic_expire",
                Unit::Milliseconds,
                6,
                (0, MAX_MS),
                "longest wait for a task's next request; 0: none",
            ),
        ],
    };

    fn new(tunables: &Values, _queue: QueueFacts) -> Self {
        let (expire_ns, batch_expire_ns) = expiries(tunables);
        Self {
            expire_ns,
            batch_expire_ns,
            antic_expire_ns: tunables.get_ns("antic_expire"),
            sides: Default::default(),
            next: [None; 2],
            head: [0; 2],
            last_fifo_check_ns: [0; 2],
            batch: SYNC,
            batch_end_ns: batch_expire_ns[SYNC],
            draining: false,
            clock_waits: false,
            write_quota: (batch_expire_ns[ASYNC] / TICK_NS / 10).max(2),
            writes_left: 0,
            writes_idled: false,
            wait: Wait::Off,
            awaited: None,
            awaited_done_ns: None,
            timer: IdleTimer::default(),
            tasks: Vec::new(),
            newcomers: Newcomers::default(),
            in_device: 0,
        }
    }

    #[inline]
    fn insert(&mut self, cx: &mut Context, id: RequestId) {
        let now_ns = cx.now_ns();
        let request = &cx.requests[id];
        let side = side_of(request);
        let index = request.context as usize;
        if index >= self.tasks.len() {
            self.tasks.resize_with(index + 1, Task::default);
        }
        let task = &mut self.tasks[index];
        if side == SYNC {
            task.learn(&mut self.newcomers, now_ns, request.sector, request.end());
        }
        task.queued += 1;
        self.sides[side].insert(cx.requests, id, self.expire_ns[side], now_ns);
        self.next[side] =
            BACK_SEEK.closer_of(cx.requests, Some(id), self.next[side], self.head[side]);
        if self.is_waiting() && self.acceptable(cx.requests, now_ns, Some(id)) {
            self.stop_waiting();
            cx.kick();
        }
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context) -> Option<RequestId> {
        let now_ns = cx.now_ns();
        let [writes, reads] = [ASYNC, SYNC].map(|side| !self.sides[side].fifo.is_empty());
        if self.batch == ASYNC && !reads && (self.writes_left == 0 || !writes) {
            self.writes_idled = true;
        }
        if !(reads || writes) || self.is_waiting() || self.draining {
            return None;
        }
        let going_on = !(reads && writes && self.batch_is_over(now_ns));
        let mut chosen = None;
        if going_on {
            let next = self.next[self.batch];
            if self.batch == SYNC && self.antic_expire_ns > 0 {
                if self.fifo_expired(cx.requests, SYNC, now_ns) {
                    let oldest = self.sides[SYNC].fifo.head()?;
                    return self.hand_out(cx, oldest);
                }
                if self.should_wait(cx.requests, now_ns, next) {
                    self.start_waiting(cx);
                    return None;
                }
            }
            if next.is_some() && reads && !writes {
                self.batch_end_ns = now_ns.saturating_add(self.batch_expire_ns[SYNC]);
            }
            chosen = next;
        }
        let id = match chosen {
            Some(id) => id,
            None => self.start_batch(reads, writes, now_ns)?,
        };
        let expired = self.fifo_expired(cx.requests, self.batch, now_ns);
        let id = if expired { self.sides[self.batch].fifo.head()? } else { id };
        self.hand_out(cx, id)
    }

    /// Reads and direct writes share a side, but a write never joins a read.
    #[inline]
    fn allow_merge(&self, requests: &Requests, request: RequestId, bio: RequestId) -> bool {
        requests[request].flags.sync == requests[bio].flags.sync
    }

    #[inline]
    fn front_merges(&self) -> bool {
        true
    }

    fn request_merged(&mut self, cx: &mut Context, id: RequestId, side: Merge, old_sector: u64) {
        if side == Merge::Front {
            let tree = &mut self.sides[side_of(&cx.requests[id])].tree;
            tree.remove(old_sector, id);
            tree.insert(cx.requests[id].sector, id);
        }
    }

    fn requests_merged(&mut self, cx: &mut Context, kept: RequestId, gone: RequestId) {
        let side = side_of(&cx.requests[gone]);
        self.forget_next(cx.requests, side, gone);
        self.tasks[cx.requests[gone].context as usize].queued -= 1;
        self.sides[side].absorb(cx.requests, kept, gone);
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context, id: RequestId) {
        let now_ns = cx.now_ns();
        let (side, index) = (side_of(&cx.requests[id]), cx.requests[id].context);
        self.in_device -= 1;
        if self.draining && self.in_device == 0 {
            self.batch_end_ns = now_ns.saturating_add(self.batch_expire_ns[self.batch]);
            self.draining = false;
            self.clock_waits = self.batch == SYNC;
            cx.kick();
        } else if self.clock_waits && self.batch == side {
            self.adapt_write_quota(now_ns);
            self.batch_end_ns = now_ns.saturating_add(self.batch_expire_ns[SYNC]);
            self.clock_waits = false;
        }
        let task = &mut self.tasks[index as usize];
        if side == SYNC {
            task.completed = true;
            task.last_end_ns = now_ns;
        }
        if self.awaited == Some(index) {
            self.awaited_done_ns = Some(now_ns);
            if self.wait == Wait::ForCompletion {
                self.wait_for_next(cx, now_ns);
            }
        }
    }

    fn timer(&mut self, cx: &mut Context) {
        if self.timer.rings(cx) && self.is_waiting() {
            self.give_up();
            cx.kick();
        }
    }

    /// The quota of a write batch stays as it has adapted.
    fn retune(&mut self, _cx: &mut Context, tunables: &Values, _name: &str) {
        (self.expire_ns, self.batch_expire_ns) = expiries(tunables);
        self.antic_expire_ns = tunables.get_ns("antic_expire");
    }

    fn describe(&self, requests: &Requests) -> Option<Holding> {
        let names = ["async", "sync"];
        let parts = [SYNC, ASYNC]
            .map(|side| self.sides[side].describe(names[side], requests, self.next[side]));
        let wait = match self.wait {
            Wait::Off => "off",
            Wait::ForCompletion => "for completion",
            Wait::ForNext => "for next",
            Wait::Finished => "finished",
        };
        let until_ns = match self.wait {
            Wait::ForNext => self.awaited_done_ns.map(|ns| ns.saturating_add(self.antic_expire_ns)),
            _ => None,
        };
        let scheduler = Holding::new("anticipatory")
            .fact("batch", names[self.batch])
            .fact("batch_end_ns", self.batch_end_ns)
            .fact("draining", self.draining)
            .fact("writes_left", self.writes_left)
            .fact("wait", wait)
            .fact_if("awaited_task", self.awaited)
            .fact_if("wait_until_ns", until_ns);
        Some(scheduler.parts(parts))
    }

    fn exit_task(&mut self, _cx: &mut Context, task: u32) {
        if let Some(task) = self.tasks.get_mut(task as usize) {
            task.alive = false;
        }
    }
}

impl Anticipatory {
    #[inline]
    fn batch_is_over(&self, now_ns: u64) -> bool {
        !self.clock_waits
            && (now_ns > self.batch_end_ns || self.batch == ASYNC && self.writes_left == 0)
    }

    /// True if the oldest request of a side has reached its deadline. Each side is checked only
    /// once in a period of its deadline, so that a backlog of expired requests does not cause a
    /// storm of seeks.
    #[inline]
    fn fifo_expired(&mut self, requests: &Requests, side: usize, now_ns: u64) -> bool {
        if now_ns - self.last_fifo_check_ns[side] < self.expire_ns[side] {
            return false;
        }
        self.last_fifo_check_ns[side] = now_ns;
        self.sides[side].fifo.head().is_some_and(|id| requests[id].deadline_ns < now_ns)
    }

    /// Chooses the direction of the next batch and its first request, the oldest.
    fn start_batch(&mut self, reads: bool, writes: bool, now_ns: u64) -> Option<RequestId> {
        let side = if reads && !(writes && self.batch == SYNC) { SYNC } else { ASYNC };
        if side != self.batch {
            self.draining = true;
            if side == ASYNC {
                self.clock_waits = false;
            }
        }
        if side == ASYNC {
            self.writes_left = self.write_quota;
            self.writes_idled = false;
        }
        self.batch = side;
        self.last_fifo_check_ns[side] = now_ns;
        self.sides[side].fifo.head()
    }

    fn hand_out(&mut self, cx: &mut Context, id: RequestId) -> Option<RequestId> {
        if self.draining {
            if self.in_device > 0 {
                return None;
            }
            if self.batch == ASYNC {
                self.batch_end_ns = cx.now_ns().saturating_add(self.batch_expire_ns[ASYNC]);
            } else {
                self.clock_waits = true;
            }
            self.draining = false;
        }
        self.timer.cancel();
        self.wait = Wait::Off;
        self.awaited_done_ns = None;
        let (side, index) = (side_of(&cx.requests[id]), cx.requests[id].context);
        self.head[side] = cx.requests[id].end();
        let task = &mut self.tasks[index as usize];
        task.queued -= 1;
        if side == SYNC {
            self.awaited = Some(index);
        } else {
            self.awaited = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.next[side] =
            BACK_SEEK.following(cx.requests, &self.sides[side].tree, id, self.head[side]);
        self.sides[side].remove(cx.requests, id);
        self.in_device += 1;
        Some(id)
    }

    fn forget_next(&mut self, requests: &Requests, side: usize, id: RequestId) {
        if self.next[side] == Some(id) {
            let tree = &self.sides[side].tree;
            self.next[side] = BACK_SEEK.following(requests, tree, id, self.head[side]);
        }
    }

    /// Ends a write batch: moves its quota towards what fills its time.
    fn adapt_write_quota(&mut self, now_ns: u64) {
        let allowed_ns = self.batch_expire_ns[ASYNC];
        let taken_ns = (now_ns + allowed_ns).saturating_sub(self.batch_end_ns);
        if taken_ns > allowed_ns && !self.writes_idled {
            if taken_ns > 3 * allowed_ns {
                self.write_quota /= 2;
            } else {
                self.write_quota -= 1;
            }
        } else if taken_ns < allowed_ns && self.writes_left == 0 {
            if allowed_ns > 3 * taken_ns {
                self.write_quota = self.write_quota.saturating_mul(2);
            } else {
                self.write_quota += 1;
            }
        }
        self.write_quota = self.write_quota.max(1);
    }
}
