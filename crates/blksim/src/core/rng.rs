//! Seeded random numbers: one stream for each purpose, told apart by name.
//!
//! Streams are independent of each other and of the order in which they are
//! made, so a scheduler that draws more numbers cannot disturb a workload.
//! The generator is xoshiro256** (Blackman and Vigna, 2018), seeded through
//! `SplitMix64`.

use crate::core::branch::likely;

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream {
    state: [u64; 4],
}

/// One step of `SplitMix64`: a good 64-bit mixing function.
pub fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream called `name` under `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name; mixed with the seed below.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut word = mix(seed) ^ hash;
        let state = std::array::from_fn(|_| {
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(word)
        });
        Self { state }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the multiply-shift method is below 2^-24 for bounds below 2^40.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in the open interval (0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// True in `percent` of 100 draws.
    #[inline]
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Standard normal (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }
}

/// Values that are encrypted side by side.
const LANES: usize = 4;

/// A random permutation of `0..len` in constant memory: a four-round Feistel
/// network on the smallest even-split bit width, walked until inside the range.
#[derive(Debug, Clone)]
pub struct Permutation {
    len: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(len: u64, stream: &mut Stream) -> Self {
        let bits = (64 - len.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        let keys = std::array::from_fn(|_| stream.next_u64() | 1);
        let high_bits = bits - low_bits;
        Self { len, low_bits, low_mask: (1 << low_bits) - 1, high_mask: (1 << high_bits) - 1, keys }
    }

    /// The number of values that it permutes.
    pub fn nr_items(&self) -> u64 {
        self.len
    }

    #[inline]
    fn round(key: u64, half: u64) -> u64 {
        let x = (half ^ (key >> 32)).wrapping_mul(key);
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    /// Encrypts several values side by side: each step of one waits for its previous step, which
    /// leaves the processor time for the others.
    #[inline]
    fn encrypt<const N: usize>(&self, values: [u64; N]) -> [u64; N] {
        let Self { low_bits, low_mask, high_mask, keys, .. } = *self;
        let mut low = values.map(|value| value & low_mask);
        let mut high = values.map(|value| value >> low_bits);
        for pair in keys.chunks_exact(2) {
            for lane in 0..N {
                high[lane] = (high[lane] ^ Self::round(pair[0], low[lane])) & high_mask;
            }
            for lane in 0..N {
                low[lane] = (low[lane] ^ Self::round(pair[1], high[lane])) & low_mask;
            }
        }
        std::array::from_fn(|lane| high[lane] << low_bits | low[lane])
    }

    fn decrypt(&self, value: u64) -> u64 {
        let Self { low_mask, high_mask, .. } = *self;
        let mut low = value & low_mask;
        let mut high = value >> self.low_bits;
        for pair in self.keys.rchunks_exact(2) {
            low = (low ^ Self::round(pair[1], high)) & low_mask;
            high = (high ^ Self::round(pair[0], low)) & high_mask;
        }
        high << self.low_bits | low
    }

    /// The image of `index`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let [value] = self.encrypt([index]);
        if likely(value < self.len) { value } else { self.walk(value) }
    }

    /// The images of the indices from `first` on. Values outside the range are walked afterwards,
    /// so that a wrong branch guess does not hold up the others.
    pub fn apply_to_run(&self, first: u64, values: &mut [u64]) {
        let mut index = first;
        let mut lanes = values.chunks_exact_mut(LANES);
        for values in &mut lanes {
            let indices: [u64; LANES] = std::array::from_fn(|lane| index + lane as u64);
            values.copy_from_slice(&self.encrypt(indices));
            index += LANES as u64;
        }
        for value in lanes.into_remainder() {
            [*value] = self.encrypt([index]);
            index += 1;
        }
        for value in values {
            if *value >= self.len {
                *value = self.walk(*value);
            }
        }
    }

    /// Walks a value beyond the range until it is inside.
    #[inline(never)]
    fn walk(&self, mut value: u64) -> u64 {
        while value >= self.len {
            [value] = self.encrypt([value]);
        }
        value
    }

    /// The index whose image is `value`.
    pub fn invert(&self, value: u64) -> u64 {
        let mut index = self.decrypt(value);
        while index >= self.len {
            index = self.decrypt(index);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_distinct() {
        let draw = |seed, name| Stream::named(seed, name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn unit_is_uniform() {
        let mut stream = Stream::named(7, "unit");
        let mean = (0..100_000).map(|_| stream.unit()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }

    #[test]
    fn permutation_visits_everything_once_and_inverts() {
        for len in [1, 2, 3, 5, 64, 1000, 4097] {
            let permutation = Permutation::new(len, &mut Stream::named(3, "permutation"));
            let mut seen = vec![false; len as usize];
            for index in 0..len {
                let value = permutation.apply(index);
                assert!(
                    !std::mem::replace(&mut seen[value as usize], true),
                    "{len}: {value} twice"
                );
                assert_eq!(permutation.invert(value), index);
            }
        }
    }

    #[test]
    fn a_run_goes_where_its_indices_go() {
        let permutation = Permutation::new(1000, &mut Stream::named(5, "permutation"));
        for (first, count) in [(0, 16), (3, 1), (17, 7), (990, 10), (500, 0)] {
            let mut values = vec![0; count];
            permutation.apply_to_run(first, &mut values);
            let one_by_one: Vec<_> = (first..).take(count).map(|i| permutation.apply(i)).collect();
            assert_eq!(values, one_by_one, "{count} from {first}");
        }
    }

    #[test]
    fn permutation_looks_random() {
        // The mean distance of neighbours in a random order is a third of the range.
        let len = 100_000_u64;
        let permutation = Permutation::new(len, &mut Stream::named(9, "permutation"));
        let total: u64 =
            (1..len).map(|i| permutation.apply(i).abs_diff(permutation.apply(i - 1))).sum();
        let mean = total as f64 / len as f64 / len as f64;
        assert!((mean - 1.0 / 3.0).abs() < 0.01, "{mean}");
    }
}
