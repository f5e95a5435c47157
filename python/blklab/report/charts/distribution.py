"""Distributions of latencies: the share of I/Os slower than a latency, and the density."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import Scale, scale_for
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import LatencyHistogram
from blklab.report.charts.figure import NARROW, WIDE, Drawing, figure, horizontal_axis
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import Axis, group, label, line, mark, polyline, shortened

PARTS_OF_AXIS = 72
"""Steps of a hill from one end of the axis to the other, within these bounds a decade:"""
FEWEST_PARTS, MOST_PARTS = 20, 100
RAREST_SHOWN = 1e-7
"""Share of I/Os below which a curve ends."""

_SHARES = (
    (1.0, "all"),
    (0.5, "half (p50)"),
    (0.1, "1 in 10 (p90)"),
    (0.01, "1 in 100 (p99)"),
    (1e-3, "1 in 1 000 (p99.9)"),
    (1e-4, "1 in 10 000"),
    (1e-5, "1 in 100 000"),
    (1e-6, "1 in a million"),
)
_SHORT_SHARES = {
    1.0: "all",
    0.5: "p50",
    0.1: "p90",
    0.01: "p99",
    1e-3: "p99.9",
    1e-4: "p99.99",
    1e-5: "p99.999",
}


@dataclass(frozen=True)
class LatencySeries:
    """A scheduler's latencies, all runs of a workload merged."""

    name: str
    appearance: Appearance
    latencies: LatencyHistogram


def exceedance_chart(title: str, series: Sequence[LatencySeries], note: str) -> Markup:
    """Share of I/Os slower than a latency, both on logarithmic axes: the tail that averages hide."""
    scale = _latency_scale(series)
    described = "; ".join(
        f"{one.name}: half below {_percentile(one, 0.5, scale)}, 99 of 100 below "
        f"{_percentile(one, 0.99, scale)}, 999 of 1 000 below {_percentile(one, 0.999, scale)}"
        for one in series
    )
    drawings = [_exceedance(series, scale, WIDE, 360), _exceedance(series, scale, NARROW, 330)]
    return figure("exceedance", title, described, drawings, note)


def density_chart(title: str, series: Sequence[LatencySeries], note: str) -> Markup:
    """The density of each scheduler's latencies, one hill a scheduler, with median and p99 marked."""
    scale = _latency_scale(series)
    described = "; ".join(
        f"{one.name}: median {_percentile(one, 0.5, scale)}, p99 {_percentile(one, 0.99, scale)}"
        for one in series
    )
    drawings = [_density(series, scale, WIDE), _density(series, scale, NARROW)]
    return figure("density", title, described, drawings, note)


def _latency_scale(series: Sequence[LatencySeries]) -> Scale:
    return scale_for("us", [(one.latencies.percentile_ns(0.5) or 0) / NS_PER_US for one in series])


def _percentile(one: LatencySeries, fraction: float, scale: Scale) -> str:
    value_ns = one.latencies.percentile_ns(fraction)
    return "-" if value_ns is None else scale.quantity(value_ns / NS_PER_US)


def _latency_axis(series: Sequence[LatencySeries], start: float, end: float) -> Axis:
    low = min(max(1, one.latencies.min_ns) for one in series) / NS_PER_US
    high = max(max(1, one.latencies.max_ns) for one in series) / NS_PER_US
    return Axis(low / 1.08, max(high, low * 2) * 1.08, start, end, logarithmic=True)


def exceedance(latencies: LatencyHistogram) -> list[tuple[float, float]]:
    """Corners of the step curve: latency (ns) and share of I/Os slower than it, from all down to the last."""
    total = sum(latencies.bins.values())
    corners = [(float(max(1, latencies.min_ns)), 1.0)]
    seen = 0
    for value_ns, count in sorted(latencies.bins.items()):
        at_ns = float(min(max(value_ns, latencies.min_ns, 1), latencies.max_ns))
        corners.append((at_ns, (total - seen) / total))
        seen += count
        if seen < total:
            corners.append((at_ns, (total - seen) / total))
    return corners


def _exceedance(series: Sequence[LatencySeries], scale: Scale, width: float, height: float) -> Drawing:
    wide = width == WIDE
    left, right, top, bottom = (150.0 if wide else 60.0), width - 14, 12.0, height - 44
    rarest = min(max(RAREST_SHOWN, exceedance(one.latencies)[-1][1]) for one in series)
    x_axis = _latency_axis(series, left, right)
    y_axis = Axis(rarest / 1.5, 1.0, bottom, top, logarithmic=True)
    parts = [horizontal_axis(x_axis, bottom, top, scale, 8 if wide else 4)]
    for share, words in _SHARES:
        if share < rarest / 1.4:
            break
        y = y_axis.at(share)
        text = (
            words
            if wide
            else _SHORT_SHARES.get(share, words.replace("1 in ", "1/").replace("a million", "10⁶"))
        )
        parts.append(line(left, y, right, y, css="grid"))
        parts.append(label(left - 8, y + 4, text, css="tick", text_anchor="end"))
    parts.append(label(right, height - 8, f"latency, {scale.unit}", css="axis-title", text_anchor="end"))
    for one in series:
        corners = exceedance(one.latencies)
        points = _thinned([(x_axis.at(ns / NS_PER_US), y_axis.at(share)) for ns, share in corners])
        colour = one.appearance.css_class
        tip = (
            f"{one.name}: p50 {_percentile(one, 0.5, scale)}, p99 {_percentile(one, 0.99, scale)}, "
            f"p99.9 {_percentile(one, 0.999, scale)}, max {_percentile(one, 1.0, scale)}"
        )
        content = [
            polyline(points, css=f"curve {colour}", stroke_dasharray=one.appearance.dashes or None),
            polyline(points, css="curve-target", data_tip=tip),
        ]
        for fraction in (0.5, 0.99, 0.999, 1.0):
            value_ns = one.latencies.percentile_ns(fraction)
            share = 1 - fraction if fraction < 1 else corners[-1][1]
            if value_ns is None or share < corners[-1][1]:
                continue
            name = f"p{100 * fraction:g}" if fraction < 1 else "slowest"
            point_tip = f"{one.name}: {name} {_percentile(one, fraction, scale)}"
            content.append(
                mark(x_axis.at(value_ns / NS_PER_US), y_axis.at(share), 4, one.appearance, point_tip)
            )
        parts.append(group(content, css="series", data_series=one.name))
    return Drawing(width, height, group(parts))


def _thinned(points: Sequence[tuple[float, float]], step: float = 0.6) -> list[tuple[float, float]]:
    """Leaves out points that lie on top of one another on any screen; first and last stay."""
    kept = [points[0]]
    for x, y in points[1:-1]:
        if abs(x - kept[-1][0]) >= step or abs(y - kept[-1][1]) >= step:
            kept.append((x, y))
    if len(points) > 1:
        kept.append(points[-1])
    return kept


def log_density(latencies: LatencyHistogram, parts_per_decade: int) -> dict[int, float]:
    """Share of I/Os in each part of a decade, by the part's number.

    A bin of the histogram is spread over its own width (a 64th of its power of two); counted in its middle,
    bins would beat against the parts.
    """
    total = sum(latencies.bins.values())
    shares: dict[int, float] = {}
    for value_ns, count in latencies.bins.items():
        width = max(1.0, 2.0 ** (value_ns.bit_length() - 7))
        low = math.log10(max(0.5, value_ns - width / 2)) * parts_per_decade
        high = math.log10(value_ns + width / 2) * parts_per_decade
        for part in range(math.floor(low), math.floor(high) + 1):
            overlap = min(high, part + 1) - max(low, part)
            shares[part] = shares.get(part, 0.0) + count / total * overlap / (high - low)
    return shares


def _density(series: Sequence[LatencySeries], scale: Scale, width: float) -> Drawing:
    wide = width == WIDE
    left, right = (150.0 if wide else 8.0), width - 14
    row = 46.0 if wide else 56.0
    hill = 38.0
    bottom = 14 + row * len(series)
    x_axis = _latency_axis(series, left, right)
    parts = [
        horizontal_axis(x_axis, bottom, 6, scale, 8 if wide else 4),
        label(right, bottom + 36, f"latency, {scale.unit}", css="axis-title", text_anchor="end"),
    ]
    decades = math.log10(x_axis.high / x_axis.low)
    parts_per_decade = round(min(MOST_PARTS, max(FEWEST_PARTS, PARTS_OF_AXIS / decades)))
    shares = {one.name: log_density(one.latencies, parts_per_decade) for one in series}
    tallest = max(max(parts_of.values()) for parts_of in shares.values())
    for index, one in enumerate(series):
        base = 14 + row * (index + 1) - 4
        parts.append(
            _hill(one, shares[one.name], parts_per_decade, tallest, x_axis, base, hill, scale, wide=wide)
        )
    return Drawing(width, bottom + 44, group(parts))


def _hill(
    one: LatencySeries,
    shares: Mapping[int, float],
    parts_per_decade: int,
    tallest: float,
    axis: Axis,
    base: float,
    height: float,
    scale: Scale,
    *,
    wide: bool,
) -> Markup:
    def x_of(part: float) -> float:
        return axis.at(10 ** (part / parts_per_decade) / NS_PER_US)

    first, last = min(shares), max(shares)
    outline = [(x_of(first), base)]
    for part in range(first, last + 1):
        y = base - height * shares.get(part, 0.0) / tallest
        outline += [(x_of(part), y), (x_of(part + 1), y)]
    outline.append((x_of(last + 1), base))
    colour = one.appearance.css_class
    tip = f"{one.name}: median {_percentile(one, 0.5, scale)}, p99 {_percentile(one, 0.99, scale)}"
    content = [
        polyline(outline, css=f"hill {colour}", data_tip=tip),
        line(axis.start, base, axis.end, base, css="baseline"),
        label(0, base - (4 if wide else 30), shortened(one.name, 140 if wide else 130), css="name"),
    ]
    median_ns, p99_ns = (one.latencies.percentile_ns(fraction) for fraction in (0.5, 0.99))
    if p99_ns is not None:
        x = axis.at(p99_ns / NS_PER_US)
        content.append(line(x, base - 9, x, base + 3, css=f"interval-end {colour}"))
    if median_ns is not None:
        content.append(mark(axis.at(median_ns / NS_PER_US), base, 4.5, one.appearance, tip))
    return group(content, css="series", data_series=one.name)
