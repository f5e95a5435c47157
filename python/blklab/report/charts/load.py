"""The load of a switchback over time, coloured by scheduler: all slots, and some of them window by window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import Scale, count_of, scale_for
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, horizontal_axis, vertical_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import Axis, axis_over, group, label, line, mark, marks, polyline, rectangle
from blklab.report.summary.slot_rates import SlotRates

MOST_DOTS = 800
"""Slots of all schedulers that are drawn one by one; of more, neighbours of a scheduler are averaged."""
MOST_WINDOWS = 900
"""Windows in the close-up; shorter ones are merged."""

_HEIGHT = 150.0
_SLOT_PIXELS = 17.0
"""Width of a slot in the close-up, at least."""
_GAP_PIXELS = 8.0
_S = 1e9


@dataclass(frozen=True)
class _Dot:
    name: str
    stretch: int
    time_ns: float
    """From the beginning of the stretch."""
    rate: float


def load_chart(title: str, slots: Sequence[SlotRates], looks: Mapping[str, Appearance], note: str) -> Markup:
    """The chart; `slots` in their order, at least one."""
    scale = scale_for("IO/s", [slot.plateau for slot in slots])
    plateaus = [slot.plateau for slot in slots]
    stretches = len({slot.stretch for slot in slots})
    made = f"{count_of(len(slots), 'slot')} in {count_of(stretches, 'stretch', 'stretches')}"
    low, high = (scale.quantity(bound) for bound in (min(plateaus), max(plateaus)))
    described = f"{made}, each between {low} and {high} once settled"
    drawings = [_drawing(slots, looks, scale, WIDE), _drawing(slots, looks, scale, NARROW)]
    return figure("load", title, described, drawings, note)


def _drawing(
    slots: Sequence[SlotRates], looks: Mapping[str, Appearance], scale: Scale, width: float
) -> Drawing:
    left, right = 56.0, width - 10
    top, second = 30.0, 30.0 + _HEIGHT + 84
    parts = [
        label(0, 14, f"{scale.unit}, slot by slot", css="axis-title"),
        _overview(slots, looks, scale, (left, right), top),
        label(0, second - 32, f"{scale.unit}, window by window", css="axis-title"),
        _close_up(slots, looks, scale, (left, right), second),
    ]
    return Drawing(width, second + _HEIGHT + 42, group(parts))


def _overview(
    slots: Sequence[SlotRates],
    looks: Mapping[str, Appearance],
    scale: Scale,
    sides: tuple[float, float],
    top: float,
) -> Markup:
    """Each slot's mean, over the time of load; the time between stretches is a strip of fixed width."""
    bottom = top + _HEIGHT
    dots = _dots(slots)
    axis = axis_over([dot.rate for dot in dots], bottom, top)
    places = _StretchPlaces(slots, sides)
    parts = [vertical_axis(axis, *sides, scale, 4)]
    parts += [
        rectangle(x, top, places.gap, _HEIGHT, css="gap") for x in places.starts[1:] for x in [x - places.gap]
    ]
    ticks = Axis(0, places.total_ns / _S, *sides)
    for seconds in ticks.ticks(6 if sides[1] > NARROW else 3):
        x = places.at_load_time(seconds * _S)
        parts.append(label(x, bottom + 17, f"{seconds:g}", css="tick", text_anchor="middle"))
    parts.append(label(sides[1], bottom + 34, "time under load, s", css="axis-title", text_anchor="end"))
    size = 3.2 if len(dots) < 250 and sides[1] > NARROW else 2.2
    for name, look in looks.items():
        points = [(places.x(dot.stretch, dot.time_ns), axis.at(dot.rate)) for dot in dots if dot.name == name]
        if points:
            parts.append(group([marks(points, size, look)], css="series", data_series=name))
    return group(parts)


def _dots(slots: Sequence[SlotRates]) -> list[_Dot]:
    """One dot for each slot, or for neighbouring slots of a scheduler in a stretch if there are too many."""
    together = -(-len(slots) // MOST_DOTS)
    own: dict[tuple[int, str], list[SlotRates]] = {}
    for slot in slots:
        own.setdefault((slot.stretch, slot.scheduler), []).append(slot)
    return [
        _Dot(
            name,
            stretch,
            float(np.mean([(slot.start_ns + slot.end_ns) / 2 for slot in part])),
            float(np.mean([slot.plateau for slot in part])),
        )
        for (stretch, name), found in own.items()
        for first in range(0, len(found), together)
        for part in [found[first : first + together]]
    ]


class _StretchPlaces:
    """Where the stretches lie on an axis of the time under load."""

    def __init__(self, slots: Sequence[SlotRates], sides: tuple[float, float]) -> None:
        lengths: dict[int, int] = {}
        for slot in slots:
            lengths[slot.stretch] = max(lengths.get(slot.stretch, 0), slot.end_ns)
        left, right = sides
        gaps = len(lengths) - 1
        self.gap = min(_GAP_PIXELS, 0.15 * (right - left) / gaps) if gaps else 0.0
        self.total_ns = sum(lengths.values())
        self._pixels_per_ns = (right - left - gaps * self.gap) / self.total_ns
        self._lengths_ns = list(lengths.values())
        self._order = {stretch: place for place, stretch in enumerate(lengths)}
        self.starts = [left]
        for length_ns in self._lengths_ns[:-1]:
            self.starts.append(self.starts[-1] + length_ns * self._pixels_per_ns + self.gap)

    def x(self, stretch: int, time_ns: float) -> float:
        """The coordinate of a moment of a stretch."""
        return self.starts[self._order[stretch]] + time_ns * self._pixels_per_ns

    def at_load_time(self, time_ns: float) -> float:
        """The coordinate of a moment counted over all stretches."""
        for start, length_ns in zip(self.starts, self._lengths_ns, strict=True):
            if time_ns <= length_ns:
                return start + time_ns * self._pixels_per_ns
            time_ns -= length_ns
        return self.starts[-1] + self._lengths_ns[-1] * self._pixels_per_ns


def _close_up(
    slots: Sequence[SlotRates],
    looks: Mapping[str, Appearance],
    scale: Scale,
    sides: tuple[float, float],
    top: float,
) -> Markup:
    """The first slots of the middle stretch in full, with the parts that are cut off lighter."""
    bottom = top + _HEIGHT
    shown = _shown_slots(slots, int((sides[1] - sides[0]) / _SLOT_PIXELS))
    most = max(1, MOST_WINDOWS // len(shown))
    begin_ns, end_ns = shown[0].start_ns, shown[-1].end_ns
    time = Axis(begin_ns / _S, end_ns / _S, *sides)
    highest = max(max(_merged(slot, most)[1]) for slot in shown)
    axis = Axis(0, 1.05 * highest or 1.0, bottom, top)
    parts = [
        vertical_axis(axis, *sides, scale, 4),
        horizontal_axis(time, bottom, bottom, Scale(1.0, "s"), 7 if sides[1] > NARROW else 4),
        label(
            sides[1],
            bottom + 34,
            f"time in stretch {shown[0].stretch + 1}, s",
            css="axis-title",
            text_anchor="end",
        ),
    ]
    parts += [
        line(time.at(slot.start_ns / _S), top - 12, time.at(slot.start_ns / _S), bottom, css="grid")
        for slot in shown
    ]
    for name, look in looks.items():
        content = []
        for slot in shown:
            if slot.scheduler != name:
                continue
            times_ns, rates = _merged(slot, most)
            points = [(time.at(t / _S), axis.at(r)) for t, r in zip(times_ns, rates, strict=True)]
            first = int(np.searchsorted(times_ns, slot.kept_from_ns))
            last = int(np.searchsorted(times_ns, slot.kept_to_ns, side="right"))
            for part, css in (
                (points[: first + 1], "faint"),
                (points[first:last], ""),
                (points[last - 1 :], "faint"),
            ):
                if len(part) > 1:
                    parts_css = f"curve thin {css} {look.css_class}".replace("  ", " ")
                    content.append(polyline(part, css=parts_css))
            middle = time.at((slot.start_ns + slot.end_ns) / 2 / _S)
            tip = f"{name}, round {slot.round + 1}: {scale.quantity(slot.plateau)} once settled"
            content.append(mark(middle, top - 7, 4, look, tip))
        parts.append(group(content, css="series", data_series=name))
    return group(parts)


def _shown_slots(slots: Sequence[SlotRates], room: int) -> list[SlotRates]:
    stretches = list(dict.fromkeys(slot.stretch for slot in slots))
    middle = stretches[len(stretches) // 2]
    return [slot for slot in slots if slot.stretch == middle][: max(1, room)]


def _merged(slot: SlotRates, most: int) -> tuple[list[float], list[float]]:
    """Times and rates of at most `most` windows."""
    together = -(-len(slot.rates) // most)
    starts = range(0, len(slot.rates), together)
    times = [float(slot.middles_ns[start : start + together].mean()) for start in starts]
    return times, [float(slot.rates[start : start + together].mean()) for start in starts]
