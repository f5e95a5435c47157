"""The Pareto front as text: the letters' positions, and letters at one position."""

from __future__ import annotations

from blklab.report.charts.pareto import ParetoAxis
from blklab.report.charts.pareto_text import TextPoint, pareto_lines

AXES = ParetoAxis("throughput", higher_is_better=True), ParetoAxis("latency p99", higher_is_better=False)


def _point(x: float, y: float) -> TextPoint:
    return TextPoint((x, 0.98 * x, 1.02 * x), (y, 0.98 * y, 1.02 * y))


def test_better_is_to_the_right_and_up() -> None:
    lines = pareto_lines([_point(1.0, 1.0), _point(0.5, 2.0)], *AXES, 80)
    rows = {letter: next(i for i, line in enumerate(lines) if letter in line[3:]) for letter in "AB"}
    assert rows["A"] < rows["B"]
    assert lines[rows["A"]].index("A") > lines[rows["B"]].index("B")


def test_those_that_coincide_have_a_number_and_a_line_that_names_them() -> None:
    points = [_point(1.0, 1.0), _point(0.5, 2.0), _point(1.0, 1.0), _point(0.5, 2.0), _point(0.7, 1.0)]
    lines = pareto_lines(points, *AXES, 80)
    assert lines[-2:] == ["  1: A, C", "  2: B, D"]
    drawing = "\n".join(lines[1:-4])
    assert [drawing.count(sign) for sign in "12E"] == [1, 1, 1]
    assert not set("ABCD") & set(drawing)
