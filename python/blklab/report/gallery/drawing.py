"""Draws one run of the scene: the positions of the requests that the disk served, over time."""

from __future__ import annotations

from markupsafe import Markup

from blklab.report.drawing.palette import COLOURS
from blklab.report.drawing.svg import Axis, element, group, label, line, polyline
from blklab.report.gallery.scene import READER_JOBS, SHOWN_NS, WRITER_JOB, SceneRun

WIDTH, HEIGHT = 720.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 118.0, 16.0, 30.0, 40.0
_HIGHEST_BYTES = 9.5e11
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#2a2e34}.title{font-weight:600}.grid{stroke:#d5d9de}"
    ".way{fill:none;stroke:#9aa1aa;stroke-width:.8}"
)


def draw_run(run: SceneRun) -> str:
    """The text of an SVG file."""
    start_ns, end_ns = SHOWN_NS
    across = Axis(start_ns, end_ns, _LEFT, WIDTH - _RIGHT)
    up = Axis(0, _HIGHEST_BYTES, HEIGHT - _BOTTOM, _TOP)
    shown = (run.complete_ns >= start_ns) & (run.complete_ns < end_ns)
    points = [
        (across.at(float(at)), up.at(float(place)), int(job))
        for at, place, job in zip(
            run.complete_ns[shown], run.position_bytes[shown], run.job[shown], strict=True
        )
    ]
    names = [sample.name for sample in run.result.jobs]
    parts = [
        element("style", None, Markup(_STYLE)),  # noqa: S704 - a literal of this module
        element("rect", {"width": WIDTH, "height": HEIGHT, "fill": "#ffffff"}),
        label(_LEFT, 19, run.scheduler, css="title"),
        *_axes(across, up),
    ]
    if points:
        parts.append(polyline([(x, y) for x, y, _ in points], css="way"))
    for job, name in enumerate(names):
        dots = [element("circle", {"cx": x, "cy": y, "r": 2.2}) for x, y, owner in points if owner == job]
        parts.append(group(dots, fill=_colour(name)))
    size: dict[str, str | float | None] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}",
        "width": WIDTH,
        "height": HEIGHT,
        "role": "img",
        "aria-label": f"Positions of the requests that a disk served under {run.scheduler}, over time",
    }
    return f"{element('svg', size, *parts)}\n"


def _colour(job: str) -> str:
    slot = {READER_JOBS[0]: 0, READER_JOBS[1]: 2, WRITER_JOB: 1}[job]
    return COLOURS[slot][0]


def _axes(across: Axis, up: Axis) -> list[Markup]:
    parts = []
    for name, place in ((READER_JOBS[0], 0.0), (WRITER_JOB, 4.6e11), (READER_JOBS[1], 8.6e11)):
        parts.append(label(8, up.at(place) + 4, name, style=f"fill:{_colour(name)}"))
    for tick in across.ticks(6):
        x = across.at(tick)
        parts.append(line(x, up.start, x, up.end, css="grid"))
        parts.append(label(x, up.start + 17, f"{tick / 1e6:g}", text_anchor="middle"))
    parts.append(label(across.end, HEIGHT - 6, "milliseconds", text_anchor="end"))
    return parts
