"""The frame of pictures of published experiments: part of a page, or files of their own."""

from __future__ import annotations

from markupsafe import Markup

from blklab.report.drawing.svg import element, number

WIDE, NARROW = 720.0, 380.0
"""Widths of a picture on a page, and on the page of a small screen."""
END_REACH = 5.0
"""Of the ends of intervals, up and down."""


def framed(title: str, width: float, height: float, *content: Markup, style: str = "") -> Markup:
    """A picture as an SVG element.

    Args:
        title: What it shows, for those who do not see it.
        width: `WIDE` or `NARROW`.
        height: Likewise in CSS pixels.
        content: What is drawn.
        style: Style sheet for a picture in a file of its own, a literal of this package.
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
        element("style", {}, Markup(style)) if style else Markup(""),  # noqa: S704 - not of a person
        *content,
    )
