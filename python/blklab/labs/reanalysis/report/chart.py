"""Draws every value of a stratum as a dot, with each level's mean and interval above them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from blklab.labs.reanalysis.findings import StratumFindings
from blklab.report.drawing.palette import appearances
from blklab.report.drawing.picture_frame import END_REACH, WIDE, framed
from blklab.report.drawing.svg import (
    Axis,
    axis_over,
    element,
    group,
    interval_bar,
    label,
    line,
    mark,
    shortened,
    tick_text,
)
from blklab.spec.schedulers import SchedulerChoice

_ROW = 34.0
_TOP = 14.0
_BOTTOM = 40.0
MOST_DOTS = 400


def stratum_chart(found: StratumFindings, *, width: float = WIDE, standalone_style: str = "") -> Markup:
    """Draws one row per level; the axis begins near the smallest value, not at zero.

    Args:
        found: The findings of the stratum.
        width: `WIDE`, or `NARROW` for small screens.
        standalone_style: Style sheet for a separate file.
    """
    height = _TOP + _ROW * len(found.levels) + _BOTTOM
    values = [value for level in found.stratum.series for value in found.stratum.values(level)]
    bounds = [bound for one in found.levels for bound in (one.ci_low, one.ci_high) if bound is not None]
    name_width = 0.21 * width if width == WIDE else 0.27 * width
    axis = axis_over([*values, *bounds], name_width, width - 20)
    names = [one.level or "(none)" for one in found.levels]
    # Levels of other tools' results have names of any kind: only their looks are wanted.
    looks = appearances(
        [SchedulerChoice.model_construct(name=name, tunables={}, label=name) for name in names]
    )
    bottom = height - _BOTTOM
    parts = [_axis(axis, bottom, found.stratum.unit, 6 if width == WIDE else 3)]
    for index, (name, one) in enumerate(zip(names, found.levels, strict=True)):
        y = _TOP + _ROW * (index + 0.5)
        look = looks[name]
        row = [label(name_width - 10, y + 4, shortened(name, name_width - 14), css="name", text_anchor="end")]
        row += [
            element(
                "circle",
                {
                    "class": f"dot {look.css_class}",
                    "cx": axis.at(value),
                    "cy": y + 8,
                    "r": 2.6,
                },
            )
            for value in _thinned(found.stratum.values(one.level))
        ]
        row += interval_bar(axis, one.ci_low, one.ci_high, y - 4, look.css_class, END_REACH)
        row.append(mark(axis.at(one.mean), y - 4, 5.0, look, f"{name}: mean of {one.n}"))
        parts.append(group(row, css="series", data_series=name))
    title = f"{found.stratum.title}: every value, means and intervals"
    return framed(title, width, height, *parts, style=standalone_style)


def _thinned(values: Sequence[float]) -> list[float]:
    """At most `MOST_DOTS` values, evenly chosen between the lowest and the highest."""
    if len(values) <= MOST_DOTS:
        return list(values)
    ordered = sorted(values)
    return [ordered[index * (len(ordered) - 1) // (MOST_DOTS - 1)] for index in range(MOST_DOTS)]


def _axis(axis: Axis, bottom: float, unit: str, about: int) -> Markup:
    ticks = axis.ticks(about)
    parts = [line(axis.start, bottom, axis.end, bottom, css="baseline")]
    for tick in ticks:
        x = axis.at(tick)
        parts.append(line(x, _TOP - 6, x, bottom, css="grid"))
        parts.append(label(x, bottom + 16, tick_text(tick, ticks), css="tick", text_anchor="middle"))
    parts.append(label(axis.end, bottom + 33, unit, css="axis-title", text_anchor="end"))
    return group(parts)
