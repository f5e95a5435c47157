"""The SVG frame of a picture, for an HTML page or as a separate file."""

from __future__ import annotations

from markupsafe import Markup

from blklab.report.drawing.svg import element, number

WIDE, NARROW = 720.0, 380.0
"""Widths of a picture on a page and on a small screen."""
END_REACH = 5.0
"""Length of the end marks of intervals, up and down."""


def framed(title: str, width: float, height: float, *content: Markup, style: str = "") -> Markup:
    """Frames a picture as an SVG element.

    Args:
        title: Description for screen readers.
        width: `WIDE` or `NARROW`.
        height: Height in CSS pixels.
        content: The drawing.
        style: Style sheet for a separate file, a literal of this package.
    """
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "role": "img",
            "class": None if style else "wide" if width == WIDE else "narrow",
        },
        element("title", {}, title),
        element("style", {}, Markup(style)) if style else Markup(""),  # noqa: S704 - not user input
        *content,
    )
