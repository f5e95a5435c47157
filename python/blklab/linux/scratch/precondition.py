"""Preconditioning: scratch space is overwritten at random, so that flash is as after long use.

A drive whose mapping is in order, or that has never been written, shows speeds that do not last: see SNIA's
*Solid State Storage Performance Test Specification*, version 2.0.2, section 2 (write history and
preconditioning). Laying out writes everything once in sequence; this adds random 4 KiB writes of twice the
size. Only what blklab created itself is written: files in its scratch folder, or its own loop device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from blklab.errors import RefusedError, RequirementError, RunFailedError
from blklab.linux.load.fio import Fio, job_file_text, run_fio
from blklab.linux.scratch.directory import ScratchDirectory
from blklab.linux.scratch.layout import JobRegions, Region
from blklab.linux.scratch.loop import ScratchLoop
from blklab.linux.scratch.space import ScratchSpace
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload, parse_workload

OVERWRITES = 2
LONGEST_S = 600
"""For all of it: a slow disk would need hours, and what was reached by then is said."""

_COPY_ON_WRITE = ("btrfs", "zfs", "bcachefs")


def check_precondition(place: ScratchSpace, details: Mapping[str, str]) -> None:
    """Makes sure that preconditioning touches nothing but scratch space, and that it means something there.

    Raises:
        RefusedError: for a block device that is not blklab's own.
        RequirementError: on a file system that writes elsewhere than over the old data.
    """
    filesystem = details.get("filesystem", "")
    if filesystem in _COPY_ON_WRITE:
        raise RequirementError(
            f"--precondition makes no sense on {filesystem}: it never writes in place, so this would only "
            "fragment the test files",
            hint="test the device beneath, or a directory on another file system",
        )
    if not isinstance(place, ScratchDirectory | ScratchLoop):
        raise RefusedError(
            "--precondition overwrites everything, so it works on blklab's own scratch space only",
            hint="name a directory on that disk, or loop:SIZE,dir=PATH",
        )


def precondition_job(
    files: Mapping[str, int], *, folder: str | None
) -> tuple[Workload, list[JobRegions], str]:
    """The workload that overwrites files (or a device) by name and length, its regions and fio's job file."""
    limit_s = max(1, LONGEST_S // max(1, len(files)))
    sections = [
        f"[overwrite-{number}]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=32\ndirect=1\n"
        f"size={length}\nio_size={OVERWRITES * length}\nnorandommap\nrandrepeat=0\nruntime={limit_s}s\n"
        f"end_fsync=1\n{'stonewall' if number else ''}\n"
        for number, length in enumerate(files.values())
    ]
    text = "; purpose: Overwrites scratch space at random.\n" + "".join(sections)
    workload = parse_workload(text, name="precondition", source="precondition")
    regions: list[JobRegions] = [(Region(name, 0, length),) for name, length in files.items()]
    return workload, regions, job_file_text(workload, regions, seed=1, folder=folder)


def precondition(fio: Fio, files: Mapping[str, int], *, folder: str | None, work_folder: Path) -> str:
    """Overwrites files, or a device of ours, at random.

    Returns:
        A sentence on what was done.

    Raises:
        RunFailedError: if fio failed.
    """
    workload, _, text = precondition_job(files, folder=folder)
    report = run_fio(fio, workload, text, work_folder, read_only=False, runtime_ns=None)
    if report.error is not None:
        raise RunFailedError(f"preconditioning failed: {report.error}")
    written = sum(entry.bytes for job in report.jobs for entry in job.directions)
    asked = OVERWRITES * sum(files.values())
    rest = "" if written >= asked else f" of {format_bytes(asked)}, as far as {LONGEST_S} s allowed"
    return f"preconditioned: {format_bytes(written)} written at random{rest}"


def files_to_overwrite(place: ScratchSpace, workloads: Sequence[Workload]) -> dict[str, int]:
    """What a place of ours holds, by name and length in bytes."""
    if isinstance(place, ScratchLoop):
        return {str(place.device): place.size_bytes}
    if isinstance(place, ScratchDirectory):
        return place.file_lengths(workloads)
    raise TypeError(f"{place!r} is not scratch space")
