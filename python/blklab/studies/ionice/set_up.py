"""The study's set-up as data, and what follows for it from the published figures."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from scipy import special

from blklab.quantities.units import parse_duration_ns
from blklab.records.samples import NS_PER_SECOND
from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.study_folder import Published, Table

SAMPLE_NS = NS_PER_SECOND
"""iotop's samples, a second each."""


class Writers(Table):
    """The two dd."""

    size: str
    repeats: int
    runtime: str
    quick_repeats: int
    quick_runtime: str
    uml_repeats: int
    uml_runtime: str

    def runtime_at(self, asked: Asked) -> str:
        """How long the repeated runs go on, on a model."""
        return asked.choose(self.runtime, quick=self.quick_runtime, uml=self.uml_runtime)

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        return asked.choose(self.repeats, quick=self.quick_repeats, uml=self.uml_repeats)


class Disk(Table):
    """What the guest saw."""

    parameters: str
    max_sectors_kb: int
    nr_requests: int


class Schedulers(Table):
    """By place."""

    sim: list[str]
    uml: list[str]
    matrix: list[str]
    uml_matrix: list[str]


class Matrix(Table):
    """Pairs of classes and levels."""

    entries: list[str]
    quick_entries: list[str]
    runtime: str
    quick_runtime: str
    uml_runtime: str
    uml_buffered_runtime: str
    uml_block_sizes: list[str]
    """Of two equal buffered writers, the smallest first."""

    def runtime_at(self, asked: Asked, direct: int) -> str:
        """How long a pair is at work, on a model."""
        in_guest = self.uml_runtime if direct else self.uml_buffered_runtime
        return asked.choose(self.runtime, quick=self.quick_runtime, uml=in_guest)


class Distance(Table):
    """What brings the ratio below that of the slices."""

    schedulers: list[str]
    command_times: list[str]
    stall: str
    stalled_percent: list[int]
    ssd: str


class Host(Table):
    """Sizes on this machine."""

    scratch: str
    size: str
    runtime: str
    entries: list[str]
    quick_scratch: str
    quick_size: str
    quick_runtime: str
    quick_entries: list[str]


class SetUp(Table):
    """``set-up.toml``."""

    writers: Writers
    disk: Disk
    schedulers: Schedulers
    matrix: Matrix
    distance: Distance
    host: Host


@dataclass(frozen=True)
class PublishedDisk:
    """What the published figures say of the disk."""

    bytes_per_second: float
    """Both dd together: all they wrote over the time of the longer one."""
    irregularity: float
    """Standard deviation over mean of iotop's totals, second by second, while both were writing."""

    nr_totals: int
    """How many totals that was reckoned from."""

    @property
    def irregularity_interval(self) -> tuple[float, float]:
        """Its 95 % interval, if totals are normally distributed."""
        degrees = self.nr_totals - 1
        bounds = (math.sqrt(degrees / special.chdtri(degrees, tail)) for tail in (0.025, 0.975))
        low, high = (self.irregularity * float(bound) for bound in bounds)
        return low, high

    def command_ns(self, command_bytes: int) -> int:
        """Time of a command at that speed."""
        return round(command_bytes * NS_PER_SECOND / self.bytes_per_second)

    def stalled_share(self, stall_ns: int) -> float:
        """Share of the time for which a disk stalls that is as irregular.

        Stalls of length *S* at random, mean distance *G* from one's end to the next, take the share
        *f = S/(S+G)* of the time. What they take of a time *T* has the variance *f S (1-f)²/T* (a renewal
        process over times much longer than a cycle), and what is left for work is *1-f*. So the relative
        variance of what is done in a second is *f S/T*.
        """
        return self.irregularity**2 * SAMPLE_NS / stall_ns


def published_disk(published: Published) -> PublishedDisk:
    """Reads it off dd's reports and iotop's totals."""
    moved = sum(published.figures("dd_summary.csv", "bytes_copied"))
    longest_s = max(published.figures("dd_summary.csv", "elapsed_s"))
    # In the first sample one process was alone.
    totals = published.figures("iotop_totals.csv", "disk_write_Mps", iotop_total_kind="total")[1:]
    irregularity = statistics.stdev(totals) / statistics.fmean(totals)
    return PublishedDisk(moved / longest_s, irregularity, len(totals))


def disk_text(
    scheme: str, set_up: SetUp, *, command_ns: int, stalled_share: float = 0.0, stall: str = ""
) -> str:
    """A target of the grammar: the disk with commands of that time.

    Args:
        scheme: ``sim`` or ``uml``.
        set_up: Its other parameters.
        command_ns: Time of a command; with stalls, its mean over all the time.
        stalled_share: For which it stalls.
        stall: Length of a stall.
    """
    latency_ns = round(command_ns * (1 - stalled_share))
    text = f"{scheme}:fixed,latency={latency_ns}ns,{set_up.disk.parameters}"
    if not stalled_share:
        return text
    every_ns = round(parse_duration_ns(stall) * (1 - stalled_share) / stalled_share)
    return f"{text},stall={stall},stall_every={every_ns}ns"
