//! Numbers counted by magnitude: 32 classes to the power of two, so a quantile is off by 3 % at most.

use serde::Serialize;

const CLASS_BITS: u32 = 5;
const CLASSES: u64 = 1 << CLASS_BITS;

/// Counts by class. The classes grow with the largest number.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Quantiles and classes of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub count: u64,
    pub sum: f64,
    pub min: u64,
    pub max: u64,
    pub p50: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    pub p999: u64,
    /// Powers of two, and the numbers up to them and above half of them.
    pub classes: Vec<(u64, u64)>,
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        let class = class_of(value);
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// The smallest class bound below which the share lies, within the range of the numbers.
    pub fn quantile(&self, share: f64) -> u64 {
        self.quantile_by(share, middle_of)
    }

    fn quantile_by(&self, share: f64, value_of: fn(usize) -> u64) -> u64 {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
                return value_of(class).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The summary of numbers that are mostly powers of two, such as sizes: quantiles are the classes' smallest
    /// numbers, which are exact then.
    pub fn summary_of_sizes(&self) -> Summary {
        self.summarised(|class| bounds_of(class).0)
    }

    pub fn summary(&self) -> Summary {
        self.summarised(middle_of)
    }

    fn summarised(&self, value_of: fn(usize) -> u64) -> Summary {
        let mut classes: Vec<(u64, u64)> = Vec::new();
        for (class, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bound = bounds_of(class).0.checked_next_power_of_two().unwrap_or(u64::MAX);
            match classes.last_mut() {
                Some((last, sum)) if *last == bound => *sum += count,
                _ => classes.push((bound, *count)),
            }
        }
        Summary {
            count: self.count,
            sum: self.sum as f64,
            min: self.min,
            max: self.max,
            p50: self.quantile_by(0.5, value_of),
            p90: self.quantile_by(0.9, value_of),
            p95: self.quantile_by(0.95, value_of),
            p99: self.quantile_by(0.99, value_of),
            p999: self.quantile_by(0.999, value_of),
            classes,
        }
    }
}

/// Numbers below 32 have a class each.
#[inline]
fn class_of(value: u64) -> usize {
    if value < CLASSES {
        return value as usize;
    }
    let power = value.ilog2();
    let within = (value >> (power - CLASS_BITS)) - CLASSES;
    ((u64::from(power - CLASS_BITS + 1) << CLASS_BITS) + within) as usize
}

/// The smallest and the largest number of a class.
fn bounds_of(class: usize) -> (u64, u64) {
    let class = class as u64;
    if class < CLASSES {
        return (class, class);
    }
    let shift = (class >> CLASS_BITS) - 1;
    let first = (CLASSES + (class & (CLASSES - 1))) << shift;
    (first, first + ((1 << shift) - 1))
}

fn middle_of(class: usize) -> u64 {
    let (first, last) = bounds_of(class);
    first + (last - first) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_within_its_class() {
        for value in (0..5000).chain([1 << 40, u64::MAX, u64::MAX - 1, (1 << 40) - 1]) {
            let (first, last) = bounds_of(class_of(value));
            assert!(first <= value && value <= last, "{value}");
            assert!((last - first) as f64 <= value as f64 / 31.0, "{value}: {first} to {last}");
        }
    }

    #[test]
    fn quantiles_are_close() {
        let mut histogram = Histogram::default();
        for value in 1..=100_000 {
            histogram.add(value);
        }
        for share in [0.5, 0.9, 0.99, 0.999] {
            let exact = share * 100_000.0;
            assert!((histogram.quantile(share) as f64 / exact - 1.0).abs() < 0.03);
        }
        assert_eq!(histogram.quantile(1.0), histogram.quantile(0.99999));
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }

    #[test]
    fn sizes_stay_in_the_class_of_their_power() {
        let mut histogram = Histogram::default();
        for size in [4096, 4096, 3000, 8192] {
            histogram.add(size);
        }
        assert_eq!(histogram.summary().classes.iter().map(|(_, count)| count).sum::<u64>(), 4);
    }
}
