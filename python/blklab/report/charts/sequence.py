"""Every run of a workload in the order of the runs, which shows drift and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import Scale, count_of
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, vertical_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import axis_over, cross, group, label, line, mark, polyline, rectangle


@dataclass(frozen=True)
class SequenceRun:
    """One run."""

    sequence: int
    """Its number in the whole experiment, from 0."""
    block: int
    name: str
    value: float | None
    """None if it failed or gave no such figure."""
    failure: str | None
    started_at: str


def sequence_chart(
    title: str,
    runs: Sequence[SequenceRun],
    appearances: dict[str, Appearance],
    scale: Scale,
    note: str,
) -> Markup:
    """The chart; `runs` in the order in which they ran, at least one."""
    values = [run.value for run in runs if run.value is not None]
    failed = sum(1 for run in runs if run.failure is not None)
    blocks = len({run.block for run in runs})
    described = f"{count_of(len(runs), 'run')} in {count_of(blocks, 'block')}"
    if values:
        described += f", from {scale.quantity(min(values))} to {scale.quantity(max(values))}"
    if failed:
        described += f"; {failed} failed"
    drawings = [
        _drawing(runs, appearances, scale, WIDE, 280),
        _drawing(runs, appearances, scale, NARROW, 260),
    ]
    return figure("sequence", title, described, drawings, note)


def _drawing(
    runs: Sequence[SequenceRun],
    appearances: dict[str, Appearance],
    scale: Scale,
    width: float,
    height: float,
) -> Drawing:
    wide = width == WIDE
    failures = any(run.value is None for run in runs)
    left, right, top = 56.0, width - 10, 28.0
    floor = height - 30
    bottom = floor - (22 if failures else 0)
    axis = axis_over([run.value for run in runs if run.value is not None], bottom, top)
    step = (right - left) / len(runs)
    centers = {run.sequence: left + step * (index + 0.5) for index, run in enumerate(runs)}
    parts = [
        _block_bands(runs, left, step, top, floor),
        vertical_axis(axis, left, right, scale, 5),
        label(0, 14, scale.unit, css="axis-title"),
        label(right, height - 8, "run, in the order made →", css="axis-title", text_anchor="end"),
    ]
    if failures:
        parts.append(line(left, bottom + 4, right, bottom + 4, css="baseline"))
        parts.append(label(left - 7, floor - 5, "failed", css="tick", text_anchor="end"))
    size = 4.5 if step >= 9 else 3.5 if step >= 5 or wide else 2.5
    for name, appearance in appearances.items():
        own = [run for run in runs if run.name == name]
        points = [(centers[run.sequence], axis.at(run.value)) for run in own if run.value is not None]
        content = []
        if len(points) > 1:
            css = f"thread {appearance.css_class}"
            content.append(polyline(points, css=css, stroke_dasharray=appearance.dashes or None))
        for run in own:
            where = f"{name}, block {run.block + 1}, run {run.sequence + 1}"
            if run.value is not None:
                tip = f"{where}: {scale.quantity(run.value)} ({run.started_at})"
                content.append(mark(centers[run.sequence], axis.at(run.value), size, appearance, tip))
            else:
                tip = f"{where}: {run.failure or 'no figure'}"
                css = f"failed-run {appearance.css_class}"
                content.append(cross(centers[run.sequence], floor - 9, 4.5, css, tip))
        parts.append(group(content, css="series", data_series=name))
    return Drawing(width, height, group(parts))


def _block_bands(runs: Sequence[SequenceRun], left: float, step: float, top: float, floor: float) -> Markup:
    """A shade behind every other block, and the blocks' numbers if there is room."""
    blocks = list(dict.fromkeys(run.block for run in runs))
    places = {block: [index for index, run in enumerate(runs) if run.block == block] for block in blocks}
    every = max(1, -(-len(blocks) * 26 // max(1, int(step * len(runs)))))
    parts = []
    for order, block in enumerate(blocks):
        first, last = places[block][0], places[block][-1]
        if order % 2 == 0:
            band = rectangle(
                left + step * first, top, step * (last - first + 1), floor - top, css="block-band"
            )
            parts.append(band)
        if order % every == 0:
            center = left + step * (first + last + 1) / 2
            text = f"block {block + 1}" if step * len(places[block]) > 62 else str(block + 1)
            parts.append(label(center, top - 6, text, css="tick", text_anchor="middle"))
    return group(parts)
