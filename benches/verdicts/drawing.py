"""Draws the plot of docs/appendix/verdicts.md: the usual procedure and blklab on the same noise."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from blklab.report.drawing.svg import element, label, line, picture, rectangle

USUAL, OURS, LIMIT = "#b5432a", "#1f6f8b", "#555555"
ROW_HEIGHT, TOP, LEFT, PANEL_WIDTH, GAP = 22, 84, 190, 300, 60

Row = tuple[str, float, float, float, float]
"""Name of the noise; shares of the usual procedure and ours with two equals, then with one 5 % better."""


def draw(rows: Sequence[Row]) -> str:
    """Returns the text of an SVG file."""
    width = LEFT + 2 * PANEL_WIDTH + GAP + 30
    height = TOP + ROW_HEIGHT * len(rows) + 60
    parts = [rectangle(0, 0, width, height, fill="#ffffff")]
    parts += _legend()
    titles = ("Two equal schedulers: a winner is named", "One is 5 % better: the other one is named")
    for panel, title in enumerate(titles):
        x = LEFT + panel * (PANEL_WIDTH + GAP)
        parts.append(label(x, TOP - 14, title, font_weight="bold"))
        parts += _grid(x, len(rows))
        for index, row in enumerate(rows):
            usual, ours = row[1 + 2 * panel], row[2 + 2 * panel]
            y = TOP + ROW_HEIGHT * (index + 0.5)
            parts.append(line(x + ours * PANEL_WIDTH, y, x + usual * PANEL_WIDTH, y, stroke="#cccccc"))
            parts.append(_dot(x + usual * PANEL_WIDTH, y, USUAL, hollow=True))
            parts.append(_dot(x + ours * PANEL_WIDTH, y, OURS, hollow=False))
    parts += [
        label(LEFT - 10, TOP + ROW_HEIGHT * (index + 0.5) + 4, row[0], text_anchor="end")
        for index, row in enumerate(rows)
    ]
    return picture(parts, width, height)


def _legend() -> list[Markup]:
    return [
        _dot(LEFT + 6, 22, USUAL, hollow=True),
        label(LEFT + 18, 27, "three runs each in fixed order, the highest mean wins (by more than 2 %)"),
        _dot(LEFT + 6, 42, OURS, hollow=False),
        label(LEFT + 18, 47, "blklab: blocks in random order until settled, 95 % confidence (dashed: 5 %)"),
    ]


def _grid(x: float, rows: int) -> list[Markup]:
    bottom = TOP + ROW_HEIGHT * rows
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        place = x + share * PANEL_WIDTH
        parts.append(line(place, TOP, place, bottom, stroke="#e4e4e4"))
        parts.append(label(place, bottom + 18, f"{100 * share:.0f} %", text_anchor="middle", fill=LIMIT))
    limit = x + 0.05 * PANEL_WIDTH
    parts.append(line(limit, TOP, limit, bottom, stroke=LIMIT, stroke_dasharray="4 3"))
    return parts


def _dot(x: float, y: float, color: str, *, hollow: bool) -> Markup:
    fill = "#ffffff" if hollow else color
    return element("circle", {"cx": x, "cy": y, "r": 5, "fill": fill, "stroke": color, "stroke-width": 2})
