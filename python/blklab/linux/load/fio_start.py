"""The start of fio's load: each clone creates a file as it begins its I/O."""

from __future__ import annotations

import time
from pathlib import Path

from blklab.errors import RunFailedError
from blklab.linux.load.load_process import LoadProcess
from blklab.spec.workloads import Job, Workload

STARTED = "started"
"""Beginning of the names of the files."""
_START_LIMIT_S = 120
_POLL_S = 0.005


def remove_starts(folder: Path) -> None:
    """Removes the files of an earlier load."""
    for path in folder.glob(f"{STARTED}.*"):
        path.unlink()


def wait_for_start(process: LoadProcess, folder: Path, workload: Workload) -> bool:
    """Waits until all clones of a load have begun; False if the load ended instead.

    Raises:
        RunFailedError: if it takes too long.
    """
    clones = sum(job.numjobs for job in workload.jobs)
    limit = time.monotonic() + _START_LIMIT_S
    while len(list(folder.glob(f"{STARTED}.*"))) < clones:
        if not process.running:
            return False
        if time.monotonic() > limit:
            raise RunFailedError(f"fio's jobs did not begin within {_START_LIMIT_S} s")
        time.sleep(_POLL_S)
    return True


def start_files(workload: Workload) -> list[list[str]]:
    """For each job of a job file whose clones say when they begin, the files that they create.

    A file holds the number of each process that has created it, as processes of its PID namespace see it.
    """
    waited_for = {job.wait_for for job in workload.jobs}
    files, number = [], 0
    for job in workload.jobs:
        first, number = number + 1, number + job.numjobs
        together = job.name in waited_for and job.numjobs > 1
        files.append([f"{STARTED}.{one}" for one in range(number if together else first, number + 1)])
    return files


def begins_with_load(workload: Workload, job: Job) -> bool:
    """Whether a job begins with the load, and not after another job or a delay."""
    place = workload.jobs.index(job)
    stonewalled = any(one.stonewall for one in workload.jobs[1 : place + 1])
    return not stonewalled and job.wait_for is None and not job.startdelay_ns


def await_load(process: LoadProcess, folder: Path, workload: Workload) -> int | None:
    """Waits until the clones that begin with a load have begun.

    Returns:
        The moment at which the last of them did, in Unix time (ns); None if the load ended before.

    Raises:
        RunFailedError: if it takes too long.
    """
    paths = [
        folder / name
        for job, names in zip(workload.jobs, start_files(workload), strict=True)
        if begins_with_load(workload, job)
        for name in names
    ]
    limit = time.monotonic() + _START_LIMIT_S
    while not all(path.exists() for path in paths):
        if not process.running:
            return None
        if time.monotonic() > limit:
            raise RunFailedError(f"fio's jobs did not begin within {_START_LIMIT_S} s")
        time.sleep(_POLL_S)
    return max((path.stat().st_mtime_ns for path in paths), default=time.time_ns())
