//! blk-iolatency: latency targets of groups, at the expense of their siblings.
//!
//! Policy: each group with a target is judged in windows of 16 targets (0.1 to 1 s). It misses its
//! target if a tenth of its I/Os exceed it or, on rotational devices, if their mean does. A miss
//! halves the I/Os in flight of siblings with a looser target, or none, at most every 500 ms. Good
//! windows give back a sixteenth of the queue at a time until no group is limited. The tasks of a
//! group at its limit sleep.
//!
//! Kernel counterpart: `block/blk-iolatency.c`, Linux 6.1 (`io.latency`).
//!
//! Simplified: a group is limited by its own depth only, not also by its ancestors'; at depth 1 the
//! kernel also delays tasks on their return to user space, which is left out; the kernel's
//! one-second timer, which unthrottles siblings of idle groups, acts here on the next I/O.
//!
//! Parameters: `target` of each group's `io.latency`, in microseconds; 0: none.

use std::collections::VecDeque;

use crate::block::cgroup::Group;
use crate::block::request::{Operation, RequestId};
use crate::rqos::policy::{Admission, GroupChange, Placement, Policy, PolicyContext};

const MS: u64 = 1_000_000;
const SHORTEST_WINDOW_NS: u64 = 100 * MS;
const LONGEST_WINDOW_NS: u64 = 1000 * MS;
/// Least time between two changes of depth.
const ADJUST_NS: u64 = 500 * MS;
/// A window with fewer I/Os than this is not good.
const LEAST_SAMPLES: u64 = 5;
/// The scale cookie of a parent whose children are not limited (`DEFAULT_SCALE_COOKIE`).
const COOKIE: u64 = 1_000_000;
/// A parent forgets a miss after this time without one.
const FORGET_NS: u64 = 5_000 * MS;

#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    total: u64,
    missed: u64,
    sum_ns: u64,
}

#[derive(Debug, Clone)]
struct LatencyGroup {
    parent: usize,
    /// The kernel has made it: it has a target, or it, or a group below it, has done I/O.
    met: bool,
    target_ns: u64,
    window_ns: u64,
    window_start_ns: u64,
    samples: Samples,
    /// I/Os of its last window.
    recent: u64,
    cookie: u64,
    max_depth: u32,
    in_flight: u32,
    sleepers: VecDeque<RequestId>,
    // As a parent:
    children_cookie: u64,
    last_change_ns: Option<u64>,
    /// The tightest missed target, and its group.
    missed_target_ns: u64,
    missed_by: Option<usize>,
    recent_of_children: u64,
}

#[derive(Debug, Clone)]
pub struct IoLatency {
    groups: Vec<LatencyGroup>,
    rotational: bool,
    nr_requests: u32,
    tracked: Vec<bool>,
}

fn window_of(target_ns: u64) -> u64 {
    (16 * target_ns).clamp(SHORTEST_WINDOW_NS, LONGEST_WINDOW_NS)
}

impl IoLatency {
    pub const NAME: &str = "iolatency";

    pub fn new(groups: &[Group], rotational: bool, nr_requests: u32) -> Self {
        let groups = groups.iter().map(|group| LatencyGroup {
            parent: group.parent as usize,
            met: group.latency_target_ns > 0,
            target_ns: group.latency_target_ns,
            window_ns: window_of(group.latency_target_ns),
            window_start_ns: 0,
            samples: Samples::default(),
            recent: 0,
            cookie: COOKIE,
            max_depth: u32::MAX,
            in_flight: 0,
            sleepers: VecDeque::new(),
            children_cookie: COOKIE,
            last_change_ns: None,
            missed_target_ns: 0,
            missed_by: None,
            recent_of_children: 0,
        });
        Self { groups: groups.collect(), rotational, nr_requests, tracked: Vec::new() }
    }

    /// The first I/O of a group, or its first target: it begins now, with its siblings' limits as they are
    /// (`iolatency_pd_init`).
    fn meet(&mut self, group: usize, now_ns: u64) {
        let mut at = group;
        while at > 0 && !self.groups[at].met {
            let parent = self.groups[at].parent;
            let cookie = self.groups[parent].children_cookie;
            let entry = &mut self.groups[at];
            entry.met = true;
            entry.cookie = cookie;
            entry.window_start_ns = now_ns;
            at = parent;
        }
    }

    fn step(&self, up: bool) -> u32 {
        (self.nr_requests / if up { 16 } else { 4 }).max(1)
    }

    /// Ends the window of a group with a target (`iolatency_check_latencies`).
    fn end_window(&mut self, now_ns: u64, group: usize) {
        let entry = &mut self.groups[group];
        let samples = std::mem::take(&mut entry.samples);
        let (target_ns, parent) = (entry.target_ns, entry.parent);
        entry.window_start_ns = now_ns;
        let before = std::mem::replace(&mut entry.recent, samples.total);
        let shared = &mut self.groups[parent];
        shared.recent_of_children =
            (shared.recent_of_children + samples.total).saturating_sub(before);
        if target_ns == 0 || samples.total == 0 {
            return;
        }
        if shared.last_change_ns.is_some_and(|last_ns| now_ns < last_ns + ADJUST_NS) {
            return;
        }
        let good = if self.rotational {
            samples.sum_ns / samples.total <= target_ns
        } else {
            samples.missed < (samples.total / 10).max(1)
        };
        if good {
            if samples.total >= LEAST_SAMPLES && shared.missed_by == Some(group) {
                shared.last_change_ns = Some(now_ns);
                self.change_cookie(parent, true);
            }
        } else if shared.missed_target_ns == 0 || shared.missed_target_ns >= target_ns {
            shared.last_change_ns = Some(now_ns);
            if shared.missed_by.is_none() || shared.missed_target_ns > target_ns {
                shared.missed_target_ns = target_ns;
                shared.missed_by = Some(group);
            }
            self.change_cookie(parent, false);
        }
    }

    fn change_cookie(&mut self, parent: usize, up: bool) {
        let depth = u64::from(self.nr_requests);
        let step = u64::from(self.step(up));
        let entry = &mut self.groups[parent];
        let below = COOKIE - entry.children_cookie;
        if up {
            let step = if below > depth { 1 } else { step };
            entry.children_cookie = (entry.children_cookie + step).min(COOKIE);
            if entry.children_cookie == COOKIE {
                entry.missed_target_ns = 0;
                entry.missed_by = None;
            }
        } else if below <= depth {
            entry.children_cookie -= step;
        } else if below < 2 * depth {
            entry.children_cookie -= 1;
        }
    }

    /// Follows the changes of the parent's cookie since the last check (`check_scale_change`).
    fn follow(&mut self, cx: &mut PolicyContext, group: usize) {
        let parent = self.groups[group].parent;
        let (cookie, missed_target_ns, recent, last_change_ns) = {
            let shared = &mut self.groups[parent];
            let last_ns = shared.last_change_ns.unwrap_or(0);
            if shared.missed_by.is_some() && cx.now_ns() > last_ns + FORGET_NS {
                // The group that missed has gone.
                shared.children_cookie = COOKIE;
                shared.missed_by = None;
                shared.missed_target_ns = 0;
            }
            (shared.children_cookie, shared.missed_target_ns, shared.recent_of_children, last_ns)
        };
        let entry = &mut self.groups[group];
        let own = entry.cookie;
        if own == cookie || (cookie != COOKIE && cx.now_ns() < last_change_ns) {
            return;
        }
        let down = cookie < own;
        entry.cookie = cookie;
        if down && entry.target_ns > 0 {
            let tighter = missed_target_ns == 0 || entry.target_ns <= missed_target_ns;
            if tighter || entry.recent <= recent * 5 / 100 {
                return;
            }
        }
        let depth = entry.max_depth.min(self.nr_requests);
        if cookie == COOKIE {
            entry.max_depth = u32::MAX;
        } else if down {
            entry.max_depth = (depth / 2).max(1);
        } else {
            let step = self.step(true);
            let entry = &mut self.groups[group];
            if depth < self.nr_requests {
                entry.max_depth = (depth + step).min(self.nr_requests);
            }
        }
        self.wake(cx, group);
    }

    fn wake(&mut self, cx: &mut PolicyContext, group: usize) {
        while self.groups[group].in_flight < self.groups[group].max_depth {
            let Some(bio) = self.groups[group].sleepers.pop_front() else { return };
            self.track(group, bio);
            cx.release(bio);
        }
    }

    fn track(&mut self, group: usize, bio: RequestId) {
        if self.tracked.len() <= bio as usize {
            self.tracked.resize(bio as usize + 1, false);
        }
        self.tracked[bio as usize] = true;
        self.groups[group].in_flight += 1;
    }

    fn forget(&mut self, group: usize, bio: RequestId) -> bool {
        match self.tracked.get_mut(bio as usize) {
            Some(tracked) if *tracked => {
                *tracked = false;
                self.groups[group].in_flight -= 1;
                true
            }
            _ => false,
        }
    }

    fn sample(&mut self, cx: &PolicyContext, group: usize, took_ns: u64) {
        let entry = &mut self.groups[group];
        entry.samples.total += 1;
        entry.samples.sum_ns += took_ns;
        entry.samples.missed += u64::from(entry.target_ns > 0 && took_ns > entry.target_ns);
        if cx.now_ns() >= entry.window_start_ns + entry.window_ns {
            self.end_window(cx.now_ns(), group);
        }
    }
}

impl Policy for IoLatency {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let group = cx.requests[bio].group as usize;
        if group == 0 || cx.requests[bio].operation == Operation::Flush {
            return Admission::Pass;
        }
        self.nr_requests = cx.nr_requests;
        if !self.groups[group].met {
            self.meet(group, cx.now_ns());
        }
        self.follow(cx, group);
        let entry = &mut self.groups[group];
        if entry.sleepers.is_empty() && entry.in_flight < entry.max_depth {
            self.track(group, bio);
            return Admission::Pass;
        }
        entry.sleepers.push_back(bio);
        Admission::Sleep
    }

    fn merged(&mut self, cx: &mut PolicyContext, bio: RequestId, _request: RequestId) {
        let group = cx.requests[bio].group as usize;
        if self.forget(group, bio) {
            self.wake(cx, group);
        }
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        let entry = &cx.requests[request];
        let (group, took_ns) =
            (entry.group as usize, cx.now_ns().saturating_sub(entry.submitted_ns));
        if group == 0 {
            return;
        }
        self.nr_requests = cx.nr_requests;
        self.sample(cx, group, took_ns);
        let counted = self.forget(group, request);
        self.follow(cx, group);
        if counted {
            self.wake(cx, group);
        }
    }

    /// The queue may have had I/O of any group.
    fn begin(&mut self, now_ns: u64) {
        for group in &mut self.groups {
            group.met = true;
            group.window_start_ns = now_ns;
        }
    }

    /// `iolatency_set_limit`: the siblings begin anew, without a limit.
    fn group_changed(&mut self, cx: &mut PolicyContext, changed: &GroupChange) {
        let group = usize::from(changed.group);
        if changed.attribute != "io.latency" || group == 0 {
            return;
        }
        self.meet(group, cx.now_ns());
        let target_ns = changed.cgroups.groups[group].latency_target_ns;
        let entry = &mut self.groups[group];
        let before_ns = std::mem::replace(&mut entry.target_ns, target_ns);
        entry.window_ns = window_of(target_ns);
        if before_ns == 0 {
            entry.window_start_ns = cx.now_ns();
            entry.samples = Samples::default();
        }
        if before_ns != target_ns {
            let shared = &mut self.groups[changed.cgroups.groups[group].parent as usize];
            shared.children_cookie = COOKIE;
            shared.last_change_ns = None;
            shared.missed_by = None;
            shared.missed_target_ns = 0;
        }
    }
}
