"""Differences, scatter and trends against scipy and published properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.spread import spread_ratio
from blklab.analysis.statistics.trend import trend_of
from blklab.analysis.statistics.two_samples import (
    independent_difference,
    matched_difference,
    standardised_difference,
)

FIGURES = st.lists(st.floats(1, 1e6), min_size=3, max_size=12).filter(
    lambda v: max(v) - min(v) > 1e-3 * max(v)
)


@given(first=FIGURES, second=FIGURES)
def test_welch_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    ours = independent_difference(Sample(first), Sample(second))
    theirs = stats.ttest_ind(first, second, equal_var=False)
    assert ours.p_difference == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    interval = ours.interval(0.95)
    assert interval is not None
    bounds = theirs.confidence_interval(0.95)
    assert interval[0] == pytest.approx(bounds.low, rel=1e-6, abs=1e-6)
    assert interval[1] == pytest.approx(bounds.high, rel=1e-6, abs=1e-6)


@given(values=st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e3)), min_size=3, max_size=12))
def test_pairs_are_those_of_scipy(values: list[tuple[float, float]]) -> None:
    first, second = (list(side) for side in zip(*values, strict=True))
    differences = np.subtract(first, second)
    assume(np.ptp(differences) >= 1e-3)
    ours = matched_difference(first, second)
    assert ours.p_difference == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-6, abs=1e-12)


def test_single_figures_decide_nothing() -> None:
    for difference in (
        independent_difference(Sample([1.0]), Sample([2.0, 3.0])),
        matched_difference([1.0], [2.0]),
    ):
        assert difference.interval(0.95) is None
        assert difference.p_difference == difference.p_equivalence(10) == 1.0
        assert difference.detectable(0.05, 0.8) is None
    assert standardised_difference(Sample([1.0]), Sample([2.0, 3.0])) is None


def test_figures_without_scatter() -> None:
    same = independent_difference(Sample([5.0, 5.0]), Sample([5.0, 5.0]))
    assert (same.p_difference, same.p_equivalence(0.1)) == (1.0, 0.0)
    other = matched_difference([5.0, 5.0], [4.0, 4.0])
    assert (other.p_difference, other.p_equivalence(0.1)) == (0.0, 1.0)


def test_hedges_g_of_a_worked_example() -> None:
    # d = (3 - 5) / sqrt(2.5) for two samples of variance 2.5; the correction is 1 - 3 / (4 * 8 - 1).
    g = standardised_difference(Sample([1, 2, 3, 4, 5]), Sample([3, 4, 5, 6, 7]))
    assert g == pytest.approx(-2 / math.sqrt(2.5) * (1 - 3 / 31))


def test_detectable_differences_are_found_that_often() -> None:
    generator = np.random.default_rng(4)
    planned = independent_difference(*(Sample(list(generator.normal(0, 1, 15))) for _ in range(2)))
    error = math.sqrt(2 / 15)
    size = (planned.detectable(0.05, 0.8) or 0) / (planned.standard_error or 1) * error
    found = sum(
        independent_difference(
            Sample(generator.normal(size, 1, 15).tolist()), Sample(generator.normal(0, 1, 15).tolist())
        ).p_difference
        < 0.05
        for _ in range(1500)
    )
    assert 0.75 < found / 1500 < 0.85


@pytest.mark.parametrize("shape", ["normal", "heavy"])
def test_scatter_is_called_different_no_more_often_than_allowed(shape: str) -> None:
    generator = np.random.default_rng(7)

    def draw() -> Sample:
        values = generator.normal(size=15) if shape == "normal" else generator.standard_t(5, size=15)
        return Sample([float(value) for value in values])

    wrong = sum(
        ratio.p_difference < 0.05 for _ in range(2000) if (ratio := spread_ratio(draw(), draw())) is not None
    )
    assert wrong / 2000 < 0.075


def test_clearly_different_scatter_is_seen() -> None:
    generator = np.random.default_rng(1)
    wide, narrow = generator.normal(0, 5, 15), generator.normal(0, 1, 15)
    ratio = spread_ratio(Sample(list(wide)), Sample(list(narrow)))
    assert ratio is not None
    low, high = ratio.interval(0.95)
    assert low < 5 < high
    assert ratio.p_difference < 0.01
    assert stats.levene(wide, narrow, center="median").pvalue < 0.05
    assert spread_ratio(Sample([1, 2, 3]), Sample([1, 2, 3, 4])) is None
    assert spread_ratio(Sample([1, 1, 1, 1]), Sample([1, 2, 3, 4])) is None


def test_trends() -> None:
    rising = trend_of([1, 2, 3, 4, 5, 6])
    assert rising is not None
    assert rising.tau == pytest.approx(1)
    assert rising.slope == 1.0
    assert rising.p == pytest.approx(2 / math.factorial(6))
    flat = trend_of([3.0] * 6)
    assert flat is not None
    assert (flat.p, flat.serial_correlation) == (1.0, None)
    assert trend_of([1, 2, 3, 4]) is None
    generator = np.random.default_rng(3)
    found = sum((trend_of(list(generator.normal(size=12))) or rising).p < 0.05 for _ in range(2000))
    assert found / 2000 < 0.065
