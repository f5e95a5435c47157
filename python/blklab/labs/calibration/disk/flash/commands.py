"""Finds the controller's time for a command, which limits small commands and costs large ones nothing.

One job's loads do not show it: a processor submits fewer commands than a controller takes. Many jobs of small
reads do, if the drive as fitted would be faster; small reads beside large ones tell whether it is the
controller's time or the link's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blklab.labs.calibration.disk.document import Figure, mean_log
from blklab.labs.calibration.disk.flash.figures import FlashDrive
from blklab.labs.calibration.disk.loads import parsed_load
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.runs import Runs
from blklab.spec.workloads import Workload

RUNTIME_US = 50_000
ROUNDS = 2
_SEEDS = range(11, 13)
_SLOWER = 0.05
"""By so much, as a logarithm, must many small reads be slower than on the drive as fitted."""
_LEAST_ERROR = 0.01
_ALIGNMENT_BYTES = 1 << 20
FETCH, INTERFACE = "fetch", "interface"


@dataclass(frozen=True)
class SmallReads:
    """Many jobs that read 4 KiB at random, alone or beside two that read 64 KiB."""

    jobs: int
    depth: int
    beside_large: bool

    @property
    def name(self) -> str:
        """Such as ``read-4k-qd32-x8`` and ``read-4k-qd32-x4-beside-64k``."""
        return f"read-4k-qd{self.depth}-x{self.jobs}" + "-beside-64k" * self.beside_large

    @property
    def block_kib(self) -> int:
        """Size of a small read."""
        return 4

    @property
    def syncs(self) -> bool:
        """No ``fdatasync``."""
        return False

    @property
    def reads_only(self) -> bool:
        """It writes nothing."""
        return True

    def workload(self, *, space_bytes: int, ramp_us: int, runtime_us: int) -> Workload:
        """The load as a job file; see `CalibrationLoad`."""
        size = space_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
        common: dict[str, str | int] = {"rw": "randread", "size": size}
        small: dict[str, str | int] = {"bs": "4k", "iodepth": self.depth, "numjobs": self.jobs}
        sections = {"small": common | small}
        if self.beside_large:
            large: dict[str, str | int] = {"bs": "64k", "iodepth": max(1, self.depth // 2), "numjobs": 2}
            sections["large"] = common | large
        return parsed_load(self.name, sections, ramp_us=ramp_us, runtime_us=runtime_us)


def command_loads(queue_depth: int) -> list[SmallReads]:
    """The two loads.

    Args:
        queue_depth: Commands that a queue of the drive takes.
    """
    depth = min(32, queue_depth)
    return [SmallReads(8, depth, beside_large=False), SmallReads(4, depth, beside_large=True)]


@dataclass(frozen=True)
class FoundFetch:
    """The drive with its controller's time, and the figures to state in a profile."""

    drive: FlashDrive
    figures: Sequence[Figure] = ()


def measure_commands(runs: Runs) -> None:
    """Measures the loads in each of some rounds."""
    for _ in range(ROUNDS):
        for load in command_loads(runs.ground.facts.queues.depth):
            runs.one(load, RUNTIME_US)


def with_fetch(runs: Runs, drive: FlashDrive, model: Model) -> FoundFetch:
    """The drive with a time of its controller, if that explains how much slower many small reads are.

    Args:
        runs: Has measured the loads.
        drive: As fitted to loads of one job.
        model: Simulates.
    """
    loads = command_loads(runs.ground.facts.queues.depth)
    for load in loads:
        model.runtimes_us[load.name] = RUNTIME_US
    logs = [[math.log(one.iops) for one in runs.of(load)] for load in loads]
    measured = np.array([np.mean(one) for one in logs])

    def errors(other: FlashDrive) -> list[float]:
        simulated = model.measured(other.device(writes=False, syncs=False), loads, _SEEDS)
        found = [math.log(mean_log(one.iops for one in each)) for each in simulated]
        return [float(part) for part in np.array(found) - measured]

    as_fitted = errors(drive)
    if as_fitted[0] < _SLOWER:
        return FoundFetch(drive)
    fetch = 1e9 / math.exp(measured[0])
    other = replace(drive, fetch=fetch, interface=max(0.0, drive.interface - fetch))
    if _size(errors(other)) > _size(as_fitted) / 2:
        return FoundFetch(drive)
    deviation = max(float(np.std(logs[0], ddof=1)) / math.sqrt(len(logs[0])), _LEAST_ERROR)
    low, high = (round(fetch * math.exp(sign * 1.96 * deviation)) for sign in (-1, 1))
    figures = [
        Figure(key=FETCH, value=round(fetch), low=low, high=high, how="fitted"),
        Figure(
            key=INTERFACE,
            value=other.parameters()[INTERFACE],
            low=None,
            high=None,
            how="what the controller's time leaves of the latency",
        ),
    ]
    return FoundFetch(other, figures)


def _size(errors: Sequence[float]) -> float:
    return math.hypot(*errors)
