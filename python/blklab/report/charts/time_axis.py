"""The time axis of a run's charts: the window, its ticks and its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from blklab.quantities.formatting import Scale, scale_for
from blklab.quantities.units import NS_PER_US
from blklab.report.charts.figure import WIDE, horizontal_axis
from blklab.report.drawing.svg import Axis, element, group, label, line, number


@dataclass(frozen=True)
class Window:
    """A part of a run, in nanoseconds of its time."""

    start_ns: float
    end_ns: float
    marks_ns: tuple[float, ...] = ()
    """Times at which a line is drawn, such as those of changes."""

    def holds(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """A mask of the times that lie within the window."""
        inside: NDArray[np.bool_] = (times >= self.start_ns) & (times <= self.end_ns)
        return inside


@dataclass(frozen=True)
class TimeFrame:
    """A window laid out from `left` to `right`."""

    window: Window
    left: float
    right: float

    @staticmethod
    def across(window: Window, width: float) -> TimeFrame:
        """The frame of a chart of that width."""
        return TimeFrame(window, 86.0 if width == WIDE else 58.0, width - 14)

    @property
    def axis(self) -> Axis:
        """In microseconds."""
        ends = (self.window.start_ns / NS_PER_US, self.window.end_ns / NS_PER_US)
        return Axis(ends[0], ends[1], self.left, self.right)

    def x(self, times_ns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates of times, kept within the frame."""
        share = (times_ns - self.window.start_ns) / (self.window.end_ns - self.window.start_ns)
        placed: NDArray[np.float64] = self.left + np.clip(share, 0, 1) * (self.right - self.left)
        return placed

    def edges(self, pixels: float) -> NDArray[np.float64]:
        """Edges (ns) of columns about so many pixels wide."""
        columns = max(1, round((self.right - self.left) / pixels))
        return np.linspace(self.window.start_ns, self.window.end_ns, columns + 1)

    def drawn(self, bottom: float, top: float, *, wide: bool) -> Markup:
        """Grid lines, numbers and the unit."""
        # The length decides the unit: a short window late in a run reads best in small units.
        scale: Scale = scale_for("us", [(self.window.end_ns - self.window.start_ns) / NS_PER_US])
        marks = [at_ns for at_ns in self.window.marks_ns if self.window.start_ns < at_ns < self.window.end_ns]
        return group(
            [
                horizontal_axis(self.axis, bottom, top, scale, 8 if wide else 3),
                *(line(x, top, x, bottom, css="change") for x in self.x(np.array(marks)).tolist()),
                label(self.right, bottom + 36, f"time, {scale.unit}", css="axis-title", text_anchor="end"),
            ]
        )


def dots(x: NDArray[np.float64], y: NDArray[np.float64], size: float, css: str) -> Markup:
    """Many dots as one element."""
    steps = "".join(
        f"M{number(left)} {number(top)}h.01" for left, top in zip(x.tolist(), y.tolist(), strict=True)
    )
    return element("path", {"class": f"dots {css}", "d": steps, "stroke-width": size})
