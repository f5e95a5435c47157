//! Everything that a seed decides before the first I/O.

use blksim::core::rng::Stream;
use serde::{Deserialize, Serialize};

use super::Torture;

/// Bytes of the unit in which workers keep account of the disk.
pub const BLOCK_BYTES: u64 = 4096;
/// Blocks of each worker's part of the disk.
pub const BLOCKS: u64 = 1024;

/// The disk, and who works on it.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub workers: u32,
    pub logical_block_bytes: u32,
    pub latency_ns: u64,
    pub queue_depth: u32,
    /// MiB of a volatile write cache; 0 for none.
    pub cache_mib: u32,
    /// Mean time between two changes of settings.
    pub disturbance_ns: u64,
    /// Most I/Os in flight, by worker.
    pub depths: Vec<u32>,
    pub load: Load,
    pub duration_ns: u64,
    /// Longest time for which anything may wait.
    pub bound_ns: u64,
}

/// The shape of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Reads, writes and syncs of all sizes beneath changes of everything.
    Mixed,
    /// On a slow disk, half of the workers reading and half writing, without other changes than of tunables: a
    /// job that starves shows there.
    Long,
    /// The same, and all tasks keep one I/O priority: a scheduler need not serve a lower class while a higher one has
    /// requests, but one task beside its equals.
    Equals,
    /// Bursts of more requests than a scheduler lets out at once, each after the last one's end, with no other
    /// changes than of tunables: nobody but the scheduler itself lets it go on, and a missed wake-up shows.
    Bursts,
}

impl Load {
    /// A slow disk and a load of 45 s.
    pub fn is_long(self) -> bool {
        matches!(self, Self::Long | Self::Equals)
    }
}

/// The duration of a long load and its bound, which is above what schedulers of the kernel let the lowest class wait
/// (`prio_aging_expire` of `block/mq-deadline.c`, Linux 6.1: 10 s).
const LONG_NS: u64 = 45_000_000_000;
const LONG_BOUND_NS: u64 = 25_000_000_000;
/// I/Os of a burst: after those that overlap have been left out, more than the writes that kyber lets out at
/// once (128, `kyber_depth` of `block/kyber-iosched.c`, Linux 6.1).
const BURST: u32 = 240;

impl Plan {
    pub fn draw(torture: &Torture) -> Self {
        let mut draw = Stream::named(torture.seed, "plan");
        let workers = 2 + draw.below(7) as u32;
        let mut one_of = |values: &[u32]| values[draw.below(values.len() as u64) as usize];
        let logical_block_bytes = one_of(&[512, 4096]);
        let queue_depth = one_of(&[1, 2, 4, 16, 64, 128]);
        let cache_mib = one_of(&[0, 0, 4]);
        let latency_ns = u64::from(one_of(&[10, 30, 100, 300, 1000, 3000])) * 1000;
        let disturbance_ns = u64::from(one_of(&[5, 15, 50, 150])) * 1_000_000;
        let depths: Vec<u32> = (0..workers).map(|_| one_of(&[1, 2, 4, 8, 16, 32])).collect();
        if torture.load.is_long() {
            // More writes than any scheduler lets out at once.
            let depths = (0..workers).map(|number| if number == 1 { 160 } else { 8 }).collect();
            return Self {
                workers,
                logical_block_bytes,
                latency_ns: 5_000_000,
                queue_depth: 1,
                cache_mib,
                disturbance_ns,
                depths,
                load: torture.load,
                duration_ns: LONG_NS,
                bound_ns: LONG_BOUND_NS,
            };
        }
        if torture.load == Load::Bursts {
            return Self {
                workers: 2,
                logical_block_bytes,
                latency_ns,
                queue_depth: 256,
                cache_mib,
                disturbance_ns,
                depths: vec![BURST, 8],
                load: torture.load,
                duration_ns: torture.duration_ns,
                bound_ns: torture.bound_ns,
            };
        }
        Self {
            workers,
            logical_block_bytes,
            latency_ns,
            queue_depth,
            cache_mib,
            disturbance_ns,
            depths,
            load: torture.load,
            duration_ns: torture.duration_ns,
            bound_ns: torture.bound_ns,
        }
    }

    /// Workers and the process that disturbs them.
    pub fn nr_processes(&self) -> u32 {
        self.workers + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torture(seed: u64, load: Load) -> Torture {
        Torture {
            seed,
            scheduler: "kyber".to_owned(),
            load,
            duration_ns: 1,
            bound_ns: 1,
            idle_bound_ns: 1,
            timeouts: false,
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        let drawn = |seed| format!("{:?}", Plan::draw(&torture(seed, Load::Mixed)));
        let plans: Vec<String> = (0..50).map(drawn).collect();
        assert_eq!(plans[7], drawn(7));
        let mut different = plans.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 45, "{}", different.len());
    }

    #[test]
    fn a_long_load_goes_on_after_its_bound() {
        for load in [Load::Long, Load::Equals] {
            let plan = Plan::draw(&torture(7, load));
            assert_eq!(plan.load, load);
            assert!(plan.duration_ns > plan.bound_ns);
        }
    }
}
