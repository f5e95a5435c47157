//! The arrangement of a run: what nobody fixed and nobody could control, drawn from a seed.
//!
//! Two runs of the same experiment on a real machine differ in where the file system put the files,
//! at which moment of the platter's turn and of the kernel's tick the load began, how long each
//! process took to start, and which tag was the first. A model without chance repeats one such
//! arrangement for ever, and its results look more certain than they are.

use super::layout::{FILE_ALIGNMENT, File};
use crate::core::rng::Stream;

/// Longest gap between two files: a block group of ext4 with blocks of 4 KiB (32,768 blocks,
/// `EXT4_BLOCKS_PER_GROUP` in `fs/ext4/ext4.h`, Linux 6.1), within which a file system looks for
/// free space first.
const MOST_GAP_BYTES: u64 = 128 << 20;
/// The load starts up to so late: two ticks at 100 Hz, and more than a turn of any platter from
/// 3,000 turns a minute.
const MOST_START_DELAY_NS: u64 = 20_000_000;
/// A process starts up to so much later than its load.
const MOST_PROCESS_DELAY_NS: u64 = 1_000_000;

/// An arrangement; equal seeds give equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrangement {
    pub seed: u64,
}

impl Arrangement {
    /// Moves files that lie one behind the other from the device's start. The first begins anywhere
    /// that leaves room for the others, which follow in order, with gaps.
    pub fn scatter(self, files: &mut [File], capacity: u64) {
        let mut stream = Stream::named(self.seed, "arrangement of files");
        let end = files.iter().map(|file| file.start + file.bytes).max().unwrap_or(0);
        let free = capacity.saturating_sub(end) / FILE_ALIGNMENT;
        // Gaps take at most half of the free space, so that the first file can move too.
        let most_gap =
            (MOST_GAP_BYTES / FILE_ALIGNMENT).min(free / (2 * files.len() as u64).max(1));
        let gaps: Vec<u64> = files.iter().skip(1).map(|_| stream.below(most_gap + 1)).collect();
        let mut shift = stream.below(free - gaps.iter().sum::<u64>() + 1);
        for (index, file) in files.iter_mut().enumerate() {
            shift += if index == 0 { 0 } else { gaps[index - 1] };
            file.start += shift * FILE_ALIGNMENT;
        }
    }

    /// How long each process waits before its job's own `startdelay`.
    pub fn start_delays_ns(self, nr_processes: usize) -> Vec<u64> {
        let mut stream = Stream::named(self.seed, "arrangement of starts");
        let common_ns = stream.below(MOST_START_DELAY_NS);
        (0..nr_processes).map(|_| common_ns + stream.below(MOST_PROCESS_DELAY_NS)).collect()
    }

    /// The tag at which the first search of a scheduler's tags begins (`init_alloc_hint` in
    /// `lib/sbitmap.c`, Linux 6.1). `switch` counts the schedulers that were in force before.
    pub fn first_tag(self, disk: usize, switch: usize, nr_tags: u32) -> u32 {
        let name = format!("arrangement of tags, disk {disk}, switch {switch}");
        Stream::named(self.seed, &name).below(u64::from(nr_tags)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn scattered(seed: u64, sizes: &[u64], capacity: u64) -> Vec<File> {
        let mut start = 0;
        let mut files: Vec<File> = Vec::new();
        for &bytes in sizes {
            files.push(File { start, bytes });
            start = (start + bytes).next_multiple_of(FILE_ALIGNMENT);
        }
        Arrangement { seed }.scatter(&mut files, capacity);
        files
    }

    #[test]
    fn files_stay_on_the_device_in_order_and_apart() {
        for seed in 0..1000 {
            let sizes = [3 * MIB, MIB / 2, 7 * MIB];
            let capacity = (11 + seed % 900) * MIB + seed;
            let files = scattered(seed, &sizes, capacity);
            assert!(files.iter().all(|file| file.start % FILE_ALIGNMENT == 0));
            for pair in files.windows(2) {
                assert!(pair[0].start + pair[0].bytes <= pair[1].start, "{files:?}");
            }
            assert!(files[2].start + files[2].bytes <= capacity, "{files:?} on {capacity}");
        }
    }

    #[test]
    fn the_first_file_begins_anywhere() {
        let starts: Vec<u64> =
            (0..2000).map(|seed| scattered(seed, &[MIB], 1000 * MIB)[0].start / MIB).collect();
        let tenths = (0..10).map(|tenth| starts.iter().filter(|s| **s / 100 == tenth).count());
        // 200 of each in the mean, with a standard deviation of 13.4.
        assert!(tenths.into_iter().all(|count| (140..=260).contains(&count)), "{starts:?}");
    }

    #[test]
    fn a_full_device_leaves_no_choice() {
        assert_eq!(scattered(5, &[3 * MIB, 4 * MIB], 7 * MIB)[1].start, 3 * MIB);
    }

    #[test]
    fn equal_seeds_give_equal_starts() {
        let delays = |seed| Arrangement { seed }.start_delays_ns(5);
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
        let one = delays(7);
        assert!(one.iter().all(|ns| ns.abs_diff(one[0]) < MOST_PROCESS_DELAY_NS));
    }
}
