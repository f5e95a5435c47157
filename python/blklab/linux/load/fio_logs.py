"""Logs that a job file asks fio for (``write_bw_log`` and its like), kept with the run.

Blklab sets the windows over which they are averaged, so that logging does not disturb the measurement.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from blklab.linux.load.fio_rates import LOG_NAME as RATES
from blklab.spec.workloads import Job, Workload

LOG_OPTIONS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog")
_PREFIX = "log-"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+@-]")
_HISTOGRAM_MS = 1000
"""fio's histogram logs need a window; it has no default."""


def log_lines(job: Job, number: int) -> list[str]:
    """The lines of a clone's section.

    Args:
        job: The clone's job.
        number: Number of the clone in the whole file, from 1.
    """
    lines = []
    for option in LOG_OPTIONS:
        if option not in job.options or option == "write_bw_log":
            continue  # blklab has a bandwidth log of its own, of which a copy is kept
        # fio numbers its logs by clone, but not the one of all I/Os.
        suffix = f".{number}" if option == "write_iolog" else ""
        lines.append(f"{option}={_PREFIX}{_plain(job, option)}{suffix}")
    if "write_hist_log" in job.options:
        lines.append(f"log_hist_msec={_HISTOGRAM_MS}")
    return lines


def remove_logs(folder: Path) -> None:
    """Removes the logs of an earlier run."""
    for path in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            path.unlink()


def has_logs(workload: Workload) -> bool:
    """Whether any job asks for a log."""
    return any(option in job.options for job in workload.jobs for option in LOG_OPTIONS)


def keep_logs(folder: Path, workload: Workload, kept: Path) -> list[str]:
    """Copies the logs of a run to where the run keeps its files.

    Args:
        folder: fio's working directory.
        workload: The workload that has run.
        kept: A directory, which is created if there is any log.

    Returns:
        Names of the files in it.
    """
    found = {path.name.removeprefix(_PREFIX): path for path in sorted(folder.glob(f"{_PREFIX}*"))}
    number = 0
    for job in workload.jobs:
        for _ in range(job.numjobs):
            number += 1
            source = folder / f"{RATES}_bw.{number}.log"
            if "write_bw_log" in job.options and source.is_file():
                found[f"{_plain(job, 'write_bw_log')}_bw.{number}.log"] = source
    if found:
        kept.mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        shutil.copyfile(path, kept / name)
    return sorted(found)


def _plain(job: Job, option: str) -> str:
    """The file's name without its folder; by default the job's."""
    name = job.options[option].rsplit("/", 1)[-1] or job.name
    return _UNSAFE.sub("-", name)
