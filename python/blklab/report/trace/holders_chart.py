"""The jobs that held the device over time: a band for each, as high as its share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure
from blklab.report.charts.time_axis import TimeFrame, Window
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import group, label, line, polyline, shortened
from blklab.report.trace.holding import Holding

BAND = 34.0
COLUMN_PIXELS = 2.0


@dataclass(frozen=True)
class Holder:
    """A party."""

    name: str
    appearance: Appearance
    index: int
    """In the holding."""


def holders_chart(
    title: str, holders: Sequence[Holder], holding: Holding, window: Window, note: str
) -> Markup:
    """Bands over time; a band of full height is a device that one job held throughout."""
    shares = [holding.share(one.index, window.start_ns, window.end_ns) for one in holders]
    described = "; ".join(
        f"{one.name}: {100 * share:.1f} % of the time" for one, share in zip(holders, shares, strict=True)
    )
    drawings = [_drawing(holders, shares, holding, window, width) for width in (WIDE, NARROW)]
    return figure("holders", title, described, drawings, note)


def _drawing(
    holders: Sequence[Holder], shares: Sequence[float], holding: Holding, window: Window, width: float
) -> Drawing:
    wide = width == WIDE
    frame = TimeFrame.across(window, width)
    row = BAND + (12.0 if wide else 24.0)
    bottom = 4 + row * len(holders)
    parts = [frame.drawn(bottom, 4, wide=wide)]
    edges = frame.edges(COLUMN_PIXELS)
    x = frame.x(edges).tolist()
    for index, (one, share) in enumerate(zip(holders, shares, strict=True)):
        base = 4 + row * (index + 1) - 2
        held = holding.within(one.index, edges).clip(0, 1).tolist()
        outline = [(x[0], base)]
        for column, part in enumerate(held):
            y = base - BAND * part
            if outline[-1][1] != y:
                outline.append((x[column], y))
            outline.append((x[column + 1], y))
        outline.append((x[-1], base))
        tip = f"{one.name}: {100 * share:.1f} % of this time"
        text = f"{one.name}, {100 * share:.1f} %"
        place = (frame.left - 8, base - 12) if wide else (frame.left, base - BAND - 5)
        name = (
            [
                label(place[0], base - 18, shortened(one.name, 84), css="name", text_anchor="end"),
                label(place[0], base - 3, f"{100 * share:.1f} %", css="tick", text_anchor="end"),
            ]
            if wide
            else [label(place[0], place[1], shortened(text, width - 70), css="name")]
        )
        parts.append(
            group(
                [
                    *name,
                    line(frame.left, base, frame.right, base, css="baseline"),
                    line(frame.left, base - BAND, frame.right, base - BAND, css="grid"),
                    polyline(outline, css=f"hill band {one.appearance.css_class}", data_tip=tip),
                ],
                css="series",
                data_series=one.name,
            )
        )
    return Drawing(width, bottom + 44, group(parts))
