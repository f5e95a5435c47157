"""Draws a surface in space from the back to the front, so that nearer facets hide those behind them.

The view is oblique: columns go to the right, rows come towards the viewer and to the left, heights go up. Row
labels are at the ends of the rows; a scale at the back edge shows the heights.
"""

from __future__ import annotations

from markupsafe import Markup

from blklab.labs.studies.replication.pictures import SurfacePicture
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import (
    CHARACTER_WIDTH,
    Axis,
    element,
    group,
    label,
    line,
    number,
    polyline,
    shortened,
    tick_text,
)

_TOP, _BOTTOM, _LEFT = 34.0, 48.0, 54.0
_HEIGHT = 150.0
"""Height of the largest value."""
_STEP_DOWN = 15.0
"""Distance from a row to the one in front of it."""
_STEP_LEFT = 9.0
_LOWEST_TINT, _HIGHEST_TINT = 0.08, 0.85
_LOOK = Appearance(0)


def draw_surface(picture: SurfacePicture, width: float) -> tuple[float, Markup]:
    """Returns height and content of the drawing."""
    rows, columns = len(picture.rows), len(picture.columns)
    tallest = max(max(row) for row in picture.values)
    heights = Axis(0.0, tallest, 0.0, _HEIGHT)
    deep_left, deep_down = _STEP_LEFT * (rows - 1), _STEP_DOWN * (rows - 1)
    name_room = min(0.3 * width, 16 + CHARACTER_WIDTH * max(len(name) for name in picture.rows))
    floor = _TOP + _HEIGHT
    across = (width - _LEFT - deep_left - name_room) / max(1, columns - 1)

    def point(row: int, column: int, value: float) -> tuple[float, float]:
        x = _LEFT + deep_left - _STEP_LEFT * row + across * column
        return x, floor + _STEP_DOWN * row - heights.at(value)

    parts = [label(_LEFT - 46, 18, picture.height_axis, css="axis-title")]
    ticks = heights.ticks(4)
    for value in ticks:
        start, end = point(0, 0, value), point(0, columns - 1, value)
        parts.append(line(*start, *end, css="grid"))
        parts.append(
            label(start[0] - 7, start[1] + 4, tick_text(value, ticks), css="tick", text_anchor="end")
        )
    values = picture.values
    for row in range(rows):
        if row > 0:
            for column in range(columns - 1):
                corners = [(row - 1, column), (row - 1, column + 1), (row, column + 1), (row, column)]
                mean = sum(values[r][c] for r, c in corners) / len(corners)
                tint = _LOWEST_TINT + (_HIGHEST_TINT - _LOWEST_TINT) * mean / tallest
                outline = [point(r, c, values[r][c]) for r, c in corners]
                parts.append(_facet(outline, tint))
        ridge = [point(row, column, values[row][column]) for column in range(columns)]
        parts.append(polyline(ridge, css=f"curve thin {_LOOK.css_class}"))
        x, y = point(row, columns - 1, 0.0)
        parts.append(label(x + 8, y + 4, shortened(picture.rows[row], name_room - 8), css="tick"))
    for column, name in enumerate(picture.columns):
        x, y = point(rows - 1, column, 0.0)
        parts.append(label(x, y + 18, shortened(name, across + 8), css="tick", text_anchor="middle"))
    front = floor + deep_down
    parts.append(
        label(width - name_room, front + 38, picture.column_axis, css="axis-title", text_anchor="end")
    )
    return front + _BOTTOM, group(parts)


def _facet(outline: list[tuple[float, float]], tint: float) -> Markup:
    """Draws a piece of the surface: opaque, to hide the facets behind it, with the tint on top."""
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in outline) + "Z"
    return group(
        [
            element("path", {"class": "ground", "d": path}),
            element("path", {"class": f"tint {_LOOK.css_class}", "d": path, "fill-opacity": tint}),
        ]
    )
