//! blk-throttle: absolute limits of a group's bytes and I/Os a second.
//!
//! Policy: time goes in slices of 100 ms. A bio passes if what its group was
//! charged since the slice began, the bio included, does not exceed rate ×
//! elapsed time rounded up to whole slices; otherwise it is held, in order,
//! until it does. Then it climbs to the parent group, which may hold it in
//! turn. A group that was idle for its slice begins a new one, so no credit
//! beyond one slice is saved up. Held bios of a group go six reads to two
//! writes. Nothing is lent: an unused limit helps nobody else.
//!
//! Kernel counterpart: `block/blk-throttle.c`, Linux 6.1 (`io.max`).
//!
//! Simplified: no `.low` limits; bios have their final size already, so bytes
//! and I/Os are charged to the same pieces; held bios are passed on at the
//! nanosecond at which they are due, not at the next timer tick, and keep the
//! I/O context of the task that submitted them; slices of a rate that is no
//! multiple of ten I/Os are closed up to ten at a time, where the kernel loses
//! the fractions. The root's limits are ignored,
//! as the kernel has none.
//!
//! Parameters: `rbps`, `wbps`, `riops`, `wiops` of each group's `io.max`.

use std::collections::VecDeque;

use crate::host::{Group, UNLIMITED};
use crate::policy::{Admission, Placement, Policy, PolicyContext};
use crate::request::RequestId;

const SLICE_NS: u64 = 100_000_000;
const SECOND: u128 = 1_000_000_000;
/// Bios that a group passes on in one turn: reads, then writes.
const QUANTUM: [u32; 2] = [6, 2];

/// One direction of one group.
#[derive(Debug, Clone)]
struct Lane {
    bytes_per_second: u64,
    ios_per_second: u64,
    slice_start_ns: u64,
    slice_end_ns: u64,
    bytes: u64,
    ios: u64,
    held: VecDeque<RequestId>,
}

impl Lane {
    fn new(bytes_per_second: u64, ios_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            ios_per_second,
            slice_start_ns: 0,
            slice_end_ns: 0,
            bytes: 0,
            ios: 0,
            held: VecDeque::new(),
        }
    }

    fn unlimited(&self) -> bool {
        self.bytes_per_second == UNLIMITED && self.ios_per_second == UNLIMITED
    }

    /// How long a bio must wait; 0 if it may go now.
    fn wait_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if self.unlimited() {
            return 0;
        }
        if now_ns > self.slice_end_ns && self.held.is_empty() {
            self.slice_start_ns = now_ns;
            self.slice_end_ns = now_ns + SLICE_NS;
            self.bytes = 0;
            self.ios = 0;
        }
        self.slice_end_ns = self.slice_end_ns.max(now_ns + SLICE_NS);
        let elapsed_ns = now_ns - self.slice_start_ns;
        let rounded_ns = elapsed_ns.max(1).div_ceil(SLICE_NS) * SLICE_NS;
        let mut wait_ns = 0;
        let excess = self
            .bytes
            .saturating_add(bytes)
            .saturating_sub(allowed(self.bytes_per_second, rounded_ns));
        if excess > 0 {
            let pay_ns = (u128::from(excess) * SECOND).div_ceil(u128::from(self.bytes_per_second));
            wait_ns = pay_ns as u64 + rounded_ns - elapsed_ns;
        }
        if self.ios + 1 > allowed(self.ios_per_second, rounded_ns) {
            // Below ten a second one slice earns no whole I/O: as many as it takes.
            let due_ns = (u128::from(self.ios + 1) * SECOND)
                .div_ceil(u128::from(self.ios_per_second)) as u64;
            let boundary_ns = due_ns.saturating_sub(SLICE_NS).div_ceil(SLICE_NS) * SLICE_NS;
            wait_ns = wait_ns.max(boundary_ns.max(rounded_ns).saturating_sub(elapsed_ns).max(1));
        }
        self.slice_end_ns = self.slice_end_ns.max(now_ns + wait_ns);
        wait_ns
    }

    fn charge(&mut self, now_ns: u64, bytes: u64) {
        if self.unlimited() {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.ios += 1;
        // Slices that are over are closed with what they allowed: as many as
        // allow a whole number of I/Os, or the fractions would be lost.
        let together = match self.ios_per_second {
            UNLIMITED => 1,
            rate if rate % 10 == 0 => 1,
            rate if rate % 5 == 0 => 2,
            rate if rate % 2 == 0 => 5,
            _ => 10,
        };
        let nr_slices = (now_ns - self.slice_start_ns) / SLICE_NS / together * together;
        let span_ns = nr_slices * SLICE_NS;
        self.bytes = self.bytes.saturating_sub(allowed(self.bytes_per_second, span_ns));
        self.ios = self.ios.saturating_sub(allowed(self.ios_per_second, span_ns));
        self.slice_start_ns += span_ns;
    }
}

/// What a rate allows within a time.
fn allowed(per_second: u64, span_ns: u64) -> u64 {
    if per_second == UNLIMITED {
        return UNLIMITED;
    }
    u64::try_from(u128::from(per_second) * u128::from(span_ns) / SECOND).unwrap_or(UNLIMITED)
}

#[derive(Debug)]
struct ThrottledGroup {
    parent: u16,
    lanes: [Lane; 2],
}

/// Limits of all groups on one disk.
#[derive(Debug)]
pub struct Throttle {
    groups: Vec<ThrottledGroup>,
    nr_held: usize,
    timer_ns: Option<u64>,
}

impl Throttle {
    pub fn new(groups: &[Group]) -> Self {
        let groups = groups.iter().map(|group| ThrottledGroup {
            parent: group.parent,
            lanes: [
                Lane::new(group.max.get("rbps"), group.max.get("riops")),
                Lane::new(group.max.get("wbps"), group.max.get("wiops")),
            ],
        });
        Self { groups: groups.collect(), nr_held: 0, timer_ns: None }
    }

    /// Lets a bio climb from a group towards the root; true if it got there.
    fn climb(
        &mut self,
        now_ns: u64,
        mut group: u16,
        direction: usize,
        bytes: u64,
        bio: RequestId,
    ) -> bool {
        while group != 0 {
            let entry = &mut self.groups[group as usize];
            let lane = &mut entry.lanes[direction];
            if !lane.held.is_empty() || lane.wait_ns(now_ns, bytes) > 0 {
                lane.held.push_back(bio);
                self.nr_held += 1;
                return false;
            }
            lane.charge(now_ns, bytes);
            group = entry.parent;
        }
        true
    }

    /// Passes on what is due; children before their parents.
    fn dispatch(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        let mut progress = true;
        while progress {
            progress = false;
            for group in (1..self.groups.len()).rev() {
                for (direction, quantum) in QUANTUM.iter().enumerate() {
                    for _ in 0..*quantum {
                        let entry = &mut self.groups[group];
                        let parent = entry.parent;
                        let lane = &mut entry.lanes[direction];
                        let Some(&bio) = lane.held.front() else { break };
                        let bytes = bio_bytes(cx, bio);
                        if lane.wait_ns(now_ns, bytes) > 0 {
                            break;
                        }
                        lane.held.pop_front();
                        self.nr_held -= 1;
                        lane.charge(now_ns, bytes);
                        progress = true;
                        if self.climb(now_ns, parent, direction, bytes, bio) {
                            cx.release(bio);
                        }
                    }
                }
            }
        }
        self.arm(cx);
    }

    /// Asks to be called when the next bio is due.
    fn arm(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        let mut next_ns = u64::MAX;
        if self.nr_held > 0 {
            for group in &mut self.groups {
                for lane in &mut group.lanes {
                    if let Some(&bio) = lane.held.front() {
                        let bytes = bio_bytes(cx, bio);
                        next_ns =
                            next_ns.min(now_ns.saturating_add(lane.wait_ns(now_ns, bytes).max(1)));
                    }
                }
            }
        }
        if next_ns != u64::MAX
            && self.timer_ns.is_none_or(|timer_ns| timer_ns <= now_ns || next_ns < timer_ns)
        {
            self.timer_ns = Some(next_ns);
            cx.timer_at(next_ns);
        }
    }
}

fn bio_bytes(cx: &PolicyContext, bio: RequestId) -> u64 {
    u64::from(cx.requests[bio].nr_sectors) * 512
}

impl Policy for Throttle {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn placement(&self) -> Placement {
        Placement::Above
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let request = &cx.requests[bio];
        let (group, direction) = (request.group, usize::from(request.is_write()));
        let bytes = bio_bytes(cx, bio);
        if self.climb(cx.now_ns(), group, direction, bytes, bio) {
            return Admission::Pass;
        }
        self.arm(cx);
        Admission::Hold
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        if self.timer_ns.is_some_and(|timer_ns| timer_ns <= cx.now_ns()) {
            self.timer_ns = None;
            self.dispatch(cx);
        }
    }
}
