"""Draws a table of values, tinted by size; every value is printed too, so that colour is not needed."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from blklab.labs.studies.replication.pictures import MatrixPicture
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import CHARACTER_WIDTH, group, label, rectangle, shortened

_ROW = 26.0
_TOP = 44.0
_BOTTOM = 12.0
_HIGHEST_TINT = 0.55
_ABOVE, _BELOW = Appearance(0), Appearance(1)


def draw_matrix(picture: MatrixPicture, width: float) -> tuple[float, Markup]:
    """Returns height and content of the drawing."""
    longest = max(len(name) for name in (*picture.rows, picture.row_axis))
    left = min(0.3 * width, 16 + CHARACTER_WIDTH * longest)
    column = (width - left - 8) / len(picture.columns)
    tint = _tints(picture)
    parts = [
        label(left, 14, picture.column_axis, css="axis-title"),
        label(left - 8, 34, shortened(picture.row_axis, left - 12), css="axis-title", text_anchor="end"),
    ]
    for index, name in enumerate(picture.columns):
        x = left + (index + 0.5) * column
        parts.append(label(x, 34, shortened(name, column), css="tick", text_anchor="middle"))
    for row, (name, values) in enumerate(zip(picture.rows, picture.values, strict=True)):
        y = _TOP + row * _ROW
        parts.append(label(left - 8, y + 17, shortened(name, left - 12), css="name", text_anchor="end"))
        for index, value in enumerate(values):
            x = left + index * column
            if value is None:
                continue
            look, strength = tint(value)
            parts.append(
                rectangle(
                    x + 1, y + 1, column - 2, _ROW - 2, css=f"tint {look.css_class}", fill_opacity=strength
                )
            )
            text = f"{value:.{picture.decimals}f}"
            parts.append(label(x + column / 2, y + 17, text, css="cell", text_anchor="middle"))
    return _TOP + _ROW * len(picture.rows) + _BOTTOM, group(parts)


def _tints(picture: MatrixPicture) -> Callable[[float], tuple[Appearance, float]]:
    """Returns a function that gives the colour and strength of a value's tint."""
    present = [value for values in picture.values for value in values if value is not None] or [0.0]
    middle = min(present) if picture.middle is None else picture.middle
    reach = max(abs(value - middle) for value in present) or 1.0

    def tint(value: float) -> tuple[Appearance, float]:
        return (_ABOVE if value >= middle else _BELOW), _HIGHEST_TINT * abs(value - middle) / reach

    return tint
