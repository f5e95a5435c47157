"""The job files of both studies, which lie in the folder of the first one."""

from __future__ import annotations

from blklab.spec.workloads import Workload
from blklab.studies.hdparm.sizes import BusyDisk, TimingTests
from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.study_folder import Published

FOLDER = "hdparm-four-schedulers"

CACHED = "cached-reads"
BUFFERED = "buffered-reads"
BUFFERED_JOB = "buffered-reads-as-job"
TESTS = {CACHED: "cached reads", BUFFERED: "buffered disk reads"}
"""As the tables of published figures call them."""

BUSY = "busy-disk"
PARTIES = ("readers", "writers", "idle")
"""Of the busy disk."""


def timing_tests(asked: Asked, tests: TimingTests) -> list[Workload]:
    """Both tests, in hdparm's order of ``-tT``: the cached reads come first."""
    runtime = tests.cached_runtime_at(asked)
    cached = Published(FOLDER).workload("cached-reads.fio", name=CACHED, runtime=runtime)
    return [cached, buffered_reads(asked, tests)]


def buffered_reads(
    asked: Asked, tests: TimingTests, area: str | None = None, *, as_job: bool = False
) -> Workload:
    """``-t`` alone.

    Args:
        asked: What the person asked.
        tests: Sizes and times.
        area: Another area than theirs.
        as_job: Whether it is a job even where hdparm is installed.
    """
    return Published(FOLDER).workload(
        "buffered-reads.fio",
        name=BUFFERED_JOB if as_job else BUFFERED,
        area=area or tests.area_at(asked),
        runtime=tests.buffered_runtime,
        tool="" if as_job else "hdparm -t",
        rest=tests.host_rest if asked.place == "host" else "0s",
    )


def busy_disk(asked: Asked, busy: BusyDisk) -> Workload:
    """Random readers, writers, and a reader in the idle class."""
    return Published(FOLDER).workload(
        "busy-disk.fio",
        name=BUSY,
        area=busy.host_area if asked.place == "host" else busy.area,
        runtime=busy.runtime_at(asked),
    )
