"""The load of runs whose settings change: its rate over time by scheduler, with a mark at each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import Scale, count_of, scale_for
from blklab.quantities.units import NS_PER_SECOND, format_duration
from blklab.records.samples import RunSample
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, horizontal_axis, vertical_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import Axis, group, label, line, polyline
from blklab.spec.changes import Change

_HEIGHT = 200.0
_LINE_HEIGHT = 15.0
_POINTS = 240
"""Points of a curve; shorter windows are averaged."""

Curve = list[tuple[float, float]]
"""Seconds and I/Os per second."""


@dataclass(frozen=True)
class _Mark:
    """The changes of one moment."""

    number: int
    seconds: float
    what: str


def changes_chart(
    title: str,
    samples: Sequence[RunSample],
    changes: Sequence[Change],
    looks: Mapping[str, Appearance],
    note: str,
) -> Markup | None:
    """The chart of one workload; None if no run has phases."""
    curves = {name: _curves([one for one in samples if one.cell.scheduler == name]) for name in looks}
    points = [point for own in curves.values() for curve in own for point in curve]
    if not points:
        return None
    marks = _marks(changes)
    scale = scale_for("IO/s", [rate for _, rate in points])
    described = f"{count_of(len(marks), 'moment')} of change: " + "; ".join(
        f"{mark.seconds:g} s {mark.what}" for mark in marks
    )
    drawings = [_drawing(curves, points, marks, looks, scale, width) for width in (WIDE, NARROW)]
    return figure("changes", title, described, drawings, note)


def _curves(samples: Sequence[RunSample]) -> list[Curve]:
    """The mean rate over a scheduler's runs, a curve for each phase."""
    runs = [sample.phases for sample in samples if sample.status == "ok" and sample.phases]
    nr_phases = min((len(phases) for phases in runs), default=0)
    length_ns = max((phases[-1].to_ns for phases in runs), default=0)
    curves = []
    for number in range(nr_phases):
        own = [phases[number] for phases in runs]
        window_ns, nr_windows = own[0].window_ns, min(len(phase.ios) for phase in own)
        together = max(1, -(-length_ns // window_ns // _POINTS))
        means = np.mean([phase.ios[:nr_windows] for phase in own], axis=0) * NS_PER_SECOND / window_ns
        from_ns = float(np.mean([phase.from_ns for phase in own]))
        starts = range(0, nr_windows - together + 1, together)
        curves.append(
            [
                (
                    (from_ns + (start + together / 2) * window_ns) / NS_PER_SECOND,
                    float(means[start : start + together].mean()),
                )
                for start in starts
            ]
        )
    return curves


def _marks(changes: Sequence[Change]) -> list[_Mark]:
    moments = list(dict.fromkeys(change.at_ns for change in changes))
    return [
        _Mark(
            number=number,
            seconds=at_ns / NS_PER_SECOND,
            what=", ".join(change.what for change in changes if change.at_ns == at_ns),
        )
        for number, at_ns in enumerate(moments, start=1)
    ]


def _drawing(
    curves: Mapping[str, list[Curve]],
    points: Curve,
    marks: Sequence[_Mark],
    looks: Mapping[str, Appearance],
    scale: Scale,
    width: float,
) -> Drawing:
    left, right, top = 56.0, width - 10, 40.0
    bottom = top + _HEIGHT
    time = Axis(0, max(seconds for seconds, _ in points), left, right)
    rate = Axis(0, 1.05 * max(value for _, value in points) or 1.0, bottom, top)
    parts = [
        label(0, 14, scale.unit, css="axis-title"),
        vertical_axis(rate, left, right, scale, 5),
        horizontal_axis(time, bottom, bottom, Scale(1.0, "s"), 7 if width > NARROW else 4),
        label(right, bottom + 34, "time under load, s", css="axis-title", text_anchor="end"),
    ]
    for mark in marks:
        x = time.at(mark.seconds)
        parts.append(line(x, top - 8, x, bottom, css="change"))
        parts.append(label(x, top - 13, str(mark.number), css="tick", text_anchor="middle"))
    for name, look in looks.items():
        content = [
            polyline(
                [(time.at(seconds), rate.at(value)) for seconds, value in curve],
                css=f"curve thin {look.css_class}",
                stroke_dasharray=look.dashes or None,
            )
            for curve in curves[name]
            if len(curve) > 1
        ]
        parts.append(group(content, css="series", data_series=name))
    below = bottom + 54
    for place, mark in enumerate(marks):
        text = f"{mark.number}  at {format_duration(mark.seconds * NS_PER_SECOND)}: {mark.what}"
        parts.append(label(left, below + place * _LINE_HEIGHT, text, css="tick"))
    return Drawing(width, below + len(marks) * _LINE_HEIGHT, group(parts))
