"""Each scheduler against the leader, block by block: the comparison that the verdict rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import margin_text, ratio_text
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, ratio_tick
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import (
    CHARACTER_WIDTH,
    Axis,
    group,
    interval_bar,
    label,
    line,
    mark,
    rectangle,
    shortened,
)


@dataclass(frozen=True)
class RelativeRow:
    """A scheduler over the leader."""

    name: str
    appearance: Appearance
    ratio: float
    low: float | None
    high: float | None
    outcome: str
    """One word: beaten, equal, open or ahead."""


_ROW = 36.0
_STACKED_ROW = 42.0
_TEXT_HEIGHT = 18.0
"""Of the line of text above each interval of a narrow chart, which nothing else crosses."""


def relative_chart(title: str, rows: Sequence[RelativeRow], leader: str, margin: float, note: str) -> Markup:
    """The chart: ratios with intervals, the margin of equality around 1. At least one row."""
    described = "; ".join(
        f"{row.name} {ratio_text(row.ratio, row.low, row.high)} against {leader}, {row.outcome}"
        for row in rows
    )
    drawings = [_drawing(rows, leader, margin, WIDE), _drawing(rows, leader, margin, NARROW)]
    return figure("relative", title, described, drawings, note)


def _drawing(rows: Sequence[RelativeRow], leader: str, margin: float, width: float) -> Drawing:
    wide = width == WIDE
    texts = {row.name: ratio_text(row.ratio, row.low, row.high) for row in rows}
    names = min(230.0, max(70.0, max(len(row.name) for row in rows) * CHARACTER_WIDTH)) + 16
    values = max(map(len, texts.values())) * CHARACTER_WIDTH + 14
    outcomes = max(len(row.outcome) for row in rows) * CHARACTER_WIDTH + 22
    left, right = (names, width - values - outcomes) if wide else (8.0, width - 8)
    row_height = _ROW if wide else _STACKED_ROW
    top, first = 18.0, 24.0
    bottom = first + row_height * len(rows)
    axis = _axis(rows, margin, left, right)
    starts = [first + row_height * index for index in range(len(rows))]
    free = [(top, bottom)] if wide else [(y + _TEXT_HEIGHT, y + row_height) for y in starts]
    parts = [
        _grid(axis, top, bottom, 7 if wide else 4),
        *(_leader(axis, margin, start, end) for start, end in free),
        _above(axis, leader, margin),
    ]
    for y, row in zip(starts, rows, strict=True):
        text = texts[row.name]
        if wide:
            center = y + row_height / 2
            content = [
                label(0, center + 4.5, shortened(row.name, names - 16), css="name", data_tip=row.name),
                label(right + values, center + 4.5, text, css="value", text_anchor="end"),
                label(right + values + 12, center + 4.5, row.outcome, css="standing"),
            ]
        else:
            center = y + row_height - 10
            name = shortened(row.name, width - (len(text) + len(row.outcome)) * CHARACTER_WIDTH - 24)
            content = [
                label(0, y + 13, name, css="name", data_tip=row.name),
                label((len(name) + 1) * CHARACTER_WIDTH, y + 13, row.outcome, css="standing"),
                label(width, y + 13, text, css="value", text_anchor="end"),
            ]
        content.append(_interval(row, axis, center, f"{row.name}: {text} against {leader}"))
        parts.append(group(content, css="series", data_series=row.name))
    return Drawing(width, bottom + 26, group(parts))


def _leader(axis: Axis, margin: float, top: float, bottom: float) -> Markup:
    """The leader as a dashed line at 1, within its margin of equality."""
    low, high = axis.at(1 / (1 + margin)), axis.at(1 + margin)
    return group(
        [
            rectangle(low, top, high - low, bottom - top, css="margin-band"),
            line(axis.at(1), top, axis.at(1), bottom, css="leader"),
        ]
    )


def _interval(row: RelativeRow, axis: Axis, y: float, tip: str) -> Markup:
    colour = row.appearance.css_class
    parts = interval_bar(axis, row.low, row.high, y, colour)
    parts.append(mark(axis.at(row.ratio), y, 5, row.appearance, tip))
    return group(parts)


def _axis(rows: Sequence[RelativeRow], margin: float, left: float, right: float) -> Axis:
    """A logarithmic axis, wide enough for the margin to be visible."""
    ratios = [ratio for row in rows for ratio in (row.ratio, row.low, row.high) if ratio]
    reach = (1 + margin) ** 2
    low, high = min([*ratios, 1 / reach]), max([*ratios, reach])
    room = (high / low) ** 0.05
    return Axis(low / room, high * room, left, right, logarithmic=True)


def _grid(axis: Axis, top: float, bottom: float, about: int) -> Markup:
    parts = []
    for ratio in axis.ticks(about):
        x = axis.at(ratio)
        parts.append(line(x, top, x, bottom, css="grid"))
        parts.append(label(x, bottom + 17, ratio_tick(axis, ratio), css="tick", text_anchor="middle"))
    return group(parts)


def _above(axis: Axis, leader: str, margin: float) -> Markup:
    text = shortened(f"{leader} ± {margin_text(margin)}", 260)
    half = len(text) * CHARACTER_WIDTH / 2
    x = min(max(axis.at(1), axis.start + half - 8), axis.end - half + 8)
    return label(x, 12, text, css="tick", text_anchor="middle")
