//! The part of a file that a job covers: offsets, sizes and shares, with fio's bases and rounding
//! (`setup_files` and `get_start_offset` in `filesetup.c`, fio 3.33).

use super::job::{Extent, Job};

/// One of the files of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileNumber<'a> {
    pub name: Option<&'a str>,
    pub index: u64,
    /// Files of the clone.
    pub of: u64,
}

/// The place of a job's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// A file of one clone.
    Own,
    /// A file that jobs share.
    Named(&'a str),
    /// The device as a whole.
    Device,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub begin: u64,
    pub bytes: u64,
}

/// The files of each of a job's clones.
pub(super) fn file_numbers(job: &Job) -> Vec<FileNumber<'_>> {
    if job.filenames.is_empty() {
        let of = if has_length(job) && !has_share(job) { job.nr_files } else { 1 };
        return (0..of).map(|index| FileNumber { name: None, index, of }).collect();
    }
    let of = job.filenames.len() as u64;
    let numbered = (0_u64..).zip(&job.filenames);
    numbered.map(|(index, name)| FileNumber { name: Some(name), index, of }).collect()
}

/// The job says in bytes how long its files are.
fn has_length(job: &Job) -> bool {
    job.filesize.is_some() || job.size.and_then(Extent::fixed_bytes).is_some()
}

/// Something of the job is a share of a file whose length it does not say.
fn has_share(job: &Job) -> bool {
    let share = |extent: Extent| matches!(extent, Extent::Percent(1..));
    job.filesize.is_none()
        && (job.size.is_some_and(share) || share(job.offset) || share(job.offset_increment))
}

/// Where a job's file of a name, or without one, lies.
pub(super) fn place<'a>(jobs: &[Job], job: &Job, name: Option<&'a str>) -> Place<'a> {
    let Some(name) = name else {
        return if has_length(job) && !has_share(job) { Place::Own } else { Place::Device };
    };
    let mut sharers = jobs.iter().filter(|other| other.filenames.iter().any(|file| file == name));
    if name.starts_with("/dev/") && sharers.clone().any(has_share) {
        return Place::Device;
    }
    if sharers.any(|other| has_length(other) && !has_share(other)) {
        Place::Named(name)
    } else {
        Place::Device
    }
}

/// A job needs the device as a whole.
pub fn covers_device(jobs: &[Job], job: &Job) -> bool {
    file_numbers(job).into_iter().any(|number| place(jobs, job, number.name) == Place::Device)
}

/// The end of the part of a clone's file that the job's clones cover, if the job itself says how long its
/// files are. Otherwise 0. All clones' files are alike, except those within a range of lengths.
pub(super) fn end_in_sized_file(job: &Job, clone: u64, number: FileNumber) -> u64 {
    if !has_length(job) || has_share(job) {
        return 0;
    }
    if let Some(sizes) = &job.filesize {
        return sizes.length(clone, number.index);
    }
    let last = span(job, u64::from(job.numjobs) - 1, number, 0);
    last.begin.saturating_add(last.bytes)
}

/// The part of a file of `file_bytes` that a clone covers.
pub(super) fn span(job: &Job, clone: u64, number: FileNumber, file_bytes: u64) -> Span {
    let begin = offset(job, clone, file_bytes);
    let length = job.filesize.as_ref().map(|sizes| sizes.length(clone, number.index));
    let bytes = match (length, job.size) {
        (Some(length), _) => length.saturating_sub(begin),
        (None, Some(Extent::Bytes(size))) => part(size, number, smallest_block(job)),
        (None, _) => file_bytes.saturating_sub(begin),
    };
    let Some(Extent::Percent(percent)) = job.size.filter(|size| *size != Extent::Percent(100))
    else {
        return Span { begin, bytes };
    };
    let share = share(begin.saturating_add(bytes), percent).min(bytes);
    Span { begin, bytes: share - share % smallest_block(job) }
}

/// The bytes by which a file counts toward a pass.
pub(super) fn counted(job: &Job, bytes: u64) -> u64 {
    job.io_size_percent.map_or(bytes, |percent| share(bytes, percent))
}

/// The bytes of a pass over files that count with so many together.
pub(super) fn pass_bytes(job: &Job, total: u64) -> u64 {
    match job.size {
        Some(Extent::Bytes(size)) if size < total => size,
        _ => total,
    }
}

fn offset(job: &Job, clone: u64, file_bytes: u64) -> u64 {
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => share(file_bytes, percent),
    };
    let step = bytes(job.offset_increment).saturating_mul(clone);
    let offset = bytes(job.offset).saturating_add(step);
    let shares = [job.offset, job.offset_increment];
    if shares.iter().any(|extent| matches!(extent, Extent::Percent(1..))) {
        let block = smallest_block(job);
        return offset.div_ceil(block).saturating_mul(block);
    }
    offset
}

/// A clone's size is divided among its files; what is left over makes the first ones longer.
fn part(size: u64, number: FileNumber, block: u64) -> u64 {
    let part = size / number.of;
    let longer = (size - part * number.of) / block;
    part + if number.index < longer { block } else { 0 }
}

/// The smallest block of any direction, used or not (`td_min_bs` in `fio.h`).
pub(super) fn smallest_block(job: &Job) -> u64 {
    job.block_sizes.read.smallest().min(job.block_sizes.write.smallest())
}

fn share(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
