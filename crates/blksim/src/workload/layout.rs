//! The layout of the jobs' data on the device. The host backend follows the same rules.
//!
//! 1. A job without `size` uses the whole device; all such jobs share it. If it
//!    names a file to which another job gives a size, it uses that file.
//! 2. A job with `size` and no `filename` has a file of its own for each clone.
//! 3. Jobs that name the same `filename` share one file.
//! 4. A file is as large as the largest offset + size asked of it, with
//!    `offset_increment` counted for every clone.
//! 5. Files lie one behind the other from the device's start, in order of
//!    appearance, each aligned to 1 MiB; an arrangement moves them apart.

use super::arrangement::Arrangement;
use super::job::{Extent, Job};
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

/// The part of the device that one clone may use.
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
}

/// Files and regions of a whole job file.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub files: Vec<File>,
    /// Regions of each job's clones.
    pub regions: Vec<Vec<Region>>,
}

/// A file without a place yet.
struct Wanted {
    name: Option<String>,
    bytes: u64,
    whole_device: bool,
}

/// Lays out all jobs on a device of `capacity` bytes.
pub fn lay_out(
    jobs: &[Job],
    capacity: u64,
    arrangement: Option<Arrangement>,
) -> Result<Layout, SimulationError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut claims: Vec<Vec<(usize, u64, Option<u64>)>> = Vec::new();
    for job in jobs {
        let size = job.size.map(|extent| extent.bytes(capacity));
        let offset = start_offset(job, size, capacity);
        let mut claim = Vec::new();
        for clone in 0..u64::from(job.numjobs) {
            let begin = offset.saturating_add(job.offset_increment.saturating_mul(clone));
            let file = match (&job.filename, size) {
                (None, Some(_)) => {
                    wanted.push(Wanted { name: None, bytes: 0, whole_device: false });
                    wanted.len() - 1
                }
                (Some(name), _) if names_a_sized_file(jobs, name) => named(&mut wanted, name),
                _ => whole_device(&mut wanted, capacity),
            };
            if let (Some(size), false) = (size, wanted[file].whole_device) {
                // Own files are alike for all clones: each as large as the largest.
                let last = job.offset_increment.saturating_mul(u64::from(job.numjobs) - 1);
                let end = offset.saturating_add(last).saturating_add(size);
                let whole = job.filesize.unwrap_or(0);
                wanted[file].bytes = wanted[file].bytes.max(end).max(whole);
            }
            claim.push((file, begin, size));
        }
        claims.push(claim);
    }
    let mut files = place(&wanted, capacity)?;
    if let Some(arrangement) = arrangement {
        scatter(&wanted, &mut files, arrangement, capacity);
    }
    let mut regions = Vec::new();
    for (job, claim) in jobs.iter().zip(claims) {
        let clones =
            claim.into_iter().map(|(file, begin, size)| region(job, &files, file, begin, size));
        regions.push(clones.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(Layout { files, regions })
}

fn start_offset(job: &Job, size: Option<u64>, capacity: u64) -> u64 {
    match job.offset {
        Extent::Bytes(bytes) => bytes,
        percent @ Extent::Percent(_) => percent.bytes(size.unwrap_or(capacity)),
    }
}

fn names_a_sized_file(jobs: &[Job], name: &str) -> bool {
    jobs.iter().any(|job| job.filename.as_deref() == Some(name) && job.size.is_some())
}

fn named(wanted: &mut Vec<Wanted>, name: &str) -> usize {
    if let Some(index) = wanted.iter().position(|w| w.name.as_deref() == Some(name)) {
        return index;
    }
    wanted.push(Wanted { name: Some(name.to_owned()), bytes: 0, whole_device: false });
    wanted.len() - 1
}

fn whole_device(wanted: &mut Vec<Wanted>, capacity: u64) -> usize {
    if let Some(index) = wanted.iter().position(|w| w.whole_device) {
        return index;
    }
    wanted.push(Wanted { name: None, bytes: capacity, whole_device: true });
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

fn region(
    job: &Job,
    files: &[File],
    index: usize,
    begin: u64,
    size: Option<u64>,
) -> Result<Region, SimulationError> {
    let file = files[index];
    let rest = file.bytes.saturating_sub(begin);
    let bytes = size.unwrap_or(rest).min(rest);
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
    Ok(Region { file: index as u32, start, bytes, begin, file_bytes: file.bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::parse;

    const MIB: u64 = 1 << 20;

    fn laid_out(text: &str, capacity: u64) -> Result<Layout, SimulationError> {
        lay_out(&parse(text, "test").unwrap().jobs, capacity, None)
    }

    #[test]
    fn jobs_without_size_share_the_device() {
        let layout = laid_out("[a]\n[b]\noffset=1m\n", 10 * MIB).unwrap();
        assert_eq!(layout.files.len(), 1);
        let whole = Region { file: 0, start: 0, bytes: 10 * MIB, begin: 0, file_bytes: 10 * MIB };
        assert_eq!(layout.regions[0][0], whole);
        let rest = Region { start: MIB, bytes: 9 * MIB, begin: MIB, ..whole };
        assert_eq!(layout.regions[1][0], rest);
    }

    #[test]
    fn an_arrangement_moves_files_but_not_the_whole_device() {
        let jobs = parse("[a]\n[b]\nsize=1m\nnumjobs=2\n", "test").unwrap().jobs;
        let starts = |seed| {
            let layout = lay_out(&jobs, 1000 * MIB, Some(Arrangement { seed })).unwrap();
            assert_eq!(layout.regions[0][0].start, 0);
            assert_eq!(layout.regions[0][0].bytes, 1000 * MIB);
            layout.regions[1].iter().map(|region| region.start).collect::<Vec<_>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
        assert_ne!(starts(1), [0, MIB]);
    }

    #[test]
    fn clones_have_files_of_their_own() {
        let layout = laid_out("[a]\nsize=1100k\nnumjobs=3\n", 10 * MIB).unwrap();
        let starts: Vec<_> = layout.regions[0].iter().map(|r| r.start).collect();
        assert_eq!(starts, [0, 2 * MIB, 4 * MIB]);
    }

    #[test]
    fn a_shared_name_is_one_file_and_as_large_as_asked() {
        let text = "[a]\nfilename=x\nsize=1m\nnumjobs=2\noffset_increment=1m\n[b]\nfilename=x\n[c]\nsize=1m\n";
        let layout = laid_out(text, 10 * MIB).unwrap();
        assert_eq!(layout.files[0], File { start: 0, bytes: 2 * MIB });
        let whole = Region { file: 0, start: 0, bytes: 2 * MIB, begin: 0, file_bytes: 2 * MIB };
        let half = Region { start: MIB, bytes: MIB, begin: MIB, ..whole };
        assert_eq!(layout.regions[0][1], half);
        assert_eq!(layout.regions[1][0], whole);
        assert_eq!(layout.regions[2][0].start, 2 * MIB);
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
