"""SVG elements with escaped text and attributes, marks, and axes with round numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from blklab.report.drawing.palette import Appearance

CHARACTER_WIDTH = 7.3
"""Mean width of a character in the charts' 13 px type, rounded up."""

Attribute = str | float | None
Child = str | Markup


def element(tag: str, attributes: Mapping[str, Attribute] | None = None, *children: Child) -> Markup:
    """An element; leaves out attributes that are None, and escapes everything except markup."""
    written = Markup("").join(
        Markup(' {}="{}"').format(name, number(value) if isinstance(value, float | int) else value)
        for name, value in (attributes or {}).items()
        if value is not None
    )
    content = Markup("").join(escape(child) for child in children)
    # The tag is a literal of this package; attributes and children were escaped just above.
    return Markup("<{tag}{attributes}>{content}</{tag}>").format(tag=tag, attributes=written, content=content)


def group(children: Iterable[Markup], **attributes: Attribute) -> Markup:
    """A ``<g>``; underscores of attribute names stand for dashes, ``css`` for ``class``."""
    return element("g", _attributes(attributes), *children)


def picture(children: Iterable[Markup], width: float, height: float) -> str:
    """The text of an SVG file."""
    size: dict[str, Attribute] = {"viewBox": f"0 0 {number(width)} {number(height)}", "width": width}
    content = group(children, font_family="sans-serif", font_size=13)
    return f"{element('svg', {'xmlns': 'http://www.w3.org/2000/svg'} | size, content)}\n"


def label(x: float, y: float, content: str, **attributes: Attribute) -> Markup:
    """A line of text."""
    return element("text", {"x": x, "y": y} | _attributes(attributes), content)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> Markup:
    """A straight line."""
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | _attributes(attributes))


def rectangle(x: float, y: float, width: float, height: float, **attributes: Attribute) -> Markup:
    """A rectangle; never of negative size."""
    size = {"width": max(0.0, width), "height": max(0.0, height)}
    return element("rect", {"x": x, "y": y} | size | _attributes(attributes))


def polyline(points: Sequence[tuple[float, float]], **attributes: Attribute) -> Markup:
    """A path of straight pieces."""
    steps = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return element("path", {"d": f"M{steps}"} | _attributes(attributes))


def mark(x: float, y: float, size: float, appearance: Appearance, tip: str = "", css: str = "mark") -> Markup:
    """A scheduler's mark in its shape and colour; `tip` appears when the pointer is on it."""
    attributes: dict[str, Attribute] = {
        "class": f"{css} {appearance.css_class}",
        "data-tip": tip or None,
    }
    if appearance.shape == "circle":
        return element("circle", attributes | {"cx": x, "cy": y, "r": size})
    outline = "L".join(
        f"{number(x + size * dx)} {number(y + size * dy)}" for dx, dy in _OUTLINES[appearance.shape]
    )
    return element("path", attributes | {"d": f"M{outline}Z"})


def marks(points: Sequence[tuple[float, float]], size: float, appearance: Appearance) -> Markup:
    """Many marks of a scheduler as one element, without tips."""
    if appearance.shape == "circle":
        size_text = number(size)
        half = f"a{size_text} {size_text} 0 1 0"
        arcs = f"{half} {number(2 * size)} 0{half} {number(-2 * size)} 0"
        path = "".join(f"M{number(x - size)} {number(y)}{arcs}" for x, y in points)
    else:
        corners = [(size * dx, size * dy) for dx, dy in _OUTLINES[appearance.shape]]
        steps = "".join(
            f"l{number(to_x - from_x)} {number(to_y - from_y)}"
            for (from_x, from_y), (to_x, to_y) in itertools.pairwise(corners)
        )
        first_x, first_y = corners[0]
        path = "".join(f"M{number(x + first_x)} {number(y + first_y)}{steps}Z" for x, y in points)
    return element("path", {"class": f"mark {appearance.css_class}", "d": path})


def interval_bar(
    axis: Axis, low: float | None, high: float | None, y: float, css_class: str, reach: float = 4.0
) -> list[Markup]:
    """An interval as a line with end marks of length `reach`; empty if a bound is None."""
    if low is None or high is None:
        return []
    start, end = axis.at(low), axis.at(high)
    ends = [line(x, y - reach, x, y + reach, css=f"interval-end {css_class}") for x in (start, end)]
    return [line(start, y, end, y, css=f"interval {css_class}"), *ends]


def band(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], *, css: str) -> Markup:
    """The area between two lines, each from left to right."""
    outline = "L".join(f"{number(x)} {number(y)}" for x, y in [*upper, *reversed(lower)])
    return element("path", {"class": css, "d": f"M{outline}Z"})


def cross(x: float, y: float, size: float, css: str, tip: str = "") -> Markup:
    """The mark of a failed run."""
    near_x, far_x, near_y, far_y = (number(v) for v in (x - size, x + size, y - size, y + size))
    path = f"M{near_x} {near_y}L{far_x} {far_y}M{near_x} {far_y}L{far_x} {near_y}"
    return element("path", {"class": css, "d": path, "data-tip": tip or None})


_OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle": ((0, -1.2), (1.15, 0.85), (-1.15, 0.85)),
    "hexagon": ((-1.1, 0), (-0.55, -0.95), (0.55, -0.95), (1.1, 0), (0.55, 0.95), (-0.55, 0.95)),
}


def number(value: float) -> str:
    """Formats a coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def shortened(text: str, width: float) -> str:
    """Shortens a text to `width`, with an ellipsis in its middle."""
    room = max(4, int(width / CHARACTER_WIDTH))
    if len(text) <= room:
        return text
    head = (room - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {"class" if name == "css" else name.replace("_", "-"): value for name, value in attributes.items()}


@dataclass(frozen=True)
class Axis:
    """A scale from values to coordinates."""

    low: float
    high: float
    start: float
    """Coordinate of `low`."""
    end: float
    """Coordinate of `high`; less than `start` for an axis that points up."""
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The coordinate of a value, clamped to the axis."""
        low, high, place = (self._position(v) for v in (self.low, self.high, value))
        share = 0.5 if high == low else min(1.0, max(0.0, (place - low) / (high - low)))
        return self.start + share * (self.end - self.start)

    def _position(self, value: float) -> float:
        if not self.logarithmic:
            return value
        return math.log10(value) if value > 0 else -math.inf

    def ticks(self, about: int) -> list[float]:
        """About `about` round values on the axis, at least two, because one alone shows no scale."""
        if self.high <= self.low:
            return [self.low]
        found = self._round_values(about)
        # Halving the step eventually finds two.
        return found if len(found) > 1 else self.ticks(2 * about)

    def _round_values(self, about: int) -> list[float]:
        decades = math.log10(self.high / self.low) if self.logarithmic else 0.0
        if decades < 1:
            return _round_steps(self.low, self.high, about)
        factors = (1, 2, 5) if decades * 3 <= about else (1, 3) if decades * 2 <= about else (1,)
        every = max(1, math.ceil(decades / about)) if factors == (1,) else 1
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        candidates = (factor * 10.0**power for power in powers if power % every == 0 for factor in factors)
        return [value for value in candidates if self.low <= value <= self.high]


def axis_over(
    values: Iterable[float], start: float, end: float, *, room: float = 0.06, wide_ratio: float = 12.0
) -> Axis:
    """An axis over positive values with some room at both ends; logarithmic if they span a wide range.

    Args:
        values: The values to fit; at least one.
        start: Coordinate of the low end.
        end: Coordinate of the high end.
        room: Share of the span left free at either end.
        wide_ratio: Above this ratio of the largest to the smallest, the axis is logarithmic.
    """
    present = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    low, high = min(present), max(present)
    if high / low > wide_ratio:
        factor = (high / low) ** room
        return Axis(low / factor, high * factor, start, end, logarithmic=True)
    span = (high - low) or 0.1 * high
    return Axis(max(0.0, low - room * span), high + room * span, start, end)


def _round_steps(low: float, high: float, about: int) -> list[float]:
    raw = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """Formats a tick; evenly spaced ticks of an axis have the same number of decimals."""
    if value == 0:
        return "0"
    if len(ticks) > 1 and max(ticks) / max(min(filter(None, map(abs, ticks)), default=1), 1e-300) > 50:
        return f"{value:.10g}"
    step = min((abs(b - a) for a, b in itertools.pairwise(ticks)), default=abs(value))
    # A step of 2.5 needs one more decimal than its magnitude.
    decimals = max(0, -math.floor(math.log10(step))) if step else 0
    if step and abs(round(step, decimals) - step) > 1e-9 * step:
        decimals += 1
    return f"{value:.{decimals}f}"
