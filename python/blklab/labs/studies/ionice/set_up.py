"""The set-up of the ionice study, and the disk model that follows from its published values."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from scipy import special

from blklab.labs.studies.replication.options import FullAndQuick, Scaled, TomlTable
from blklab.labs.studies.replication.stalling_disk import stalling_disk
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import NS_PER_SECOND

SAMPLE_NS = NS_PER_SECOND
"""Interval between iotop's samples: one second."""


class Writers(TomlTable):
    """The two dd processes."""

    size: Scaled[str]
    """Bytes that each process writes in the experiment as printed."""
    blocks: Scaled[int]
    """Randomised blocks of the repeated runs, which last for a fixed time."""
    runtime: Scaled[str]
    file_size: Scaled[str]
    """File of each process in runs of a fixed time."""


class StudiedDisk(TomlTable):
    """The virtual machine's disk as its kernel saw it."""

    parameters: str
    max_sectors_kb: int
    nr_requests: int


class SchedulerLists(TomlTable):
    """Schedulers by experiment and backend; empty: all that the disk offers."""

    writers: Scaled[list[str]]
    matrix: Scaled[list[str]]


class Matrix(TomlTable):
    """Every pair of I/O classes and levels."""

    entries: Scaled[list[str]]
    direct_runtime: Scaled[str]
    buffered_runtime: Scaled[str]
    uml_block_sizes: list[str]
    """Block sizes of two equal buffered writers, the smallest first."""


class SliceDistance(TomlTable):
    """Causes that lower the measured ratio below the ratio of the slices."""

    schedulers: list[str]
    command_times: list[str]
    stall: str
    stalled_percent: list[int]
    ssd: str


class IoniceSetUp(TomlTable):
    """``set-up.toml``."""

    writers: Writers
    disk: StudiedDisk
    schedulers: SchedulerLists
    matrix: Matrix
    distance: SliceDistance
    host_scratch: FullAndQuick[str]


@dataclass(frozen=True)
class PublishedDisk:
    """The disk that the published values imply."""

    bytes_per_second: float
    """Both dd processes together: all bytes over the time of the longer one."""
    irregularity: float
    """Coefficient of variation of iotop's totals in each second while both processes wrote."""

    nr_totals: int
    """Number of totals behind `irregularity`."""

    @property
    def irregularity_interval(self) -> tuple[float, float]:
        """95 % interval of `irregularity` for normally distributed totals."""
        degrees = self.nr_totals - 1
        bounds = (math.sqrt(degrees / special.chdtri(degrees, tail)) for tail in (0.025, 0.975))
        low, high = (self.irregularity * float(bound) for bound in bounds)
        return low, high

    def command_ns(self, command_bytes: int) -> int:
        """Time of a command at this speed."""
        return round(command_bytes * NS_PER_SECOND / self.bytes_per_second)

    def stalled_share(self, stall_ns: int) -> float:
        """Share of the time that a disk must stall to be as irregular.

        Random stalls of length *S*, with a mean gap *G* between the end of one and the start of the next,
        fill the share *f = S/(S+G)* of the time. The share that they fill of a time *T* has the variance
        *f S (1-f)²/T* (a renewal process over times much longer than a cycle), and the share *1-f* is left
        for work. So the relative variance of the work done in a second is *f S/T*.
        """
        return self.irregularity**2 * SAMPLE_NS / stall_ns


def published_disk(folder: StudyFolder) -> PublishedDisk:
    """Derives the disk from dd's reports and iotop's totals."""
    moved = sum(folder.values("dd_summary.csv", "bytes_copied"))
    longest_s = max(folder.values("dd_summary.csv", "elapsed_s"))
    # During the first sample only one process ran.
    totals = folder.values("iotop_totals.csv", "disk_write_Mps", iotop_total_kind="total")[1:]
    irregularity = statistics.stdev(totals) / statistics.fmean(totals)
    return PublishedDisk(moved / longest_s, irregularity, len(totals))


def disk_target(
    scheme: str, set_up: IoniceSetUp, *, command_ns: int, stalled_share: float = 0.0, stall: str = ""
) -> str:
    """The target, in the target grammar: the disk with commands of this duration.

    Args:
        scheme: ``sim`` or ``uml``.
        set_up: The other parameters of the disk.
        command_ns: Duration of a command; with stalls, its mean over the whole time.
        stalled_share: Share of the time that the disk stalls.
        stall: Length of a stall.
    """
    device = stalling_disk(command_ns, set_up.disk.parameters, stalled_share=stalled_share, stall=stall)
    return f"{scheme}:{device}"
