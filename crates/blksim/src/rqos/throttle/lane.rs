//! One direction of one group: its limits, its slice, and its held bios.
//!
//! All times are in jiffies and have the kernel's names.

use std::collections::{BTreeMap, VecDeque};

use crate::block::cgroup::UNLIMITED;
use crate::block::request::RequestId;

/// The kernel's value for no limit of I/Os (`UINT_MAX`).
const NO_LIMIT_OF_IOS: u64 = u32::MAX as u64;

/// The kernel's jiffies, as far as limits need them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    pub now: u64,
    pub hz: u64,
}

impl Ticks {
    /// Length of a slice (`DFL_THROTL_SLICE_HD`).
    pub fn slice(self) -> u64 {
        (self.hz / 10).max(1)
    }

    /// The end of the slice that contains a time.
    fn slice_end(self, moment: u64) -> u64 {
        moment.next_multiple_of(self.slice())
    }

    /// The amount that a rate allows within a time.
    fn allowed(self, per_second: u64, jiffies: u64) -> u64 {
        if per_second == UNLIMITED {
            return UNLIMITED;
        }
        u64::try_from(u128::from(per_second) * u128::from(jiffies) / u128::from(self.hz))
            .unwrap_or(UNLIMITED)
    }
}

/// Held bios in the order in which they go on: the groups that sent them take turns
/// (`throtl_qnode`).
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// Those that sent any, in the order of their turns.
    turns: VecDeque<Option<u16>>,
    bios: BTreeMap<Option<u16>, VecDeque<RequestId>>,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub fn first(&self) -> Option<RequestId> {
        self.bios.get(self.turns.front()?)?.front().copied()
    }

    /// Adds a bio of the group, or of a child.
    pub fn push(&mut self, sender: Option<u16>, bio: RequestId) {
        let bios = self.bios.entry(sender).or_default();
        if bios.is_empty() {
            self.turns.push_back(sender);
        }
        bios.push_back(bio);
    }

    /// Takes the first bio. Its sender goes behind the others.
    pub fn pop(&mut self) -> Option<RequestId> {
        let sender = self.turns.pop_front()?;
        let bios = self.bios.get_mut(&sender)?;
        let bio = bios.pop_front();
        if !bios.is_empty() {
            self.turns.push_back(sender);
        }
        bio
    }
}

#[derive(Debug, Clone)]
pub(super) struct Lane {
    bytes_per_second: u64,
    ios_per_second: u64,
    slice_start: u64,
    slice_end: u64,
    bytes: u64,
    ios: u64,
    /// The rest of the slice before a change of the limits, if bios were held; negative if that slice
    /// took too much (`carryover_bytes`, `carryover_ios`).
    left_bytes: i64,
    left_ios: i64,
    pub held: Held,
}

impl Lane {
    pub fn new(bytes_per_second: u64, ios_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            ios_per_second,
            slice_start: 0,
            slice_end: 0,
            bytes: 0,
            ios: 0,
            left_bytes: 0,
            left_ios: 0,
            held: Held::default(),
        }
    }

    pub fn unlimited(&self) -> bool {
        self.bytes_per_second == UNLIMITED && self.ios_per_second == UNLIMITED
    }

    /// Changes the limits: a new slice begins, and held bios keep what they have waited for
    /// (`tg_update_carryover`, `tg_conf_updated`).
    pub fn change(&mut self, ticks: Ticks, bytes_per_second: u64, ios_per_second: u64) {
        let elapsed = ticks.now.saturating_sub(self.slice_start);
        if !self.held.is_empty() {
            if self.bytes_per_second != UNLIMITED {
                let allowed = ticks.allowed(self.bytes_per_second, elapsed);
                let left = allowed.wrapping_sub(self.bytes) as i64;
                self.left_bytes = self.left_bytes.saturating_add(left);
            }
            if self.ios_per_second != UNLIMITED {
                let allowed = ticks.allowed(self.ios_per_second, elapsed);
                self.left_ios = self.left_ios.saturating_add(allowed.wrapping_sub(self.ios) as i64);
            }
        }
        self.bytes_per_second = bytes_per_second;
        self.ios_per_second = ios_per_second;
        self.slice_start = ticks.now;
        self.slice_end = ticks.now + ticks.slice();
        self.bytes = 0;
        self.ios = 0;
    }

    fn forget_left(&mut self) {
        self.left_bytes = 0;
        self.left_ios = 0;
    }

    /// `throtl_slice_used`.
    fn slice_used(&self, ticks: Ticks) -> bool {
        !(self.slice_start..=self.slice_end).contains(&ticks.now)
    }

    /// Jiffies that a bio must wait; 0 if it may go now (`tg_may_dispatch`).
    pub fn wait(&mut self, ticks: Ticks, bytes: u64) -> u64 {
        if self.unlimited() {
            return 0;
        }
        if self.slice_used(ticks) && self.held.is_empty() {
            self.slice_start = ticks.now;
            self.slice_end = ticks.now + ticks.slice();
            self.bytes = 0;
            self.ios = 0;
            self.forget_left();
        } else if self.slice_end < ticks.now + ticks.slice() {
            self.slice_end = ticks.slice_end(ticks.now + ticks.slice());
        }
        let mut wait = self.wait_for_bytes(ticks, bytes);
        if wait == 0 {
            wait = self.wait_for_ios(ticks);
        }
        if self.slice_end < ticks.now + wait {
            self.slice_end = ticks.slice_end(ticks.now + wait);
        }
        wait
    }

    /// `tg_within_bps_limit`; a piece of a bio whose bytes were charged has no bytes.
    fn wait_for_bytes(&self, ticks: Ticks, bytes: u64) -> u64 {
        if self.bytes_per_second == UNLIMITED || bytes == 0 {
            return 0;
        }
        let elapsed = ticks.now - self.slice_start;
        let rounded = elapsed.max(1).next_multiple_of(ticks.slice());
        let after = self.bytes.saturating_add(bytes);
        let allowed = ticks.allowed(self.bytes_per_second, rounded);
        let excess = after.saturating_sub(allowed.saturating_add_signed(self.left_bytes));
        if excess == 0 {
            return 0;
        }
        let pay = u128::from(excess) * u128::from(ticks.hz) / u128::from(self.bytes_per_second);
        (pay as u64).max(1) + rounded - elapsed
    }

    /// `tg_within_iops_limit`.
    fn wait_for_ios(&self, ticks: Ticks) -> u64 {
        if self.ios_per_second == UNLIMITED {
            return 0;
        }
        let elapsed = ticks.now - self.slice_start;
        let rounded = (elapsed + 1).next_multiple_of(ticks.slice());
        let allowed = ticks.allowed(self.ios_per_second, rounded);
        let within = self.ios < allowed.saturating_add_signed(self.left_ios);
        if within { 0 } else { rounded - elapsed }
    }

    pub fn charge(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.ios += 1;
    }

    /// Trims slices that are over, with what they allowed, unless that was 0 (`throtl_trim_slice`).
    pub fn trim(&mut self, ticks: Ticks) {
        if self.slice_used(ticks) {
            return;
        }
        self.slice_end = ticks.slice_end(ticks.now + ticks.slice());
        let over = (ticks.now - self.slice_start) / ticks.slice() * ticks.slice();
        if over == 0 {
            return;
        }
        let bytes = match self.bytes_per_second {
            UNLIMITED => 0,
            rate => ticks.allowed(rate, over),
        };
        let ios = ticks.allowed(self.ios_per_second.min(NO_LIMIT_OF_IOS), over);
        let bytes = bytes.saturating_add_signed(self.left_bytes);
        let ios = ios.saturating_add_signed(self.left_ios);
        if bytes == 0 && ios == 0 {
            return;
        }
        self.forget_left();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.ios = self.ios.saturating_sub(ios);
        self.slice_start += over;
    }

    /// A child passes a bio on: an idle group begins its slice at the child's
    /// (`start_parent_slice_with_credit`).
    pub fn begin_with(&mut self, ticks: Ticks, slice_start_of_child: u64) {
        if !self.slice_used(ticks) {
            return;
        }
        self.bytes = 0;
        self.ios = 0;
        self.forget_left();
        self.slice_start = self.slice_start.max(slice_start_of_child);
        self.slice_end = ticks.now + ticks.slice();
    }

    pub fn slice_start(&self) -> u64 {
        self.slice_start
    }
}
