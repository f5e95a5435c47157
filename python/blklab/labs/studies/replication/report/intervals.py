"""Draws values with their intervals, published ones beside ours."""

from __future__ import annotations

from markupsafe import Markup

from blklab.labs.studies.replication.pictures import IntervalPicture, IntervalRow
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.picture_frame import END_REACH
from blklab.report.drawing.svg import (
    Axis,
    axis_over,
    group,
    interval_bar,
    label,
    line,
    mark,
    shortened,
    tick_text,
)

_ROW = 28.0
_TOP = 30.0
_BOTTOM = 42.0
_OURS, _PUBLISHED = Appearance(0), Appearance(1)
_WIDE_FROM = 600.0


def draw_intervals(picture: IntervalPicture, width: float) -> tuple[float, Markup]:
    """Returns height and content of the drawing; published values have a square in another colour."""
    left = 0.36 * width
    values = [
        bound for row in picture.rows for bound in (row.value, row.low, row.high) if bound is not None
    ] + [value for value, _ in picture.marks]
    axis = axis_over(values, left, width - 24)
    bottom = _TOP + _ROW * len(picture.rows)
    parts = []
    ticks = axis.ticks(7 if width > _WIDE_FROM else 4)
    for value in ticks:
        x = axis.at(value)
        parts.append(line(x, _TOP, x, bottom, css="grid"))
        parts.append(label(x, bottom + 17, tick_text(value, ticks), css="tick", text_anchor="middle"))
    parts.append(label(axis.end, bottom + 35, picture.axis, css="axis-title", text_anchor="end"))
    for value, name in picture.marks:
        x = axis.at(value)
        parts.append(line(x, _TOP - 8, x, bottom, css="leader"))
        parts.append(label(x, _TOP - 14, name, css="tick", text_anchor="middle"))
    for index, row in enumerate(picture.rows):
        parts.append(_row(row, axis, _TOP + _ROW * (index + 0.5), left))
    return bottom + _BOTTOM, group(parts)


def _row(row: IntervalRow, axis: Axis, y: float, left: float) -> Markup:
    look = _PUBLISHED if row.published else _OURS
    parts = [label(left - 10, y + 4, shortened(row.label, left - 14), css="name", text_anchor="end")]
    parts += interval_bar(axis, row.low, row.high, y, look.css_class, END_REACH)
    parts.append(mark(axis.at(row.value), y, 5.0, look, row.label))
    return group(parts, css="series", data_series=row.label)
