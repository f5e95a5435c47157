"""A load beside a command: fio jobs that begin before the command and are ended after it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from blklab.errors import JobFileError
from blklab.linux.load.fio import (
    JOB_FILE,
    OUTPUT_FILE,
    Fio,
    job_file_text,
    read_report,
)
from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.fio_start import remove_starts, wait_for_start
from blklab.linux.load.load_process import EndedProcess, LoadProcess, load_process
from blklab.linux.scratch.layout import JobRegions
from blklab.quantities.units import NS_PER_SECOND
from blklab.spec.workloads import Job, Workload

LEAD_NS = 2 * NS_PER_SECOND
"""Time that the load has to itself before the command starts: queues fill, caches and writeback settle."""
_MARGIN_S = 60
_ENDED_BY_SIGNAL = 128
"""fio's exit code after SIGINT (``sig_int``, backend.c of fio 3.33); its report is complete."""
_WITHOUT_END = {"runtime": None, "ramp_time": None, "loops": None, "number_ios": None, "io_size": None}


@dataclass
class LoadBeside:
    """The load, under way; `report` is there once it has been ended."""

    ended_early: bool = False
    report: FioReport | None = None


def endless(workload: Workload) -> Workload:
    """The same load without an end of its own.

    Raises:
        JobFileError: if a job waits for others to end.
    """
    for job in workload.jobs:
        if job.stonewall or job.wait_for is not None:
            option = "stonewall" if job.stonewall else "wait_for"
            raise JobFileError(
                f"job {job.name} would never begin: beside a command no job ends by itself",
                source=workload.source,
                line=job.option_lines.get(option, job.line),
                option=option,
                hint="leave the option out, or the jobs that it waits for",
            )
    return workload.model_copy(update={"jobs": [_endless(job) for job in workload.jobs]})


def _endless(job: Job) -> Job:
    kept = {name: value for name, value in job.options.items() if name not in _WITHOUT_END}
    return job.model_copy(
        update={
            "options": kept | {"time_based": "1", "runtime": "0"},
            "time_based": True,
            "ramp_time_ns": 0,
            "number_ios": None,
            "io_size_bytes": None,
        }
    )


def beside_text(
    workload: Workload,
    regions: Sequence[JobRegions],
    *,
    seed: int,
    folder: str | None,
    group_joins: Mapping[str, str],
    longest_ns: int,
) -> str:
    """The job file for fio of a load that `endless` has prepared.

    Args:
        workload: The load.
        regions: The region that each clone of each job works on.
        seed: Of random offsets.
        folder: Directory of the regions' files, relative to fio's working directory; None for devices.
        group_joins: As for `job_file_text`.
        longest_ns: Time after which it ends in any case.
    """
    return job_file_text(
        workload,
        regions,
        seed=seed,
        runtime_ns=longest_ns,
        group_joins=group_joins,
        folder=folder,
        says_start=True,
    )


@contextmanager
def load_beside(
    fio: Fio, workload: Workload, text: str, folder: Path, *, longest_ns: int
) -> Iterator[LoadBeside]:
    """Runs a load while the context is open, from when all its jobs have begun and have settled.

    Args:
        fio: The program.
        workload: The load, without an end of its own.
        text: Its job file.
        folder: fio's working directory.
        longest_ns: Time after which it ends in any case.

    Raises:
        RunFailedError: if its jobs do not begin, or cannot be ended.
    """
    (folder / JOB_FILE).write_text(text, encoding="utf-8")
    (folder / OUTPUT_FILE).unlink(missing_ok=True)
    remove_starts(folder)
    with load_process(
        fio.command(),
        folder,
        limit_s=longest_ns / NS_PER_SECOND + _MARGIN_S,
        too_long="fio did not end",
    ) as process:
        beside = LoadBeside()
        if wait_for_start(process, folder, workload):
            _lead(process)
        beside.ended_early = not process.running
        yield beside
        beside.ended_early = beside.ended_early or not process.running
        process.interrupt()
        beside.report = _report(folder, process.wait(), workload)


def _lead(process: LoadProcess) -> None:
    limit = time.monotonic() + LEAD_NS / NS_PER_SECOND
    while process.running and time.monotonic() < limit:
        time.sleep(0.02)


def _report(folder: Path, ended: EndedProcess, workload: Workload) -> FioReport:
    """Fio's report; being ended by us is no failure."""
    if ended.returncode == _ENDED_BY_SIGNAL:
        ended = EndedProcess(ended.output, 0)
    report = read_report(folder, ended, workload)
    return replace(report, warnings=[line for line in report.warnings if "terminating on signal" not in line])
