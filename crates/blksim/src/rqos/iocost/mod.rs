//! blk-iocost: shares of a device's time by a model of what each I/O costs.
//!
//! Policy: each bio has a cost in device time, from a linear model (a base for a random or
//! sequential access, and an amount for each page). A group pays cost / share. It may issue while
//! its payments are not ahead of the device's clock; otherwise its tasks sleep, in order. The
//! clock's rate ("vrate") follows the device: waiting for tags and latencies over their target slow
//! it; groups short of budget while the device is fine speed it up. Groups lend the unused part of
//! their share to the others for a period; credit beyond half a period is discarded, and the clock
//! runs faster for a period to make up for it. A bio that joins a request never waits: if its group
//! cannot pay, it owes.
//!
//! Kernel counterpart: `block/blk-iocost.c`, Linux 6.1 (`io.weight`,
//! `io.cost.qos`, `io.cost.model`).
//!
//! Simplified: shares are lent only among children of one parent; a debt of more than five periods
//! does not delay the return of the group's tasks to user space. The root is not controlled, as in
//! the kernel.
//!
//! Parameters: `io.cost.qos`, `io.cost.model` of the root, `io.weight` of groups.

mod debt;
mod model;
mod period;
mod shares;
mod waiting;

use std::collections::{BTreeSet, VecDeque};

use crate::block::cgroup::{Cgroups, Group};
use crate::block::request::{NONE, Operation, RequestId};
use crate::core::jiffies::{duration_jiffies, timer_ns};
use crate::rqos::policy::{Admission, GroupChange, Placement, Policy, PolicyContext};
use debt::Forgiving;
use model::{Automatic, Costs, HDD, SSD, SSD_DEPTH_1, VTIME_PER_NS, VTIME_PER_US};
use shares::WHOLE;

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1000;
const PAGE_SECTORS: u64 = 8;
/// A start further than this from the last end is random: 16 MiB.
const RANDOM_PAGES: u64 = 4096;
/// Device time in a microsecond at the normal rate.
const NORMAL_RATE: u64 = VTIME_PER_US;
/// Start of the device's clock: groups are behind it from the first moment.
const CLOCK_START_VTIME: u64 = 1 << 50;
/// Percentages of a period: the slack of timers; the lag behind the clock from which a group lends;
/// a low budget; the target budget.
const SLACK_PERCENT: u64 = 1;
const LEAST_PERCENT: u64 = 10;
const LOW_PERCENT: u64 = 20;
const TARGET_PERCENT: u64 = 50;

#[derive(Debug, Clone, Default)]
struct CostGroup {
    parent: usize,
    weight: u64,
    active: bool,
    /// It has been active.
    was_active: bool,
    /// Itself active, or an ancestor of an active group.
    counted: bool,
    /// Sums of the weights, and of the weights in use, of its counted children (`child_active_sum`,
    /// `child_inuse_sum`).
    weight_of_children: u64,
    in_use_of_children: u64,
    /// The weight in use (`inuse`), which is less while part of it is lent.
    in_use: u64,
    /// Unpaid absolute cost of joined bios (`abs_vdebt`). While there is any, the whole weight is
    /// lent, and given back afterwards.
    debt_vtime: u64,
    in_use_before_debt: u64,
    /// Share of the device, and the share that is charged (`hweight_active`, `hweight_inuse`).
    share: u64,
    share_in_use: u64,
    vtime: u64,
    /// Like `vtime`, but for completed I/O (`done_vtime`).
    done_vtime: u64,
    /// Absolute cost in this period.
    used_vtime: u64,
    /// End of its last bio; 0 before the first, which counts as sequential.
    last_end: u64,
    /// A bio came in this period.
    seen: bool,
    activated_at_ns: u64,
    /// Its lag behind the clock when its weight in use last changed.
    saved_margin_vtime: i64,
    waiting: VecDeque<(RequestId, u64)>,
    /// Time from which its waiters may be checked, a slack later they must be; and the order in which such
    /// timers were set.
    look_at: Option<(u64, u64)>,
}

/// A bio that was let through.
#[derive(Debug, Clone, Copy)]
struct Paid {
    asked_ns: u64,
    charged_vtime: u64,
    group: u16,
}

/// Neither flushes nor discards have a cost (`calc_vtime_cost_builtin`).
fn has_cost(operation: Operation) -> bool {
    matches!(operation, Operation::Read | Operation::Write)
}

const NOT_PAID: Paid = Paid { asked_ns: u64::MAX, charged_vtime: 0, group: 0 };

#[derive(Debug, Clone)]
pub struct IoCost {
    groups: Vec<CostGroup>,
    /// Active groups, in the order in which they became so. The kernel goes through them from the last
    /// (`active_iocgs`).
    active: Vec<usize>,
    /// Groups that count, parents before their children; as of the last time when shares were handed out.
    counted: Vec<usize>,
    /// A group has become active or idle since then.
    activity_changed: bool,
    /// Groups to look after: time, order of setting, group.
    timers: BTreeSet<(u64, u64, usize)>,
    nr_timers: u64,
    user_model: Option<[[u64; 3]; 2]>,
    costs: [Costs; 2],
    automatic: Automatic,
    rotational: bool,
    device_depth: u32,
    /// Time since which the device has been too fast or too slow for its profile.
    unfit_since_ns: Option<u64>,
    /// True if the user set any of the quality of service.
    user_qos: bool,
    /// Percentiles and latencies, each for reads and writes, where given.
    user_percentiles: [Option<u64>; 2],
    user_latencies_ns: [Option<u64>; 2],
    rate_limits: (u64, u64),
    rate: u64,
    /// `rate`, plus the compensation for discarded credit (`vtime_rate`).
    clock_rate: u64,
    /// Device time gained; negative if lost.
    clock_error_vtime: i64,
    /// Start of the period, in device time and in time.
    clock_vtime: u64,
    clock_at_us: u64,
    period_ns: u64,
    period_end_ns: Option<u64>,
    jiffy_ns: u64,
    busy_level: i32,
    tag_wait_ns: u64,
    /// By direction: met and missed latencies.
    latencies: [[u64; 2]; 2],
    forgiving: Forgiving,
    /// By request.
    paid: Vec<Paid>,
    stepped: bool,
}

impl IoCost {
    pub const NAME: &str = "iocost";

    pub fn new(cgroups: &Cgroups, rotational: bool, device_depth: u32, jiffy_ns: u64) -> Self {
        let automatic = match (rotational, device_depth) {
            (true, _) => HDD,
            (false, 1) => SSD_DEPTH_1,
            (false, _) => SSD,
        };
        let mut cost = Self {
            groups: cgroups.groups.iter().map(cost_group).collect(),
            active: Vec::new(),
            counted: Vec::new(),
            activity_changed: false,
            timers: BTreeSet::new(),
            nr_timers: 0,
            user_model: None,
            costs: automatic.rates.map(Costs::new),
            automatic,
            rotational,
            device_depth,
            unfit_since_ns: None,
            user_qos: false,
            user_percentiles: [None; 2],
            user_latencies_ns: [None; 2],
            rate_limits: (NORMAL_RATE, NORMAL_RATE),
            rate: NORMAL_RATE,
            clock_rate: NORMAL_RATE,
            clock_error_vtime: 0,
            clock_vtime: CLOCK_START_VTIME,
            clock_at_us: 0,
            period_ns: 0,
            period_end_ns: None,
            jiffy_ns,
            busy_level: 0,
            tag_wait_ns: 0,
            latencies: [[0; 2]; 2],
            forgiving: Forgiving::default(),
            paid: Vec::new(),
            stepped: false,
        };
        cost.configure(cgroups);
        cost
    }

    /// Takes over the parameters that the user gave (`ioc_refresh_params`).
    fn configure(&mut self, cgroups: &Cgroups) {
        let automatic = self.automatic;
        let model = &cgroups.cost_model;
        let names = [["rbps", "rseqiops", "rrandiops"], ["wbps", "wseqiops", "wrandiops"]];
        let given = names.iter().flatten().any(|name| model.get(name) > 0);
        self.user_model = (given || model.word("ctrl") == "user").then(|| {
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
        let names = ["rpct", "rlat", "wpct", "wlat", "min", "max"];
        self.user_qos = qos.word("ctrl") == "user" || names.iter().any(|name| qos.is_given(name));
        let low = (qos.get("min") * NORMAL_RATE).div_ceil(100);
        let high = (qos.get("max") * NORMAL_RATE / 100).max(low);
        self.user_percentiles =
            ["rpct", "wpct"].map(|name| qos.is_given(name).then(|| qos.get(name)));
        self.user_latencies_ns =
            ["rlat", "wlat"].map(|name| qos.is_given(name).then(|| qos.get_ns(name)));
        self.rate_limits = (low, high);
        self.unfit_since_ns = None;
        self.adopt(automatic);
    }

    /// A group's weight was set (`weight_updated`). Its weight in use stays, if it fits.
    fn set_weight(&mut self, group: usize, weight: u64, now_ns: u64) {
        let clock_vtime = self.now(now_ns);
        let entry = &self.groups[group];
        if entry.weight == weight {
            return;
        }
        let (active, was_active, in_use) = (entry.active, entry.was_active, entry.in_use);
        self.put_weight(group, weight);
        if active {
            self.use_weight(group, in_use, clock_vtime);
            self.share_out();
        } else if !was_active {
            self.put_in_use(group, weight);
        }
    }

    /// Takes over a profile's values where the user set none.
    fn adopt(&mut self, automatic: Automatic) {
        self.automatic = automatic;
        self.costs = self.user_model.unwrap_or(automatic.rates).map(Costs::new);
        let (percentiles, targets) = self.latency_targets();
        // Twice the larger target; up to ten times for a percentile of 50.
        let larger = usize::from(targets[1] > targets[0]);
        let multiple = match percentiles[larger] {
            0 => 2,
            percentile => (100_u64.saturating_sub(percentile) / 5).max(2),
        };
        self.period_ns = (targets[larger] * multiple).clamp(1_000_000, SECOND);
    }

    /// Percentiles and latencies, each for reads and writes. A target of 0 counts: its periods are
    /// the shortest.
    fn latency_targets(&self) -> ([u64; 2], [u64; 2]) {
        let automatic_ns = self.automatic.latency_ns;
        let latencies_ns = self.user_latencies_ns.map(|given| given.unwrap_or(automatic_ns));
        (self.user_percentiles.map(Option::unwrap_or_default), latencies_ns)
    }

    /// The device's clock, with a resolution of a microsecond.
    fn now(&self, now_ns: u64) -> u64 {
        self.clock_vtime + (now_ns / MICROSECOND - self.clock_at_us) * self.clock_rate
    }

    fn absolute_cost(&self, group: usize, sector: u64, nr_sectors: u32, write: bool) -> u64 {
        let costs = &self.costs[usize::from(write)];
        let last_end = self.groups[group].last_end;
        let random = last_end > 0 && sector.abs_diff(last_end) / PAGE_SECTORS > RANDOM_PAGES;
        costs.start_vtime[usize::from(random)] + Self::pages(nr_sectors) * costs.page_vtime
    }

    fn pages(nr_sectors: u32) -> u64 {
        (u64::from(nr_sectors) / PAGE_SECTORS).max(1)
    }

    /// Lets a group pay for a bio.
    fn pay(&mut self, cx: &PolicyContext, group: usize, bio: RequestId, cost_vtime: u64) {
        let charged_vtime = self.charged(group, cost_vtime);
        let entry = &mut self.groups[group];
        entry.vtime = entry.vtime.saturating_add(charged_vtime);
        entry.used_vtime += cost_vtime;
        self.note(bio, Paid { asked_ns: cx.now_ns(), charged_vtime, group: group as u16 });
    }

    fn note(&mut self, bio: RequestId, paid: Paid) {
        if self.paid.len() <= bio as usize {
            self.paid.resize(bio as usize + 1, NOT_PAID);
        }
        self.paid[bio as usize] = paid;
    }

    /// The record of a bio that was let through.
    fn paid(&self, bio: RequestId) -> Option<Paid> {
        self.paid.get(bio as usize).copied().filter(|paid| paid.asked_ns != u64::MAX)
    }

    /// True if a group's budget covers a cost.
    fn affords(&self, group: usize, cost_vtime: u64, clock_vtime: u64) -> bool {
        let charged_vtime = self.charged(group, cost_vtime);
        self.groups[group].vtime.saturating_add(charged_vtime) <= clock_vtime
    }

    /// A group's lag behind the device's clock.
    fn behind_vtime(&self, group: usize, clock_vtime: u64) -> i64 {
        clock_vtime as i64 - self.groups[group].vtime as i64
    }

    fn activate(&mut self, cx: &mut PolicyContext, group: usize) {
        self.groups[group].seen = true;
        if self.groups[group].active {
            return;
        }
        let clock_vtime = self.now(cx.now_ns());
        let vtime = clock_vtime - self.margin_vtime(TARGET_PERCENT);
        self.active.push(group);
        self.activity_changed = true;
        let entry = &mut self.groups[group];
        entry.active = true;
        entry.was_active = true;
        entry.activated_at_ns = cx.now_ns();
        entry.done_vtime = vtime - (entry.vtime - entry.done_vtime);
        entry.vtime = vtime;
        // It begins with the weight in use when it was last active.
        let in_use = entry.in_use;
        self.use_weight(group, in_use, clock_vtime);
        self.share_out();
        if self.period_end_ns.is_none() {
            self.forgiving = Forgiving::since(cx.now_ns());
            self.begin_period(cx, clock_vtime);
        }
    }

    /// A percentage of a period, in device time.
    fn margin_vtime(&self, percent: u64) -> u64 {
        self.period_ns / MICROSECOND * percent / 100 * self.rate
    }

    fn begin_period(&mut self, cx: &mut PolicyContext, clock_vtime: u64) {
        self.clock_vtime = clock_vtime;
        self.clock_at_us = cx.now_ns() / MICROSECOND;
        let delay = duration_jiffies(self.period_ns, self.jiffy_ns);
        let end_ns = timer_ns(cx.now_ns(), delay, self.jiffy_ns);
        self.period_end_ns = Some(end_ns);
        cx.timer_at(end_ns);
    }
}

#[cfg(test)]
impl IoCost {
    /// Two active groups of weights 100 and 300 on a disk with an arm.
    fn of_two_groups() -> Self {
        let weight = |group: &str, weight: &str| {
            (group.to_owned(), vec![("io.weight".to_owned(), weight.to_owned())])
        };
        let given = vec![weight("a", "100"), weight("b", "300")];
        let cgroups = Cgroups::new(&given, &[]).expect("the groups are valid");
        let mut cost = Self::new(&cgroups, true, 32, 4_000_000);
        for group in [1, 2] {
            cost.groups[group].active = true;
            cost.active.push(group);
        }
        cost.activity_changed = true;
        cost.share_out();
        cost
    }
}

/// Weights are scaled so that small parts of them can be lent.
fn cost_group(group: &Group) -> CostGroup {
    let weight = group.io_weight * WHOLE;
    CostGroup { parent: group.parent as usize, weight, in_use: weight, ..CostGroup::default() }
}

impl Policy for IoCost {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn group_changed(&mut self, cx: &mut PolicyContext, changed: &GroupChange) {
        let group = usize::from(changed.group);
        match changed.attribute.as_str() {
            "io.weight" if group > 0 => {
                let weight = changed.cgroups.groups[group].io_weight * WHOLE;
                self.set_weight(group, weight, cx.now_ns());
            }
            "io.cost.qos" | "io.cost.model" => self.configure(&changed.cgroups),
            _ => {}
        }
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn admit(&mut self, cx: &mut PolicyContext, bio: RequestId) -> Admission {
        let request = &cx.requests[bio];
        let group = request.group as usize;
        if group == 0 || !has_cost(request.operation) {
            self.note(bio, Paid { asked_ns: cx.now_ns(), ..NOT_PAID });
            return Admission::Pass;
        }
        let (sector, end) = (request.sector, request.end());
        let cost_vtime = self.absolute_cost(group, sector, request.nr_sectors, request.is_write());
        self.activate(cx, group);
        self.groups[group].last_end = end;
        let clock_vtime = self.now(cx.now_ns());
        self.take_back(group, cost_vtime, clock_vtime);
        let entry = &self.groups[group];
        let owes = entry.debt_vtime > 0;
        if entry.waiting.is_empty() && !owes && self.affords(group, cost_vtime, clock_vtime) {
            self.pay(cx, group, bio, cost_vtime);
            return Admission::Pass;
        }
        // A group that waits has all of its weight, unless it is in debt.
        if !owes && entry.in_use < entry.weight {
            self.use_weight(group, u64::MAX, clock_vtime);
            self.share_out();
        }
        self.groups[group].waiting.push_back((bio, cost_vtime));
        self.look_after(cx, group);
        Admission::Sleep
    }

    fn merged(&mut self, cx: &mut PolicyContext, bio: RequestId, request: RequestId) {
        let joined = &cx.requests[bio];
        let group = joined.group as usize;
        // A bio that was admitted has paid already.
        if group == 0 || !has_cost(joined.operation) || self.paid(bio).is_some() {
            return;
        }
        let costs = &self.costs[usize::from(joined.is_write())];
        let cost_vtime = Self::pages(joined.own_sectors) * costs.page_vtime;
        let clock_vtime = self.now(cx.now_ns());
        self.take_back(group, cost_vtime, clock_vtime);
        let at_front = cx.requests[request].sector == joined.sector;
        if !at_front && self.groups[group].last_end == joined.sector {
            self.groups[group].last_end = joined.end();
        }
        let has_paid = self.paid(request).is_some_and(|paid| paid.charged_vtime > 0);
        if !self.groups[group].active || has_paid && self.affords(group, cost_vtime, clock_vtime) {
            self.pay(cx, group, bio, cost_vtime);
        } else {
            self.incur(group, cost_vtime);
        }
    }

    fn completed(&mut self, cx: &mut PolicyContext, request: RequestId) {
        if let Some(Paid { asked_ns, .. }) = self.paid(request) {
            let entry = &cx.requests[request];
            self.tag_wait_ns += entry.inserted_ns.saturating_sub(asked_ns);
            let direction = usize::from(entry.is_write());
            let pages = u64::from(entry.nr_sectors) / PAGE_SECTORS;
            let size_ns = pages * self.costs[direction].page_vtime / VTIME_PER_NS;
            let took_ns = cx.now_ns().saturating_sub(asked_ns).saturating_sub(size_ns);
            let (_, targets) = self.latency_targets();
            self.latencies[direction][usize::from(took_ns > targets[direction])] += 1;
        }
        let mut bio = request;
        while bio != NONE {
            if let Some(paid) = self.paid(bio) {
                self.groups[paid.group as usize].done_vtime += paid.charged_vtime;
                self.note(bio, NOT_PAID);
            }
            bio = cx.requests[bio].chain;
        }
    }

    fn timer(&mut self, cx: &mut PolicyContext) {
        // Waiters' timers fire in the interrupt; the period ends after it.
        self.look_after_all(cx);
        if self.period_end_ns.is_some_and(|end_ns| end_ns <= cx.now_ns()) {
            self.end_period(cx);
        }
    }
}
