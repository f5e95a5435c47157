"""Positions of requests on the device and the path of the head, over the time of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import Scale, count_of
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, vertical_axis
from blklab.report.charts.time_axis import TimeFrame, Window, dots
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import Axis, element, group, label, number, polyline
from blklab.report.trace.steps import distinct_dots, extremes_by_column
from blklab.report.trace.submitters import Floats

DETAILED_REQUESTS = 400
"""Up to this number, each request is drawn from its arrival in the device to its completion."""

_UNITS = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))


@dataclass(frozen=True)
class PositionSeries:
    """Requests of one party, in order of completion."""

    name: str
    appearance: Appearance
    dispatch_ns: Floats
    complete_ns: Floats
    position_bytes: Floats


@dataclass(frozen=True)
class HeadPath:
    """Positions of the head, in order of time."""

    times_ns: Floats
    position_bytes: Floats


def position_chart(
    title: str, series: Sequence[PositionSeries], head: HeadPath | None, window: Window, note: str
) -> Markup:
    """A dot at the position and time of each completion, and the path of the head behind them."""
    inside = [_within(one, window) for one in series]
    described = "; ".join(
        f"{one.name}: {count_of(len(one.complete_ns), 'request')} between {low:.3g} and {high:.3g} {unit}"
        for one in inside
        if len(one.complete_ns)
        for factor, unit in [_unit(inside)]
        for low, high in [(one.position_bytes.min() / factor, one.position_bytes.max() / factor)]
    )
    drawings = [_drawing(inside, head, window, WIDE, 340), _drawing(inside, head, window, NARROW, 300)]
    return figure("position", title, described or "No request was completed.", drawings, note)


def _within(one: PositionSeries, window: Window) -> PositionSeries:
    kept = window.holds(one.complete_ns)
    return PositionSeries(
        one.name, one.appearance, one.dispatch_ns[kept], one.complete_ns[kept], one.position_bytes[kept]
    )


def _bounds(series: Sequence[PositionSeries]) -> tuple[float, float]:
    positions = np.concatenate([one.position_bytes for one in series]) if series else np.zeros(0)
    if not len(positions):
        return 0.0, 1.0
    low, high = float(positions.min()), float(positions.max())
    room = 0.04 * (high - low) or 1 << 20
    return max(0.0, low - room), high + room


def _unit(series: Sequence[PositionSeries]) -> tuple[float, str]:
    _, high = _bounds(series)
    return next(((factor, unit) for factor, unit in _UNITS if high >= factor), (1.0, "B"))


def _drawing(
    series: Sequence[PositionSeries], head: HeadPath | None, window: Window, width: float, height: float
) -> Drawing:
    wide = width == WIDE
    frame = TimeFrame.across(window, width)
    top, bottom = 26.0, height - 44
    factor, unit = _unit(series)
    low, high = _bounds(series)
    axis = Axis(low / factor, high / factor, bottom, top)

    def y_of(position_bytes: Floats) -> Floats:
        share = (position_bytes - low) / (high - low)
        placed: Floats = bottom + np.clip(share, 0, 1) * (top - bottom)
        return placed

    parts = [
        frame.drawn(bottom, top, wide=wide),
        vertical_axis(axis, frame.left, frame.right, Scale(1.0, unit), 6),
        label(
            frame.left, 12, f"position, {unit}", css="axis-title", text_anchor="start" if wide else "middle"
        ),
    ]
    if head is not None:
        kept = window.holds(head.times_ns)
        points = extremes_by_column(head.times_ns[kept], head.position_bytes[kept], frame.edges(1.5))
        if len(points) > 1:
            moments = frame.x(np.array([time for time, _ in points])).tolist()
            places = y_of(np.array([place for _, place in points])).tolist()
            parts.append(polyline(list(zip(moments, places, strict=True)), css="head-path"))
    detailed = sum(len(one.complete_ns) for one in series) <= DETAILED_REQUESTS
    for one in series:
        if not len(one.complete_ns):
            continue
        x, y = frame.x(one.complete_ns), y_of(one.position_bytes)
        content = []
        if detailed:
            begins = frame.x(one.dispatch_ns)
            steps = "".join(
                f"M{number(left)} {number(at)}H{number(right)}"
                for left, at, right in zip(begins.tolist(), y.tolist(), x.tolist(), strict=True)
            )
            content.append(element("path", {"class": f"in-device {one.appearance.css_class}", "d": steps}))
            size = 5.0
        else:
            x, y, cell = distinct_dots(x, y)
            size = cell + 0.6
        content.append(dots(x, y, size, one.appearance.css_class))
        parts.append(group(content, css="series", data_series=one.name))
    return Drawing(width, height, group(parts))
