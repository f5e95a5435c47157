//! blk-throttle: absolute limits of a group's bytes and I/Os a second.
//!
//! Policy: time is divided into slices of 100 ms, counted in ticks. A bio passes if the charges of
//! its group since the slice began, including its own, do not exceed rate × elapsed time rounded up
//! to whole slices; otherwise it is held, in order, until the tick at which it may go. Then it
//! climbs to the parent group, which may hold it too. A group that was idle for its slice begins a
//! new one, so credit is limited to one slice. Held bios of a group go six reads to two writes;
//! groups take turns. The bios of a tick are submitted together by a kernel thread that plugs.
//! Unused limits are not lent.
//!
//! Kernel counterpart: `block/blk-throttle.c`, Linux 6.1 (`io.max`), with its
//! arithmetic in jiffies.
//!
//! Simplified: no `.low` limits; bios of more than one mebibyte are charged as one; held bios keep
//! the I/O context of their submitter, where the kernel uses that of its thread, which matters to
//! bfq. The root's limits are ignored, as the kernel has none.
//!
//! Parameters: `rbps`, `wbps`, `riops`, `wiops` of each group's `io.max`.

mod lane;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::block::cgroup::{Group, UNLIMITED};
use crate::block::request::{Operation, RequestId, SECTOR_BYTES};
use crate::core::jiffies::{jiffies, timer_ns};
use crate::rqos::policy::{Admission, GroupChange, Placement, Policy, PolicyContext};
use lane::{Held, Lane, Ticks};

/// Bios that a group passes on in a turn: reads, writes (`THROTL_GRP_QUANTUM`).
const QUANTUM_OF_GROUP: [u32; 2] = [6, 2];
/// Bios that are passed on before the groups are checked again (`THROTL_QUANTUM`).
const QUANTUM: u32 = 32;
/// Most slices that a timer is set ahead.
const FARTHEST_TIMER_SLICES: u64 = 8;
/// Seconds from the start of the kernel's jiffies to their wrap-around (`INITIAL_JIFFIES`): slices
/// end at multiples of their length.
const FIRST_JIFFIES_S: u64 = 300;

#[derive(Debug, Clone)]
struct ThrottledGroup {
    /// The group's parent; for the root, the device.
    parent: usize,
    lanes: [Lane; 2],
    /// It, or a group above, has a limit in this direction.
    has_rules: [bool; 2],
    /// Time at which its first bio may go (`disptime`).
    due: u64,
    /// Its place among the groups that wait for the same, while it holds bios.
    place: Option<(u64, u64)>,
    /// A lane was empty before its last bio.
    was_empty: bool,
}

/// A queue of groups whose bios wait for a parent group or the device (`struct
/// throtl_service_queue`).
#[derive(Debug, Clone, Default)]
struct Service {
    /// Groups with held bios, by the time at which these may go, then by their entry.
    pending: BTreeSet<(u64, u64, usize)>,
    timer: Option<Timer>,
}

/// A timer that is set: its time, and the order in which timers were set. At one moment, the one that was
/// set last rings first (`enqueue_timer` puts it at the head of its bucket).
type Timer = (u64, Reverse<u64>);

/// Limits of all groups on one disk.
#[derive(Debug, Clone)]
pub struct Throttle {
    groups: Vec<ThrottledGroup>,
    /// One for each group; the last is the device's.
    services: Vec<Service>,
    timers: BTreeSet<(Timer, usize)>,
    /// Counts what has an order of its own: places and timers.
    sequence: u64,
    /// Bios that go on to the device.
    due: [Held; 2],
    jiffy_ns: u64,
}

/// The limits of a group: bytes and I/Os a second, of reads and of writes. The root has none.
fn limits(given: &[Group], group: usize) -> [(u64, u64); 2] {
    let limit = |name: &str| if group == 0 { UNLIMITED } else { given[group].max.get(name) };
    [(limit("rbps"), limit("riops")), (limit("wbps"), limit("wiops"))]
}

impl Throttle {
    pub const NAME: &str = "throttle";

    pub fn new(given: &[Group], jiffy_ns: u64) -> Self {
        let device = given.len();
        let mut groups: Vec<ThrottledGroup> = Vec::with_capacity(device);
        for (index, group) in given.iter().enumerate() {
            let lanes = limits(given, index).map(|(bytes, ios)| Lane::new(bytes, ios));
            let parent = if index == 0 { device } else { usize::from(group.parent) };
            // Parents come before their children.
            let above = groups.get(parent).map_or([false; 2], |group| group.has_rules);
            let has_rules = [0, 1].map(|lane: usize| above[lane] || !lanes[lane].unlimited());
            groups.push(ThrottledGroup {
                parent,
                lanes,
                has_rules,
                due: 0,
                place: None,
                was_empty: false,
            });
        }
        let services = (0..=device).map(|_| Service::default()).collect();
        let timers = BTreeSet::new();
        Self { groups, services, timers, sequence: 0, due: Default::default(), jiffy_ns }
    }

    fn device(&self) -> usize {
        self.groups.len()
    }

    fn ticks(&self, now_ns: u64) -> Ticks {
        let hz = 1_000_000_000 / self.jiffy_ns;
        let first = (1 << 32) - FIRST_JIFFIES_S * hz;
        Ticks { now: first + jiffies(now_ns, self.jiffy_ns), hz }
    }

    /// `throtl_add_bio_tg`.
    fn hold(&mut self, group: usize, direction: usize, sender: Option<u16>, bio: RequestId) {
        let entry = &mut self.groups[group];
        entry.was_empty |= entry.lanes[direction].held.is_empty();
        entry.lanes[direction].held.push(sender, bio);
        if entry.place.is_none() {
            self.enqueue(group);
        }
    }

    /// Enters a group behind those that are due no later (`tg_service_queue_add`).
    fn enqueue(&mut self, group: usize) {
        self.sequence += 1;
        let entry = &mut self.groups[group];
        let place = (entry.due, self.sequence);
        entry.place = Some(place);
        self.services[entry.parent].pending.insert((place.0, place.1, group));
    }

    fn dequeue(&mut self, group: usize) {
        let entry = &mut self.groups[group];
        if let Some((due, number)) = entry.place.take() {
            self.services[entry.parent].pending.remove(&(due, number, group));
        }
    }

    /// `tg_update_disptime`.
    fn update_due(&mut self, cx: &PolicyContext, group: usize) {
        let ticks = self.ticks(cx.now_ns());
        self.dequeue(group);
        let entry = &mut self.groups[group];
        let waits = entry.lanes.iter_mut().filter_map(|lane| {
            let bio = lane.held.first()?;
            Some(lane.wait(ticks, charged_bytes(cx, bio)))
        });
        entry.due = ticks.now + waits.min().unwrap_or(0);
        entry.was_empty = false;
        self.enqueue(group);
    }

    /// Sets the timer for the first group that is due. Returns false if that is now, unless a timer
    /// is wanted in any case (`throtl_schedule_next_dispatch`).
    fn schedule_next(&mut self, cx: &mut PolicyContext, service: usize, in_any_case: bool) -> bool {
        let Some(&(due, ..)) = self.services[service].pending.first() else { return true };
        let ticks = self.ticks(cx.now_ns());
        if !in_any_case && due <= ticks.now {
            return false;
        }
        let delay = due.saturating_sub(ticks.now).min(FARTHEST_TIMER_SLICES * ticks.slice());
        let rings_ns = timer_ns(cx.now_ns(), delay, self.jiffy_ns);
        self.set_timer(cx, service, rings_ns);
        true
    }

    /// A timer that is set for the same time keeps its order (`__mod_timer`).
    fn set_timer(&mut self, cx: &mut PolicyContext, service: usize, rings_ns: u64) {
        if self.services[service].timer.is_some_and(|(time_ns, _)| time_ns == rings_ns) {
            return;
        }
        self.stop_timer(service);
        self.sequence += 1;
        let timer = (rings_ns, Reverse(self.sequence));
        self.services[service].timer = Some(timer);
        self.timers.insert((timer, service));
        cx.timer_at(rings_ns);
    }

    fn stop_timer(&mut self, service: usize) {
        if let Some(timer) = self.services[service].timer.take() {
            self.timers.remove(&(timer, service));
        }
    }

    /// Passes on bios of groups that are due. Returns their number (`throtl_select_dispatch`).
    fn select_dispatch(&mut self, cx: &PolicyContext, service: usize) -> u32 {
        let ticks = self.ticks(cx.now_ns());
        let mut nr_passed = 0;
        while let Some(&(due, _, group)) = self.services[service].pending.first() {
            if ticks.now < due {
                break;
            }
            nr_passed += self.dispatch_group(cx, ticks, group);
            if self.groups[group].lanes.iter().all(|lane| lane.held.is_empty()) {
                self.dequeue(group);
            } else {
                self.update_due(cx, group);
            }
            if nr_passed >= QUANTUM {
                break;
            }
        }
        nr_passed
    }

    fn dispatch_group(&mut self, cx: &PolicyContext, ticks: Ticks, group: usize) -> u32 {
        let mut nr_passed = 0;
        for (direction, quantum) in QUANTUM_OF_GROUP.into_iter().enumerate() {
            for _ in 0..quantum {
                let lane = &mut self.groups[group].lanes[direction];
                let Some(bio) = lane.held.first() else { break };
                let bytes = charged_bytes(cx, bio);
                if lane.wait(ticks, bytes) > 0 {
                    break;
                }
                lane.held.pop();
                lane.charge(bytes);
                self.pass_on(ticks, group, direction, bio);
                self.groups[group].lanes[direction].trim(ticks);
                nr_passed += 1;
            }
        }
        nr_passed
    }

    /// To the parent, or to the device.
    fn pass_on(&mut self, ticks: Ticks, group: usize, direction: usize, bio: RequestId) {
        let sender = Some(group as u16);
        let parent = self.groups[group].parent;
        if parent == self.device() {
            self.due[direction].push(sender, bio);
            return;
        }
        self.hold(parent, direction, sender, bio);
        let slice_start = self.groups[group].lanes[direction].slice_start();
        self.groups[parent].lanes[direction].begin_with(ticks, slice_start);
    }

    /// A timer is due: passes on bios of the groups that wait here (`throtl_pending_timer_fn`).
    fn serve(&mut self, cx: &mut PolicyContext, mut service: usize) {
        loop {
            let mut passed = false;
            loop {
                passed |= self.select_dispatch(cx, service) > 0;
                if self.schedule_next(cx, service, false) {
                    break;
                }
            }
            if !passed {
                return;
            }
            if service == self.device() {
                self.release_due(cx);
                return;
            }
            if !self.groups[service].was_empty {
                return;
            }
            self.update_due(cx, service);
            let parent = self.groups[service].parent;
            if self.schedule_next(cx, parent, false) {
                return;
            }
            service = parent;
        }
    }

    /// Reads first (`blk_throtl_dispatch_work_fn`).
    fn release_due(&mut self, cx: &mut PolicyContext) {
        for held in &mut self.due {
            while let Some(bio) = held.pop() {
                cx.release(bio);
            }
        }
    }
}

/// Bytes charged for a piece of a bio: for the first piece, all bytes of the bio. The kernel
/// charges bytes before it splits a bio, I/Os afterwards.
fn charged_bytes(cx: &PolicyContext, bio: RequestId) -> u64 {
    let piece = &cx.requests[bio];
    if piece.operation == Operation::Discard {
        // "Assume it's one sector" (`throtl_bio_data_size`).
        return SECTOR_BYTES;
    }
    if piece.sector == piece.first_sector { u64::from(piece.own_sectors) * 512 } else { 0 }
}

impl Policy for Throttle {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn placement(&self) -> Placement {
        Placement::Above
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let request = &cx.requests[bio];
        let (mut group, direction) = (usize::from(request.group), usize::from(request.is_write()));
        if !self.groups[group].has_rules[direction] {
            return Admission::Pass;
        }
        let ticks = self.ticks(cx.now_ns());
        let bytes = charged_bytes(cx, bio);
        let mut sender = None;
        while group != self.device() {
            let lane = &mut self.groups[group].lanes[direction];
            if !lane.held.is_empty() || lane.wait(ticks, bytes) > 0 {
                self.hold(group, direction, sender, bio);
                if self.groups[group].was_empty {
                    self.update_due(cx, group);
                    let parent = self.groups[group].parent;
                    self.schedule_next(cx, parent, true);
                }
                return Admission::Hold;
            }
            lane.charge(bytes);
            lane.trim(ticks);
            sender = Some(group as u16);
            group = self.groups[group].parent;
        }
        Admission::Pass
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        let due = |&&((time_ns, _), _): &&(Timer, usize)| time_ns <= now_ns;
        let ringing: Vec<(Timer, usize)> = self.timers.iter().take_while(due).copied().collect();
        for (timer, service) in ringing {
            // One that rang before may have set it anew.
            if self.services[service].timer == Some(timer) {
                self.stop_timer(service);
                self.serve(cx, service);
            }
        }
    }

    /// `tg_conf_updated`.
    fn group_changed(&mut self, cx: &mut PolicyContext, changed: &GroupChange) {
        if changed.attribute != "io.max" {
            return;
        }
        let (group, given) = (usize::from(changed.group), &changed.cgroups.groups);
        let ticks = self.ticks(cx.now_ns());
        let lanes = self.groups[group].lanes.iter_mut();
        for (lane, (bytes, ios)) in lanes.zip(limits(given, group)) {
            lane.change(ticks, bytes, ios);
        }
        // Parents come before their children.
        for index in 0..self.groups.len() {
            let parent = self.groups[index].parent;
            let above = self.groups.get(parent).map_or([false; 2], |group| group.has_rules);
            let entry = &mut self.groups[index];
            entry.has_rules =
                [0, 1].map(|lane: usize| above[lane] || !entry.lanes[lane].unlimited());
        }
        let parent = self.groups[group].parent;
        if self.groups[group].place.is_some() {
            self.update_due(cx, group);
            self.schedule_next(cx, parent, true);
        }
    }

    fn plugs_what_it_releases(&self) -> bool {
        true
    }
}
