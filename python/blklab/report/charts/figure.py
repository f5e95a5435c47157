"""The frame of every chart, with title and description, and its axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import TIMES, Scale
from blklab.report.drawing.svg import Axis, element, group, label, line, tick_text

WIDE = 880.0
"""Width of a chart as wide as the column, in CSS pixels at its natural size."""
NARROW = 340.0
"""Width of a chart on a phone."""
PANEL = 290.0
"""Width of a small chart beside others."""


FACTORS_FROM = 1.9
"""Span of ratios, to each side of 1, from which an axis shows factors instead of percentages."""


def ratio_tick(axis: Axis, ratio: float) -> str:
    """The text of a tick on a logarithmic axis of ratios: ``+5 %``, or a factor on a long axis."""
    if axis.high / axis.low > FACTORS_FROM**2:
        return f"{ratio:g} {TIMES}"
    return f"{100 * (ratio - 1):+.3g} %".replace("+0 %", "0 %")


@dataclass(frozen=True)
class Drawing:
    """Content of one SVG image."""

    width: float
    height: float
    content: Markup


def figure(kind: str, title: str, description: str, drawings: Sequence[Drawing], note: str = "") -> Markup:
    """A chart in its frame.

    Args:
        kind: Which chart it is, for styles and tests.
        title: Heading of the chart.
        description: The chart in words, for readers who cannot see it.
        drawings: One, or a wide and a narrow one.
        note: A hint on reading it.
    """
    sizes = ["any"] if len(drawings) == 1 else ["wide", "narrow"]
    images = [
        element(
            "svg",
            {
                "class": size,
                "role": "img",
                "aria-label": f"{title}. {description}",
                "viewBox": f"0 0 {drawing.width:g} {drawing.height:g}",
                "width": drawing.width,
                "height": drawing.height,
            },
            drawing.content,
        )
        for size, drawing in zip(sizes, drawings, strict=True)
    ]
    caption = element(
        "figcaption",
        {},
        element("strong", {}, title),
        *([Markup(" "), element("span", {}, note)] if note else []),
    )
    return element("figure", {"class": "chart", "data-chart": kind}, caption, *images)


def horizontal_axis(axis: Axis, y: float, top: float, scale: Scale, about: int) -> Markup:
    """Grid lines from `top` to `y` with numbers beneath, in the scale's unit, and the unit after the last."""
    parts = []
    for x, text in _ticks(axis, scale, about):
        parts.append(line(x, top, x, y, css="grid"))
        parts.append(label(x, y + 17, text, css="tick", text_anchor="middle"))
    return group(parts)


def vertical_axis(axis: Axis, x: float, right: float, scale: Scale, about: int) -> Markup:
    """Grid lines from `x` to `right` with numbers on their left."""
    parts = []
    for y, text in _ticks(axis, scale, about):
        parts.append(line(x, y, right, y, css="grid"))
        parts.append(label(x - 7, y + 4, text, css="tick", text_anchor="end"))
    return group(parts)


def _ticks(axis: Axis, scale: Scale, about: int) -> list[tuple[float, str]]:
    """Positions of the ticks along the axis, and their numbers in the scale's unit."""
    ticks = axis.ticks(about)
    shown = [scale.shown(value) for value in ticks]
    return [(axis.at(value), tick_text(number, shown)) for value, number in zip(ticks, shown, strict=True)]
