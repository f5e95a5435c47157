"""The latency of each I/O of each job, over the time of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import scale_for
from blklab.quantities.units import NS_PER_US
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, vertical_axis
from blklab.report.charts.time_axis import TimeFrame, Window, dots
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import Axis, group, label
from blklab.report.trace.steps import distinct_dots
from blklab.report.trace.submitters import Floats


@dataclass(frozen=True)
class LatencyDots:
    """I/Os of one job."""

    name: str
    appearance: Appearance
    end_ns: Floats
    latency_ns: Floats


def latencies_chart(title: str, series: Sequence[LatencyDots], window: Window, note: str) -> Markup:
    """A dot for each I/O at its completion time and latency; the latency axis is logarithmic."""
    inside = []
    for one in series:
        kept = window.holds(one.end_ns)
        if kept.any():
            latencies = np.maximum(one.latency_ns[kept], 1.0)
            inside.append(LatencyDots(one.name, one.appearance, one.end_ns[kept], latencies))
    everything = np.concatenate([one.latency_ns for one in inside]) if inside else np.array([1000.0])
    scale = scale_for("us", [float(np.median(everything)) / NS_PER_US])
    described = "; ".join(
        f"{one.name}: {len(one.end_ns)} I/Os, median "
        f"{scale.quantity(float(np.median(one.latency_ns)) / NS_PER_US)}, slowest "
        f"{scale.quantity(float(one.latency_ns.max()) / NS_PER_US)}"
        for one in inside
    )

    def drawing(width: float, height: float) -> Drawing:
        wide = width == WIDE
        frame = TimeFrame.across(window, width)
        top, bottom = 26.0, height - 44
        low, high = float(everything.min()) / NS_PER_US, float(everything.max()) / NS_PER_US
        axis = Axis(low / 1.2, max(high, 1.5 * low) * 1.2, bottom, top, logarithmic=True)
        parts = [
            frame.drawn(bottom, top, wide=wide),
            vertical_axis(axis, frame.left, frame.right, scale, 6),
            label(
                frame.left, 12, f"latency, {scale.unit}", css="axis-title",
                text_anchor="start" if wide else "middle",
            ),
        ]  # fmt: skip
        span = np.log10(axis.high / axis.low)
        for one in inside:
            share = np.log10(one.latency_ns / NS_PER_US / axis.low) / span
            x, y, cell = distinct_dots(frame.x(one.end_ns), bottom + np.clip(share, 0, 1) * (top - bottom))
            size = max(cell + 0.6, 4.0 if len(x) < 300 else 0)
            parts.append(
                group([dots(x, y, size, one.appearance.css_class)], css="series", data_series=one.name)
            )
        return Drawing(width, height, group(parts))

    drawings = [drawing(WIDE, 320), drawing(NARROW, 290)]
    return figure("latencies", title, described or "No I/O ended.", drawings, note)
