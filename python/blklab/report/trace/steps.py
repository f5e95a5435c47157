"""Quantities that move in steps (queue depths), and how they are thinned without losing an extreme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blklab.report.trace.parties import Floats


@dataclass(frozen=True)
class Steps:
    """A quantity that is 0 at first and `values[i]` from `times[i]` (ns) on."""

    times: Floats
    values: Floats

    @staticmethod
    def between(begins: Floats, ends: Floats) -> Steps:
        """How many intervals hold each moment. What begins and ends at one moment leaves no trace there."""
        times = np.concatenate([begins, ends])
        order = np.argsort(times, kind="stable")
        counts = np.cumsum(np.repeat([1.0, -1.0], len(begins))[order])
        times = times[order]
        last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, dtype=bool)
        return Steps(times[last], counts[last])

    def envelope(self, edges: Floats) -> tuple[Floats, Floats, Floats]:
        """Least, mean and greatest value between successive edges."""
        if not len(self.times):
            nothing = np.zeros(len(edges) - 1)
            return nothing, nothing, nothing
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
    """Points of a line, thinned: of each column the first, the least, the greatest and the last stay.

    Args:
        times: Ascending.
        values: One a time.
        edges: Of the columns.
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


MOST_CELLS = 12_000
CELLS = (2, 3, 4, 6, 8)
"""Sizes of a cell, in pixels; the finest that leaves no more than so many dots is taken."""


def occupied_cells(x: Floats, y: Floats, most: int = MOST_CELLS) -> tuple[Floats, Floats, int]:
    """Dots of a picture without those that lie on top of one another, so no extreme is lost.

    Returns:
        Centres of the occupied cells, and the size of a cell.
    """
    for cell in CELLS:
        columns, rows = np.floor(x / cell).astype(np.int64), np.floor(y / cell).astype(np.int64)
        keys = np.unique(columns * 100_000 + rows)
        if len(keys) <= most or cell == CELLS[-1]:
            break
    return (keys // 100_000 + 0.5) * cell, (keys % 100_000 + 0.5) * cell, cell
