"""The difference of pairs of schedulers after each round, with its interval: how it narrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import count_of, ratio_text
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, ratio_tick
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
from blklab.report.summary.narrowing import Look

_HEIGHT = 104.0
_PITCH = _HEIGHT + 40
_EARLY = 0.25
"""Share of the looks, the first ones, that do not decide the axis: their intervals may be very wide."""


@dataclass(frozen=True)
class NarrowingPair:
    """A scheduler over the leader, look by look."""

    name: str
    appearance: Appearance
    looks: Sequence[Look]
    """In order, at least one."""
    outcome: str
    """One word: beaten, equal, open or ahead."""

    @property
    def text(self) -> str:
        """The last look in words."""
        last = self.looks[-1]
        return ratio_text(last.ratio, last.low, last.high)


def narrowing_chart(
    title: str, pairs: Sequence[NarrowingPair], leader: str, margin: float, note: str
) -> Markup:
    """The chart, one panel for each pair; at least one."""
    described = "; ".join(
        f"{pair.name} against {leader}: {pair.text} after {count_of(pair.looks[-1].rounds, 'round')}, "
        f"{pair.outcome}"
        for pair in pairs
    )
    drawings = [_drawing(pairs, leader, margin, width) for width in (WIDE, NARROW)]
    return figure("narrowing", title, described, drawings, note)


def _drawing(pairs: Sequence[NarrowingPair], leader: str, margin: float, width: float) -> Drawing:
    sides = (62.0, width - 10)
    most = max(pair.looks[-1].rounds for pair in pairs)
    rounds = Axis(1 if most > 1 else 0, most, *sides)
    parts = [_panel(pair, rounds, margin, 28 + index * _PITCH) for index, pair in enumerate(pairs)]
    bottom = 28 + (len(pairs) - 1) * _PITCH + _HEIGHT
    wide = width == WIDE
    ticks = [value for value in rounds.ticks(8 if wide else 4) if value == int(value)]
    parts += [label(rounds.at(v), bottom + 17, f"{v:g}", css="tick", text_anchor="middle") for v in ticks]
    parts.append(label(sides[1], bottom + 35, "rounds →", css="axis-title", text_anchor="end"))
    axis_title = shortened(f"against {leader}", sides[1] - 90)
    parts.append(label(0, bottom + 35, axis_title, css="axis-title"))
    return Drawing(width, bottom + 42, group(parts))


def _panel(pair: NarrowingPair, rounds: Axis, margin: float, top: float) -> Markup:
    bottom = top + _HEIGHT
    axis = _ratio_axis(pair, margin, bottom, top)
    band_top, band_bottom = axis.at(1 + margin), axis.at(1 / (1 + margin))
    parts = [
        rectangle(
            rounds.start, band_top, rounds.end - rounds.start, band_bottom - band_top, css="margin-band"
        ),
        _grid(axis, rounds),
        line(rounds.start, axis.at(1), rounds.end, axis.at(1), css="leader"),
        *_heading(pair, rounds, top),
    ]
    known = [look for look in pair.looks if look.low is not None and look.high is not None]
    if len(known) > 1:
        upper = [(rounds.at(look.rounds), axis.at(look.high or 1)) for look in known]
        lower = [(rounds.at(look.rounds), axis.at(look.low or 1)) for look in known]
        parts.append(band(upper, lower, css=f"spread {pair.appearance.css_class}"))
    points = [(rounds.at(look.rounds), axis.at(look.ratio)) for look in pair.looks]
    if len(points) > 1:
        parts.append(polyline(points, css=f"curve {pair.appearance.css_class}"))
    parts.append(mark(*points[-1], 4.5, pair.appearance, f"{pair.name}: {pair.text}, {pair.outcome}"))
    return group(parts, css="series", data_series=pair.name)


def _heading(pair: NarrowingPair, rounds: Axis, top: float) -> list[Markup]:
    text = f"{pair.text}, {pair.outcome}"
    room = rounds.end - (len(text) + 2) * CHARACTER_WIDTH - 14
    return [
        mark(5, top - 12, 4.5, pair.appearance),
        label(16, top - 7, shortened(pair.name, room), css="name", data_tip=pair.name),
        label(rounds.end, top - 7, text, css="value", text_anchor="end"),
    ]


def _ratio_axis(pair: NarrowingPair, margin: float, bottom: float, top: float) -> Axis:
    """Wide enough for the margin and all but the earliest intervals; what lies beyond ends at the edge."""
    known = [look for look in pair.looks if look.low is not None]
    late = known[int(_EARLY * len(known)) :] or [pair.looks[-1]]
    reach = (1 + margin) ** 1.5
    values = [value for look in late for value in (look.low, look.high, look.ratio) if value]
    low, high = min([*values, 1 / reach]), max([*values, reach])
    room = (high / low) ** 0.06
    return Axis(low / room, high * room, bottom, top, logarithmic=True)


def _grid(axis: Axis, rounds: Axis) -> Markup:
    parts = []
    for ratio in axis.ticks(3):
        y = axis.at(ratio)
        parts.append(line(rounds.start, y, rounds.end, y, css="grid"))
        parts.append(label(rounds.start - 7, y + 4, ratio_tick(axis, ratio), css="tick", text_anchor="end"))
    return group(parts)
