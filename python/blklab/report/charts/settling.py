"""Slots aligned at their switch: how long each scheduler takes to settle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from blklab.quantities.formatting import count_of, scale_for
from blklab.quantities.units import format_duration
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, horizontal_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import (
    CHARACTER_WIDTH,
    Axis,
    band,
    group,
    label,
    line,
    mark,
    polyline,
    rectangle,
    shortened,
)
from blklab.report.summary.slot_rates import AlignedSlots

_HEIGHT = 110.0
_PITCH = _HEIGHT + 62
_BETWEEN = 28.0
_HIGHEST = 1.6
"""Shares of the plateau above this are cut off, lest one burst flatten everything else."""
_NS_PER_US = 1e3


def settling_chart(
    title: str, found: Sequence[AlignedSlots], looks: Mapping[str, Appearance], settling_ns: int, note: str
) -> Markup:
    """The chart, one panel for each scheduler; `found` holds at least one."""
    described = f"the first {format_duration(settling_ns)} are cut off; " + "; ".join(
        f"{one.scheduler}: " + _course(one) for one in found
    )
    drawings = [
        _drawing(found, looks, settling_ns, WIDE, 2 if len(found) <= 4 else 3),
        _drawing(found, looks, settling_ns, NARROW, 1),
    ]
    return figure("settling", title, described, drawings, note)


def _course(one: AlignedSlots) -> str:
    """The median at the beginning, and at its lowest."""
    lowest = int(one.median.argmin())
    return (
        f"median of {count_of(one.slots, 'slot')} from {100 * one.median[0]:.0f} % of the plateau, lowest "
        f"{100 * one.median[lowest]:.0f} % after {format_duration(one.times_ns[lowest])}"
    )


def _drawing(
    found: Sequence[AlignedSlots],
    looks: Mapping[str, Appearance],
    settling_ns: int,
    width: float,
    columns: int,
) -> Drawing:
    left = 54.0
    room = (width - 12 - (columns - 1) * _BETWEEN) / columns
    high = min(_HIGHEST, max(1.15, *(float(one.high.max()) for one in found)))
    parts = []
    for index, one in enumerate(found):
        row, column = divmod(index, columns)
        start = column * (room + _BETWEEN)
        top = 24 + row * _PITCH
        sides = (start + left, start + room)
        parts.append(_panel(one, looks[one.scheduler], settling_ns, sides, top, high))
    rows = -(-len(found) // columns)
    return Drawing(width, rows * _PITCH + 4, group(parts))


def _shares(axis: Axis, left: float, right: float) -> Markup:
    """Grid lines with percentages."""
    parts = []
    for share in axis.ticks(3):
        y = axis.at(share)
        parts.append(line(left, y, right, y, css="grid"))
        parts.append(label(left - 7, y + 4, f"{share:g} %", css="tick", text_anchor="end"))
    return group(parts)


def _panel(
    one: AlignedSlots, look: Appearance, settling_ns: int, sides: tuple[float, float], top: float, high: float
) -> Markup:
    bottom = top + _HEIGHT
    end_us = float(one.times_ns[-1] + one.times_ns[0]) / _NS_PER_US
    time = Axis(0, end_us, *sides)
    axis = Axis(0, 100 * high, bottom, top)
    scale = scale_for("us", [end_us])
    cut = time.at(settling_ns / _NS_PER_US)
    x = [time.at(value / _NS_PER_US) for value in one.times_ns.tolist()]
    upper = list(zip(x, (axis.at(100 * v) for v in one.high.tolist()), strict=True))
    lower = list(zip(x, (axis.at(100 * v) for v in one.low.tolist()), strict=True))
    middle = list(zip(x, (axis.at(100 * v) for v in one.median.tolist()), strict=True))
    name = shortened(one.scheduler, sides[1] - sides[0] - 11 * CHARACTER_WIDTH)
    parts = [
        rectangle(sides[0], top, cut - sides[0], _HEIGHT, css="gap"),
        _shares(axis, *sides),
        horizontal_axis(time, bottom, bottom, scale, 4),
        label(sides[1], bottom + 33, f"since the switch, {scale.unit}", css="axis-title", text_anchor="end"),
        line(cut, top, cut, bottom, css="leader"),
        mark(sides[0] + 5, top - 11, 4.5, look),
        label(sides[0] + 16, top - 6, name, css="name"),
    ]
    if settling_ns and cut < sides[1] - 9 * CHARACTER_WIDTH:
        parts.append(label(cut + 4, bottom - 6, "counted →", css="tick"))
    drawn = [
        band(upper, lower, css=f"spread {look.css_class}"),
        polyline(middle, css=f"curve {look.css_class}"),
    ]
    return group([*parts, group(drawn)], css="series", data_series=one.scheduler)
