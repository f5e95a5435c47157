"""Lengths of loads: too short to reach a limit, unless a load is to test the profile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from blklab.labs.calibration.disk.forward import FINE_IOS
from blklab.labs.calibration.disk.limits import Limits, rushes
from blklab.labs.calibration.disk.loads import (
    BUFFERED_HOLDOUTS,
    HOLDOUTS,
    LIMITED_HOLDOUTS,
    SINGLE_WRITES,
    DiskLoad,
)
from blklab.labs.calibration.disk.runs import Runs

PROBE_RUNTIME_US = 250_000
_LEAST_LIMITED_US = 5_000
_LIMITED_US = 8_000_000
_QUEUE_GAIN = 1.5
_RUSH_GAIN = 1.25
"""Times the rate of a run of a few milliseconds, at whose ends some I/Os are not counted."""
_PART_OF_BURST = 0.6
"""Of the time in which a bucket empties, for a load and its ramp that must not reach the limit."""


@dataclass(frozen=True)
class Most:
    """Rates that no load of a direction exceeds."""

    iops: float
    rate: float
    """Bytes a second."""

    def of(self, block_kib: int) -> float:
        """I/Os a second of a size."""
        return min(self.iops, self.rate / (1024 * block_kib))


def measured_lengths(runs: Runs, limits: Limits, usual_us: int, single_read_us: float) -> Lengths:
    """How long loads run. If there are limits, loads that none slows down say how long others may last."""
    single_us = {"read": single_read_us}
    most = {"read": Most(limits.most_iops, limits.most_rate)}
    if limits.of_reads:
        # The runs that have shown the limit may have reached it early.
        rushing = _rushing(runs, "randread")
        most["read"] = Most(max(limits.most_iops, rushing.iops), max(limits.most_rate, rushing.rate))
    if not (limits.any and runs.ground.facts.writable):
        return Lengths(limits, usual_us, single_us, most)
    free_s = _PART_OF_BURST * limits.unlimited_s(
        most["read"].of(SINGLE_WRITES.block_kib), SINGLE_WRITES.block_kib, writes=True
    )
    runtime_us = min(PROBE_RUNTIME_US, max(_LEAST_LIMITED_US, 1e6 * free_s))
    single_us["write"] = runs.one(SINGLE_WRITES, round(runtime_us)).p50_ns / 1000
    # Writes may be far quicker than reads, and empty a bucket sooner.
    most["write"] = _rushing(runs, "randwrite") if limits.of_reads else Most(math.inf, limits.most_write_rate)
    return Lengths(limits, usual_us, single_us, most)


def _rushing(runs: Runs, readwrite: str) -> Most:
    """The rates of small and large I/Os on a rested disk, before they can have reached a limit."""
    facts = runs.ground.facts
    small, large = rushes(
        readwrite,
        queue_depth=facts.queues.depth,
        max_sectors_kb=facts.queues.max_sectors_kb,
        space_bytes=facts.space_bytes,
    )
    iops, large_iops = (_RUSH_GAIN * runs.rested(load, _LEAST_LIMITED_US).iops for load in (small, large))
    return Most(iops, large_iops * 1024 * large.block_kib)


class Lengths:
    """How long each load runs.

    Args:
        limits: What was found of limits.
        usual_us: Length of runs that reach none.
        single_us: Latency of single I/Os by direction.
        most: By direction.
    """

    def __init__(
        self, limits: Limits, usual_us: int, single_us: Mapping[str, float], most: Mapping[str, Most]
    ) -> None:
        self.limits = limits
        self._usual_us = usual_us
        self._single_us = single_us
        self._most = most

    def of_us(self, load: DiskLoad) -> int:
        """Length of a load's runs."""
        if not self.limits.any or load in HOLDOUTS:
            return self._usual_us
        if load in LIMITED_HOLDOUTS or load in BUFFERED_HOLDOUTS:
            return _LIMITED_US
        return round(min(self._usual_us, max(_LEAST_LIMITED_US, 1e6 * self._free_s(load))))

    def is_free(self, load: DiskLoad, iops: float) -> bool:
        """Whether no run of a load has reached a limit."""
        if self.limits.below(iops, load.block_kib, writes=not load.reads_only):
            return True
        return self.of_us(load) <= 1e6 * self._free_s(load) + 1

    def are_short(self, load: DiskLoad, iops: float) -> bool:
        """Whether a load's runs were shortened to fewer I/Os than the fit simulates."""
        runtime_us = self.of_us(load)
        return runtime_us < self._usual_us and runtime_us * iops / 1e6 < FINE_IOS

    def _free_s(self, load: DiskLoad) -> float:
        # Of a mixture, all may be of the faster kind for a while, and each direction may have a link.
        directions = ("read", "write") if load.direction == "mixed" else (load.direction,)
        single_us = min(self._single_us[direction] for direction in directions)
        # Servers may take turns with luck: a queue serves a little more than single commands suggest.
        most_iops = min(
            _QUEUE_GAIN * 1e6 * load.depth / single_us,
            sum(self._most[direction].of(load.block_kib) for direction in directions),
        )
        return _PART_OF_BURST * self.limits.unlimited_s(most_iops, load.block_kib, writes=not load.reads_only)
