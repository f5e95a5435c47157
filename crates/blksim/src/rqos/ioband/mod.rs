//! dm-ioband: shares of a device's I/Os or sectors, above the scheduler.
//!
//! Policy: bios of each group pay tokens. While a group has tokens and the device has room, its
//! bios pass; otherwise they are held, and passed on as others complete. `weight.rs` and `range.rs`
//! hand out the tokens.
//!
//! Counterpart: `drivers/md/dm-ioband-*.c` of dm-ioband 1.14.0, which was never
//! in mainline (patches for 2.6.2x to 2.6.3x).
//!
//! * A bio belongs to the group of the task that submits it. The flusher's writes are therefore
//!   charged to the default group (the root's), whichever task dirtied the pages: buffered writers
//!   are not distinguished.
//! * A group that holds too many bios puts its submitter to sleep; the flusher sleeps only at the
//!   limit of the whole device.
//!
//! Simplified: groups by control group alone, all children of the device; one
//! device for each set of groups; held bios keep the I/O context of their
//! submitter (in dm-ioband the scheduler saw one kernel thread); a submitter
//! that sleeps for the queue limit is woken when its own bio goes; memory
//! reclaim is not simulated.
//!
//! Parameters: `ioband.policy`, `.token`, `.io_throttle`, `.io_limit`,
//! `.carryover` of the root; `ioband.weight`, `.min`, `.max` of groups.
//!
//! References: the dm-ioband manual (`Documentation/device-mapper/ioband.txt`
//! of its patch).

mod range;
mod weight;

use std::collections::{BTreeSet, VecDeque};

use crate::block::cgroup::Cgroups;
use crate::block::request::{NONE, Purpose, RequestId};
use crate::core::params::Values;
use crate::rqos::policy::{Admission, GroupChange, Placement, Policy, PolicyContext};
use range::RangeBandwidth;
use weight::Weighted;

/// The tokens: which group may submit, and the price of a bio.
#[derive(Debug, Clone)]
enum Sharing {
    Weighted(Weighted),
    Range(RangeBandwidth),
}

#[derive(Debug, Clone)]
struct BandGroup {
    held: VecDeque<RequestId>,
    /// Held bios by class: async, sync.
    nr_held: [u32; 2],
    /// Bios that it may hold.
    limit: usize,
}

#[derive(Debug, Clone)]
pub struct IoBand {
    groups: Vec<BandGroup>,
    sharing: Sharing,
    io_limit: u32,
    io_throttle: u32,
    /// Bios below, by class: async, sync.
    in_flight: [u32; 2],
    nr_held: usize,
    /// Groups that hold bios.
    holding: BTreeSet<usize>,
    /// By bio: 1 + its class while it is below.
    below: Vec<u8>,
    timer_ns: Option<u64>,
}

impl IoBand {
    pub fn new(cgroups: &Cgroups, band: &Values, seed: u64) -> Self {
        let io_limit = band.get("io_limit");
        let limits = limits_of(cgroups, io_limit);
        let groups =
            limits.map(|limit| BandGroup { held: VecDeque::new(), nr_held: [0; 2], limit });
        let sharing = match band.word("policy") {
            "range-bw" => Sharing::Range(RangeBandwidth::new(&cgroups.groups, seed)),
            policy => {
                Sharing::Weighted(Weighted::new(&cgroups.groups, band, policy == "weight-iosize"))
            }
        };
        Self {
            groups: groups.collect(),
            sharing,
            io_limit: io_limit as u32,
            io_throttle: band.get("io_throttle") as u32,
            in_flight: [0; 2],
            nr_held: 0,
            holding: BTreeSet::new(),
            below: Vec::new(),
            timer_ns: None,
        }
    }

    /// The priority with which a group may submit now; 0 if it may not.
    fn may_submit(&mut self, now_ns: u64, group: usize) -> u64 {
        match &mut self.sharing {
            Sharing::Weighted(weighted) => weighted.may_submit(group),
            Sharing::Range(range) => range.may_submit(now_ns, group),
        }
    }

    /// Charges a bio that passes. Returns false if another group should be chosen.
    fn let_go(&mut self, cx: &PolicyContext, group: usize, bio: RequestId) -> bool {
        let class = class(cx, bio);
        if self.below.len() <= bio as usize {
            self.below.resize(bio as usize + 1, 0);
        }
        self.below[bio as usize] = 1 + class as u8;
        self.in_flight[class] += 1;
        let sectors = u64::from(cx.requests[bio].nr_sectors);
        match &mut self.sharing {
            Sharing::Weighted(weighted) => weighted.consume(group, sectors),
            Sharing::Range(range) => range.consume(cx.now_ns(), group, sectors),
        }
    }

    /// Passes on held bios as far as tokens and room allow.
    fn work(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        while self.nr_held > 0 {
            let mut best = (0, 0);
            // In the order in which groups were attached to the device, as ties go to the first.
            let holding: Vec<usize> = self.holding.iter().copied().collect();
            for group in holding {
                let Some(&bio) = self.groups[group].held.front() else { continue };
                if self.in_flight[class(cx, bio)] >= self.io_limit {
                    continue;
                }
                let priority = self.may_submit(now_ns, group);
                if priority > best.0 {
                    best = (priority, group);
                }
            }
            if best.0 > 0 {
                self.release(cx, best.1);
                continue;
            }
            let room = self.in_flight.iter().all(|n| *n < self.io_limit);
            let throttled = self.in_flight.iter().sum::<u32>() >= self.io_throttle;
            let begun = match &mut self.sharing {
                Sharing::Weighted(weighted) => room && weighted.new_epoch(throttled),
                Sharing::Range(_) => false,
            };
            if !begun {
                break;
            }
        }
        if let Sharing::Range(range) = &self.sharing {
            let end_ns = range.period_end_ns();
            // Groups that the device's room holds back wait for a completion.
            if self.nr_held > 0 && end_ns > now_ns && self.timer_ns != Some(end_ns) {
                self.timer_ns = Some(end_ns);
                cx.timer_at(end_ns);
            }
        }
    }

    /// Passes on bios of one group until tokens, room or its turn end.
    fn release(&mut self, cx: &mut PolicyContext, group: usize) {
        while let Some(&bio) = self.groups[group].held.front() {
            let class = class(cx, bio);
            if self.in_flight[class] >= self.io_limit || self.may_submit(cx.now_ns(), group) == 0 {
                return;
            }
            let entry = &mut self.groups[group];
            entry.held.pop_front();
            entry.nr_held[class] -= 1;
            if entry.held.is_empty() {
                self.holding.remove(&group);
            }
            self.nr_held -= 1;
            cx.release(bio);
            if !self.let_go(cx, group, bio) {
                return;
            }
        }
    }
}

/// Bios that each group may hold.
fn limits_of(cgroups: &Cgroups, io_limit: u64) -> impl Iterator<Item = usize> + '_ {
    let total: u64 = cgroups.groups.iter().map(|g| g.band.get("weight")).sum();
    let limit = move |weight: u64| (io_limit * weight / total / 4).max(1) as usize;
    cgroups.groups.iter().map(move |group| limit(group.band.get("weight")))
}

fn class(cx: &PolicyContext, bio: RequestId) -> usize {
    usize::from(cx.requests[bio].flags.sync)
}

impl Policy for IoBand {
    fn name(&self) -> &'static str {
        "ioband"
    }

    /// A message to the device: `weight`, or a range's `min` or `max`.
    fn group_changed(&mut self, cx: &mut PolicyContext, changed: &GroupChange) {
        if !changed.attribute.starts_with("ioband.") {
            return;
        }
        let cgroups = &changed.cgroups;
        for (group, limit) in self.groups.iter_mut().zip(limits_of(cgroups, self.io_limit.into())) {
            group.limit = limit;
        }
        match &mut self.sharing {
            Sharing::Weighted(weighted) => weighted.set_weights(&cgroups.groups),
            Sharing::Range(range) => range.set_ranges(&cgroups.groups),
        }
        self.work(cx);
    }

    fn placement(&self) -> Placement {
        Placement::Above
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let request = &cx.requests[bio];
        let by_flusher = request.purpose == Purpose::Writeback && !request.flags.sync;
        let group = if by_flusher { 0 } else { request.group as usize };
        let class = class(cx, bio);
        let free = self.groups[group].nr_held[class] == 0 && self.in_flight[class] < self.io_limit;
        if free && self.may_submit(cx.now_ns(), group) > 0 {
            self.let_go(cx, group, bio);
            return Admission::Pass;
        }
        let entry = &mut self.groups[group];
        let limit = if by_flusher { self.io_limit as usize } else { entry.limit };
        let full = entry.held.len() >= limit;
        entry.held.push_back(bio);
        entry.nr_held[class] += 1;
        self.holding.insert(group);
        self.nr_held += 1;
        self.work(cx);
        if full { Admission::Sleep } else { Admission::Hold }
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        let mut part = request;
        while part != NONE {
            if let Some(below) = self.below.get_mut(part as usize) {
                if *below > 0 {
                    self.in_flight[usize::from(*below - 1)] -= 1;
                    *below = 0;
                }
            }
            part = cx.requests[part].chain;
        }
        if self.nr_held > 0 {
            self.work(cx);
        }
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        if self.timer_ns.is_some_and(|timer_ns| timer_ns <= cx.now_ns()) {
            self.timer_ns = None;
            self.work(cx);
        }
    }
}
