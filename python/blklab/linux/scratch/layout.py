"""Lays out the data of a workload: the region of a file or device that each clone of each job works on. Pure.

Jobs that name the same file share it. A job that names none has one file for each of its clones. In a
directory these become real files; on a block device they follow each other from the start of the device, each
at a multiple of 1 MiB.

``size`` is the length of a clone's region, counted from its offset (as in fio). A job without a size covers
the file that it shares with a job that has one, otherwise the whole device. A percentage is relative to the
device; for an offset, to the job's size if it has one. The simulator follows the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blklab.errors import JobFileError, SpaceError
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Job, Workload

EXTENT_ALIGNMENT_BYTES = 1 << 20
_BLOCK_BYTES = 4096
"""Unit of file lengths and of shares of a device, so that direct I/O reaches every byte."""

_FileKey = tuple[str, str, int]


@dataclass(frozen=True)
class Region:
    """The part of a file or device that one clone works on."""

    filename: str
    """A plain name in the data directory, or the path of a device."""
    offset_bytes: int
    size_bytes: int

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
    for job in workload.jobs:
        for option in ("size", "offset"):
            if _percentage(job, option) is not None and job.size_bytes is None:
                raise JobFileError(
                    f"job {job.name}: {option}={job.options[option]} needs a block device",
                    source=workload.source,
                    line=job.option_lines.get(option),
                    option=option,
                    hint="give it in bytes (512m) for a directory",
                )
    lengths = _file_lengths(workload, device_bytes=None)
    written = {key for job in workload.jobs if job.writes for key in _file_keys(workload, job)}
    names: dict[_FileKey, str] = {}
    for key in lengths:
        kind = "written" if key in written else "read"
        names[key] = f"{kind}-{sum(1 for name in names.values() if name.startswith(kind))}"
    return _regions_in_files(workload, names, lengths, device_bytes=None)


def files_in_directory(workloads: Iterable[Workload]) -> dict[str, int]:
    """The files that the workloads need in a data directory, with their lengths in bytes."""
    lengths: dict[str, int] = {}
    for workload in workloads:
        for region in (region for clones in regions_in_directory(workload) for region in clones):
            length = _rounded_up(region.end_bytes, _BLOCK_BYTES)
            lengths[region.filename] = max(length, lengths.get(region.filename, 0))
    return lengths


def regions_on_device(
    workload: Workload,
    device_path: str,
    device_bytes: int,
    *,
    alignment_bytes: int = EXTENT_ALIGNMENT_BYTES,
) -> list[JobRegions]:
    """The regions of each job on a block device.

    Args:
        workload: What to lay out.
        device_path: The device.
        device_bytes: Its size.
        alignment_bytes: Where files may begin: at multiples of a zone's size on a zoned device.

    Raises:
        SpaceError: if the device is too small.
    """
    lengths = _file_lengths(workload, device_bytes)
    starts: dict[_FileKey, int] = {}
    end = 0
    for key, length in lengths.items():
        starts[key] = 0 if length is None else end
        end += _rounded_up(length or 0, alignment_bytes)
    regions = []
    for job in workload.jobs:
        clones = []
        for clone, key in enumerate(_file_keys(workload, job)):
            length = lengths[key]
            offset = _offset(job, clone, device_bytes)
            size = _size(job, offset, device_bytes if length is None else length, device_bytes)
            region = Region(device_path, starts[key] + offset, size)
            if job.strided and region.size_bytes < device_bytes and not workload.leaves_regions:
                raise JobFileError(
                    f"job {job.name}: on a device, zonemode=strided visits zones of the whole device",
                    source=workload.source,
                    line=job.option_lines.get("zonemode"),
                    option="zonemode",
                    hint="leave out size and offset, or test in a directory",
                )
            if region.end_bytes > device_bytes:
                raise SpaceError(
                    f"{workload.source}: job {job.name} needs {format_bytes(region.end_bytes)},"
                    f" {device_path} has {format_bytes(device_bytes)}"
                )
            clones.append(_checked(workload, job, region))
        regions.append(tuple(clones))
    return regions


def regions_in_numbered_files(workload: Workload, folder: str, device_bytes: int) -> list[JobRegions]:
    """The regions of each job in the files that a guest lays out on its file system.

    The guest program names them ``file-0``, ``file-1`` … in order of appearance.

    Raises:
        JobFileError: if a job has no size.
    """
    lengths = _file_lengths(workload, device_bytes)
    names = {key: f"{folder}/file-{number}" for number, key in enumerate(lengths)}
    return _regions_in_files(workload, names, lengths, device_bytes)


def _regions_in_files(
    workload: Workload,
    names: Mapping[_FileKey, str],
    lengths: Mapping[_FileKey, int | None],
    device_bytes: int | None,
) -> list[JobRegions]:
    regions = []
    for job in workload.jobs:
        clones = []
        for clone, key in enumerate(_file_keys(workload, job)):
            length = lengths[key]
            if length is None:
                raise _without_size(workload, job)
            offset = _offset(job, clone, device_bytes)
            size = _size(job, offset, length, device_bytes)
            clones.append(_checked(workload, job, Region(names[key], offset, size)))
        regions.append(tuple(clones))
    return regions


def _without_size(workload: Workload, job: Job) -> JobFileError:
    return JobFileError(
        f"job {job.name} has no size, which is optional only on a block device",
        source=workload.source,
        line=job.line,
        option="size",
        hint="add size=512m or the like",
    )


def _file_keys(workload: Workload, job: Job) -> Sequence[_FileKey]:
    """The logical file of each clone."""
    if job.filename is not None and any(
        _is_sized(other) for other in workload.jobs if other.filename == job.filename
    ):
        return [("shared", job.filename, 0)] * job.numjobs
    if not _is_sized(job):
        return [("device", "", 0)] * job.numjobs
    # Sections may have the same name, so their index identifies them.
    position = next(index for index, other in enumerate(workload.jobs) if other is job)
    return [("own", str(position), clone) for clone in range(job.numjobs)]


def _is_sized(job: Job) -> bool:
    return "size" in job.options or "filesize" in job.options


def _file_lengths(workload: Workload, device_bytes: int | None) -> dict[_FileKey, int | None]:
    """The logical files in order of appearance, with their lengths; None if no job gives a size."""
    lengths: dict[_FileKey, int | None] = {}
    for job in workload.jobs:
        size = _given_size(job, device_bytes)
        for key in _file_keys(workload, job):
            lengths.setdefault(key, None)
            if size is not None:
                # All clones' files have the same length: that of the clone that reaches furthest.
                end = _offset(job, job.numjobs - 1, device_bytes) + size
                lengths[key] = max(lengths[key] or 0, end, job.filesize_bytes or 0)
    return lengths


def _given_size(job: Job, device_bytes: int | None) -> int | None:
    share = _percentage(job, "size")
    return job.size_bytes if share is None else _share(share, device_bytes or 0)


def _size(job: Job, offset: int, file_length: int, device_bytes: int | None) -> int:
    given = _given_size(job, device_bytes)
    return file_length - offset if given is None else given


def _offset(job: Job, clone: int, device_bytes: int | None) -> int:
    share = _percentage(job, "offset")
    if share is None:
        start = job.offset_bytes
    else:
        start = _share(share, _given_size(job, device_bytes) or device_bytes or 0)
    return start + clone * job.offset_increment_bytes


def _percentage(job: Job, option: str) -> int | None:
    text = job.options.get(option, "").strip()
    return int(text[:-1]) if text.endswith("%") else None


def _share(percent: int, of_bytes: int) -> int:
    return of_bytes // 100 * percent // _BLOCK_BYTES * _BLOCK_BYTES


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
