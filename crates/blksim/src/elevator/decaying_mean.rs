//! The decaying mean by which anticipatory, cfq and bfq follow think times and seek distances: each
//! sample weighs an eighth.
//!
//! Kernel: `as_update_thinktime` in `block/as-iosched.c` (2.6.32),
//! `__cfq_update_io_thinktime` in `block/cfq-iosched.c` (4.16). Fixed point:
//! 256 stands for one whole sample.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DecayingMean {
    samples: u64,
    total: u64,
    mean: u64,
}

impl DecayingMean {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total).saturating_add(value.saturating_mul(256)) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    #[inline]
    pub fn mean(&self) -> u64 {
        self.mean
    }

    /// No sample yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Enough samples (more than three samples' weight) for a meaningful mean.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.samples > 80
    }

    /// For seek distances: a far seek is capped, so that a stray fragment does not spoil the mean.
    #[inline]
    pub fn add_seek(&mut self, distance: u64) {
        let allowance = if self.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.add(distance.min(4 * self.mean + allowance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_its_samples() {
        let mut mean = DecayingMean::default();
        assert!(mean.is_empty());
        for settled in [false, false, true] {
            mean.add(1000);
            assert_eq!(mean.is_settled(), settled);
        }
        assert!((990..=1010).contains(&mean.mean()), "{}", mean.mean());
        for _ in 0..40 {
            mean.add(0);
        }
        assert!(mean.mean() < 10);
    }

    #[test]
    fn a_single_far_seek_is_capped() {
        let mut mean = DecayingMean::default();
        for _ in 0..30 {
            mean.add_seek(0);
        }
        mean.add_seek(u64::MAX / 1024);
        assert!(mean.mean() <= 2 * 1024 * 64 / 7);
    }
}
