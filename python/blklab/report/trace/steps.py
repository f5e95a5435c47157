"""Step functions such as queue depths, and thinning that keeps every extreme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blklab.report.trace.submitters import Floats


@dataclass(frozen=True)
class Steps:
    """A step function: 0 at first, and `values[i]` from `times[i]` (ns)."""

    times: Floats
    values: Floats

    @staticmethod
    def between(begins: Floats, ends: Floats) -> Steps:
        """The number of intervals that contain each moment; empty intervals do not count."""
        times = np.concatenate([begins, ends])
        order = np.argsort(times, kind="stable")
        counts = np.cumsum(np.repeat([1.0, -1.0], len(begins))[order])
        times = times[order]
        last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, dtype=bool)
        return Steps(times[last], counts[last])

    def envelope(self, edges: Floats) -> tuple[Floats, Floats, Floats]:
        """Least, mean and greatest value between successive edges."""
        if not len(self.times):
            zeros = np.zeros(len(edges) - 1)
            return zeros, zeros, zeros
        at = np.searchsorted(self.times, edges, side="right")
        values = np.concatenate([[0.0], self.values])
        # From the value in force at the left edge to the last one that begins before the right edge.
        first = at[:-1]
        last = np.maximum(np.searchsorted(self.times, edges[1:], side="left"), first)
        bounds = np.stack([first, last + 1], axis=1).ravel()
        padded = np.append(values, values[-1])
        low = np.minimum.reduceat(padded, bounds)[::2]
        high = np.maximum.reduceat(padded, bounds)[::2]
        sums = np.concatenate([[0.0], np.cumsum(np.diff(self.times) * self.values[:-1])])
        inside = np.interp(edges, self.times, sums)
        beyond = np.maximum(edges - self.times[-1], 0.0) * self.values[-1]
        return low, np.diff(inside + beyond) / np.maximum(np.diff(edges), 1e-9), high


def extremes_by_column(times: Floats, values: Floats, edges: Floats) -> list[tuple[float, float]]:
    """Thins the points of a line: each column keeps its first, smallest, largest and last point.

    Args:
        times: Ascending.
        values: One per time.
        edges: Edges of the columns.
    """
    bounds = np.searchsorted(times, edges)
    points: list[tuple[float, float]] = []
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if end <= start:
            continue
        part = values[start:end]
        kept = sorted({start, start + int(part.argmin()), start + int(part.argmax()), end - 1})
        points += [(float(times[index]), float(values[index])) for index in kept]
    return points


MOST_DOTS = 12_000
GRID_SIZES = (2, 3, 4, 6, 8)
"""Grid sizes in pixels; the finest with no more than `MOST_DOTS` dots is used."""


def distinct_dots(x: Floats, y: Floats, most: int = MOST_DOTS) -> tuple[Floats, Floats, int]:
    """Snaps dots to a grid and drops those that coincide, so no extreme is lost.

    Returns:
        Coordinates of the remaining dots, and the grid size.
    """
    for size in GRID_SIZES:
        columns, rows = np.floor(x / size).astype(np.int64), np.floor(y / size).astype(np.int64)
        keys = np.unique(columns * 100_000 + rows)
        if len(keys) <= most or size == GRID_SIZES[-1]:
            break
    return (keys // 100_000 + 0.5) * size, (keys % 100_000 + 0.5) * size, size
