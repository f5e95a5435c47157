"""Numbers for people."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.quantities.formatting import TIMES, metric_title, ratio_text, rounded, scale_for
from blklab.quantities.ratios import reciprocal_interval
from blklab.report.drawing.svg import Axis, axis_over, shortened


@pytest.mark.parametrize(
    ("value", "half_width", "expected"),
    [
        (12345.0, 45.0, "12340"),  # four digits at most
        (12.345, 0.045, "12.35"),
        (12.345, 0.4, "12.3"),
        (12.345, 0.25, "12.35"),  # a leading 1 or 2 keeps a digit more
        (12.345, 3.0, "12"),
        (12.345, 40.0, "12"),  # never fewer than two digits
        (1234.0, 300.0, "1200"),
        (1234.0, None, "1230"),
        (0.01234, None, "0.0123"),
        (5.0, 0.0, "5.000"),
        (0.0, None, "0.00"),
        (-0.001, 4.0, "-0.0010"),
        (math.nan, 1.0, "-"),
        (math.inf, 1.0, "-"),
    ],
)
def test_digits(value: float, half_width: float | None, expected: str) -> None:
    assert rounded(value, half_width) == expected


@given(st.floats(1e-9, 1e12), st.floats(1e-12, 1e12))
def test_rounding_stays_near_and_short(value: float, half_width: float) -> None:
    text = rounded(value, half_width)
    assert abs(float(text) - value) <= max(half_width, 0.0501 * value)
    assert len(text.replace(".", "").strip("0")) <= 5  # four, or a carry


@pytest.mark.parametrize(
    ("unit", "values", "expected"),
    [
        ("us", [0.4, 0.5], "ns"),
        ("us", [80.0, 120.0], "µs"),
        ("us", [1500.0, 900.0, 2000.0], "ms"),
        ("us", [3e6], "s"),
        ("B/s", [1.5e9], "GB/s"),
        ("IO/s", [120.0, 80.0], "IO/s"),
        ("IO/s", [12_000.0], "kIO/s"),
        ("us", [], "µs"),
        ("us", [0.0], "µs"),
        ("pancakes", [7e9], "pancakes"),
    ],
)
def test_one_unit_for_a_column(unit: str, values: list[float], expected: str) -> None:
    assert scale_for(unit, values).unit == expected


def test_interval_is_written_like_its_center() -> None:
    scale = scale_for("IO/s", [10_800.0])
    assert scale.interval(10_800, 10_300, 11_400) == "10.8 [10.3, 11.4]"
    assert scale.interval(10_800, 9_960, 11_400) == "10.8 [10.0, 11.4]"
    assert scale.interval(10_800, None, None) == "10.8"
    # Bounds that are far apart keep digits of their own.
    assert scale.interval(510, 1.4, 188_280) == "0.51 [0.0014, 190]"
    assert scale.quantity(10_800, 10_300, 11_400) == "10.8 kIO/s"


@pytest.mark.parametrize(
    ("ratio", "low", "high", "expected"),
    [
        (1.12, 1.08, 1.169, "+12 % [+8, +17]"),
        (1.0, 1.0, 1.0, "±0.00 % [±0.00, ±0.00]"),
        (0.97, 0.96, 0.98, "-3.0 % [-4.0, -2.0]"),
        (0.97, None, None, "-3.0 %"),
        (0.69, 0.079, 6.04, "-31 % [-92, +504]"),
        (2.5, 0.4, 16.2, f"2.5 {TIMES} [0.40, 16]"),
        (3.1, 2.8, 3.4, f"3.1 {TIMES} [2.8, 3.4]"),
        (0.1, 0.08, 0.125, "-90.0 % [-92.0, -87.5]"),
        (1 / 140, 1 / 220, 1 / 90, "-99.29 % [-99.55, -98.89]"),
        (1 / 6700, None, None, "-99.985 %"),
    ],
)
def test_ratios(ratio: float, low: float | None, high: float | None, expected: str) -> None:
    assert ratio_text(ratio, low, high) == expected


def test_titles() -> None:
    assert metric_title("latency_p99_9") == "latency p99.9"
    assert metric_title("iops") == "IOPS"
    assert metric_title("cpu_per_io") == "CPU per I/O"


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20))
def test_axis_holds_all_values_between_its_ends(values: list[float]) -> None:
    axis = axis_over(values, 10, 110)
    assert all(10 <= axis.at(value) <= 110 for value in values)
    ordered = sorted(values)
    places = [axis.at(value) for value in ordered]
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(places))
    ticks = axis.ticks(5)
    assert all(axis.low * (1 - 1e-9) <= tick <= axis.high * (1 + 1e-9) for tick in ticks)
    assert 2 <= len(ticks) <= 12


@pytest.mark.parametrize(("low", "high"), [(0.2, 9.0), (0.35, 0.92), (0.98, 1.13), (0.5, 6.0)])
def test_a_narrow_axis_has_two_ticks_at_least(low: float, high: float) -> None:
    ticks = Axis(low, high, 0, 300, logarithmic=True).ticks(3)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_axis_without_span() -> None:
    assert Axis(5, 5, 0, 100).at(5) == 50
    assert Axis(5, 5, 0, 100).ticks(4) == [5]


def test_long_names_keep_both_ends() -> None:
    assert shortened("bfq:slice_idle=0:low_latency=0", 120) == "bfq:slice_…ncy=0"
    assert shortened("none", 120) == "none"


def test_the_interval_of_a_reciprocal_has_its_bounds_swapped() -> None:
    assert reciprocal_interval(0.5, 4.0) == (0.25, 2.0)
    assert reciprocal_interval(None, 4.0) == (0.25, None)
    # exp() of a very wide interval's logarithm.
    assert reciprocal_interval(0.0, math.inf) == (0.0, None)
