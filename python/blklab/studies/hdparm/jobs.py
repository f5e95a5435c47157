"""The job files of both studies, which lie in the folder of the first one."""

from __future__ import annotations

from blklab.spec.workloads import Workload
from blklab.studies.hdparm.sizes import BusyDisk, TimingTests
from blklab.studies.replication.options import StudyOptions
from blklab.studies.replication.study_folder import StudyFolder

FOLDER = "hdparm-four-schedulers"

CACHED = "cached-reads"
BUFFERED = "buffered-reads"
BUFFERED_JOB = "buffered-reads-as-job"
TESTS = {CACHED: "cached reads", BUFFERED: "buffered disk reads"}
"""As the tables of published figures call them."""

BUSY = "busy-disk"
BUSY_JOBS = ("readers", "writers", "idle")
"""Of the busy disk."""


def timing_tests(options: StudyOptions, tests: TimingTests) -> list[Workload]:
    """Both tests, in hdparm's order of ``-tT``: the cached reads come first."""
    runtime = tests.cached_runtime.under(options)
    cached = StudyFolder(FOLDER).workload("cached-reads.fio", name=CACHED, runtime=runtime)
    return [cached, buffered_reads(options, tests)]


def buffered_reads(
    options: StudyOptions, tests: TimingTests, area: str | None = None, *, as_job: bool = False
) -> Workload:
    """``-t`` alone.

    Args:
        options: What the person options.
        tests: Sizes and times.
        area: Another area than theirs.
        as_job: Whether it is a job even where hdparm is installed.
    """
    return StudyFolder(FOLDER).workload(
        "buffered-reads.fio",
        name=BUFFERED_JOB if as_job else BUFFERED,
        area=area or tests.area.under(options),
        runtime=tests.buffered_runtime,
        tool="" if as_job else "hdparm -t",
        rest=tests.host_rest if options.backend == "host" else "0s",
    )


def busy_disk(options: StudyOptions, busy: BusyDisk) -> Workload:
    """Random readers, writers, and a reader in the idle class."""
    return StudyFolder(FOLDER).workload(
        "busy-disk.fio",
        name=BUSY,
        area=busy.area.under(options),
        runtime=busy.runtime.under(options),
    )
