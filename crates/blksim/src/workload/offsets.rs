//! The offsets of a job's random I/Os.

use super::free_blocks::FreeBlocks;
use super::job::{Distribution, Extent, PerDirection, Zone};
use crate::core::branch::unlikely;
use crate::core::record::Direction;
use crate::core::rng::{Permutation, Stream};

/// Blocks that a random order computes at once: in a loop each takes 55 instructions, alone 80.
const WORKED_OUT: usize = 16;

/// All blocks in random order, then all in another.
#[derive(Debug, Clone)]
pub(super) struct RandomOrder {
    order: Permutation,
    /// Position in the order of the first block that is not computed.
    place: u64,
    blocks: [u64; WORKED_OUT],
    /// Number of them that were handed out.
    given: usize,
}

impl RandomOrder {
    fn new(nr_blocks: u64, random: &mut Stream) -> Self {
        let order = Permutation::new(nr_blocks, random);
        Self { order, place: 0, blocks: [0; WORKED_OUT], given: WORKED_OUT }
    }

    /// The next block.
    #[inline]
    pub fn next(&mut self, random: &mut Stream) -> u64 {
        if unlikely(self.given >= WORKED_OUT) {
            self.work_out(random);
        }
        self.given += 1;
        self.blocks[self.given - 1]
    }

    #[inline(never)]
    fn work_out(&mut self, random: &mut Stream) {
        let mut done = 0;
        while done < WORKED_OUT {
            let left = self.order.nr_items() - self.place;
            if left == 0 {
                self.place = 0;
                self.order = Permutation::new(self.order.nr_items(), random);
                continue;
            }
            let run = left.min((WORKED_OUT - done) as u64);
            let end = done + run as usize;
            self.order.apply_to_run(self.place, &mut self.blocks[done..end]);
            self.place += run;
            done = end;
        }
        self.given = 0;
    }
}

/// The source of random offsets.
#[derive(Debug, Clone)]
pub(super) enum Offsets {
    Mapped(RandomOrder),
    /// Blocks that no I/O of a pass has covered.
    Marked(FreeBlocks),
    Uniform,
    Zoned(PerDirection<Vec<Zone>>),
    Zipf {
        zipf: Zipf,
        scatter: Permutation,
    },
    Pareto {
        exponent: f64,
        scatter: Permutation,
    },
    Normal {
        deviation: f64,
    },
}

impl Offsets {
    /// Offsets among so many blocks; if `mapped`, uniform ones visit each block once.
    pub fn new(
        distribution: &Distribution,
        mapped: bool,
        blocks: u64,
        random: &mut Stream,
    ) -> Self {
        match *distribution {
            Distribution::Uniform if mapped => Self::Mapped(RandomOrder::new(blocks, random)),
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipf(theta) => Self::Zipf {
                zipf: Zipf::new(blocks, theta),
                scatter: Permutation::new(blocks, random),
            },
            // The share h of the blocks gets 1 - h of the accesses.
            Distribution::Pareto(h) => Self::Pareto {
                exponent: libm::log(h) / libm::log(1.0 - h),
                scatter: Permutation::new(blocks, random),
            },
            Distribution::Normal(percent) => Self::Normal { deviation: percent / 100.0 },
            Distribution::Zoned(ref zones) => Self::Zoned(zones.clone()),
        }
    }

    /// The same for I/Os of several sizes, of which uniform ones cover each block once.
    pub fn of_several_sizes(distribution: &Distribution, blocks: u64, random: &mut Stream) -> Self {
        match distribution {
            Distribution::Uniform => Self::Marked(FreeBlocks::new(blocks)),
            other => Self::new(other, false, blocks, random),
        }
    }

    /// Begins a new pass, in which every block may come again.
    pub fn forget_visits(&mut self) {
        if let Self::Marked(free) = self {
            free.reset();
        }
    }

    /// Notes an I/O of `bytes` at a block of `unit` bytes; returns the part of it that covers blocks
    /// not visited.
    #[inline]
    pub fn visit(&mut self, block: u64, bytes: u64, unit: u64) -> u64 {
        match self {
            Self::Marked(free) => bytes.min(free.visit(block, bytes.div_ceil(unit)) * unit),
            _ => bytes,
        }
    }

    /// A block of `align` bytes out of `slots`; `None` if all were visited.
    #[inline]
    pub fn draw(
        &mut self,
        direction: Direction,
        align: u64,
        slots: impl FnOnce() -> u64,
        random: &mut Stream,
    ) -> Option<u64> {
        Some(match self {
            Self::Mapped(order) => order.next(random),
            Self::Marked(free) => {
                let slots = slots();
                return free.next_free(random.below(slots)).filter(|block| *block < slots);
            }
            Self::Zoned(zones) => {
                let zones = if direction == Direction::Read { &zones.read } else { &zones.write };
                draw_zoned(zones, align, slots(), random)
            }
            Self::Uniform => random.below(slots()),
            Self::Zipf { zipf, scatter } => scatter.apply(zipf.draw(random)) % slots(),
            Self::Pareto { exponent, scatter } => {
                let slots = slots();
                let rank = libm::pow(random.unit(), 1.0 / *exponent) * slots as f64;
                scatter.apply((rank as u64).min(slots - 1)) % slots
            }
            Self::Normal { deviation } => {
                let slots = slots() as f64;
                loop {
                    let x = (0.5 + random.normal() * *deviation) * slots;
                    if x >= 0.0 && x < slots {
                        break x as u64;
                    }
                }
            }
        })
    }
}

/// A block of a zone that is drawn by its share (`__get_next_rand_offset_zoned` in `io_u.c`, fio
/// 3.33). Zones are cut at the last block, where fio ends with an error.
fn draw_zoned(zones: &[Zone], align: u64, slots: u64, random: &mut Stream) -> u64 {
    let mut draw = random.below(100);
    let mut start = 0;
    for zone in zones {
        let end = match zone.end {
            Extent::Percent(percent) => slots / 100 * percent + slots % 100 * percent / 100,
            Extent::Bytes(bytes) => bytes / align,
        };
        let end = end.min(slots);
        if draw < zone.accesses {
            return (start + random.below((end - start).max(1))).min(slots - 1);
        }
        draw -= zone.accesses;
        start = end;
    }
    random.below(slots)
}

/// Zipf-distributed ranks by rejection-inversion (Hörmann and Derflinger, 1996).
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    ranks: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self {
            ranks: ranks as f64,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.ranks + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - libm::pow(2.0, -theta));
        zipf
    }

    /// Integral of x^-theta.
    fn integral(&self, x: f64) -> f64 {
        (libm::pow(x, 1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, y: f64) -> f64 {
        libm::pow((1.0 + (1.0 - self.theta) * y).max(0.0), 1.0 / (1.0 - self.theta))
    }

    /// A rank from 0, the most popular.
    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.integral_last + stream.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = libm::round(x).clamp(1.0, self.ranks);
            if rank - x <= self.shortcut
                || u >= self.integral(rank + 0.5) - libm::pow(rank, -self.theta)
            {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_ranks_have_the_right_weights() {
        let zipf = Zipf::new(1000, 1.2);
        let mut stream = Stream::named(5, "zipf");
        let mut counts = [0_u32; 1000];
        for _ in 0..200_000 {
            counts[zipf.draw(&mut stream) as usize] += 1;
        }
        let norm: f64 = (1..=1000).map(|k| libm::pow(f64::from(k), -1.2)).sum();
        for rank in [1_usize, 2, 10, 100] {
            let expected = 200_000.0 * libm::pow(rank as f64, -1.2) / norm;
            let seen = f64::from(counts[rank - 1]);
            assert!(
                (seen - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                "{rank}: {seen} {expected}"
            );
        }
    }
}
