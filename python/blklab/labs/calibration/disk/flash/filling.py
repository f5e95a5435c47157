"""Long writes from rest: the buffer fills, then the cache of fast cells, then slow cells are programmed.

Bytes written up to a time follow a line for each of these stages. The first has the speed of the link, or of
whatever limits single writes. The second has that of fast cells, and begins at the height of the buffer,
unless these cells keep up with the link. The third has that of slow cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

_GROWTH = 1.6
_FIRST_S = 0.0015
_SLOWED = 0.95
"""Of the highest rate: writes that are slower in the end have filled something."""
_ON_LINE = 0.005
"""Of the bytes: what lies so near to the last line is on it."""
_BEYOND = 1.5
"""Times the end of the fast cells, for a run that shows the slow ones."""
_STEADY = 0.02
_SLOWER, _FASTER = 0.95, 1.03
"""Parts of the first and the last rate between which the second lies."""
_LEAST_POINTS = 3
_LONG_S = 1.0
_LEAST_RUN_S = 0.002
_BELOW = 0.015
"""Of the bytes: less than the first and the last line allow shows a stage between them."""
_STARTED = 0.2
"""Of the time until both lines meet: before it, the latency of the first I/Os is too much of a run."""
_LOOKS = 6
"""Runs that look for that stage."""


@dataclass(frozen=True)
class Point:
    """A run: its length, and the bytes written in it."""

    time_s: float
    written: float


@dataclass(frozen=True)
class Stages:
    """The lines. Rates in bytes a second."""

    first_rate: float
    fast_rate: float | None
    """Of fast cells; None if they keep up with the first rate, or there are none."""
    slow_rate: float
    buffer_bytes: float | None
    """None if only the sum with fast cells is known."""
    height_bytes: float
    """At which the last line begins."""
    last_s: float
    """When the last line is reached, at most."""

    @property
    def slc_bytes(self) -> float | None:
        """Of the cache of fast cells; None if it is not known apart from the buffer."""
        if self.fast_rate is None or self.buffer_bytes is None:
            return None
        return max(0.0, (self.height_bytes - self.buffer_bytes) / (1 - self.slow_rate / self.fast_rate))


@dataclass(frozen=True)
class Line:
    """Bytes written: a height at the beginning, and a rate from there."""

    rate: float
    height: float


def last_line(points: Sequence[Point]) -> Line | None:
    """The rate at which long writes go on; None if it is hardly less than the first, or not steady yet."""
    if len(points) < _LEAST_POINTS:
        return None
    ordered = sorted(points, key=lambda point: point.time_s)
    first = max(point.written / point.time_s for point in ordered)
    before, middle, last = ordered[-3:]
    early, late = _between(before, middle), _between(middle, last)
    if late.rate > _SLOWED * first or abs(early.rate / late.rate - 1) > _STEADY:
        return None
    return late


def _between(first: Point, second: Point) -> Line:
    rate = (second.written - first.written) / (second.time_s - first.time_s)
    return Line(rate, first.written - rate * first.time_s)


def lengths_s(points: Sequence[Point], line: Line) -> list[float]:
    """Lengths of runs that show all stages.

    Args:
        points: Runs up to now.
        line: From `last_line`.
    """
    end = _end_s(points, line.rate, line.height)
    found = [_FIRST_S]
    while found[-1] * _GROWTH < end:
        found.append(found[-1] * _GROWTH)
    return [*found, end, _BEYOND * end]


def between_s(points: Sequence[Point], line: Line) -> list[float]:
    """Lengths of runs that show a second stage of which there are signs; none without a sign.

    Args:
        points: Runs that `lengths_s` has chosen, and longer ones.
        line: From `last_line`.
    """
    ordered = sorted(points, key=lambda point: point.time_s)
    first = max(point.written / point.time_s for point in ordered)
    begin_s = _STARTED * _meet_s(line.height, line.rate, 0.0, first)
    below = [
        index
        for index, point in enumerate(ordered)
        if point.time_s > begin_s
        and point.written < (1 - _BELOW) * min(first * point.time_s, line.height + line.rate * point.time_s)
    ]
    if not below:
        return []
    after_s = ordered[max(0, below[0] - 1)].time_s
    before_s = ordered[min(len(ordered) - 1, below[-1] + 1)].time_s
    return [after_s + part / (_LOOKS + 1) * (before_s - after_s) for part in range(1, _LOOKS + 1)]


def _end_s(points: Sequence[Point], rate: float, height: float) -> float:
    on_line = [
        point.time_s
        for point in points
        if abs(point.written - height - rate * point.time_s) < _ON_LINE * point.written
    ]
    return min(on_line, default=max(point.time_s for point in points))


def stages_of(points: Sequence[Point]) -> Stages:
    """The stages of runs that `lengths_s` has chosen, the last two of which are on the last line."""
    ordered = sorted(points, key=lambda point: point.time_s)
    times = np.array([point.time_s for point in ordered])
    written = np.array([point.written for point in ordered])
    slow, height = np.polyfit(times[-2:], written[-2:], 1).tolist()
    first = float(np.max(written / times))
    slopes = np.diff(written) / np.diff(times)
    between = [
        (float(slopes[index]), float(written[index] - slopes[index] * times[index]))
        for index in range(len(slopes) - 1)
        if _FASTER * slow < slopes[index] < _SLOWER * first
        and abs(slopes[index + 1] / slopes[index] - 1) < _STEADY
    ]
    if not between:
        return Stages(first, None, slow, None, height, float(times[-2]))
    fast = median(rate for rate, _ in between)
    buffer = median(start for _, start in between)
    return Stages(first, fast, slow, max(0.0, buffer), height, float(times[-2]))


def chosen_s(stages: Stages) -> list[float]:
    """Lengths of runs to fit to, two on each line and apart from where lines meet."""
    knee = _meet_s(stages.height_bytes, stages.slow_rate, 0.0, stages.fast_rate or stages.first_rate)
    found = []
    if stages.fast_rate is not None and stages.buffer_bytes is not None:
        full = _meet_s(stages.buffer_bytes, stages.fast_rate, 0.0, stages.first_rate)
        knee = _meet_s(stages.height_bytes, stages.slow_rate, stages.buffer_bytes, stages.fast_rate)
        found += [0.7 * full, full + 0.3 * (knee - full), full + 0.7 * (knee - full)]
    else:
        found += [0.4 * knee, 0.8 * knee]
    return [max(_LEAST_RUN_S, length) for length in [*found, 1.2 * knee, max(2.4 * knee, _LONG_S)]]


def _meet_s(height: float, rate: float, other_height: float, other_rate: float) -> float:
    """When two lines meet."""
    return (height - other_height) / max(1.0, other_rate - rate)
