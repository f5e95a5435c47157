"""Draws lines over a common axis."""

from __future__ import annotations

from markupsafe import Markup

from blklab.labs.studies.replication.pictures import LinePicture
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import (
    CHARACTER_WIDTH,
    Axis,
    axis_over,
    group,
    label,
    line,
    mark,
    polyline,
    shortened,
    tick_text,
)

_TOP, _BOTTOM, _LEFT, _RIGHT = 26.0, 42.0, 62.0, 18.0
_PLOT = 230.0
_LEGEND_ROW = 20.0
_WIDE_FROM = 600.0


def draw_lines(picture: LinePicture, width: float) -> tuple[float, Markup]:
    """Returns height and content of the drawing; a linear vertical axis begins at zero."""
    legend_height, legend = _legend(picture, width)
    top = _TOP + legend_height
    bottom = top + _PLOT
    xs = [x for one in picture.series for x in one.x]
    across = (
        Axis(0.0, max(xs), _LEFT, width - _RIGHT)
        if picture.counts
        else axis_over(xs, _LEFT, width - _RIGHT, room=0.02)
    )
    up = _from_zero(axis_over([y for one in picture.series for y in one.y], bottom, top))
    about = 7 if width > _WIDE_FROM else 4
    parts = [legend, label(_LEFT - 54, top - 10, picture.y_axis, css="axis-title")]
    ticks = up.ticks(5)
    for value in ticks:
        y = up.at(value)
        parts.append(line(_LEFT, y, width - _RIGHT, y, css="grid"))
        parts.append(label(_LEFT - 7, y + 4, tick_text(value, ticks), css="tick", text_anchor="end"))
    ticks = across.ticks(about)
    for value in ticks:
        x = across.at(value)
        parts.append(line(x, top, x, bottom, css="grid"))
        parts.append(label(x, bottom + 17, tick_text(value, ticks), css="tick", text_anchor="middle"))
    parts.append(label(width - _RIGHT, bottom + 35, picture.x_axis, css="axis-title", text_anchor="end"))
    for slot, one in enumerate(picture.series):
        look = Appearance(slot)
        points = [(across.at(x), up.at(y)) for x, y in zip(one.x, one.y, strict=True)]
        drawn = [
            polyline(points, css=f"curve {look.css_class}", stroke_dasharray="5 4" if one.dashed else None)
        ]
        if len(points) <= _MOST_MARKS:
            drawn += [mark(x, y, 3.6, look, one.label) for x, y in points]
        parts.append(group(drawn, css="series", data_series=one.label))
    return bottom + _BOTTOM, group(parts)


_MOST_MARKS = 40


def _from_zero(axis: Axis) -> Axis:
    return axis if axis.logarithmic else Axis(0.0, axis.high, axis.start, axis.end)


def _legend(picture: LinePicture, width: float) -> tuple[float, Markup]:
    """Draws the names with their marks, in as many rows as they need."""
    parts = []
    x, y = _LEFT, 14.0
    for slot, one in enumerate(picture.series):
        name = shortened(one.label, width - 2 * _LEFT)
        room = 26 + CHARACTER_WIDTH * len(name)
        if x > _LEFT and x + room > width - _RIGHT:
            x, y = _LEFT, y + _LEGEND_ROW
        look = Appearance(slot)
        parts.append(mark(x + 4, y - 4, 4.5, look))
        parts.append(label(x + 14, y, name, css="legend-name"))
        x += room
    return y + 6, group(parts)
