"""Numbers of requests waiting and in the device, over the time of a run."""

from __future__ import annotations

from markupsafe import Markup

from blklab.quantities.formatting import Scale
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, vertical_axis
from blklab.report.charts.time_axis import TimeFrame, Window
from blklab.report.drawing.svg import Axis, band, group, label, polyline
from blklab.report.trace.steps import Steps

HEIGHT = 120.0
COLUMN_PIXELS = 2.0


def depths_chart(title: str, waiting: Steps, in_device: Steps, window: Window, note: str) -> Markup:
    """Two curves; around each mean, the band from the least to the greatest value."""
    rows = [("waiting", waiting), ("in the device", in_device)]
    described = []
    for name, steps in rows:
        low, mean, high = steps.envelope(TimeFrame(window, 0, 1).edges(1))
        described.append(f"{name}: {mean[0]:.1f} on average, between {low[0]:.0f} and {high[0]:.0f}")
    drawings = [_drawing(rows, window, width) for width in (WIDE, NARROW)]
    return figure("depths", title, "; ".join(described), drawings, note)


def _drawing(rows: list[tuple[str, Steps]], window: Window, width: float) -> Drawing:
    wide = width == WIDE
    frame = TimeFrame.across(window, width)
    edges = frame.edges(COLUMN_PIXELS)
    x = frame.x(edges).tolist()
    bottom = len(rows) * (HEIGHT + 30.0)
    parts = [frame.drawn(bottom, 22, wide=wide)]
    for index, (name, steps) in enumerate(rows):
        base = (index + 1) * (HEIGHT + 30.0)
        low, mean, high = steps.envelope(edges)
        axis = Axis(0, max(1.0, float(high.max()) * 1.05), base, base - HEIGHT)
        parts.append(vertical_axis(axis, frame.left, frame.right, Scale(1.0, ""), 4))
        parts.append(label(frame.left, base - HEIGHT - 8, name, css="name"))
        upper = [(x[i + side], axis.at(v)) for i, v in enumerate(high.tolist()) for side in (0, 1)]
        lower = [(x[i + side], axis.at(v)) for i, v in enumerate(low.tolist()) for side in (0, 1)]
        parts.append(band(upper, lower, css="spread series-0"))
        middle = [((x[i] + x[i + 1]) / 2, axis.at(v)) for i, v in enumerate(mean.tolist())]
        parts.append(polyline(middle, css="curve thin series-0"))
    return Drawing(width, bottom + 44, group(parts))
