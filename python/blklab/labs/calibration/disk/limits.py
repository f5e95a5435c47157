"""Finds limits with bursts (token buckets), as clouds and hypervisors set them.

A bucket is full on a disk that has rested. Under a load that asks for more than the limit, the I/Os up to a
time are at most those that the bucket held and those for which tokens have come since. After it has run empty
they follow a line whose slope is the limit and whose height at the beginning is the burst. Runs of growing
length show this line. While the I/Os grow in proportion to the time, no limit was reached.

A write buffer, and a cache of fast cells behind it, does the same to writes alone: room in it are the tokens,
the rate at which it empties is the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blklab.labs.calibration.disk.ground import Measure
from blklab.labs.calibration.disk.loads import SMALLEST_KIB
from blklab.labs.calibration.disk.placed_loads import PlacedLoad
from blklab.quantities.units import format_bytes

LENGTHS_S = (0.05, 0.25, 0.5, 1, 2, 4, 8, 16)
WRITE_LENGTHS_S = (0.01, *LENGTHS_S)
"""The first is so short that a buffer takes all of it: it shows the rate before it is full."""
_BETWEEN = 0.75
"""Of the longest length: one more if writes slow down, to see whether they have come to a steady rate."""
_FALL = 0.85
"""A rate below this part of the first run's is a limit's."""
_STEADY = 0.02
"""Two slopes that differ by less are the limit's."""
_ALIKE = 0.03
"""Rates that differ by less come from one limit."""
_LEAST_ERROR = 0.005
_LARGE_KIB = 256
_MOST_WRITTEN_BYTES = 32 << 30
"""By the longest load of writes, about: flash wears out."""
_LEAST_FAST_S = 0.03
"""A buffer that fills sooner leaves no time for loads that do not fill it: they show the rate behind it."""
_FEW_IOS = 16
_LEAST_RUNS = 5
"""Of each load, whatever the budget: up to two seconds."""


@dataclass(frozen=True)
class Bucket:
    """A limit with the tokens that a rested disk has beyond it, and their intervals."""

    per_second: float
    per_second_interval: tuple[float, float]
    burst: float
    burst_interval: tuple[float, float]


@dataclass(frozen=True)
class Limits:
    """Findings of long loads."""

    ios: Bucket | None
    rate: Bucket | None
    seen_ios: int
    """I/Os of the longest load of small ones: so many passed, if there is no limit."""
    seen_bytes: int
    most_iops: float
    """Of small I/Os while no limit is reached."""
    most_rate: float
    """Bytes a second of large ones."""
    writes: Bucket | None = None
    """Bytes that fill a write buffer, and the rate at which it empties."""
    no_write_buffer: str = "not measured"
    """The reason why there is none."""
    most_write_rate: float = math.inf
    """Bytes a second of writes that the buffer takes."""

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return self.of_reads or self.writes is not None

    @property
    def of_reads(self) -> bool:
        """Whether there is one that reads can reach."""
        return self.ios is not None or self.rate is not None

    def unlimited_s(self, iops: float, block_kib: int, *, writes: bool = False) -> float:
        """Time for which a rested disk serves a load of at most this rate as if there were no limit."""
        found = [math.inf]
        for bucket, rate in self._asked(iops, block_kib, writes=writes):
            if rate > _FALL * bucket.per_second:
                found.append(bucket.burst / rate)
        return min(found)

    def below(self, iops: float, block_kib: int, *, writes: bool = False) -> bool:
        """Whether a load of this rate never reaches a limit."""
        asked = self._asked(iops, block_kib, writes=writes)
        return all(rate <= _FALL * bucket.per_second for bucket, rate in asked)

    def _asked(self, iops: float, block_kib: int, *, writes: bool) -> list[tuple[Bucket, float]]:
        """The limits of a load, and at most how much of each it asks for in a second."""
        rate = 1024 * block_kib * iops
        limits = [(self.ios, iops), (self.rate, rate)]
        if writes:
            limits.append((self.writes, min(rate, self.most_write_rate)))
        return [(bucket, asked) for bucket, asked in limits if bucket is not None]

    def parameters(self) -> dict[str, int]:
        """The profile's keys and values."""
        found: dict[str, int] = {}
        if self.ios is not None:
            found |= {"io_limit": round(self.ios.per_second), "io_burst": round(self.ios.burst)}
        if self.rate is not None:
            found |= {"rate_limit": round(self.rate.per_second), "rate_burst": round(self.rate.burst)}
        if self.writes is not None:
            found |= {
                "write_buffer": round(self.writes.burst),
                "write_drain_rate": round(self.writes.per_second),
            }
        return found


def limit_loads(*, queue_depth: int, max_sectors_kb: int, space_bytes: int) -> tuple[PlacedLoad, PlacedLoad]:
    """Small I/Os, and large ones, as many as the disk takes at once."""
    return _small_and_large("drain", "randread", queue_depth, max_sectors_kb, space_bytes)


def rushes(
    readwrite: str, *, queue_depth: int, max_sectors_kb: int, space_bytes: int
) -> tuple[PlacedLoad, PlacedLoad]:
    """The same loads for a few milliseconds, of either direction."""
    return _small_and_large(f"rush-{readwrite}", readwrite, queue_depth, max_sectors_kb, space_bytes)


def buffer_load(*, queue_depth: int, max_sectors_kb: int, space_bytes: int) -> PlacedLoad:
    """Large writes in order, which fill a write buffer without garbage to collect."""
    large_kib, depth = _large(max_sectors_kb, queue_depth)
    return _drain("fill", "write", large_kib, depth, space_bytes)


def _small_and_large(
    verb: str, readwrite: str, queue_depth: int, max_sectors_kb: int, space_bytes: int
) -> tuple[PlacedLoad, PlacedLoad]:
    small_depth = min(64, max(4, queue_depth))
    large_kib, depth = _large(max_sectors_kb, queue_depth)
    return (
        _drain(verb, readwrite, SMALLEST_KIB, small_depth, space_bytes),
        _drain(verb, readwrite, large_kib, depth, space_bytes),
    )


def _large(max_sectors_kb: int, queue_depth: int) -> tuple[int, int]:
    """Size of large I/Os in KiB, and how many at once."""
    return min(_LARGE_KIB, 1 << (max_sectors_kb.bit_length() - 1)), min(32, max(4, queue_depth))


def _drain(verb: str, readwrite: str, block_kib: int, depth: int, space_bytes: int) -> PlacedLoad:
    return PlacedLoad(
        name=f"{verb}-{block_kib}k-qd{depth}",
        readwrite=readwrite,
        block_kib=block_kib,
        depth=depth,
        offset_bytes=0,
        size_bytes=space_bytes // (1 << 20) * (1 << 20),
        from_rest=True,
    )


def limits_of(measure: Measure, loads: tuple[PlacedLoad, PlacedLoad], *, most_s: float) -> Limits:
    """Measures both loads for growing times.

    Args:
        measure: Each measurement begins on a rested disk.
        loads: From `limit_loads`.
        most_s: The longest run.
    """
    small, large = loads
    ios, counts, first = _bucket(measure, small, most_s)
    rate, large_counts, large_first = _bucket(measure, large, most_s)
    block_bytes = large.block_kib * 1024
    if ios is not None and rate is not None:
        # One limit may slow down both loads.
        if abs(math.log(rate.per_second / ios.per_second)) < _ALIKE:
            rate = None
        elif abs(math.log(block_bytes * rate.per_second / (4096 * ios.per_second))) < _ALIKE:
            ios = None
    return Limits(
        ios=ios,
        rate=None if rate is None else _scaled(rate, block_bytes),
        seen_ios=max(counts),
        seen_bytes=max(large_counts) * block_bytes,
        most_iops=first,
        most_rate=large_first * block_bytes,
    )


def with_write_buffer(limits: Limits, measure: Measure, load: PlacedLoad, *, most_s: float) -> Limits:
    """Adds the write buffer to the limits of reads, of which there must be none.

    Args:
        limits: From `limits_of`.
        measure: Each measurement begins on a rested disk.
        load: From `buffer_load`.
        most_s: The longest run.
    """
    block_bytes = load.block_kib * 1024
    most_ios = _MOST_WRITTEN_BYTES // block_bytes
    times: list[float] = []
    counts: list[int] = []
    writes: Bucket | None = None
    longest_s = 0.0
    for length_s in WRITE_LENGTHS_S:
        if times and (length_s > most_s or counts[-1] / times[-1] * length_s > most_ios):
            break
        found = measure(load, round(1e6 * length_s))
        times.append(found.ios / found.iops)
        counts.append(found.ios)
        # A buffer in front of fast cells makes two lines. The last one counts.
        writes = _of_line(times, counts) or writes
        longest_s = length_s
    first = max(count / time for count, time in zip(counts, times, strict=True))
    slower = counts[-1] / times[-1] < _FALL * first
    if writes is None and slower and len(times) > 2:
        found = measure(load, round(1e6 * _BETWEEN * longest_s))
        times.insert(-1, found.ios / found.iops)
        counts.insert(-1, found.ios)
        writes = _of_line(times, counts)
    written = format_bytes(max(counts) * block_bytes)
    if writes is None:
        reason = f"writes slow down within {written} at once, to no steady rate yet"
        return replace(limits, no_write_buffer=reason if slower else f"none within {written} at once")
    if writes.burst < _LEAST_FAST_S * first:
        return replace(limits, no_write_buffer=f"full within {1000 * _LEAST_FAST_S:.0f} ms")
    return replace(limits, writes=_scaled(writes, block_bytes), most_write_rate=first * block_bytes)


def _scaled(bucket: Bucket, factor: int) -> Bucket:
    (slow, fast), (little, much) = bucket.per_second_interval, bucket.burst_interval
    return Bucket(
        factor * bucket.per_second,
        (factor * slow, factor * fast),
        factor * bucket.burst,
        (factor * little, factor * much),
    )


def _bucket(measure: Measure, load: PlacedLoad, most_s: float) -> tuple[Bucket | None, Sequence[int], float]:
    """The bucket in I/Os, the I/Os of each run, and the rate before the bucket is empty."""
    times: list[float] = []
    counts: list[int] = []
    for length_s in LENGTHS_S:
        if length_s > most_s and len(times) >= _LEAST_RUNS:
            break
        found = measure(load, round(1e6 * length_s))
        # A run ends with the last of the I/Os that were under way.
        times.append(found.ios / found.iops)
        counts.append(found.ios)
        bucket = _of_line(times, counts)
        if bucket is not None:
            return bucket, counts, max(count / time for count, time in zip(counts, times, strict=True))
    return None, counts, counts[0] / times[0]


def _of_line(times: Sequence[float], counts: Sequence[int]) -> Bucket | None:
    """The line through the last three runs, if it is one and its slope is less than the first rate."""
    if len(times) < 3:
        return None
    first = max(count / time for count, time in zip(counts, times, strict=True))
    slopes = np.diff(counts[-3:]) / np.diff(times[-3:])
    if counts[-3] < _FEW_IOS or slopes[1] > _FALL * first or abs(slopes[0] / slopes[1] - 1) > _STEADY:
        return None
    limit, burst = np.polyfit(times[-3:], counts[-3:], 1)
    off = float(np.max(np.abs(np.polyval([limit, burst], times[-3:]) - counts[-3:])))
    # A run ends in the middle of an I/O, and those in flight are not counted.
    of_limit = max(_LEAST_ERROR * limit, 4 * off / (times[-1] - times[-3]))
    of_burst = max(_LEAST_ERROR * max(burst, limit * times[-3]), 4 * off, 4 * _FEW_IOS)
    return Bucket(
        float(limit),
        (float(limit - of_limit), float(limit + of_limit)),
        max(0.0, float(burst)),
        (max(0.0, float(burst - of_burst)), float(burst + of_burst)),
    )
