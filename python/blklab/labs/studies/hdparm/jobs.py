"""The job files of the study, kept in the folder of `hdparm-four-schedulers`."""

from __future__ import annotations

from blklab.labs.studies.hdparm.set_up import BusyDisk, TimingTests
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.spec.workloads import Workload

FOLDER = "hdparm-four-schedulers"

CACHED = "cached-reads"
BUFFERED = "buffered-reads"
BUFFERED_JOB = "buffered-reads-as-job"
TESTS = {CACHED: "cached reads", BUFFERED: "buffered disk reads"}
"""Our name of each test, and its name in the published tables."""

BUSY = "busy-disk"
BUSY_JOBS = ("readers", "writers", "idle")
"""Jobs on the busy disk."""


def timing_tests(options: StudyOptions, tests: TimingTests) -> list[Workload]:
    """Both tests in the order of ``hdparm -tT``: cached reads first."""
    runtime = tests.cached_runtime.under(options)
    cached = StudyFolder(FOLDER).workload("cached-reads.fio", name=CACHED, runtime=runtime)
    return [cached, buffered_reads(options, tests)]


def buffered_reads(
    options: StudyOptions, tests: TimingTests, area: str | None = None, *, as_job: bool = False
) -> Workload:
    """The test ``-t`` alone.

    Args:
        options: The options of the study.
        tests: Sizes and times.
        area: Replaces the area of `tests`.
        as_job: Run the job even if hdparm is installed.
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
    """The busy disk: random readers, writers, and a reader in the idle class."""
    return StudyFolder(FOLDER).workload(
        "busy-disk.fio",
        name=BUSY,
        area=busy.area.under(options),
        runtime=busy.runtime.under(options),
    )
