//! blk-iocost: shares of a device's time by a model of what each I/O costs.
//!
//! Policy: each bio has a cost in device time, from a linear model (a base for
//! a random or a sequential access, and so much for each page). A group pays
//! cost / share; it may issue while what it paid is not ahead of the device's
//! clock, otherwise its tasks sleep, in order. The clock runs faster or slower
//! than time ("vrate") by how the device keeps up: tags that were waited for,
//! and latencies over their target, slow it; groups short of budget while the
//! device is fine speed it up. Groups that leave part of their share unused
//! lend it to the others for a period.
//!
//! Kernel counterpart: `block/blk-iocost.c`, Linux 6.1 (`io.weight`,
//! `io.cost.qos`, `io.cost.model`).
//!
//! Simplified: shares are lent only among children of one parent; a waiter is
//! woken at the nanosecond at which it is due (the kernel allows its timer a
//! hundredth of a period of slack); what a merge costs beyond the budget is
//! owed by the group itself, without delaying its tasks' return to user
//! space; credit that is discarded is not made up by a faster clock. As in
//! the kernel, the root is not controlled.
//!
//! Parameters: `io.cost.qos`, `io.cost.model` of the root, `io.weight` of groups.

use std::collections::VecDeque;

use crate::host::{Cgroups, Group};
use crate::policy::{Admission, Placement, Policy, PolicyContext};
use crate::request::{Operation, RequestId};

const SECOND: u64 = 1_000_000_000;
const PAGE_SECTORS: u64 = 8;
/// A start further than this from the last end is random: 16 MiB.
const RANDOM_SECTORS: u64 = (16 << 20) / 512;
/// One, for shares.
const WHOLE: u64 = 1 << 24;
/// One, for the clock's rate.
const NORMAL_RATE: u64 = 1_000_000;

/// Coefficients of the model and the latency target, as the kernel chooses them.
#[derive(Debug, Clone, Copy)]
struct Automatic {
    /// bytes, sequential and random I/Os a second: of reads, of writes.
    rates: [[u64; 3]; 2],
    latency_ns: u64,
}

const HDD: Automatic = Automatic {
    rates: [[174_019_176, 41_708, 370], [178_075_866, 42_705, 378]],
    latency_ns: 250_000_000,
};
const SSD_DEPTH_1: Automatic = Automatic {
    rates: [[245_855_193, 61_575, 6_946], [141_365_009, 33_716, 26_796]],
    latency_ns: 25_000_000,
};
const SSD: Automatic = Automatic {
    rates: [[488_636_629, 8_932, 8_518], [427_891_549, 28_755, 21_940]],
    latency_ns: 25_000_000,
};
const SSD_FAST: Automatic = Automatic {
    rates: [[3_102_524_156, 724_816, 778_122], [1_742_780_862, 425_702, 443_193]],
    latency_ns: 5_000_000,
};

/// Cost in nanoseconds: of a page, of a sequential and of a random start.
#[derive(Debug, Clone, Copy)]
struct Costs {
    page_ns: u64,
    start_ns: [u64; 2],
}

impl Costs {
    fn new([bytes, sequential, random]: [u64; 3]) -> Self {
        let page_ns = (4096 * SECOND).div_ceil(bytes);
        let start = |rate: u64| SECOND.div_ceil(rate).saturating_sub(page_ns);
        Self { page_ns, start_ns: [start(sequential), start(random)] }
    }
}

#[derive(Debug, Default)]
struct CostGroup {
    parent: usize,
    weight: u64,
    active: bool,
    /// Active itself or an ancestor of an active group.
    counted: bool,
    /// What of the weight is in use; less while part of it is lent.
    in_use: u64,
    /// Share of the device, and share that is charged.
    share: u64,
    share_in_use: u64,
    vtime_ns: u64,
    /// Absolute cost in this period.
    used_ns: u64,
    last_end: u64,
    idle_periods: u32,
    waiting: VecDeque<(RequestId, u64)>,
}

#[derive(Debug)]
pub struct IoCost {
    groups: Vec<CostGroup>,
    user_model: Option<[[u64; 3]; 2]>,
    costs: [Costs; 2],
    automatic: Automatic,
    rotational: bool,
    device_depth: u32,
    fast_since_ns: Option<u64>,
    user_latency: Option<([u64; 2], [u64; 2])>,
    rate_limits: (u64, u64),
    rate: u64,
    clock_ns: u64,
    clock_at_ns: u64,
    period_ns: u64,
    period_end_ns: Option<u64>,
    timer_ns: u64,
    busy_level: i32,
    tag_wait_ns: u64,
    /// By direction: met and missed latencies.
    latencies: [[u64; 2]; 2],
    /// By request: when it was let through to its tag.
    asked_ns: Vec<u64>,
    stepped: bool,
}

impl IoCost {
    pub fn new(cgroups: &Cgroups, rotational: bool, device_depth: u32) -> Self {
        let automatic = match (rotational, device_depth) {
            (true, _) => HDD,
            (false, 1) => SSD_DEPTH_1,
            (false, _) => SSD,
        };
        let model = &cgroups.cost_model;
        let names = [["rbps", "rseqiops", "rrandiops"], ["wbps", "wseqiops", "wrandiops"]];
        let given = names.iter().flatten().any(|name| model.get(name) > 0);
        let user_model = (given || model.word("ctrl") == "user").then(|| {
            let mut rates = automatic.rates;
            for (direction, names) in names.iter().enumerate() {
                for (index, name) in names.iter().enumerate() {
                    if model.get(name) > 0 {
                        rates[direction][index] = model.get(name);
                    }
                }
            }
            rates
        });
        let qos = &cgroups.cost_qos;
        let percentiles = [qos.get("rpct"), qos.get("wpct")];
        let targets = [qos.get_ns("rlat"), qos.get_ns("wlat")];
        let given = percentiles.iter().chain(&targets).any(|value| *value > 0);
        let user_latency = given.then(|| {
            (percentiles, targets.map(|ns| if ns > 0 { ns } else { automatic.latency_ns }))
        });
        let low = qos.get("min") * NORMAL_RATE / 100;
        let high = (qos.get("max") * NORMAL_RATE / 100).max(low);
        let mut cost = Self {
            groups: cgroups.groups.iter().map(cost_group).collect(),
            user_model,
            costs: automatic.rates.map(Costs::new),
            automatic,
            rotational,
            device_depth,
            fast_since_ns: None,
            user_latency,
            rate_limits: (low, high),
            rate: NORMAL_RATE.clamp(low, high),
            clock_ns: 0,
            clock_at_ns: 0,
            period_ns: 0,
            period_end_ns: None,
            timer_ns: u64::MAX,
            busy_level: 0,
            tag_wait_ns: 0,
            latencies: [[0; 2]; 2],
            asked_ns: Vec::new(),
            stepped: false,
        };
        cost.adopt(automatic);
        cost
    }

    /// Takes over a profile where the user set nothing.
    fn adopt(&mut self, automatic: Automatic) {
        self.automatic = automatic;
        self.costs = self.user_model.unwrap_or(automatic.rates).map(Costs::new);
        let (percentiles, targets) = self.latency_targets();
        // Twice the larger target; longer where a low percentile needs more samples.
        let larger = usize::from(targets[1] > targets[0]);
        let multiple = match percentiles[larger] {
            0 => 2,
            percentile => (200 / (100 - percentile.min(99))).clamp(2, 10),
        };
        self.period_ns = (targets[larger] * multiple).clamp(1_000_000, SECOND);
    }

    fn latency_targets(&self) -> ([u64; 2], [u64; 2]) {
        self.user_latency.unwrap_or(([0; 2], [self.automatic.latency_ns; 2]))
    }

    /// The device's clock.
    fn now(&self, now_ns: u64) -> u64 {
        let elapsed = u128::from(now_ns - self.clock_at_ns) * u128::from(self.rate);
        self.clock_ns + (elapsed / u128::from(NORMAL_RATE)) as u64
    }

    fn absolute_cost(&self, group: usize, sector: u64, nr_sectors: u32, write: bool) -> u64 {
        let costs = &self.costs[usize::from(write)];
        let random = sector.abs_diff(self.groups[group].last_end) > RANDOM_SECTORS;
        costs.start_ns[usize::from(random)] + Self::pages(nr_sectors) * costs.page_ns
    }

    fn pages(nr_sectors: u32) -> u64 {
        u64::from(nr_sectors).div_ceil(PAGE_SECTORS).max(1)
    }

    fn charged(&self, group: usize, cost_ns: u64) -> u64 {
        let share = self.groups[group].share_in_use.max(1);
        u64::try_from(u128::from(cost_ns) * u128::from(WHOLE) / u128::from(share))
            .unwrap_or(u64::MAX)
    }

    fn pay(&mut self, group: usize, cost_ns: u64) {
        let charged_ns = self.charged(group, cost_ns);
        let entry = &mut self.groups[group];
        entry.vtime_ns = entry.vtime_ns.saturating_add(charged_ns);
        entry.used_ns += cost_ns;
        entry.idle_periods = 0;
    }

    /// Works out all shares from the weights of active groups.
    fn share_out(&mut self) {
        for group in &mut self.groups {
            group.counted = group.active;
        }
        // Children come after their parents.
        for index in (1..self.groups.len()).rev() {
            if self.groups[index].counted {
                let parent = self.groups[index].parent;
                self.groups[parent].counted = true;
            }
        }
        self.groups[0].share = WHOLE;
        self.groups[0].share_in_use = WHOLE;
        for index in 1..self.groups.len() {
            if !self.groups[index].counted {
                continue;
            }
            let parent = self.groups[index].parent;
            let (total, in_use) = self.siblings(parent);
            let entry = &self.groups[index];
            let of = |share: u64, part: u64, whole: u64| {
                (u128::from(share) * u128::from(part) / u128::from(whole.max(1))) as u64
            };
            let share = of(self.groups[parent].share, entry.weight, total);
            let used = of(self.groups[parent].share_in_use, entry.in_use, in_use);
            self.groups[index].share = share;
            self.groups[index].share_in_use = used.max(1);
        }
    }

    /// Sums of weights and of weights in use of a parent's counted children;
    /// an active parent competes with its children.
    fn siblings(&self, parent: usize) -> (u64, u64) {
        let counted = self.groups.iter().skip(1).filter(|g| g.parent == parent && g.counted);
        counted.fold((0, 0), |(total, used), g| (total + g.weight, used + g.in_use))
    }

    fn activate(&mut self, cx: &mut PolicyContext, group: usize) {
        if self.groups[group].active {
            return;
        }
        if self.period_end_ns.is_none() {
            self.clock_ns = self.now(cx.now_ns());
            self.clock_at_ns = cx.now_ns();
            self.begin_period(cx);
        }
        let start_ns = self.now(cx.now_ns()).saturating_sub(self.margin_ns(50));
        let entry = &mut self.groups[group];
        entry.active = true;
        entry.in_use = entry.weight;
        entry.vtime_ns = entry.vtime_ns.max(start_ns);
        entry.idle_periods = 0;
        self.share_out();
    }

    /// A percentage of a period, in the device's time.
    fn margin_ns(&self, percent: u64) -> u64 {
        let ns = u128::from(self.period_ns) * u128::from(self.rate) * u128::from(percent);
        (ns / u128::from(NORMAL_RATE) / 100) as u64
    }

    fn begin_period(&mut self, cx: &mut PolicyContext) {
        let end_ns = cx.now_ns() + self.period_ns;
        self.period_end_ns = Some(end_ns);
        cx.timer_at(end_ns);
    }

    /// A group that lends takes a quarter of its weight back whenever its
    /// budget runs low.
    fn take_back(&mut self, cx: &PolicyContext, group: usize, cost_ns: u64) {
        let now_ns = self.now(cx.now_ns());
        let margin_ns = self.margin_ns(20);
        while self.groups[group].in_use < self.groups[group].weight {
            let due_ns = self.groups[group].vtime_ns.saturating_add(self.charged(group, cost_ns));
            if due_ns.saturating_add(margin_ns) <= now_ns {
                return;
            }
            let entry = &mut self.groups[group];
            entry.in_use = (entry.in_use + entry.weight.div_ceil(4)).min(entry.weight);
            self.share_out();
        }
    }

    /// Lets sleepers go whose group has the budget; asks to be called for the rest.
    fn wake(&mut self, cx: &mut PolicyContext) {
        let now_ns = self.now(cx.now_ns());
        let mut next_ns = u64::MAX;
        for group in 1..self.groups.len() {
            while let Some(&(bio, cost_ns)) = self.groups[group].waiting.front() {
                let charged_ns = self.charged(group, cost_ns);
                let due_ns = self.groups[group].vtime_ns.saturating_add(charged_ns);
                if due_ns > now_ns {
                    let wait = u128::from(due_ns - now_ns) * u128::from(NORMAL_RATE);
                    let wait_ns = wait.div_ceil(u128::from(self.rate));
                    let wait_ns = u64::try_from(wait_ns).unwrap_or(u64::MAX);
                    next_ns = next_ns.min(cx.now_ns().saturating_add(wait_ns.max(1)));
                    break;
                }
                self.groups[group].waiting.pop_front();
                self.pay(group, cost_ns);
                self.note_asked(cx, bio);
                cx.release(bio);
            }
        }
        if next_ns != u64::MAX && (self.timer_ns <= cx.now_ns() || next_ns < self.timer_ns) {
            self.timer_ns = next_ns;
            cx.timer_at(next_ns);
        }
    }

    fn note_asked(&mut self, cx: &PolicyContext, bio: RequestId) {
        if self.asked_ns.len() <= bio as usize {
            self.asked_ns.resize(bio as usize + 1, u64::MAX);
        }
        self.asked_ns[bio as usize] = cx.now_ns();
    }

    fn end_period(&mut self, cx: &mut PolicyContext) {
        let now_ns = cx.now_ns();
        self.clock_ns = self.now(now_ns);
        self.clock_at_ns = now_ns;
        let short = self.settle_groups();
        self.adjust_rate(cx, short);
        self.lend(short);
        for group in &mut self.groups {
            group.used_ns = 0;
        }
        self.tag_wait_ns = 0;
        self.latencies = [[0; 2]; 2];
        self.period_end_ns = None;
        if self.groups.iter().any(|group| group.active) {
            self.begin_period(cx);
        }
        self.wake(cx);
    }

    /// Retires idle groups and cuts credit; is any group short of budget?
    fn settle_groups(&mut self) -> bool {
        let target_ns = self.margin_ns(50);
        let clock_ns = self.clock_ns;
        let low_ns = self.margin_ns(20);
        let mut short = false;
        for group in self.groups.iter_mut().filter(|group| group.active) {
            if group.waiting.is_empty() && group.used_ns == 0 {
                group.idle_periods += 1;
                if group.idle_periods >= 1 && group.vtime_ns <= clock_ns {
                    group.active = false;
                    continue;
                }
            }
            group.vtime_ns = group.vtime_ns.max(clock_ns.saturating_sub(target_ns));
            // No budget to speak of is left.
            short |= !group.waiting.is_empty() || group.vtime_ns + low_ns / 4 > clock_ns;
        }
        self.share_out();
        short
    }

    fn adjust_rate(&mut self, cx: &PolicyContext, short: bool) {
        let (percentiles, _) = self.latency_targets();
        let wait_percent = self.tag_wait_ns * 100 / self.period_ns.max(1);
        let mut missed = false;
        let mut fine = wait_percent * 100 <= 5 * 75;
        for (direction, percentile) in percentiles.iter().enumerate() {
            let [met, over] = self.latencies[direction];
            if *percentile == 0 || met + over == 0 {
                continue;
            }
            let share = over * 1_000_000 / (met + over);
            let threshold = (100 - percentile) * 10_000;
            missed |= share > threshold;
            fine &= share * 100 <= threshold * 75;
        }
        self.busy_level = if wait_percent > 5 || missed {
            self.busy_level.max(0) + 1
        } else if fine && short {
            self.busy_level.min(0) - 1
        } else {
            0
        };
        let percent = match self.busy_level.unsigned_abs() {
            0..=3 => 0,
            4..=15 => 1,
            16..=31 => 2,
            32..=39 => 4,
            40..=47 => 8,
            _ => 16,
        };
        let factor = if self.busy_level > 0 { 100 - percent } else { 100 + percent };
        let (low, high) = self.rate_limits;
        self.rate = (self.rate * factor / 100).clamp(low.max(1), high);
        self.choose_profile(cx);
    }

    /// An SSD that outruns its profile for ten seconds gets the fast one, and back.
    fn choose_profile(&mut self, cx: &PolicyContext) {
        if self.rotational || self.device_depth == 1 || self.user_model.is_some() {
            return;
        }
        if !self.stepped && self.rate >= 5 * NORMAL_RATE {
            let since_ns = *self.fast_since_ns.get_or_insert(cx.now_ns());
            if cx.now_ns() - since_ns >= 10 * SECOND {
                self.stepped = true;
                self.rate = NORMAL_RATE.clamp(self.rate_limits.0.max(1), self.rate_limits.1);
                self.adopt(SSD_FAST);
            }
        } else if self.stepped && self.rate <= NORMAL_RATE / 10 {
            self.stepped = false;
            self.rate = NORMAL_RATE.clamp(self.rate_limits.0.max(1), self.rate_limits.1);
            self.adopt(SSD);
        } else {
            self.fast_since_ns = None;
        }
    }

    /// Groups that lag behind the clock give up what they did not use.
    fn lend(&mut self, short: bool) {
        for index in 1..self.groups.len() {
            self.groups[index].in_use = self.groups[index].weight;
        }
        self.share_out();
        if !short {
            return;
        }
        let period = u128::from(self.margin_ns(100).max(1));
        for parent in 0..self.groups.len() {
            let whole = self.groups[parent].share.max(1);
            // Shares that lenders keep, relative to their parent's, and the weight of the rest.
            let (mut kept, mut rest) = (0_u64, 0_u64);
            let mut keeps = Vec::new();
            for index in 1..self.groups.len() {
                let entry = &self.groups[index];
                if entry.parent != parent || !entry.counted {
                    continue;
                }
                let lag = u128::from(self.clock_ns.saturating_sub(entry.vtime_ns));
                if !entry.active || !entry.waiting.is_empty() || lag * 5 < period {
                    rest += entry.weight;
                    continue;
                }
                let used = u128::from(entry.used_ns) * u128::from(WHOLE) / period;
                let keep = (used * period / (period / 2 + lag).max(1)) as u64;
                let keep = keep.clamp(1, entry.share);
                let relative = (u128::from(keep) * u128::from(WHOLE) / u128::from(whole)) as u64;
                kept += relative;
                keeps.push((index, relative));
            }
            if rest == 0 || kept >= WHOLE {
                continue;
            }
            let total = u128::from(rest) * u128::from(WHOLE) / u128::from(WHOLE - kept);
            for (index, relative) in keeps {
                let in_use = (u128::from(relative) * total / u128::from(WHOLE)) as u64;
                let entry = &mut self.groups[index];
                entry.in_use = in_use.clamp(1, entry.weight);
            }
        }
        self.share_out();
    }
}

/// Weights are spread so that small parts of them can be lent.
fn cost_group(group: &Group) -> CostGroup {
    let weight = group.io_weight << 16;
    CostGroup { parent: group.parent as usize, weight, in_use: weight, ..CostGroup::default() }
}

impl Policy for IoCost {
    fn name(&self) -> &'static str {
        "iocost"
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let request = &cx.requests[bio];
        let group = request.group as usize;
        if group == 0 || request.operation == Operation::Flush {
            self.note_asked(cx, bio);
            return Admission::Pass;
        }
        let (sector, end) = (request.sector, request.end());
        let cost_ns = self.absolute_cost(group, sector, request.nr_sectors, request.is_write());
        self.activate(cx, group);
        self.groups[group].last_end = end;
        if self.groups[group].in_use < self.groups[group].weight {
            self.take_back(cx, group, cost_ns);
        }
        let due_ns = self.groups[group].vtime_ns.saturating_add(self.charged(group, cost_ns));
        if self.groups[group].waiting.is_empty() && due_ns <= self.now(cx.now_ns()) {
            self.pay(group, cost_ns);
            self.note_asked(cx, bio);
            return Admission::Pass;
        }
        self.groups[group].waiting.push_back((bio, cost_ns));
        self.wake(cx);
        Admission::Sleep
    }

    fn merged(&mut self, cx: &mut PolicyContext, bio: RequestId, _request: RequestId) {
        let request = &cx.requests[bio];
        let group = request.group as usize;
        // One that was let through has paid already.
        let paid = self.asked_ns.get(bio as usize).is_some_and(|ns| *ns != u64::MAX);
        if paid {
            self.asked_ns[bio as usize] = u64::MAX;
        }
        if group == 0 || paid {
            return;
        }
        let costs = &self.costs[usize::from(request.is_write())];
        let cost_ns = Self::pages(request.own_sectors) * costs.page_ns;
        self.groups[group].last_end = request.end();
        if self.groups[group].active {
            self.pay(group, cost_ns);
        }
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        let Some(asked_ns) = self.asked_ns.get_mut(request as usize) else { return };
        let asked_ns = std::mem::replace(asked_ns, u64::MAX);
        if asked_ns == u64::MAX {
            return;
        }
        let entry = &cx.requests[request];
        self.tag_wait_ns += entry.inserted_ns.saturating_sub(asked_ns);
        let direction = usize::from(entry.is_write());
        let size_ns = Self::pages(entry.nr_sectors) * self.costs[direction].page_ns;
        let took_ns = (cx.now_ns() - asked_ns).saturating_sub(size_ns);
        let (_, targets) = self.latency_targets();
        self.latencies[direction][usize::from(took_ns > targets[direction])] += 1;
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        if self.period_end_ns.is_some_and(|end_ns| end_ns <= cx.now_ns()) {
            self.end_period(cx);
        } else if self.timer_ns <= cx.now_ns() {
            self.timer_ns = u64::MAX;
            self.wake(cx);
        }
    }
}
