//! The device's peak rate at mostly sequential requests, from which budgets and the times of weight
//! raising follow.
//!
//! Kernel: `bfq_update_peak_rate` and `bfq_update_rate_reset` in
//! `block/bfq-iosched.c`, Linux 6.1.

use super::queue::{MS, is_seek};
use crate::block::request::Request;

/// Rates are in sectors a microsecond with this many bits of fraction.
const SHIFT: u32 = 16;
/// Rates of the devices that the constants were tuned on, and the start-up times of a large
/// application there.
const REFERENCE_RATE: [u64; 2] = [33_000, 14_000];
const REFERENCE_RAISE_MS: [i64; 2] = [2_500, 7_000];

const WINDOW_NS: i64 = 1000 * MS;
const LEAST_WINDOW_NS: i64 = 300 * MS;
const LEAST_SAMPLES: u64 = 32;
const INACTIVE_NS: i64 = 100 * MS;
/// A shorter gap is not idleness.
pub(super) const SHORT_NS: i64 = 2 * MS;
/// More than 20 sectors a microsecond come from a cache.
const HIGHEST_RATE: u64 = 20 << SHIFT;

#[derive(Debug, Clone)]
pub(super) struct PeakRate {
    rotational: bool,
    jiffy_ns: i64,
    rate: u64,
    /// Values that follow from the rate.
    raise_ns: i64,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first_ns: i64,
    /// From the first sample to the last.
    span_ns: i64,
    last_dispatch_ns: i64,
    pub last_completion_ns: i64,
    pub last_sector: u64,
}

impl PeakRate {
    pub fn new(rotational: bool, jiffy_ns: i64) -> Self {
        let rate = REFERENCE_RATE[usize::from(rotational)] * 2 / 3;
        Self {
            rotational,
            jiffy_ns,
            rate,
            raise_ns: raise_ns(rate, rotational, jiffy_ns),
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first_ns: 0,
            span_ns: 0,
            last_dispatch_ns: 0,
            last_completion_ns: 0,
            last_sector: 0,
        }
    }

    /// Sectors in a time at the peak rate.
    pub fn sectors_in(&self, time_ns: i64) -> u64 {
        ((u128::from(self.rate) * (time_ns / 1000) as u128) >> SHIFT) as u64
    }

    /// Duration of an interactive queue's weight raising.
    #[inline]
    pub fn raise_ns(&self) -> i64 {
        self.raise_ns
    }

    /// A request goes to the device. Returns true if the rate may have changed.
    #[inline(always)]
    pub fn dispatched(&mut self, request: &Request, now_ns: i64, in_device: u32) -> bool {
        let sectors = u64::from(request.nr_sectors);
        let mut changed = false;
        if self.samples == 0 {
            self.restart(Some(sectors), now_ns);
        } else if now_ns - self.last_dispatch_ns > INACTIVE_NS && in_device == 0 {
            changed = self.close(Some(sectors), now_ns);
        } else {
            self.samples += 1;
            let active = in_device > 0 || now_ns - self.last_completion_ns < SHORT_NS;
            if active && !is_seek(self.last_sector, request, self.rotational) {
                self.sequential += 1;
            }
            self.sectors += sectors;
            self.largest = if self.samples % 32 == 0 { sectors } else { self.largest.max(sectors) };
            self.span_ns = now_ns - self.first_ns;
            if self.span_ns >= WINDOW_NS {
                changed = self.close(Some(sectors), now_ns);
            }
        }
        self.last_sector = request.end();
        self.last_dispatch_ns = now_ns;
        changed
    }

    /// A request is done. Returns true if the rate may have changed: one that took so long that the
    /// device was busy with something else ends the window.
    #[inline]
    pub fn completed(&mut self, now_ns: i64) -> bool {
        let gap_us = (now_ns - self.last_completion_ns) / 1000;
        let crawled = gap_us > SHORT_NS / 1000
            && ((self.largest << SHIFT) / gap_us as u64) < 1 << (SHIFT - 10);
        let changed = crawled && self.close(None, now_ns);
        self.last_completion_ns = now_ns;
        changed
    }

    fn restart(&mut self, sectors: Option<u64>, now_ns: i64) {
        self.sequential = 0;
        self.samples = u64::from(sectors.is_some());
        self.sectors = sectors.unwrap_or(0);
        if let Some(sectors) = sectors {
            self.largest = sectors;
            self.first_ns = now_ns;
            self.span_ns = 0;
        }
    }

    /// Evaluates the window and begins another.
    fn close(&mut self, sectors: Option<u64>, now_ns: i64) -> bool {
        let (samples, sequential) = (self.samples, self.sequential);
        let (span_ns, total) = (self.span_ns, self.sectors);
        let until_completion_ns = self.last_completion_ns - self.first_ns;
        self.restart(sectors, now_ns);
        if samples < LEAST_SAMPLES || span_ns < LEAST_WINDOW_NS {
            return false;
        }
        let span_ns = span_ns.max(until_completion_ns);
        let rate = (total << SHIFT) / (span_ns / 1000) as u64;
        if (sequential < 3 * samples / 4 && rate <= self.rate) || rate > HIGHEST_RATE {
            return false;
        }
        // The longer and the more sequential, the more it weighs: up to 4/5.
        let weight = (9 * sequential / samples * span_ns as u64 / WINDOW_NS as u64).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        self.raise_ns = raise_ns(self.rate, self.rotational, self.jiffy_ns);
        true
    }
}

/// The start-up time of a large application on a device of this rate: 3 to 25 s, in whole jiffies
/// (`bfq_wr_duration`).
fn raise_ns(rate: u64, rotational: bool, jiffy_ns: i64) -> i64 {
    let kind = usize::from(rotational);
    let jiffies = |ms: i64| (ms * MS + jiffy_ns - 1) / jiffy_ns;
    let product = REFERENCE_RATE[kind] as i64 * jiffies(REFERENCE_RAISE_MS[kind]);
    (product / rate as i64).clamp(jiffies(3_000), jiffies(25_000)) * jiffy_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose};

    #[test]
    fn it_starts_at_two_thirds_of_the_reference() {
        let (flash, disk) = (PeakRate::new(false, 10 * MS), PeakRate::new(true, 10 * MS));
        assert_eq!(disk.sectors_in(125 * MS), 17_801);
        assert_eq!(flash.sectors_in(125 * MS), 41_961);
        assert_eq!((disk.raise_ns() / MS, flash.raise_ns() / MS), (10_500, 3_750));
    }

    #[test]
    fn it_approaches_what_is_measured() {
        let mut rate = PeakRate::new(true, 10 * MS);
        // 256 sectors a millisecond.
        for step in 0..5000_i64 {
            let mut request =
                Request::new(Operation::Read, 256 * step as u64, 256, Purpose::Direct);
            request.sector = 256 * step as u64;
            rate.dispatched(&request, step * MS, 0);
            rate.completed(step * MS + MS / 2);
        }
        let sectors = rate.sectors_in(125 * MS);
        assert!((30_900..32_100).contains(&sectors), "{sectors}");
    }
}
