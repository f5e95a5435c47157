"""Draws the pictures of a study, for a page or as files of their own."""

from __future__ import annotations

from markupsafe import Markup

from blklab.report.palette import colour_rules
from blklab.report.repeated.intervals import draw_intervals
from blklab.report.repeated.lines import draw_lines
from blklab.report.repeated.matrix import draw_matrix
from blklab.report.repeated.surface import draw_surface
from blklab.report.svg import element, number
from blklab.studies.pictures import IntervalPicture, LinePicture, MatrixPicture, Picture, SurfacePicture

WIDE, NARROW = 720.0, 380.0

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
    """A picture as an SVG element.

    Args:
        picture: What to draw.
        width: `WIDE`, or `NARROW` for small screens.
        standalone: Whether it is a file of its own, with a style sheet.
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
    # The style is a literal of this package.
    style = element("style", {}, Markup(colour_rules() + _STYLE)) if standalone else Markup("")  # noqa: S704
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "role": "img",
            "class": None if standalone else "wide" if width == WIDE else "narrow",
        },
        element("title", {}, f"{picture.title}. {picture.note}"),
        style,
        content,
    )
