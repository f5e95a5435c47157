"""Draws figure 11, measured and predicted, from the tables beside docs/appendix/drives.md.

As any user, after measure.py has filled the tables::

    python benches/drives/drawing.py
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

from markupsafe import Markup

from blklab.report.drawing.svg import element, label, line, picture, polyline, rectangle

DOCS = Path(__file__).resolve().parents[2] / "docs" / "appendix"
TABLES, PICTURE = DOCS / "tables", DOCS / "images" / "drives.svg"
COLOURS = {"none": "#333333", "mq-deadline": "#1f6f8b", "kyber": "#3c8d40", "bfq": "#b5432a"}
PANELS = {
    "11-a": "reads of 4 KiB",
    "11-b": "reads of 64 KiB",
    "11-c": "writes of 4 KiB",
    "11-d": "writes of 64 KiB",
}
LEAST_US, MOST_US, MOST_JOBS = 30.0, 60_000.0, 32
PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 300, 190, 70, 90, 50, 60
WIDTH, HEIGHT = LEFT + 2 * PANEL_WIDTH + GAP_X + 20, TOP + 2 * PANEL_HEIGHT + GAP_Y + 40
_PAIR = re.compile(r"([\d,]+) → ([\d,]+) ")
Points = dict[str, list[tuple[int, float, float]]]
"""Jobs, measured and predicted microseconds, by scheduler."""


def main() -> int:
    """Writes the picture."""
    PICTURE.write_text(draw(read_tables(TABLES)), "utf-8")
    return 0


def read_tables(folder: Path) -> dict[str, Points]:
    """The mean latencies in the page's tables, by figure."""
    found: dict[str, Points] = {}
    for name in PANELS:
        points: Points = defaultdict(list)
        with (folder / f"drives-figure-{name}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if pair := _PAIR.match(row["Mean, µs"]):
                    real, model = (float(one.replace(",", "")) for one in pair.groups())
                    points[row["Scheduler"].rstrip("*")].append((int(row["Jobs"]), real, model))
        found[name] = points
    return found


def draw(tables: dict[str, Points]) -> str:
    """Returns the text of an SVG file: a panel for each kind of batch job."""
    parts = [rectangle(0, 0, WIDTH, HEIGHT, fill="#ffffff"), *_head()]
    for number, (name, points) in enumerate(tables.items()):
        left = LEFT + (number % 2) * (PANEL_WIDTH + GAP_X)
        top = TOP + (number // 2) * (PANEL_HEIGHT + GAP_Y)
        parts += _frame(left, top, PANELS[name])
        for scheduler, colour in COLOURS.items():
            rows = points.get(scheduler, [])
            predicted = [(_x(left, jobs), _y(top, model)) for jobs, _, model in rows]
            parts.append(polyline(predicted, stroke=colour, fill="none", stroke_width=2))
            measured = [(_x(left, jobs), _y(top, real)) for jobs, real, _ in rows]
            parts += [
                element("circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": 4, "fill": colour})
                for x, y in measured
            ]
    return picture(parts, WIDTH, HEIGHT)


def _x(left: float, jobs: float) -> float:
    """By the logarithm of one more than the jobs, as none is a case too."""
    return left + PANEL_WIDTH * math.log2(1 + jobs) / math.log2(1 + MOST_JOBS)


def _y(top: float, latency_us: float) -> float:
    return top + PANEL_HEIGHT * (1 - math.log(latency_us / LEAST_US) / math.log(MOST_US / LEAST_US))


def _head() -> list[Markup]:
    parts = [
        label(LEFT, 24, "Mean latency of a 4 KiB reader beside jobs of depth 128, on eight Samsung 980 PRO"),
        element("circle", {"cx": LEFT + 6, "cy": 46, "r": 4, "fill": "#555555"}),
        label(LEFT + 16, 51, "measured (ICPE 2024)"),
        line(LEFT + 170, 46, LEFT + 200, 46, stroke="#555555", stroke_width=2),
        label(LEFT + 208, 51, "predicted"),
    ]
    for number, (scheduler, colour) in enumerate(COLOURS.items()):
        parts.append(label(LEFT + 310 + 85 * number, 51, scheduler, fill=colour))
    return parts


def _frame(left: float, top: float, title: str) -> list[Markup]:
    parts = [label(left, top - 8, f"Beside jobs with {title}")]
    for latency_us, text in ((100, "0.1 ms"), (1_000, "1 ms"), (10_000, "10 ms")):
        y = _y(top, latency_us)
        parts.append(line(left, y, left + PANEL_WIDTH, y, stroke="#dddddd"))
        parts.append(label(left - 8, y + 4, text, text_anchor="end"))
    parts += [
        label(_x(left, jobs), top + PANEL_HEIGHT + 18, str(jobs), text_anchor="middle")
        for jobs in (0, 1, 2, 4, 8, 16, 32)
    ]
    return parts


if __name__ == "__main__":
    sys.exit(main())
