//! The layout of the jobs' data on the device. The host backend follows the same rules.
//!
//! 1. A job without `size` uses the whole device; all such jobs share it. If it
//!    names a file to which another job gives a size, it uses that file.
//! 2. A job with `size` and no `filename` has files of its own for each clone.
//! 3. Jobs that name the same `filename` share one file.
//! 4. A file is as large as the largest offset + size asked of it, with
//!    `offset_increment` counted for every clone.
//! 5. Files lie one behind the other from the device's start, in order of
//!    appearance, each aligned to 1 MiB; an arrangement moves them apart.
//! 6. A percentage is a share of the file that a job uses by rules 1 to 3. Nothing but the device
//!    has a length beforehand if the job's own file has no `filesize`.
//! 7. A `size` counted from an offset that is a share may make the file longer than rule 4 says;
//!    shares stay those of the shorter file.

use super::arrangement::Arrangement;
use super::extents::{self, Span};
use super::job::Job;
use crate::core::error::{ErrorKind, SimulationError};
use crate::core::quantity::format_bytes;

/// Alignment of files.
pub const FILE_ALIGNMENT: u64 = 1 << 20;

/// Bytes of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    pub start: u64,
    pub bytes: u64,
}

/// The part of a file that one clone may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Index of the file.
    pub file: u32,
    /// First byte on the device.
    pub start: u64,
    pub bytes: u64,
    /// Its start in its file, and the size of the file.
    pub begin: u64,
    pub file_bytes: u64,
    /// Bytes of one pass over all of the clone's files.
    pub pass_bytes: u64,
}

/// Files and regions of a whole job file.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub files: Vec<File>,
    /// Regions of each job's clones: one for each of a clone's files.
    pub regions: Vec<Vec<Vec<Region>>>,
}

/// A file without a place yet.
struct Wanted {
    name: Option<String>,
    bytes: u64,
    /// The length of which percentages are shares.
    shared_bytes: u64,
    whole_device: bool,
}

/// Lays out all jobs on a device of `capacity` bytes.
pub fn lay_out(
    jobs: &[Job],
    capacity: u64,
    arrangement: Option<Arrangement>,
) -> Result<Layout, SimulationError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut claims: Vec<Vec<Vec<usize>>> = Vec::new();
    for job in jobs {
        let mut of_clones = Vec::new();
        for clone in 0..u64::from(job.numjobs) {
            let mut claim = Vec::new();
            for number in extents::file_numbers(job) {
                let file = match extents::place(jobs, job, number.name) {
                    extents::Place::Own => own(&mut wanted),
                    extents::Place::Named(name) => named(&mut wanted, name),
                    extents::Place::Device => whole_device(&mut wanted, capacity),
                };
                if !wanted[file].whole_device {
                    let end = extents::end_in_sized_file(job, clone, number);
                    wanted[file].bytes = wanted[file].bytes.max(end);
                }
                claim.push(file);
            }
            of_clones.push(claim);
        }
        claims.push(of_clones);
    }
    lengthen(&mut wanted, jobs, &claims);
    let mut files = place(&wanted, capacity)?;
    if let Some(arrangement) = arrangement {
        scatter(&wanted, &mut files, arrangement, capacity);
    }
    let mut regions = Vec::new();
    for (job, of_clones) in jobs.iter().zip(claims) {
        let clones = of_clones
            .into_iter()
            .enumerate()
            .map(|(clone, claim)| clone_regions(job, &wanted, &files, clone as u64, &claim));
        regions.push(clones.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(Layout { files, regions })
}

/// Fixes the lengths of which percentages are shares, then makes files longer for jobs that reach past
/// them.
fn lengthen(wanted: &mut [Wanted], jobs: &[Job], claims: &[Vec<Vec<usize>>]) {
    for file in wanted.iter_mut() {
        file.shared_bytes = file.bytes;
    }
    for (job, of_clones) in jobs.iter().zip(claims) {
        for (clone, claim) in (0_u64..).zip(of_clones) {
            for (number, index) in extents::file_numbers(job).into_iter().zip(claim) {
                let file = &mut wanted[*index];
                if !file.whole_device {
                    let span = extents::span(job, clone, number, file.shared_bytes);
                    file.bytes = file.bytes.max(span.begin.saturating_add(span.bytes));
                }
            }
        }
    }
}

fn own(wanted: &mut Vec<Wanted>) -> usize {
    wanted.push(Wanted { name: None, bytes: 0, shared_bytes: 0, whole_device: false });
    wanted.len() - 1
}

fn named(wanted: &mut Vec<Wanted>, name: &str) -> usize {
    if let Some(index) = wanted.iter().position(|w| w.name.as_deref() == Some(name)) {
        return index;
    }
    wanted.push(Wanted {
        name: Some(name.to_owned()),
        bytes: 0,
        shared_bytes: 0,
        whole_device: false,
    });
    wanted.len() - 1
}

fn whole_device(wanted: &mut Vec<Wanted>, capacity: u64) -> usize {
    if let Some(index) = wanted.iter().position(|w| w.whole_device) {
        return index;
    }
    wanted.push(Wanted { name: None, bytes: capacity, shared_bytes: capacity, whole_device: true });
    wanted.len() - 1
}

fn place(wanted: &[Wanted], capacity: u64) -> Result<Vec<File>, SimulationError> {
    let mut next = 0_u64;
    let mut files = Vec::with_capacity(wanted.len());
    for file in wanted {
        if file.whole_device {
            files.push(File { start: 0, bytes: capacity });
            continue;
        }
        let end = next.saturating_add(file.bytes);
        if end > capacity {
            let total = wanted
                .iter()
                .filter(|f| !f.whole_device)
                .map(|f| u128::from(f.bytes))
                .sum::<u128>();
            let message = format!(
                "the jobs' files need {}, but the device holds {}; lower size, numjobs or offset",
                format_bytes(u64::try_from(total).unwrap_or(u64::MAX)),
                format_bytes(capacity)
            );
            return Err(SimulationError::of(ErrorKind::Layout, "size", message));
        }
        files.push(File { start: next, bytes: file.bytes });
        next = end.div_ceil(FILE_ALIGNMENT).saturating_mul(FILE_ALIGNMENT);
    }
    Ok(files)
}

/// Lets an arrangement move the files; a file that is the whole device stays.
fn scatter(wanted: &[Wanted], files: &mut [File], arrangement: Arrangement, capacity: u64) {
    let movable = || wanted.iter().enumerate().filter(|(_, file)| !file.whole_device);
    let mut moved: Vec<File> = movable().map(|(index, _)| files[index]).collect();
    arrangement.scatter(&mut moved, capacity);
    for ((index, _), file) in movable().zip(moved) {
        files[index] = file;
    }
}

/// The regions of a clone in its files.
fn clone_regions(
    job: &Job,
    wanted: &[Wanted],
    files: &[File],
    clone: u64,
    claim: &[usize],
) -> Result<Vec<Region>, SimulationError> {
    let mut regions = Vec::new();
    let mut total = 0_u64;
    for (number, index) in extents::file_numbers(job).into_iter().zip(claim) {
        let span = extents::span(job, clone, number, wanted[*index].shared_bytes);
        let (region, counted) = region(job, files, *index, span)?;
        total = total.saturating_add(counted);
        regions.push(region);
    }
    let pass_bytes = extents::pass_bytes(job, total);
    for region in &mut regions {
        region.pass_bytes = pass_bytes;
    }
    Ok(regions)
}

/// A clone's region in a file, and the bytes by which it counts toward a pass.
fn region(
    job: &Job,
    files: &[File],
    index: usize,
    span: Span,
) -> Result<(Region, u64), SimulationError> {
    let file = files[index];
    let Span { begin, bytes: wanted } = span;
    let bytes = wanted.min(file.bytes.saturating_sub(begin));
    let block = job.largest_block();
    if begin >= file.bytes {
        let message = format!(
            "job {}: offset {begin} lies past the end of its file or device of {} bytes",
            job.name, file.bytes
        );
        return Err(SimulationError::of(ErrorKind::Layout, "offset", message));
    }
    if bytes < block {
        let message =
            format!("job {}: {bytes} bytes do not hold a single block of {block} bytes", job.name);
        return Err(SimulationError::of(ErrorKind::Layout, "size", message));
    }
    let start = file.start + begin;
    let region = Region {
        file: index as u32,
        start,
        bytes,
        begin,
        file_bytes: file.bytes,
        pass_bytes: bytes,
    };
    Ok((region, extents::counted(job, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::parse;

    const MIB: u64 = 1 << 20;

    fn laid_out(text: &str, capacity: u64) -> Result<Layout, SimulationError> {
        lay_out(&parse(text, "test").unwrap().jobs, capacity, None)
    }

    fn whole_region(bytes: u64) -> Region {
        Region { file: 0, start: 0, bytes, begin: 0, file_bytes: bytes, pass_bytes: bytes }
    }

    /// Start and bytes of the regions of all clones of all jobs.
    fn spans(text: &str, capacity: u64) -> Vec<(u64, u64)> {
        let layout = laid_out(text, capacity).unwrap();
        layout.regions.into_iter().flatten().flatten().map(|r| (r.start, r.bytes)).collect()
    }

    #[test]
    fn percentages_are_shares_of_the_file() {
        // fio 3.33 on a device of 1 GiB and 4 KiB, and on files.
        let device: u64 = (1 << 30) + 4096;
        let half = (device / 2).next_multiple_of(4096);
        for (text, expected) in [
            ("[a]\nsize=100%\n", vec![(0, device)]),
            ("[a]\nsize=50%\nbs=64k\n", vec![(0, device / 2 / 65_536 * 65_536)]),
            ("[a]\noffset=50%\nsize=25%\n", vec![(half, device / 4 / 4096 * 4096)]),
            ("[a]\noffset=50%\nsize=256m\n", vec![(half, 256 * MIB)]),
            ("[a]\nfilesize=16m\nsize=50%\n", vec![(0, 8 * MIB)]),
            ("[a]\nfilesize=16m\noffset=25%\n", vec![(4 * MIB, 12 * MIB)]),
            (
                "[a]\nsize=16m\nfilename=x\n[b]\nfilename=x\noffset=50%\n",
                vec![(0, 16 * MIB), (8 * MIB, 8 * MIB)],
            ),
            (
                "[a]\nsize=16k\nfilename=x\n[b]\nsize=16k\nfilename=x\noffset=10%\n[c]\nsize=4k\n",
                vec![(0, 16_384), (4096, 16_384), (MIB, 4096)],
            ),
            (
                "[a]\nfilename=/dev/x\nsize=1m\n[b]\nfilename=/dev/x\nsize=1m\noffset=50%\n",
                vec![(0, MIB), (half, MIB)],
            ),
            (
                "[a]\nsize=1m\noffset_increment=25%\nnumjobs=2\n",
                vec![(0, MIB), ((device / 4).next_multiple_of(4096), MIB)],
            ),
        ] {
            assert_eq!(spans(text, device), expected, "{text}");
        }
    }

    #[test]
    fn several_files_divide_the_size() {
        let text = "[a]\nsize=1000k\nbs=64k\nnrfiles=3\n";
        let layout = laid_out(text, 10 * MIB).unwrap();
        let [clone] = layout.regions[0].as_slice() else { panic!() };
        let lengths: Vec<u64> = clone.iter().map(|region| region.bytes).collect();
        assert_eq!(lengths, [1_024_000 / 3; 3]);
        assert!(clone.iter().all(|region| region.pass_bytes == 3 * (1_024_000 / 3)));
        assert_eq!(layout.files.len(), 3);
        let text = "[a]\nsize=2m\nfilename=x:y\n[b]\nfilename=y\nsize=1m\noffset=1m\n";
        let layout = laid_out(text, 10 * MIB).unwrap();
        assert_eq!(layout.files.iter().map(|file| file.bytes).collect::<Vec<_>>(), [MIB, 2 * MIB]);
        assert_eq!(layout.regions[1][0][0].file, 1);
    }

    #[test]
    fn jobs_without_size_share_the_device() {
        let layout = laid_out("[a]\n[b]\noffset=1m\n", 10 * MIB).unwrap();
        assert_eq!(layout.files.len(), 1);
        let whole = whole_region(10 * MIB);
        assert_eq!(layout.regions[0][0], [whole]);
        let rest = Region { start: MIB, bytes: 9 * MIB, begin: MIB, pass_bytes: 9 * MIB, ..whole };
        assert_eq!(layout.regions[1][0], [rest]);
    }

    #[test]
    fn an_arrangement_moves_files_but_not_the_whole_device() {
        let jobs = parse("[a]\n[b]\nsize=1m\nnumjobs=2\n", "test").unwrap().jobs;
        let starts = |seed| {
            let layout = lay_out(&jobs, 1000 * MIB, Some(Arrangement { seed })).unwrap();
            assert_eq!(layout.regions[0][0][0].start, 0);
            assert_eq!(layout.regions[0][0][0].bytes, 1000 * MIB);
            layout.regions[1].iter().map(|files| files[0].start).collect::<Vec<_>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
        assert_ne!(starts(1), [0, MIB]);
    }

    #[test]
    fn clones_have_files_of_their_own() {
        let layout = laid_out("[a]\nsize=1100k\nnumjobs=3\n", 10 * MIB).unwrap();
        let starts: Vec<_> = layout.regions[0].iter().map(|r| r[0].start).collect();
        assert_eq!(starts, [0, 2 * MIB, 4 * MIB]);
    }

    #[test]
    fn a_shared_name_is_one_file_and_as_large_as_asked() {
        let text = "[a]\nfilename=x\nsize=1m\nnumjobs=2\noffset_increment=1m\n[b]\nfilename=x\n[c]\nsize=1m\n";
        let layout = laid_out(text, 10 * MIB).unwrap();
        assert_eq!(layout.files[0], File { start: 0, bytes: 2 * MIB });
        let whole = whole_region(2 * MIB);
        let half = Region { start: MIB, bytes: MIB, begin: MIB, pass_bytes: MIB, ..whole };
        assert_eq!(layout.regions[0][1], [half]);
        assert_eq!(layout.regions[1][0], [whole]);
        assert_eq!(layout.regions[2][0][0].start, 2 * MIB);
    }

    #[test]
    fn what_does_not_fit_is_an_error_with_both_figures() {
        let error = laid_out("[a]\nsize=6m\nnumjobs=2\n", 10 * MIB).unwrap_err();
        assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::Layout, Some("size")));
        assert!(error.message.contains("12 MiB") && error.message.contains("10 MiB"), "{error}");
        let error = laid_out("[a]\noffset=10m\n", 10 * MIB).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("offset"));
    }
}
