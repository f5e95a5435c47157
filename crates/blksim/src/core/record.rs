//! The result of a run: counts and latency histograms for each job.

use crate::core::branch::unlikely;

/// Bits of precision of a bucket, as fio's `FIO_IO_U_PLAT_BITS`.
const PRECISION_BITS: u32 = 6;
/// Buckets of one power of two.
const VALUES_PER_GROUP: usize = 1 << PRECISION_BITS;
const NR_GROUPS: usize = 29;
/// The exponent and fraction of a number whose bucket is 0, as [`bucket_of`] reads them.
const FIRST_BUCKET_OF_NUMBER: usize =
    (f64::MAX_EXP as usize - 1 + PRECISION_BITS as usize - 1) << PRECISION_BITS;
const NR_BUCKETS: usize = NR_GROUPS * VALUES_PER_GROUP;

/// A latency histogram in fio's bucket layout, so that simulated and measured
/// histograms can be added: exact below 128 ns, then 64 buckets for each
/// power of two.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Box<[u64; NR_BUCKETS]>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = Box::new([0; NR_BUCKETS]);
        Self { buckets, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket_of(ns)] += 1;
        self.count += 1;
        self.sum_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// 0 if there is no sample.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Adds all samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *bucket += count;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The histogram as numbers, for [`Self::from_words`].
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let occupied = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let length = occupied.clone().count() as u64;
        [self.sum_ns, self.min_ns, self.max_ns, length]
            .into_iter()
            .chain(occupied.flat_map(|(index, count)| [index as u64, *count]))
    }

    /// A histogram from [`Self::words`]; `None` if the words are malformed.
    fn from_words(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let mut histogram = Self {
            sum_ns: words.next()?,
            min_ns: words.next()?,
            max_ns: words.next()?,
            ..Self::default()
        };
        for _ in 0..words.next()? {
            let bucket = histogram.buckets.get_mut(words.next()? as usize)?;
            *bucket = words.next()?;
            histogram.count += *bucket;
        }
        Some(histogram)
    }

    /// Occupied buckets: (representative value in ns, count), ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (representative(index), *count))
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    if unlikely(ns < VALUES_PER_GROUP as u64) {
        return ns as usize;
    }
    // A float holds the power of two and the bits after the leading one side by side, in its
    // exponent and fraction.
    let number = (ns as i64 as f64).to_bits();
    let group_and_offset = (number >> (f64::MANTISSA_DIGITS - 1 - PRECISION_BITS)) as usize;
    let bucket = group_and_offset - FIRST_BUCKET_OF_NUMBER;
    if unlikely(bucket >= NR_BUCKETS) { NR_BUCKETS - 1 } else { bucket }
}

/// The middle of a bucket, rounded as fio rounds it.
fn representative(index: usize) -> u64 {
    if index < 2 * VALUES_PER_GROUP {
        return index as u64;
    }
    let shift = (index >> PRECISION_BITS) - 1;
    let base = 1_u64 << (shift + PRECISION_BITS as usize);
    let offset = (index % VALUES_PER_GROUP) as u64;
    base + (((2 * offset + 1) << shift) >> 1)
}

/// Reads, writes, trims, or calls of fsync and fdatasync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read = 0,
    Write = 1,
    Sync = 2,
    Trim = 3,
}

impl Direction {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Sync];
    /// Those that move or drop data.
    pub const OF_DATA: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Trim => "trim",
        }
    }
}

/// The record of a job in one direction.
#[derive(Debug, Clone, Default)]
pub struct DirectionRecord {
    pub bytes: u64,
    pub latency: Histogram,
    /// I/Os of jobs that ended within their ramp time: counted, as fio does, without their latencies.
    pub ios_in_ramp: u64,
}

impl DirectionRecord {
    /// I/Os or calls that are done.
    pub fn ios(&self) -> u64 {
        self.latency.count() + self.ios_in_ramp
    }
}

/// Processor time of a job's processes while they were measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user_ns: u64,
    /// In the kernel on the program's behalf.
    pub system_ns: u64,
}

/// The record of a section of the job file, all its clones together.
#[derive(Debug, Clone, Default)]
pub struct JobRecord {
    pub name: String,
    pub clones: u32,
    /// Longest measured time of a clone.
    pub runtime_ns: u64,
    /// `None` if computing takes no time.
    pub cpu: Option<CpuTime>,
    directions: [DirectionRecord; 4],
}

impl JobRecord {
    pub fn new(name: &str, clones: u32) -> Self {
        Self { name: name.to_owned(), clones, ..Self::default() }
    }

    #[inline]
    pub fn add(&mut self, direction: Direction, bytes: u64, latency_ns: u64) {
        let record = &mut self.directions[direction as usize];
        record.bytes += bytes;
        record.latency.add(latency_ns);
    }

    /// Counts I/Os of which there are no latencies.
    pub fn add_in_ramp(&mut self, direction: Direction, ios: u64, bytes: u64) {
        let record = &mut self.directions[direction as usize];
        record.ios_in_ramp += ios;
        record.bytes += bytes;
    }

    /// Adds what another record of the job holds.
    pub fn merge(&mut self, other: &Self) {
        self.runtime_ns = self.runtime_ns.max(other.runtime_ns);
        for (record, added) in self.directions.iter_mut().zip(&other.directions) {
            record.bytes += added.bytes;
            record.ios_in_ramp += added.ios_in_ramp;
            record.latency.merge(&added.latency);
        }
    }

    /// The record as numbers, without name and clones, so that one process can hand it to another.
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.runtime_ns];
        for record in &self.directions {
            words.extend([record.bytes, record.ios_in_ramp]);
            words.extend(record.latency.words());
        }
        words
    }

    /// Adds the [`Self::words`] of another clone's record; `None` if they are malformed.
    pub fn add_words(&mut self, words: impl IntoIterator<Item = u64>) -> Option<()> {
        let mut words = words.into_iter();
        self.runtime_ns = self.runtime_ns.max(words.next()?);
        for record in &mut self.directions {
            record.bytes += words.next()?;
            record.ios_in_ramp += words.next()?;
            record.latency.merge(&Histogram::from_words(&mut words)?);
        }
        words.next().is_none().then_some(())
    }

    pub fn direction(&self, direction: Direction) -> &DirectionRecord {
        &self.directions[direction as usize]
    }

    /// Completed I/Os, without syncs.
    pub fn ios(&self) -> u64 {
        Direction::OF_DATA.iter().map(|direction| self.direction(*direction).ios()).sum()
    }

    /// Completed I/Os a second, without syncs.
    pub fn iops(&self) -> f64 {
        let ios = self.ios();
        if self.runtime_ns == 0 { 0.0 } else { ios as f64 * 1e9 / self.runtime_ns as f64 }
    }

    /// Bytes a second, without syncs.
    pub fn bytes_per_second(&self) -> f64 {
        let of_data = Direction::OF_DATA.iter();
        let bytes: u64 = of_data.map(|direction| self.direction(*direction).bytes).sum();
        if self.runtime_ns == 0 { 0.0 } else { bytes as f64 * 1e9 / self.runtime_ns as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_fios() {
        // Values worked by hand from the layout: 64 buckets for each power of two.
        for (ns, middle) in
            [(0, 0), (63, 63), (64, 64), (127, 127), (128, 129), (129, 129), (130, 131)]
        {
            assert_eq!(representative(bucket_of(ns)), middle, "{ns}");
        }
        // 100 us = 1.52 * 2^16: shift 10, buckets of 1024 ns: 99,328 to 100,351.
        assert_eq!(representative(bucket_of(100_000)), 99_328 + 512);
        assert_eq!(bucket_of(u64::MAX), NR_BUCKETS - 1);
    }

    #[test]
    fn records_pass_through_numbers() {
        let mut whole = JobRecord::new("a", 2);
        let mut parts = [JobRecord::new("a", 1), JobRecord::new("a", 1)];
        for (part, ns) in [(0, 100), (1, 7), (0, 123_456), (1, u64::MAX / 4)] {
            parts[part].add(Direction::Write, 4096, ns);
            whole.add(Direction::Write, 4096, ns);
        }
        for record in [&mut parts[1], &mut whole] {
            record.add_in_ramp(Direction::Read, 3, 12_288);
        }
        parts[1].runtime_ns = 5;
        whole.runtime_ns = 5;
        let mut sum = JobRecord::new("a", 2);
        for part in &parts {
            sum.add_words(part.words()).unwrap();
        }
        assert_eq!(format!("{sum:?}"), format!("{whole:?}"));
        let broken = whole.words().split_off(1);
        assert_eq!(JobRecord::default().add_words(broken), None);
    }

    #[test]
    fn every_bucket_holds_its_representative() {
        for index in 0..NR_BUCKETS {
            assert_eq!(bucket_of(representative(index)), index);
        }
    }
}
