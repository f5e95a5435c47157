"""Means with their intervals, one row a scheduler, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from blklab.quantities.formatting import Scale
from blklab.report.charts.figure import NARROW, PANEL, WIDE, Drawing, figure, horizontal_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import (
    CHARACTER_WIDTH,
    Axis,
    axis_over,
    element,
    group,
    interval_bar,
    label,
    mark,
    number,
    rectangle,
    shortened,
)


@dataclass(frozen=True)
class ForestRow:
    """A scheduler's mean with its interval; `mean` is None if no run gave the figure."""

    name: str
    appearance: Appearance
    mean: float | None
    low: float | None
    high: float | None
    standing: str = ""
    runs: Sequence[float] = field(default=())
    """Figures of the single runs, drawn faintly."""

    def reach(self) -> list[float]:
        """Every value that the axis must include for this row."""
        return [value for value in (self.mean, self.low, self.high, *self.runs) if value is not None]


@dataclass(frozen=True)
class Margin:
    """Values that count as equal to the leader's."""

    low: float
    high: float
    text: str


_ROW = 36.0
_STACKED_ROW = 42.0
_COMPACT_ROW = 35.0


def forest_chart(
    kind: str,
    title: str,
    rows: Sequence[ForestRow],
    scale: Scale,
    *,
    better: str,
    margin: Margin | None = None,
    compact: bool = False,
    note: str = "",
) -> Markup:
    """The chart.

    Args:
        kind: Which chart it is.
        title: The metric.
        rows: Schedulers in order.
        scale: Unit of the figures.
        better: ``higher`` or ``lower``.
        margin: Band of practical equality around the first row's mean.
        compact: One small image for a grid of charts in place of a wide and a narrow one.
        note: A hint on reading it.
    """
    described = "; ".join(
        f"{row.name} {scale.interval(row.mean, row.low, row.high)} {scale.unit}"
        + (f", {row.standing}" if row.standing else "")
        if row.mean is not None
        else f"{row.name}: no figure"
        for row in rows
    )
    drawings = (
        [_stacked(rows, scale, margin, better, PANEL, _COMPACT_ROW)]
        if compact
        else [
            _side_by_side(rows, scale, margin, better),
            _stacked(rows, scale, margin, better, NARROW, _STACKED_ROW),
        ]
    )
    return figure(kind, title, described, drawings, note)


def _value_text(row: ForestRow, scale: Scale) -> str:
    return "no figure" if row.mean is None else scale.interval(row.mean, row.low, row.high)


def _axis(rows: Sequence[ForestRow], margin: Margin | None, start: float, end: float) -> Axis:
    values = [value for row in rows for value in row.reach()]
    return axis_over([*values, *([margin.low, margin.high] if margin else [])], start, end)


def _side_by_side(rows: Sequence[ForestRow], scale: Scale, margin: Margin | None, better: str) -> Drawing:
    widest_name = max(len(row.name) for row in rows) * CHARACTER_WIDTH
    names = min(230.0, max(70.0, widest_name)) + 16
    values = max(len(_value_text(row, scale)) for row in rows) * CHARACTER_WIDTH + 14
    standings = max(len(row.standing) for row in rows) * CHARACTER_WIDTH + 22
    left, right = names, WIDE - values - standings
    top, bottom = 24.0, 30 + _ROW * len(rows)
    axis = _axis(rows, margin, left, right)
    parts = [
        _band(axis, margin, top, bottom, 12),
        horizontal_axis(axis, bottom, top, scale, 6),
        _axis_title(left, right, bottom + 34, scale, better),
    ]
    for index, row in enumerate(rows):
        y = 30 + _ROW * (index + 0.5)
        content = [
            label(0, y + 4.5, shortened(row.name, names - 16), css="name", data_tip=row.name),
            _interval(row, axis, y, scale),
            label(right + values, y + 4.5, _value_text(row, scale), css="value", text_anchor="end"),
            label(right + values + 12, y + 4.5, row.standing, css="standing"),
        ]
        parts.append(_row_group(row, content))
    return Drawing(WIDE, bottom + 42, group(parts))


def _stacked(
    rows: Sequence[ForestRow],
    scale: Scale,
    margin: Margin | None,
    better: str,
    width: float,
    row_height: float,
) -> Drawing:
    """Name, standing and figure above each interval."""
    above = 20.0 if margin else 4.0
    left, right = 8.0, width - 8
    bottom = above + row_height * len(rows) + 4
    axis = _axis(rows, margin, left, right)
    parts = [
        _band(axis, margin, above - 4, bottom, 11),
        horizontal_axis(axis, bottom, above - 4, scale, 4),
        _axis_title(left, right, bottom + 34, scale, better),
    ]
    for index, row in enumerate(rows):
        y = above + row_height * index
        value = _value_text(row, scale)
        room = width - (len(value) + len(row.standing)) * CHARACTER_WIDTH - 24
        name = shortened(row.name, room)
        standing_x = (len(name) + 1) * CHARACTER_WIDTH
        content = [
            label(0, y + 13, name, css="name", data_tip=row.name),
            label(standing_x, y + 13, row.standing, css="standing"),
            label(width, y + 13, value, css="value", text_anchor="end"),
            _interval(row, axis, y + row_height - 10, scale),
        ]
        parts.append(_row_group(row, content))
    return Drawing(width, bottom + 42, group(parts))


def _row_group(row: ForestRow, content: Sequence[Markup]) -> Markup:
    return group(content, css="series", data_series=row.name)


def _interval(row: ForestRow, axis: Axis, y: float, scale: Scale) -> Markup:
    """The runs as faint ticks, the interval as a line, the mean as the scheduler's mark."""
    if row.mean is None:
        return group([])
    colour = row.appearance.css_class
    tip = f"{row.name}: {scale.interval(row.mean, row.low, row.high)} {scale.unit}"
    parts = []
    if row.runs:
        ticks = "".join(f"M{number(axis.at(value))} {number(y + 6)}v5" for value in row.runs)
        parts.append(element("path", {"d": ticks, "class": f"run-ticks {colour}"}))
    parts += interval_bar(axis, row.low, row.high, y, colour)
    parts.append(mark(axis.at(row.mean), y, 5, row.appearance, tip))
    return group(parts)


def _band(axis: Axis, margin: Margin | None, top: float, bottom: float, label_y: float) -> Markup:
    if margin is None:
        return group([])
    low, high = axis.at(margin.low), axis.at(margin.high)
    middle = (low + high) / 2
    half_text = len(margin.text) * CHARACTER_WIDTH / 2
    middle = min(max(middle, axis.start + half_text - 8), axis.end - half_text + 8)
    return group(
        [
            rectangle(low, top, high - low, bottom - top, css="margin-band"),
            label(middle, label_y, margin.text, css="tick", text_anchor="middle"),
        ]
    )


def _axis_title(left: float, right: float, y: float, scale: Scale, better: str) -> Markup:
    direction = "more is better →" if better == "higher" else "← less is better"
    anchor, x = ("end", right) if better == "higher" else ("start", left)
    other_anchor, other_x = ("start", left) if better == "higher" else ("end", right)
    return group(
        [
            label(x, y, direction, css="axis-title", text_anchor=anchor),
            label(other_x, y, scale.unit, css="axis-title", text_anchor=other_anchor),
        ]
    )
