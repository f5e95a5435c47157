"""Lays out the data of a workload: the region of a file or device that each clone of each job works on. Pure.

Jobs that name the same file share it. A job that names none has one file for each of its clones. In a
directory these become real files; on a block device they follow each other from the start of the device, each
at a multiple of 1 MiB.

``size`` is the length of a clone's region, counted from its offset (as in fio); several files divide it. A
job without a size covers the file that it shares with a job that has one, otherwise the whole device. A
percentage is a share of the file that the job uses, which is the device if the job's own file has no
``filesize``. A size counted from such an offset may make that file longer, as in fio; the shares stay those
of the shorter file. The simulator follows the same rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blklab.errors import JobFileError, SpaceError
from blklab.linux.scratch.extents import (
    FileKey,
    NumberedFile,
    end_in_sized_file,
    file_key,
    has_share,
    numbered_files,
    pass_bytes,
    span,
)
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Job, Workload

EXTENT_ALIGNMENT_BYTES = 1 << 20
MOST_PARTS = 255
"""Partitions of one device that Linux has numbers for."""
_BLOCK_BYTES = 4096
"""Unit of file lengths, so that direct I/O reaches every byte."""
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Region:
    """The part of a file or device that one clone works on, and of its further files if it has some."""

    filename: str
    """A plain name in the data directory, or the path of a device."""
    offset_bytes: int
    size_bytes: int
    further: tuple[Region, ...] = ()
    """The parts of the clone's further files."""
    pass_bytes: int | None = None
    """Bytes of a pass over all its files, if fewer than these have; None otherwise."""

    @property
    def parts(self) -> tuple[Region, ...]:
        """The parts of all the clone's files."""
        return (replace(self, further=(), pass_bytes=None), *self.further)

    @property
    def end_bytes(self) -> int:
        """The first byte after the region."""
        return self.offset_bytes + self.size_bytes


JobRegions = tuple[Region, ...]
"""The regions of one job's clones, in order."""


def regions_in_directory(workload: Workload) -> list[JobRegions]:
    """The regions of each job in a data directory.

    Files that some job writes are separate from files that are only read: overwriting fragments a file on a
    copy-on-write file system, and readers should find their files as they were laid out. Apart from that,
    files are numbered in order of appearance, so that workloads share them.

    Raises:
        JobFileError: if a job's size is unknown without a device.
    """
    lengths = _file_lengths(workload)
    written = {
        key for job in workload.jobs if job.writes for keys in _file_keys(workload, job) for key in keys
    }
    names: dict[FileKey, str] = {}
    drawn = _drawn_names(workload, lengths)
    for key in lengths:
        kind = "written" if key in written else "read"
        numbered = sum(1 for name in names.values() if name.startswith(kind))
        names[key] = drawn[key].format(kind) if key in drawn else f"{kind}-{numbered}"
    return _regions_in_files(workload, names, lengths)


def files_in_directory(workloads: Iterable[Workload]) -> dict[str, int]:
    """The files that the workloads need in a data directory, with their lengths in bytes."""
    lengths: dict[str, int] = {}
    for workload in workloads:
        for job, clones in zip(workload.jobs, regions_in_directory(workload), strict=True):
            # fio takes a file within the range as it is.
            unit = 1 if job.file_lengths else _BLOCK_BYTES
            for part in (part for region in clones for part in region.parts):
                length = _rounded_up(part.end_bytes, unit)
                lengths[part.filename] = max(length, lengths.get(part.filename, 0))
    return lengths


def regions_on_device(
    workload: Workload,
    device_path: str,
    device_bytes: int,
    *,
    alignment_bytes: int = EXTENT_ALIGNMENT_BYTES,
    part_path: Callable[[int], str] | None = None,
) -> list[JobRegions]:
    """The regions of each job on a block device.

    Args:
        workload: What to lay out.
        device_path: The device.
        device_bytes: Its size.
        alignment_bytes: Where files may begin: at multiples of a zone's size on a zoned device.
        part_path: The node of a numbered part of the device (`parts_on_device`), for jobs with several files;
            None if the device cannot be divided.

    Raises:
        SpaceError: if the device is too small.
        JobFileError: if a job has several files, and the device cannot be divided so.
    """
    regions = extents_on_device(workload, device_path, device_bytes, alignment_bytes=alignment_bytes)
    parts = _divided(workload, alignment_bytes)
    return [
        tuple(
            _in_parts(workload, job, region, [parts.get(key) for key in keys], part_path)
            for region, keys in zip(clones, _file_keys(workload, job), strict=True)
        )
        for job, clones in zip(workload.jobs, regions, strict=True)
    ]


def extents_on_device(
    workload: Workload, device_path: str, device_bytes: int, *, alignment_bytes: int = EXTENT_ALIGNMENT_BYTES
) -> list[JobRegions]:
    """The same, all counted from the beginning of the device, also the files of jobs that have several.

    Raises:
        SpaceError: if the device is too small.
    """
    lengths = _file_lengths(workload)
    places = _places(workload, alignment_bytes)
    regions = []
    for job in workload.jobs:
        clones = []
        for clone, keys in enumerate(_file_keys(workload, job)):
            parts = []
            for file, key in zip(numbered_files(job), keys, strict=True):
                length = lengths[key]
                begin, size = span(job, clone, file, device_bytes if length is None else length)
                part = Region(device_path, places[key].start_bytes + begin, size)
                _refuse_strides(workload, job, part, device_bytes)
                parts.append(_checked(workload, job, part))
            clones.append(_of_parts(job, parts))
        regions.append(tuple(clones))
    _refuse_too_large(workload, regions, device_path, device_bytes)
    return regions


@dataclass(frozen=True)
class DevicePart:
    """The place of a file."""

    start_bytes: int
    length_bytes: int
    number: int = 0
    """From 1 among the files of jobs that have several."""


def parts_on_device(workload: Workload, *, alignment_bytes: int = EXTENT_ALIGNMENT_BYTES) -> list[DevicePart]:
    """The files of jobs that have several. As fio's offset holds for all of them, each needs its own node."""
    return list(_divided(workload, alignment_bytes).values())


def _places(workload: Workload, alignment_bytes: int) -> dict[FileKey, DevicePart]:
    """The place of each file on a device."""
    lengths = _file_lengths(workload)
    places: dict[FileKey, DevicePart] = {}
    end = 0
    ends = _ends_after_shares(workload, lengths)
    for key, length in lengths.items():
        taken = ends.get(key, length or 0)
        places[key] = DevicePart(0 if length is None else end, _rounded_up(taken, _BLOCK_BYTES))
        end += _rounded_up(taken, alignment_bytes)
    return places


def _divided(workload: Workload, alignment_bytes: int) -> dict[FileKey, DevicePart]:
    """The places of the files of jobs that have several."""
    lengths = _file_lengths(workload)
    several = {
        key
        for job in workload.jobs
        for keys in _file_keys(workload, job)
        if len(set(keys)) > 1 and all(lengths[key] is not None for key in keys)
        for key in keys
    }
    places = {key: place for key, place in _places(workload, alignment_bytes).items() if key in several}
    for job, clone, file, key in _claims(workload):
        if job.file_lengths and key in places:
            # fio takes a node within the range as it is.
            places[key] = replace(places[key], length_bytes=sum(span(job, clone, file, lengths[key] or 0)))
    return {key: replace(place, number=number) for number, (key, place) in enumerate(places.items(), start=1)}


def _in_parts(
    workload: Workload,
    job: Job,
    region: Region,
    places: Sequence[DevicePart | None],
    part_path: Callable[[int], str] | None,
) -> Region:
    """A clone's region, with the node of each of its files if it has several.

    Raises:
        JobFileError: if the device cannot be divided into so many.
    """
    if all(part == region.parts[0] for part in region.parts):
        return region
    if job.file_lengths and any(part.end_bytes % _SECTOR_BYTES for part in region.parts):
        raise JobFileError(
            f"job {job.name}: parts of a device are whole sectors, and fio draws lengths that are not",
            source=workload.source,
            line=job.option_lines.get("filesize"),
            option="filesize",
            hint=f"name a directory or a sim: device, or blocks of a multiple of {_SECTOR_BYTES} bytes",
        )
    known = [place for place in places if place is not None]
    if part_path is None or len(known) < len(places) or max(place.number for place in known) > MOST_PARTS:
        option = "filename" if job.filenames else "nrfiles"
        most = "" if part_path is None else f"; it can be divided into {MOST_PARTS}"
        raise JobFileError(
            f"job {job.name} works on {len(places)} files, and a device has none{most}",
            source=workload.source,
            line=job.option_lines.get(option, job.line),
            option=option,
            hint="name a directory on that disk, or a sim: device; or give each file a section of its own",
        )
    parts = [
        replace(part, filename=part_path(place.number), offset_bytes=part.offset_bytes - place.start_bytes)
        for part, place in zip(region.parts, known, strict=True)
    ]
    return replace(parts[0], further=tuple(parts[1:]), pass_bytes=region.pass_bytes)


def _refuse_strides(workload: Workload, job: Job, region: Region, device_bytes: int) -> None:
    if job.strided and region.size_bytes < device_bytes and not workload.leaves_regions:
        raise JobFileError(
            f"job {job.name}: on a device, zonemode=strided visits zones of the whole device",
            source=workload.source,
            line=job.option_lines.get("zonemode"),
            option="zonemode",
            hint="leave out size and offset, or test in a directory",
        )


def _refuse_too_large(
    workload: Workload, regions: Sequence[JobRegions], device_path: str, device_bytes: int
) -> None:
    ends = [
        (part.end_bytes, job)
        for job, clones in zip(workload.jobs, regions, strict=True)
        for region in clones
        for part in region.parts
    ]
    too_large = [job for end, job in ends if end > device_bytes]
    if not too_large:
        return
    needed = max(end for end, _ in ends)
    # Room for all jobs, as a target such as loop:SIZE takes it.
    whole = f"{-(-needed >> 30)}g" if needed > 1 << 30 else f"{-(-needed >> 20)}m"
    raise SpaceError(
        f"{workload.source}: job {too_large[0].name} needs"
        f" {format_bytes(max(end for end, job in ends if job is too_large[0]))},"
        f" {device_path} has {format_bytes(device_bytes)}",
        hint=f"all jobs together need {format_bytes(needed)}: name a larger target (loop:{whole}, or "
        f"capacity={whole} of a sim: device), or lower size",
    )


def regions_in_numbered_files(workload: Workload, folder: str, device_bytes: int) -> list[JobRegions]:
    """The regions of each job in the files that a guest lays out on its file system.

    The guest program names them ``file-0``, ``file-1`` … in order of appearance.

    Raises:
        JobFileError: if a job has no size.
    """
    del device_bytes
    lengths = _file_lengths(workload)
    names = {key: f"{folder}/file-{number}" for number, key in enumerate(lengths)}
    return _regions_in_files(workload, names, lengths)


def _regions_in_files(
    workload: Workload, names: Mapping[FileKey, str], lengths: Mapping[FileKey, int | None]
) -> list[JobRegions]:
    regions = []
    for job in workload.jobs:
        clones = []
        for clone, keys in enumerate(_file_keys(workload, job)):
            parts = []
            for file, key in zip(numbered_files(job), keys, strict=True):
                length = lengths[key]
                if length is None:
                    raise _without_size(workload, job)
                begin, size = span(job, clone, file, length)
                parts.append(_checked(workload, job, Region(names[key], begin, size)))
            clones.append(_of_parts(job, parts))
        regions.append(tuple(clones))
    return regions


def _of_parts(job: Job, parts: Sequence[Region]) -> Region:
    total = sum(part.size_bytes for part in parts)
    once = pass_bytes(job, total)
    return replace(parts[0], further=tuple(parts[1:]), pass_bytes=once if once < total else None)


def _without_size(workload: Workload, job: Job) -> JobFileError:
    shares = {
        "size": job.size_percent,
        "offset": job.offset_percent,
        "offset_increment": job.offset_increment_percent,
    }
    given = [option for option, share in shares.items() if share]
    if has_share(job) and given:
        option = given[0]
        return JobFileError(
            f"job {job.name}: {option}={job.options[option]} needs a block device",
            source=workload.source,
            line=job.option_lines.get(option),
            option=option,
            hint="give it in bytes (512m) for a directory, or add filesize=512m or the like",
        )
    return JobFileError(
        f"job {job.name} has no size, which is optional only on a block device",
        source=workload.source,
        line=job.line,
        option="size",
        hint="add size=512m or the like",
    )


def _file_keys(workload: Workload, job: Job) -> list[list[FileKey]]:
    """The logical files of each clone."""
    files = numbered_files(job)
    return [[file_key(workload, job, clone, file) for file in files] for clone in range(job.numjobs)]


def _claims(workload: Workload) -> Iterator[tuple[Job, int, NumberedFile, FileKey]]:
    """Each file of each clone."""
    for job in workload.jobs:
        for clone, keys in enumerate(_file_keys(workload, job)):
            for file, key in zip(numbered_files(job), keys, strict=True):
                yield job, clone, file, key


def _drawn_names(workload: Workload, lengths: Mapping[FileKey, int | None]) -> dict[FileKey, str]:
    """Names of files whose lengths are drawn from a range, with a place for their kind.

    The draw is part of the name, so that no other workload makes them longer.

    Raises:
        JobFileError: if another job of this one does.
    """
    names: dict[FileKey, str] = {}
    for job, clone, file, key in _claims(workload):
        if job.file_lengths:
            if lengths[key] != end_in_sized_file(job, clone, file):
                raise JobFileError(
                    f"job {job.name}: another job makes its file longer than its filesize says",
                    source=workload.source,
                    line=job.option_lines.get("filesize"),
                    option="filesize",
                    hint="give the jobs files of their own (filename), or the same filesize",
                )
            draw = hashlib.sha256(repr((job.file_lengths, job.size_percent)).encode()).hexdigest()[:8]
            names.setdefault(key, f"{{}}-drawn-{draw}-{clone}-{file.number}")
    return names


def _file_lengths(workload: Workload) -> dict[FileKey, int | None]:
    """The logical files in order of appearance, with their lengths; None for the device."""
    lengths: dict[FileKey, int | None] = {}
    for job in workload.jobs:
        for clone, keys in enumerate(_file_keys(workload, job)):
            for file, key in zip(numbered_files(job), keys, strict=True):
                lengths.setdefault(key, None)
                end = end_in_sized_file(job, clone, file)
                if end is not None and key[0] != "device":
                    lengths[key] = max(lengths[key] or 0, end)
    return lengths


def _ends_after_shares(workload: Workload, lengths: Mapping[FileKey, int | None]) -> dict[FileKey, int]:
    """The ends of files with a length, after jobs whose offset is a share of them have made them longer."""
    ends: dict[FileKey, int] = {}
    for job in workload.jobs:
        for clone, keys in enumerate(_file_keys(workload, job)):
            for file, key in zip(numbered_files(job), keys, strict=True):
                length = lengths[key]
                if length is not None:
                    begin, size = span(job, clone, file, length)
                    ends[key] = max(ends.get(key, length), begin + size)
    return ends


def _checked(workload: Workload, job: Job, region: Region) -> Region:
    if region.size_bytes < job.block_size_bytes:
        raise JobFileError(
            f"job {job.name}: {max(region.size_bytes, 0)} bytes remain after its offset,"
            f" less than a block of {job.block_size_bytes}",
            source=workload.source,
            line=job.option_lines.get("offset", job.line),
            option="offset",
        )
    return region


def _rounded_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
