//! The lengths of files. Those within a range (`filesize=1k-4m`) are the ones that fio draws with its own generator
//! and its own seeds, so that they depend on the job file alone (`get_rand_file_size` in `filesetup.c` and
//! `setup_random_seeds` in `init.c`, fio 3.33).

use std::collections::BTreeMap;

use super::extents::{self, FileNumber};
use super::file_size_range::FileSizes;
use super::job::Job;
use super::parser::Place;
use crate::core::error::JobFileError;

/// Draws the lengths of all files that a range bounds, in the order in which fio sets up its jobs.
pub(super) fn draw(jobs: &mut [Job], place: Place) -> Result<(), JobFileError> {
    if !jobs.iter().filter_map(|job| job.filesize.as_ref()).any(FileSizes::varies) {
        return Ok(());
    }
    let mut there: BTreeMap<String, u64> = BTreeMap::new();
    let mut thread = 0;
    for job in jobs {
        let mut drawn = Vec::new();
        for clone in 0..u64::from(job.numjobs) {
            thread += 1;
            let mut random = Random::of_thread(job, thread);
            let mut lengths = Vec::new();
            for file in extents::file_numbers(job) {
                let length = length_of(job, clone, file, &there, &mut random);
                refuse_empty(job, length, place)?;
                if let Some(name) = file.name {
                    let known = there.entry(name.to_owned()).or_default();
                    *known = (*known).max(length);
                }
                lengths.push(length);
            }
            drawn.push(lengths);
        }
        if let Some(sizes) = job.filesize.as_mut().filter(|sizes| sizes.varies()) {
            sizes.drawn = drawn;
        }
    }
    Ok(())
}

/// The length that fio gives to a file. One that an earlier job made keeps its own if that lies in the range.
fn length_of(
    job: &Job,
    clone: u64,
    file: FileNumber,
    there: &BTreeMap<String, u64>,
    random: &mut Random,
) -> u64 {
    let Some(sizes) = job.filesize.as_ref().filter(|sizes| sizes.varies()) else {
        return extents::end_in_sized_file(job, clone, file);
    };
    // A device has its own length, which lies above any range of sizes that anybody would give it.
    let name = file.name.filter(|name| !name.starts_with("/dev/"));
    let known = name.and_then(|name| there.get(name)).copied();
    if let Some(length) = known.filter(|length| (sizes.least..=sizes.most).contains(length)) {
        return length;
    }
    let length = sizes.least + random.below(sizes.most - sizes.least);
    length - length % extents::smallest_block(job)
}

fn refuse_empty(job: &Job, length: u64, place: Place) -> Result<(), JobFileError> {
    let Some(sizes) = job.filesize.as_ref().filter(|sizes| sizes.varies()) else { return Ok(()) };
    let fail = |option: &str, message: String| {
        Err(place.error(job.option_lines.get(option).copied(), Some(option), message))
    };
    let block = extents::smallest_block(job);
    if length == 0 {
        let message = format!(
            "fio cuts the lengths that it draws to whole blocks, which leaves a file without any, and \
             stops; let the range begin with at least a block ({block} bytes)"
        );
        return fail("filesize", message);
    }
    let offset = job.offset.fixed_bytes().unwrap_or(0);
    if offset > sizes.least {
        let message = format!(
            "the shortest file of the range ({} bytes) ends before the offset ({offset}), and fio stops",
            sizes.least
        );
        return fail("offset", message);
    }
    Ok(())
}

/// fio's factor between seeds.
const GOLDEN: u64 = 0x9e37_0001;
const DEFAULT_SEED: u64 = 0x89;
const SEED_OF_ALLRANDREPEAT: u64 = 0xb189_9bed;
/// The place of file sizes among a job's seeds.
const FILE_SIZE_SEED: u32 = 7;

/// The combined Tausworthe generators of L'Ecuyer (1996 and 1999), seeded as fio seeds them.
enum Random {
    Of32Bits([u32; 3]),
    Of64Bits([u64; 5]),
}

impl Random {
    /// That of a job's file sizes. Threads count from 1.
    fn of_thread(job: &Job, thread: u64) -> Self {
        let given = |option: &str, value: &str| {
            job.options.get(option).is_some_and(|text| text.eq_ignore_ascii_case(value))
        };
        let seed = if given("allrandrepeat", "1") {
            SEED_OF_ALLRANDREPEAT.wrapping_mul(thread)
        } else {
            let first = job.randseed.unwrap_or(DEFAULT_SEED);
            first.wrapping_mul(GOLDEN.wrapping_pow(4 + FILE_SIZE_SEED)).wrapping_mul(thread)
        };
        let seed = seed.wrapping_add(u64::from(FILE_SIZE_SEED));
        if given("random_generator", "tausworthe64") {
            Self::seeded_64(seed)
        } else {
            Self::seeded_32(seed as u32)
        }
    }

    fn seeded_32(seed: u32) -> Self {
        let mut state = [0; 3];
        // fio writes powers of two and gets exclusive ors, whose sum is 53.
        let mut before = 53_u32;
        for (word, least) in state.iter_mut().zip([1, 7, 15]) {
            let mixed = before.wrapping_mul(69_069) ^ seed;
            *word = if mixed < least { mixed + least } else { mixed };
            before = *word;
        }
        Self::Of32Bits(state).warmed_up()
    }

    fn seeded_64(seed: u64) -> Self {
        let mut state = [0; 5];
        let mut before = 53_u64;
        for (word, least) in state.iter_mut().zip([1, 7, 15, 33, 49]) {
            let mixed = before.wrapping_mul(6_906_969_069) ^ seed;
            *word = if mixed < least { mixed + least } else { mixed };
            before = *word;
        }
        Self::Of64Bits(state).warmed_up()
    }

    fn warmed_up(mut self) -> Self {
        for _ in 0..6 {
            self.fraction();
        }
        self
    }

    /// A number from 0 up to, but without, 1.
    fn fraction(&mut self) -> f64 {
        match self {
            Self::Of32Bits(state) => {
                let steps = [(13, 19, 1, 12), (2, 25, 3, 4), (3, 11, 4, 17)];
                for (word, (first, second, cleared, shift)) in state.iter_mut().zip(steps) {
                    let kept = *word >> cleared << cleared;
                    *word = (kept << shift) ^ (((*word << first) ^ *word) >> second);
                }
                f64::from(state[0] ^ state[1] ^ state[2]) / 2_f64.powi(32)
            }
            Self::Of64Bits(state) => {
                let steps = [
                    (1, 53, 1, 10),
                    (24, 50, 9, 5),
                    (3, 23, 12, 29),
                    (5, 24, 17, 23),
                    (3, 33, 23, 8),
                ];
                for (word, (first, second, cleared, shift)) in state.iter_mut().zip(steps) {
                    let kept = *word >> cleared << cleared;
                    *word = (kept << shift) ^ (((*word << first) ^ *word) >> second);
                }
                state.iter().fold(0, |all, word| all ^ word) as f64 / 2_f64.powi(64)
            }
        }
    }

    fn below(&mut self, range: u64) -> u64 {
        (range as f64 * self.fraction()) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::parse;

    fn lengths(options: &str) -> Vec<Vec<u64>> {
        let file = parse(&format!("[a]\nrw=read\n{options}\n"), "x").unwrap();
        file.jobs[0].filesize.as_ref().unwrap().drawn.clone()
    }

    /// Of files that fio 3.33 made.
    #[test]
    fn lengths_are_those_that_fio_draws() {
        let drawn = lengths("bs=4k\nnrfiles=5\nfilesize=1k-100k");
        assert_eq!(drawn, [[12_288, 28_672, 28_672, 90_112, 77_824]]);
        let drawn = lengths("bs=4k\nnrfiles=3\nnumjobs=2\nfilesize=20k-90k");
        assert_eq!(drawn, [[28_672, 40_960, 40_960], [36_864, 81_920, 28_672]]);
        let drawn = lengths("bs=1024\nrandom_generator=tausworthe64\nnrfiles=3\nfilesize=20k-90k");
        assert_eq!(drawn, [[46_080, 44_032, 72_704]]);
        let drawn = lengths("bs=1024\nrandseed=77\nnrfiles=3\nfilesize=20k-90k");
        assert_eq!(drawn, [[90_112, 50_176, 24_576]]);
        let drawn = lengths("bs=1024\nallrandrepeat=1\nnrfiles=3\nfilesize=20k-90k");
        assert_eq!(drawn, [[72_704, 27_648, 27_648]]);
    }

    #[test]
    fn clones_of_a_named_file_find_it_there() {
        let drawn = lengths("bs=4k\nfilename=one:two\nnumjobs=2\nfilesize=20k-90k");
        assert_eq!(drawn, [[28_672, 40_960], [28_672, 40_960]]);
    }

    #[test]
    fn ranges_at_which_fio_stops_are_refused() {
        for (options, message) in [
            ("bs=4k\nnrfiles=5\nfilesize=1k-12k", "begin with at least a block (4096 bytes)"),
            ("bs=4k\nnrfiles=3\nfilesize=20k-90k\noffset=24k", "ends before the offset"),
            ("bs=4k\nfilesize=8m-1m", "the smaller size first"),
        ] {
            let error = parse(&format!("[a]\nrw=read\n{options}\n"), "x").unwrap_err();
            assert!(error.message.contains(message), "{error:?}");
        }
    }
}
