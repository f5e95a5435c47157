"""Draws rates against the number of jobs, measured and predicted, for each scheduler."""

from __future__ import annotations

from cells import SCHEDULERS, Rates
from markupsafe import Markup

from blklab.report.drawing.svg import element, label, line, picture, polyline, rectangle

COLOURS = {"none": "#333333", "mq-deadline": "#1f6f8b", "kyber": "#3c8d40", "bfq": "#b5432a"}
MOST_JOBS, MOST_IOPS = 15, 900_000
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 70, 70, 130, 50


def _x(jobs: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * jobs / MOST_JOBS


def _y(iops: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * iops / MOST_IOPS


def draw(published: Rates, simulated: Rates) -> str:
    """Returns the text of an SVG file: the jobs of depth 128 on ten processors (figure 7)."""
    parts = [rectangle(0, 0, WIDTH, HEIGHT, fill="#ffffff"), *_frame()]
    ends: list[float] = []
    for scheduler in SCHEDULERS:
        colour = COLOURS[scheduler]
        cells = sorted(
            (cell for cell in published if cell.figure == "7" and cell.scheduler == scheduler),
            key=lambda cell: cell.jobs,
        )
        measured = [(_x(cell.jobs), _y(published[cell])) for cell in cells]
        predicted = [(_x(cell.jobs), _y(simulated[cell])) for cell in cells]
        parts.append(polyline(predicted, stroke=colour, fill="none", stroke_width=2))
        parts += [
            element("circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": 4, "fill": colour})
            for x, y in measured
        ]
        end = measured[-1][1] + 5
        while any(abs(end - other) < 16 for other in ends):
            end += 16
        ends.append(end)
        parts.append(label(_x(MOST_JOBS) + 14, end, scheduler, fill=colour))
    return picture(parts, WIDTH, HEIGHT)


def _frame() -> list[Markup]:
    parts = [
        label(
            LEFT,
            24,
            "Thousand I/Os a second by number of jobs of depth 128, on ten processors",
        ),
        element("circle", {"cx": LEFT + 6, "cy": 42, "r": 4, "fill": "#555555"}),
        label(LEFT + 16, 47, "measured (ICPE 2024)"),
        line(LEFT + 180, 42, LEFT + 210, 42, stroke="#555555", stroke_width=2),
        label(LEFT + 218, 47, "predicted by the simulator"),
    ]
    for iops in range(0, MOST_IOPS + 1, 200_000):
        parts.append(line(LEFT, _y(iops), _x(MOST_JOBS), _y(iops), stroke="#dddddd"))
        parts.append(label(LEFT - 10, _y(iops) + 4, f"{iops // 1000}", text_anchor="end"))
    parts += [
        label(_x(jobs), HEIGHT - BOTTOM + 22, str(jobs), text_anchor="middle")
        for jobs in (1, 3, 5, 8, 10, 15)
    ]
    return parts
