"""Draws the pictures of a study, for an HTML page or as separate files."""

from __future__ import annotations

from markupsafe import Markup

from blklab.labs.studies.replication.pictures import (
    IntervalPicture,
    LinePicture,
    MatrixPicture,
    Picture,
    SurfacePicture,
)
from blklab.labs.studies.replication.report.intervals import draw_intervals
from blklab.labs.studies.replication.report.lines import draw_lines
from blklab.labs.studies.replication.report.matrix import draw_matrix
from blklab.labs.studies.replication.report.surface import draw_surface
from blklab.report.drawing.palette import colour_rules
from blklab.report.drawing.picture_frame import WIDE, framed

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2127}"
    ".tick,.axis-title{fill:#58616b;font-size:12px}"
    ".grid{stroke:#e6eaee}.baseline{stroke:#d8dde3}"
    ".curve{fill:none;stroke:var(--series);stroke-width:2;stroke-linejoin:round}"
    ".interval{stroke:var(--series);stroke-width:3}.interval-end{stroke:var(--series);stroke-width:2}"
    ".mark{fill:var(--series)}.leader{stroke:#58616b;stroke-width:1.5;stroke-dasharray:4 3}"
    ".tint{fill:var(--series)}.ground{fill:#fff}.thin{stroke-width:1}"
    "@media screen and (prefers-color-scheme:dark){text{fill:#e6e9ed}.tick,.axis-title{fill:#a3adb8}"
    ".grid{stroke:#2a3037}.baseline{stroke:#363d45}.leader{stroke:#a3adb8}"
    ".ground{fill:#16191d}}"
)


def draw(picture: Picture, *, width: float = WIDE, standalone: bool = False) -> Markup:
    """Draws a picture as an SVG element.

    Args:
        picture: What to draw.
        width: `WIDE`, or `NARROW` for small screens.
        standalone: Include a style sheet, for a separate file.
    """
    match picture:
        case LinePicture():
            height, content = draw_lines(picture, width)
        case MatrixPicture():
            height, content = draw_matrix(picture, width)
        case IntervalPicture():
            height, content = draw_intervals(picture, width)
        case SurfacePicture():
            height, content = draw_surface(picture, width)
    style = colour_rules() + _STYLE if standalone else ""
    return framed(f"{picture.title}. {picture.note}", width, height, content, style=style)
