"""The part of a file that a job covers: offsets, sizes and shares, with fio's bases and rounding. Pure.

The simulator's `workload/extents.rs` follows the same rules.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from blklab.spec.workloads import Job, Workload

FileKey = tuple[Literal["own", "shared", "device"], str, int]
"""A logical file."""


class NumberedFile(NamedTuple):
    """One of the files of each of a job's clones."""

    name: str | None
    number: int
    of: int


def numbered_files(job: Job) -> list[NumberedFile]:
    """The files of each of a job's clones."""
    if job.filenames:
        names = job.filenames
        return [NumberedFile(name, index, len(names)) for index, name in enumerate(names)]
    of = job.nr_files if has_length(job) and not has_share(job) else 1
    return [NumberedFile(None, index, of) for index in range(of)]


def has_length(job: Job) -> bool:
    """Whether a job says in bytes how long its files are."""
    return _has_file_sizes(job) or job.size_bytes is not None


def has_share(job: Job) -> bool:
    """Whether something of a job is a share of a file whose length the job does not say."""
    return not _has_file_sizes(job) and any(
        (job.size_percent, job.offset_percent, job.offset_increment_percent)
    )


def file_key(workload: Workload, job: Job, clone: int, file: NumberedFile) -> FileKey:
    """The logical file that a clone uses."""
    sized = has_length(job) and not has_share(job)
    if file.name is None:
        if not sized:
            return ("device", "", 0)
        # Sections may be alike, so their index identifies them.
        position = next(index for index, other in enumerate(workload.jobs) if other is job)
        return ("own", str(position), clone * file.of + file.number)
    sharers = [other for other in workload.jobs if file.name in other.filenames]
    if file.name.startswith("/dev/") and any(has_share(other) for other in sharers):
        return ("device", "", 0)
    if any(has_length(other) and not has_share(other) for other in sharers):
        return ("shared", file.name, 0)
    return ("device", "", 0)


def end_in_sized_file(job: Job, clone: int, file: NumberedFile) -> int | None:
    """The end of the part of a clone's file that the job's clones cover, or None if the job does not say it.

    All clones' files are as long as that of the clone that reaches furthest, except those within a range of
    lengths.
    """
    if not has_length(job) or has_share(job):
        return None
    if _has_file_sizes(job):
        return _file_length(job, clone, file)
    begin, size = span(job, job.numjobs - 1, file, 0)
    return begin + size


def span(job: Job, clone: int, file: NumberedFile, file_bytes: int) -> tuple[int, int]:
    """Beginning and length of the part of a file of so many bytes that a clone covers."""
    begin = _offset(job, clone, file_bytes)
    if _has_file_sizes(job):
        size = _file_length(job, clone, file) - begin
    elif job.size_bytes is not None:
        size = _part(job.size_bytes, file, job.smallest_block_bytes)
    else:
        size = file_bytes - begin
    if job.size_percent not in (None, 100):
        share = min((begin + size) * job.size_percent // 100, size)
        size = share - share % job.smallest_block_bytes
    return begin, size


def pass_bytes(job: Job, total: int) -> int:
    """Bytes of a pass over files of so many bytes together, in whole blocks."""
    size = job.size_bytes
    return size if size is not None and size < total else total


def _has_file_sizes(job: Job) -> bool:
    return job.filesize_bytes is not None or bool(job.file_lengths)


def _file_length(job: Job, clone: int, file: NumberedFile) -> int:
    return job.file_lengths[clone][file.number] if job.file_lengths else job.filesize_bytes or 0


def _offset(job: Job, clone: int, file_bytes: int) -> int:
    step = job.offset_increment_bytes
    if job.offset_increment_percent:
        step = file_bytes * job.offset_increment_percent // 100
    offset = file_bytes * job.offset_percent // 100 if job.offset_percent else job.offset_bytes
    offset += clone * step
    if job.offset_percent or job.offset_increment_percent:
        block = job.smallest_block_bytes
        return -(-offset // block) * block
    return offset


def _part(size: int, file: NumberedFile, block: int) -> int:
    part = size // file.of
    longer = (size - part * file.of) // block
    return part + (block if file.number < longer else 0)
