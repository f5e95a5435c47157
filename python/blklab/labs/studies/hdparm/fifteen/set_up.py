"""The set-up of the fifteen-run study, and the parts of it that follow from the published values."""

from __future__ import annotations

import statistics

from blklab.labs.studies.hdparm.jobs import BUFFERED, TESTS
from blklab.labs.studies.hdparm.sizes import BusyDisk, RunCounts, TimingTests
from blklab.labs.studies.hdparm.timing_tests import MIB
from blklab.labs.studies.replication.options import TomlTable
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import parse_duration_ns
from blklab.records.samples import NS_PER_SECOND
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice

BFQ = "bfq"
TUNED = "bfq-tuned"
RUNS_TABLE = "hdparm_runs.csv"
SETTINGS_TABLE = "bfq_settings.csv"


class StallingDisk(TomlTable):
    """A disk with the mean speed and the scatter of the published buffered reads."""

    stall: str
    command_kib: int
    parameters: str


class FifteenSetUp(TomlTable):
    """``set-up.toml``."""

    schedulers: list[str]
    tests: TimingTests
    runs: RunCounts
    queue: dict[str, str]
    disk: StallingDisk
    busy_disk: BusyDisk

    @property
    def labels(self) -> list[str]:
        """All settings in the published order: the tuned bfq was measured last."""
        return [*self.schedulers, TUNED]


def tuned_bfq(folder: StudyFolder) -> SchedulerChoice:
    """Bfq with the document's settings, under its own label."""
    settings = [f"{one['tunable']}={one['tuned_ms']}" for one in folder.rows(SETTINGS_TABLE)]
    return parse_scheduler_choice(":".join([f"{TUNED}={BFQ}", *settings]))


def choices(folder: StudyFolder, set_up: FifteenSetUp) -> list[SchedulerChoice]:
    """All settings in the published order."""
    return [*map(parse_scheduler_choice, set_up.schedulers), tuned_bfq(folder)]


def published_rates(folder: StudyFolder, set_up: FifteenSetUp, test: str) -> dict[str, list[float]]:
    """MiB/s as printed, by label, in the order of the runs."""
    return {
        label: folder.values(
            RUNS_TABLE,
            "throughput_MBps",
            test=TESTS[test],
            scheduler=BFQ if label == TUNED else label,
            setting="tuned" if label == TUNED else "default",
        )
        for label in set_up.labels
    }


def device_text(folder: StudyFolder, set_up: FifteenSetUp, *, steady: bool) -> str:
    """The device model for the buffered reads, in the target grammar.

    Stalls of length *S* that fill the share *f* of the time give the work done in a time *T* a relative
    variance of *f S/T* (`blklab.labs.studies.ionice.set_up`). The document's runs lasted *T* = 3 s.

    Args:
        folder: The study's files.
        set_up: Length of the stalls and size of the commands.
        steady: Leave out the stalls; the mean speed is the same.
    """
    runs = published_rates(folder, set_up, BUFFERED)
    mean = statistics.fmean(rate for label in set_up.schedulers for rate in runs[label])
    command_ns = set_up.disk.command_kib * 1024 / (mean * MIB) * NS_PER_SECOND
    head = "fixed,latency={:.0f}ns," + set_up.disk.parameters
    if steady:
        return head.format(command_ns)
    relative_variance = statistics.fmean(
        statistics.variance(runs[label]) / statistics.fmean(runs[label]) ** 2 for label in set_up.schedulers
    )
    stall_ns = parse_duration_ns(set_up.disk.stall)
    share = relative_variance * parse_duration_ns(set_up.tests.buffered_runtime) / stall_ns
    every_ns = stall_ns * (1 - share) / share
    stalls = f",stall={set_up.disk.stall},stall_every={every_ns:.0f}ns"
    return head.format(command_ns * (1 - share)) + stalls
