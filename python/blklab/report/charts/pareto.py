"""Schedulers in two metrics at once, each against the reference, with the Pareto front."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import ratio_text
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, ratio_tick
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import CHARACTER_WIDTH, Axis, group, label, line, mark, polyline, shortened


@dataclass(frozen=True)
class ParetoPoint:
    """A scheduler: ratios to the reference with their intervals, one for each axis."""

    name: str
    appearance: Appearance
    x: float
    x_low: float | None
    x_high: float | None
    y: float
    y_low: float | None
    y_high: float | None
    standing: str


@dataclass(frozen=True)
class ParetoAxis:
    """The metric of an axis, and whether higher is better."""

    title: str
    higher_is_better: bool


_HEIGHT = 380.0


def pareto_chart(
    title: str, points: Sequence[ParetoPoint], x: ParetoAxis, y: ParetoAxis, note: str
) -> Markup:
    """The chart; better is always to the right and up. At least one point."""
    described = "; ".join(
        f"{point.name}: {x.title} {ratio_text(point.x, point.x_low, point.x_high)}, "
        f"{y.title} {ratio_text(point.y, point.y_low, point.y_high)}, {point.standing}"
        for point in points
    )
    drawings = [_drawing(points, x, y, WIDE), _drawing(points, x, y, NARROW)]
    return figure("pareto", title, described, drawings, note)


def front_by_estimates(points: Sequence[ParetoPoint], x: ParetoAxis, y: ParetoAxis) -> list[ParetoPoint]:
    """Points that no other point beats or equals in both axes by the estimates, from left to right."""

    def worth(point: ParetoPoint) -> tuple[float, float]:
        return (
            point.x if x.higher_is_better else 1 / point.x,
            point.y if y.higher_is_better else 1 / point.y,
        )

    found = [
        point
        for point in points
        if not any(
            worth(other) != worth(point)
            and all(theirs >= ours for theirs, ours in zip(worth(other), worth(point), strict=True))
            for other in points
        )
    ]
    return sorted(found, key=lambda point: worth(point)[0])


def _drawing(points: Sequence[ParetoPoint], x: ParetoAxis, y: ParetoAxis, width: float) -> Drawing:
    left, right, top, bottom = 62.0, width - 12, 30.0, _HEIGHT - 62
    across = _axis([p.x for p in points], [(p.x_low, p.x_high) for p in points], left, right, x)
    upwards = _axis([p.y for p in points], [(p.y_low, p.y_high) for p in points], bottom, top, y)
    about = 7 if width == WIDE else 3
    parts: list[Markup] = []
    for value in across.ticks(about):
        at = across.at(value)
        parts.append(line(at, top, at, bottom, css="grid"))
        parts.append(label(at, bottom + 17, ratio_tick(across, value), css="tick", text_anchor="middle"))
    for value in upwards.ticks(6):
        at = upwards.at(value)
        parts.append(line(left, at, right, at, css="grid"))
        parts.append(label(left - 7, at + 4, ratio_tick(upwards, value), css="tick", text_anchor="end"))
    parts.append(label(right, bottom + 38, f"{x.title}, better →", css="tick", text_anchor="end"))
    parts.append(label(left, top - 12, f"↑ better, {y.title}", css="tick"))
    front = front_by_estimates(points, x, y)
    if len(front) > 1:
        # Between two points the attained front is a step, not a slope.
        steps = [(across.at(front[0].x), upwards.at(front[0].y))]
        for before, after in itertools.pairwise(front):
            steps += [
                (across.at(before.x), upwards.at(after.y)),
                (across.at(after.x), upwards.at(after.y)),
            ]
        parts.append(polyline(steps, css="front", fill="none", stroke_dasharray="5 4"))
    parts += [_point(point, across, upwards, right) for point in points]
    return Drawing(width, _HEIGHT, group(parts))


def _point(point: ParetoPoint, across: Axis, upwards: Axis, right: float) -> Markup:
    at_x, at_y, colour = across.at(point.x), upwards.at(point.y), point.appearance.css_class
    parts = []
    if point.x_low is not None and point.x_high is not None:
        ends = across.at(point.x_low), across.at(point.x_high)
        parts.append(line(ends[0], at_y, ends[1], at_y, css=f"interval {colour}"))
    if point.y_low is not None and point.y_high is not None:
        ends = upwards.at(point.y_low), upwards.at(point.y_high)
        parts.append(line(at_x, ends[0], at_x, ends[1], css=f"interval {colour}"))
    parts.append(mark(at_x, at_y, 6, point.appearance, f"{point.name}: {point.standing}"))
    name = shortened(point.name, 200)
    beside = at_x + 10 + len(name) * CHARACTER_WIDTH <= right
    parts.append(
        label(
            at_x + 10 if beside else at_x - 10,
            at_y - 8,
            name,
            css="name",
            text_anchor=None if beside else "end",
        )
    )
    return group(parts, css="series", data_series=point.name)


def _axis(
    values: Sequence[float],
    bounds: Sequence[tuple[float | None, float | None]],
    start: float,
    end: float,
    axis: ParetoAxis,
) -> Axis:
    present = [*values, *(bound for pair in bounds for bound in pair if bound), 1.02, 1 / 1.02]
    low, high = min(present), max(present)
    room = (high / low) ** 0.08
    if not axis.higher_is_better:
        start, end = end, start
    return Axis(low / room, high * room, start, end, logarithmic=True)
