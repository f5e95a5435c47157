"""The Pareto front for a terminal: letters on a grid, intervals as lines."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.quantities.formatting import ratio_text
from blklab.report.charts.pareto import ParetoAxis

_WIDTH = 56
_HEIGHT = 13


@dataclass(frozen=True)
class TextPoint:
    """A scheduler: ratios to the reference, with intervals, for the horizontal and the vertical axis."""

    x: tuple[float, float | None, float | None]
    y: tuple[float, float | None, float | None]


def letter_of(index: int) -> str:
    """The letter of the scheduler at that position; ``*`` once letters run out."""
    return string.ascii_uppercase[index] if index < len(string.ascii_uppercase) else "*"


def pareto_lines(points: Sequence[TextPoint], x: ParetoAxis, y: ParetoAxis, width: int) -> list[str]:
    """The plot, line by line; better is to the right and up.

    Points that coincide share a number, and a line below names them.
    """
    columns = max(20, min(_WIDTH, width - 4))
    across = _Scale([point.x for point in points], columns, higher_is_better=x.higher_is_better)
    upwards = _Scale([point.y for point in points], _HEIGHT, higher_is_better=y.higher_is_better)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for point in points:
        column, row = across.at(point.x[0]), upwards.at(point.y[0])
        for at in across.between(point.x):
            grid[row][at] = "-"
        for at in upwards.between(point.y):
            grid[at][column] = "+" if grid[at][column] == "-" else "|"
    at_place: dict[tuple[int, int], list[str]] = {}
    for index, point in enumerate(points):
        place = (upwards.at(point.y[0]), across.at(point.x[0]))
        at_place.setdefault(place, []).append(letter_of(index))
    shared = [letters for letters in at_place.values() if len(letters) > 1]
    for (row, column), letters in at_place.items():
        grid[row][column] = _number(shared.index(letters)) if letters in shared else letters[0]
    rows = ["  |" + "".join(row).rstrip() for row in reversed(grid)]
    return [
        f"  up: {y.title}, better; from {ratio_text(upwards.worst)} to {ratio_text(upwards.best)}",
        *rows,
        "  +" + "-" * columns,
        f"  right: {x.title}, better; from {ratio_text(across.worst)} to {ratio_text(across.best)}",
        *(f"  {_number(index)}: {', '.join(letters)}" for index, letters in enumerate(shared)),
    ]


def _number(index: int) -> str:
    """The sign of a cell that several points share; ``#`` once digits run out."""
    return str(index + 1) if index < 9 else "#"


class _Scale:
    """Ratios to cells, better towards higher cells."""

    def __init__(
        self,
        values: Sequence[tuple[float, float | None, float | None]],
        cells: int,
        *,
        higher_is_better: bool,
    ) -> None:
        logs = [math.log(number) for value in values for number in value if number]
        self._sign = 1 if higher_is_better else -1
        ends = sorted(self._sign * log for log in logs)
        room = max(0.01, 0.05 * (ends[-1] - ends[0]))
        self._low, self._high = ends[0] - room, ends[-1] + room
        self._cells = cells

    @property
    def worst(self) -> float:
        """Ratio at the first cell."""
        return math.exp(self._sign * self._low)

    @property
    def best(self) -> float:
        """Ratio at the last cell."""
        return math.exp(self._sign * self._high)

    def at(self, ratio: float) -> int:
        share = (self._sign * math.log(ratio) - self._low) / (self._high - self._low)
        return min(self._cells - 1, max(0, int(share * self._cells)))

    def between(self, value: tuple[float, float | None, float | None]) -> range:
        """Cells that the interval covers."""
        _, low, high = value
        if not low or not high:
            return range(0)
        ends = sorted((self.at(low), self.at(high)))
        return range(ends[0], ends[1] + 1)
