"""Latencies over time as a heat map: one column per stretch of time, one row per latency, both bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure
from blklab.report.charts.time_axis import TimeFrame, Window
from blklab.report.drawing.svg import element, group, label

ROW_PIXELS = 14.0
_FAINTEST = 0.12


def heat_map(
    title: str, column_ns: int, bounds_ns: Sequence[int], counts: Sequence[Sequence[int]], note: str
) -> Markup:
    """Draws I/Os by time and latency; the shade is logarithmic in their number.

    Args:
        title: Heading.
        column_ns: Length of a column in nanoseconds.
        bounds_ns: Upper bounds of the rows in nanoseconds, the smallest first.
        counts: I/Os by row and column.
        note: A hint on reading it.
    """
    most = max((max(row) for row in counts), default=0)
    total = sum(sum(row) for row in counts)
    described = f"{count_of(total, 'I/O')}, at most {most} in a cell"
    drawings = [_drawing(column_ns, bounds_ns, counts, most, width) for width in (WIDE, NARROW)]
    return figure("heat-map", title, described, drawings, note)


def _drawing(
    column_ns: int, bounds_ns: Sequence[int], counts: Sequence[Sequence[int]], most: int, width: float
) -> Drawing:
    columns = max((len(row) for row in counts), default=1)
    window = Window(0, float(column_ns * columns))
    frame = TimeFrame.across(window, width)
    bottom = 22 + ROW_PIXELS * len(counts)
    cell = (frame.right - frame.left) / columns
    parts = [frame.drawn(bottom, 22, wide=width == WIDE)]
    for index, (bound, row) in enumerate(zip(bounds_ns, counts, strict=True)):
        top = bottom - ROW_PIXELS * (index + 1)
        if index % 2 == 0:
            text = format_duration(bound)
            parts.append(label(frame.left - 6, top + ROW_PIXELS - 3, text, css="tick", text_anchor="end"))
        for column, count in enumerate(row):
            if count:
                tip = f"{count_of(count, 'I/O')} up to {format_duration(bound)}"
                shade = _FAINTEST + (1 - _FAINTEST) * math.log1p(count) / math.log1p(most)
                parts.append(
                    element(
                        "rect",
                        {
                            "class": "spread series-0",
                            "x": frame.left + column * cell,
                            "y": top,
                            "width": cell,
                            "height": ROW_PIXELS - 1,
                            "style": f"fill-opacity:{shade:.2f}",
                            "data-tip": tip,
                        },
                    )
                )
    return Drawing(width, bottom + 44, group(parts))
