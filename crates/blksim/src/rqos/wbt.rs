//! Writeback throttling (`struct rq_wb`): keeps buffered writes from filling the queue before
//! readers.
//!
//! Policy: the number of buffered writes in flight is limited; writers beyond it sleep. Windows of
//! 100 ms are judged by the fastest read: if it is slower than `wbt_lat_usec`, the limit is halved;
//! if it is faster, or there is no read, the limit is doubled. Direct writes are never held.
//!
//! Kernel counterpart: `block/blk-wbt.c` and `block/blk-rq-qos.c`, Linux 6.1.
//!
//! * D = min(16, depth of the device as the kernel knows it), scaled by the step; ordinary
//!   writeback gets (D + 1) / 2, background writeback, or any beside a reader, (D + 3) / 4.
//!   Synchronous writes get D, and so do all for a second after a task was held back for dirtying
//!   too much.
//! * With a volatile cache, sleepers are woken only when no write is in flight.
//!
//! Simplified: discards pass (the kernel limits them apart from writes), no kswapd.
//!
//! Parameters: `wbt_lat_usec` of the queue: 2000, or 75000 for rotational
//! devices; 0 (off) under bfq, cfq and the legacy schedulers.

use std::collections::VecDeque;

use crate::block::request::{Hint, Operation, RequestId, Requests};
use crate::core::jiffies::{jiffies, timer_ns};
use crate::rqos::policy::{Admission, Placement, Policy, PolicyContext};

const WINDOW_NS: u64 = 100_000_000;
/// Time within which a reader counts as present.
const CLOSE_IO_NS: u64 = 100_000_000;
/// Time within which a held-back dirtier counts.
const RECENT_WAIT_NS: u64 = 1_000_000_000;
const BASE_DEPTH: u32 = 16;
const LEAST_WRITES: u32 = 3;

/// The result of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    Exceeded,
    /// Only writes.
    Writes,
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Wbt {
    target_ns: u64,
    queue_depth: u32,
    step: i32,
    scaled_max: bool,
    max_depth: u32,
    normal: u32,
    background: u32,
    in_flight: u32,
    sleepers: VecDeque<RequestId>,
    /// By request: whether it counts as in flight.
    tracked: Vec<bool>,
    last_read_ns: Option<u64>,
    /// A read that is watched until it completes.
    watched: Option<(RequestId, u64)>,
    jiffy_ns: u64,
    window_ns: u64,
    window_end_ns: Option<u64>,
    unknown: u32,
    nr_reads: u32,
    nr_writes: u32,
    least_read_ns: u64,
}

impl Wbt {
    pub const NAME: &str = "wbt";

    pub fn new(target_ns: u64, queue_depth: u32, jiffy_ns: u64) -> Self {
        let mut wbt = Self {
            target_ns,
            queue_depth,
            step: 0,
            scaled_max: false,
            max_depth: 0,
            normal: 0,
            background: 0,
            in_flight: 0,
            sleepers: VecDeque::new(),
            tracked: Vec::new(),
            last_read_ns: None,
            watched: None,
            jiffy_ns,
            window_ns: WINDOW_NS,
            window_end_ns: None,
            unknown: 0,
            nr_reads: 0,
            nr_writes: 0,
            least_read_ns: u64::MAX,
        };
        wbt.scale();
        wbt
    }

    /// Computes the limits of the current step (`calc_wb_limits`); returns whether they are the most.
    fn scale(&mut self) -> bool {
        let mut most_reached = false;
        if self.queue_depth == 1 {
            self.max_depth = if self.step > 0 { 1 } else { 2 };
            most_reached = self.step <= 0;
        } else {
            let depth = BASE_DEPTH.min(self.queue_depth);
            self.max_depth = match self.step {
                0 => depth,
                1.. => 1 + ((depth - 1) >> self.step.min(31)),
                // On a device that takes few commands this may be less than at step 0.
                ..0 => {
                    let most = (self.queue_depth * 3 / 4).max(1);
                    let wanted = 1 + (u64::from(depth - 1) << (-self.step).min(31));
                    most_reached = wanted > u64::from(most);
                    wanted.min(u64::from(most)) as u32
                }
            };
        }
        if self.max_depth <= 2 {
            self.normal = self.max_depth;
            self.background = 1;
        } else {
            self.normal = self.max_depth.div_ceil(2);
            self.background = self.max_depth.div_ceil(4);
        }
        most_reached
    }

    /// Only a step that is made wakes sleepers (`scale_up`).
    fn scale_up(&mut self, cx: &mut PolicyContext) {
        if self.step_up() {
            self.wake(cx);
        }
    }

    fn step_up(&mut self) -> bool {
        if self.scaled_max {
            return false;
        }
        self.step -= 1;
        self.unknown = 0;
        self.scaled_max = self.scale();
        true
    }

    fn scale_down(&mut self, hard: bool) {
        if self.max_depth == 1 {
            return;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        self.unknown = 0;
        self.scale();
        // Whatever the depth is now: only a step up can reach the most.
        self.scaled_max = false;
    }

    /// Whether a dirtier was held back within the last second, in ticks (`wb_recent_wait`).
    fn waited_lately(&self, cx: &PolicyContext) -> bool {
        cx.dirtier_paused_ns
            .is_some_and(|paused_ns| self.is_within(cx.now_ns(), paused_ns, RECENT_WAIT_NS))
    }

    /// Whether fewer ticks have passed since `since_ns` than `duration_ns` has.
    fn is_within(&self, now_ns: u64, since_ns: u64, duration_ns: u64) -> bool {
        let ticks = |time_ns| jiffies(time_ns, self.jiffy_ns);
        ticks(now_ns) < ticks(since_ns) + ticks(duration_ns)
    }

    /// The limit of writes in flight for this one (`get_limit`).
    fn limit(&self, cx: &PolicyContext, bio: RequestId) -> u32 {
        let flags = cx.requests[bio].flags;
        let beside_reader = self
            .last_read_ns
            .is_some_and(|read_ns| self.is_within(cx.now_ns(), read_ns, CLOSE_IO_NS));
        if flags.sync || self.waited_lately(cx) {
            self.max_depth
        } else if flags.hint == Hint::Background || beside_reader {
            self.background
        } else {
            self.normal
        }
    }

    fn track(&mut self, bio: RequestId) {
        if self.tracked.len() <= bio as usize {
            self.tracked.resize(bio as usize + 1, false);
        }
        self.tracked[bio as usize] = true;
        self.in_flight += 1;
    }

    fn forget(&mut self, bio: RequestId) -> bool {
        match self.tracked.get_mut(bio as usize) {
            Some(tracked) if *tracked => {
                *tracked = false;
                self.in_flight -= 1;
                true
            }
            _ => false,
        }
    }

    /// Wakes the sleepers within the limit.
    fn wake(&mut self, cx: &mut PolicyContext) {
        while let Some(&bio) = self.sleepers.front() {
            if self.in_flight >= self.limit(cx, bio) {
                return;
            }
            self.sleepers.pop_front();
            self.track(bio);
            cx.release(bio);
        }
    }

    fn wake_after_completion(&mut self, cx: &mut PolicyContext) {
        let limit = if cx.volatile_cache && !self.waited_lately(cx) { 0 } else { self.normal };
        let room = limit.saturating_sub(self.in_flight);
        if self.in_flight == 0 || (room > 0 && room >= self.background / 2) {
            self.wake(cx);
        }
    }

    /// A window shrinks with the square root of the step, so that a throttled device is judged more often
    /// (`rwb_arm_timer`, in its integers).
    fn window_of_step(&self) -> u64 {
        match self.step {
            1.. => (WINDOW_NS << 4) / u64::from(((self.step as u32 + 1) << 8).isqrt()),
            ..=0 => WINDOW_NS,
        }
    }

    /// Its timer counts in ticks (`blk_stat_activate_nsecs` of `block/blk-stat.h`).
    fn arm(&mut self, cx: &mut PolicyContext) {
        self.window_ns = self.window_of_step();
        let end_ns = timer_ns(cx.now_ns(), self.window_ns / self.jiffy_ns, self.jiffy_ns);
        self.window_end_ns = Some(end_ns);
        cx.timer_at(end_ns);
    }

    fn judge(&self, cx: &PolicyContext) -> Verdict {
        if let Some((_, since_ns)) = self.watched {
            // The clock of another processor may be ahead.
            let out_ns = cx.now_ns().saturating_sub(since_ns);
            if out_ns > self.window_ns || (out_ns > self.target_ns && self.nr_reads == 0) {
                return Verdict::Exceeded;
            }
        }
        if self.nr_reads == 0 || self.nr_writes < LEAST_WRITES {
            let writing = self.nr_writes > 0 || self.in_flight > 0 || self.waited_lately(cx);
            return if writing { Verdict::Writes } else { Verdict::Unknown };
        }
        if self.least_read_ns > self.target_ns { Verdict::Exceeded } else { Verdict::Fine }
    }

    fn end_window(&mut self, cx: &mut PolicyContext) {
        self.window_end_ns = None;
        let in_flight = self.in_flight;
        match self.judge(cx) {
            Verdict::Exceeded => self.scale_down(true),
            Verdict::Fine | Verdict::Writes => self.scale_up(cx),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= 5 {
                    match self.step {
                        1.. => self.scale_up(cx),
                        ..0 => self.scale_down(false),
                        0 => {}
                    }
                }
            }
        }
        self.nr_reads = 0;
        self.nr_writes = 0;
        self.least_read_ns = u64::MAX;
        if self.step != 0 || in_flight > 0 {
            self.arm(cx);
        }
    }
}

/// True for writes that are limited: all but direct ones.
fn restrained(requests: &Requests, bio: RequestId) -> bool {
    let request = &requests[bio];
    request.operation == Operation::Write
        && !(request.flags.sync && request.flags.hint == Hint::Idle)
}

impl Policy for Wbt {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        if !restrained(cx.requests, bio) {
            if cx.requests[bio].operation == Operation::Read {
                self.last_read_ns = Some(cx.now_ns());
            }
            return Admission::Pass;
        }
        if self.window_end_ns.is_none() {
            self.arm(cx);
        }
        if self.sleepers.is_empty() && self.in_flight < self.limit(cx, bio) {
            self.track(bio);
            return Admission::Pass;
        }
        self.sleepers.push_back(bio);
        Admission::Sleep
    }

    fn merged(&mut self, cx: &mut PolicyContext, bio: RequestId, _request: RequestId) {
        // Two requests became one: it counts once.
        if self.forget(bio) {
            self.wake_after_completion(cx);
        }
    }

    fn issued(&mut self, cx: &mut PolicyContext, request: RequestId) {
        if self.watched.is_none() && cx.requests[request].operation == Operation::Read {
            self.watched = Some((request, cx.now_ns()));
        }
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        let now_ns = cx.now_ns();
        let took_ns = now_ns.saturating_sub(cx.requests[request].dispatched_ns);
        // Requests count while a window is open (`blk_stat_add`).
        let counted = u32::from(self.window_end_ns.is_some());
        match cx.requests[request].operation {
            Operation::Read => {
                self.nr_reads += counted;
                if counted > 0 {
                    self.least_read_ns = self.least_read_ns.min(took_ns);
                }
                self.last_read_ns = Some(now_ns);
                if self.watched.is_some_and(|(watched, _)| watched == request) {
                    self.watched = None;
                }
            }
            Operation::Write => self.nr_writes += counted,
            Operation::Flush | Operation::Discard => {}
        }
        if self.forget(request) {
            self.wake_after_completion(cx);
        }
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        if self.window_end_ns.is_some_and(|end_ns| end_ns <= cx.now_ns()) {
            self.end_window(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::queue_usage::QueueUsage;
    use crate::block::request::{Flags, Purpose, Request};
    use crate::core::event::{Class, EventQueue};

    const TICK_NS: u64 = 10_000_000;

    /// Lets a policy act at a moment, on a device with a volatile cache whose dirtiers were held back lately. Counts
    /// the bios that it releases.
    fn at(now_ns: u64, requests: &mut Requests, act: impl FnOnce(&mut PolicyContext)) -> usize {
        let mut events = EventQueue::new();
        events.at(now_ns, Class::PolicyTimer, 0);
        events.advance();
        let mut released = Vec::new();
        act(&mut PolicyContext {
            requests,
            in_flight: 30,
            waiting_for_tag: 0,
            device_depth: 32,
            nr_requests: 64,
            volatile_cache: true,
            dirtier_paused_ns: Some(now_ns),
            rotational: true,
            usage: &mut QueueUsage::default(),
            events: &mut events,
            disk: 0,
            released: &mut released,
        });
        released.len()
    }

    #[test]
    fn only_a_window_that_makes_a_step_up_wakes_sleepers() {
        // The flusher sleeps beside 30 writes, where the limit is 31 before the first window ends and 48 then.
        let mut requests = Requests::new();
        let mut bio = Request::new(Operation::Write, 0, 8, Purpose::Writeback);
        bio.flags = Flags { sync: false, hint: Hint::Background };
        let sleeper = requests.allocate(bio);
        let mut wbt = Wbt::new(75_000_000, 64, TICK_NS);
        wbt.step_up();
        assert_eq!((wbt.step, wbt.max_depth, wbt.scaled_max), (-1, 31, false));
        for (expected, step) in [(1, -2), (0, -2)] {
            wbt.sleepers = VecDeque::from([sleeper]);
            (wbt.in_flight, wbt.nr_writes, wbt.window_end_ns) = (30, 78, Some(WINDOW_NS));
            let released = at(WINDOW_NS, &mut requests, |cx| wbt.timer(cx));
            assert_eq!((released, wbt.step, wbt.max_depth), (expected, step, 48));
        }
    }

    #[test]
    fn requests_count_only_while_a_window_is_open() {
        let mut requests = Requests::new();
        let read = requests.allocate(Request::new(Operation::Read, 0, 8, Purpose::Direct));
        let mut wbt = Wbt::new(2_000_000, 32, TICK_NS);
        for (window_end_ns, expected) in [(None, 0), (Some(WINDOW_NS), 1)] {
            wbt.window_end_ns = window_end_ns;
            at(0, &mut requests, |cx| wbt.completed(cx, read));
            assert_eq!(wbt.nr_reads, expected);
        }
    }

    #[test]
    fn only_a_step_up_can_reach_the_most() {
        let mut wbt = Wbt::new(2_000_000, 1, TICK_NS);
        assert_eq!((wbt.step_up(), wbt.step, wbt.step_up()), (true, -1, false));
        wbt.scale_down(false);
        assert_eq!((wbt.step, wbt.scaled_max), (0, false));
    }

    #[test]
    fn windows_shrink_with_the_root_of_the_step() {
        let mut wbt = Wbt::new(2_000_000, 32, TICK_NS);
        let windows: Vec<u64> = [-2, 0, 1, 2, 3]
            .map(|step| {
                wbt.step = step;
                wbt.window_of_step()
            })
            .into();
        assert_eq!(windows, [100_000_000, 100_000_000, 72_727_272, 59_259_259, 50_000_000]);
    }

    #[test]
    fn limits_follow_the_step() {
        let mut wbt = Wbt::new(2_000_000, 32, TICK_NS);
        assert_eq!((wbt.max_depth, wbt.normal, wbt.background), (16, 8, 4));
        wbt.scale_down(true);
        assert_eq!((wbt.max_depth, wbt.normal, wbt.background), (8, 4, 2));
        wbt.step = -1;
        assert_eq!((wbt.scale(), wbt.max_depth), (true, 24));
        wbt.scale_down(true);
        assert_eq!(wbt.step, 0);
    }

    #[test]
    fn a_shallow_device_has_all_its_depth_at_first_and_less_of_it_for_writers_alone() {
        let mut wbt = Wbt::new(2_000_000, 8, TICK_NS);
        assert_eq!((wbt.max_depth, wbt.scaled_max), (8, false));
        wbt.step_up();
        assert_eq!((wbt.step, wbt.max_depth, wbt.scaled_max), (-1, 6, true));
    }
}
