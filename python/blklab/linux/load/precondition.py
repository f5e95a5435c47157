"""Preconditioning: overwrites scratch space at random, which leaves flash in the state of long use.

A drive with sequential mappings, or one that has never been written, is faster than it will stay: see SNIA's
*Solid State Storage Performance Test Specification*, version 2.0.2, section 2 (write history and
preconditioning). Laying out writes everything once sequentially; preconditioning adds random 4 KiB writes of
twice that amount. It writes only to what blklab created: files in its scratch directory, or its loop device.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from blklab.errors import RefusedError, RequirementError, RunFailedError
from blklab.linux.load.fio import Fio, job_file_text, run_fio
from blklab.linux.load.load_process import LoadProcess
from blklab.linux.scratch.directory import ScratchDirectory
from blklab.linux.scratch.layout import JobRegions, Region
from blklab.linux.scratch.loop import ScratchLoop
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.quantities.sample_units import rough_duration
from blklab.quantities.units import NS_PER_SECOND, format_bytes
from blklab.spec.workloads import Workload, parse_workload

OVERWRITES = 2
LONGEST_S = 600
"""Time limit for all of it, because a slow disk would need hours; the summary says how much was written."""
TELLS_EVERY_S = 5.0
_LOOKS_EVERY_S = 0.1

_COPY_ON_WRITE = ("btrfs", "zfs", "bcachefs")


def check_precondition(space: ScratchSpace, details: Mapping[str, str]) -> None:
    """Makes sure that preconditioning touches only scratch space, and that it has an effect there.

    Raises:
        RefusedError: for a block device that blklab did not create.
        RequirementError: on a copy-on-write file system.
    """
    filesystem = details.get("filesystem", "")
    if filesystem in _COPY_ON_WRITE:
        raise RequirementError(
            f"--precondition is useless on {filesystem}: it never overwrites in place, so this would only "
            "fragment the test files",
            hint="test the device beneath, or a directory on another file system",
        )
    if not isinstance(space, ScratchDirectory | ScratchLoop):
        raise RefusedError(
            "--precondition overwrites everything, so it works only on blklab's own scratch space",
            hint="name a directory on that disk, or loop:SIZE,dir=PATH",
        )


def precondition_job(
    files: Mapping[str, int], *, folder: str | None
) -> tuple[Workload, list[JobRegions], str]:
    """The workload that overwrites files (or a device), its regions, and its job file.

    Args:
        files: Lengths in bytes by name.
        folder: Directory of the files, relative to fio's working directory; None for a device.
    """
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


def precondition(
    fio: Fio,
    files: Mapping[str, int],
    *,
    folder: str | None,
    work_folder: Path,
    place: str,
    announce: Announce,
) -> None:
    """Overwrites files, or a device of ours, at random, and tells the time left and the result.

    Args:
        fio: The program.
        files: Lengths in bytes by name.
        folder: As for `precondition_job`.
        work_folder: fio's working directory.
        place: What is overwritten, in words.
        announce: Takes lines of progress.

    Raises:
        RunFailedError: if fio failed.
    """
    workload, _, text = precondition_job(files, folder=folder)
    step = f"preconditioning by overwriting {place} at random"

    def tell(process: LoadProcess) -> None:
        begun_s = time.monotonic()
        while process.running and (left_s := begun_s + LONGEST_S - time.monotonic()) > 0:
            # First: where a terminal is narrow, the end is cut.
            announce(f"at most {rough_duration(left_s * NS_PER_SECOND)} left, {step}")
            _wait_for_end(process, min(left_s, TELLS_EVERY_S))

    announce(f"at most {rough_duration(LONGEST_S * NS_PER_SECOND)}, {step}")
    report = run_fio(fio, workload, text, work_folder, read_only=False, runtime_ns=None, meanwhile=tell)
    if report.error is not None:
        raise RunFailedError(f"preconditioning failed: {report.error}")
    written = sum(entry.bytes for job in report.jobs for entry in job.directions)
    asked = OVERWRITES * sum(files.values())
    rest = "" if written >= asked else f" of {format_bytes(asked)}, limited to {LONGEST_S} s"
    announce(f"preconditioned: {format_bytes(written)} written at random{rest}")


def _wait_for_end(process: LoadProcess, longest_s: float) -> None:
    """Waits until the process has ended, but not longer than told."""
    until_s = time.monotonic() + longest_s
    while process.running and time.monotonic() < until_s:
        time.sleep(_LOOKS_EVERY_S)


def files_to_overwrite(space: ScratchSpace, workloads: Sequence[Workload]) -> dict[str, int]:
    """The files of a scratch space, or its device, with their lengths in bytes."""
    if isinstance(space, ScratchLoop):
        return {str(space.device): space.size_bytes}
    if isinstance(space, ScratchDirectory):
        return space.file_lengths(workloads)
    raise TypeError(f"{space!r} is not scratch space")
