"""The time-uniform t test against its definition, against a published form, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from blklab.analysis.statistics.anytime import (
    anytime_difference,
    anytime_mean_interval,
    fewest_blocks,
    t_factor,
    t_for_evidence,
)
from blklab.analysis.statistics.crossing import (
    PRIOR_PRECISION,
    chance_of_reaching,
    log_bound_for,
    log_e_value,
    log_rise,
)


def _mixture(t_statistic: float, n: int) -> float:
    """The definition: the likelihood ratio of the t statistic, averaged over a normal effect size."""

    def weighted(effect: float) -> float:
        density = stats.nct.pdf(t_statistic, n - 1, effect * math.sqrt(n))
        return float(density * stats.norm.pdf(effect, scale=1 / math.sqrt(PRIOR_PRECISION)))

    total, _ = integrate.quad(weighted, -25, 25, limit=400)
    return float(total / stats.t.pdf(t_statistic, n - 1))


@pytest.mark.parametrize(("t_statistic", "n"), [(0.0, 3), (1.3, 4), (-2.5, 5), (4.0, 6), (3.0, 18)])
def test_the_evidence_is_the_mixture_of_likelihood_ratios(t_statistic: float, n: int) -> None:
    assert math.exp(log_e_value(t_statistic, n)) == pytest.approx(_mixture(t_statistic, n), rel=1e-4)


@pytest.mark.parametrize("n", [4, 5, 8, 18, 200])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_interval_is_that_of_lindon_and_others_for_an_intercept(n: int, level: float) -> None:
    """Their radius for regression (arXiv 2210.08589, section 3), with one regressor that is always 1."""
    share = PRIOR_PRECISION / (PRIOR_PRECISION + n)
    root = (share * level**2) ** (1 / n)
    assert root > share
    radius = math.sqrt((n - 1) * (1 - root) / (root - share))
    assert t_for_evidence(n, -math.log(level)) == pytest.approx(radius)


def test_known_factors() -> None:
    """Computed with 50 digits from the formula of the module's documentation."""
    assert t_for_evidence(4, math.log(20)) == pytest.approx(6.538232071673704)
    assert t_for_evidence(18, math.log(20)) == pytest.approx(3.847953489036377)


def _most_evidence(
    series: int, first: int, last: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """By brute force, the largest evidence over the rise of its block in series without any effect."""
    generator = np.random.default_rng(seed)
    most = np.full(series, -math.inf)
    total, squares = np.zeros(series), np.zeros(series)
    for n in range(1, last + 1):
        values = generator.normal(size=series)
        total, squares = total + values, squares + values * values
        if n < first:
            continue
        x = total**2 / (n * squares - total**2)
        share = PRIOR_PRECISION / (n + PRIOR_PRECISION)
        evidence = 0.5 * math.log(share) + n / 2 * (np.log1p(x) - np.log1p(x * share))
        most = np.maximum(most, evidence - log_rise(n))
    return most


@pytest.mark.parametrize("first", [4, 5, 6])
def test_the_chance_of_reaching_a_bound_is_that_of_series_without_effect(first: int) -> None:
    most = _most_evidence(30_000, first, 400, seed=first)
    for level in (0.05, 0.01, 0.002):
        reached = float(np.mean(most >= log_bound_for(level, first)))
        error = math.sqrt(level / 30_000)
        # What crosses after the last block here, and a hundredth for the table's own error, is left unspent.
        assert 0.93 * level - 3 * error <= reached <= level + 3 * error


@given(st.floats(0.0001, 0.9), st.integers(3, 7))
def test_bounds_and_chances_are_inverse(level: float, first: int) -> None:
    bound = log_bound_for(level, first)
    assert chance_of_reaching(bound, first) == pytest.approx(level, rel=1e-6)
    assert chance_of_reaching(bound, first) <= math.exp(-bound) * (1 + 1e-9), "Ville's bound holds as well"


def test_too_few_blocks_prove_nothing() -> None:
    assert t_factor(1, 0.05) == math.inf
    assert t_factor(2, 0.05) == math.inf
    assert t_factor(3, 0.05 / 6) == math.inf
    assert anytime_mean_interval([1.0, 2.0], 0.95).low is None
    assert anytime_difference([1.0], [2.0], margin=0.02).p_difference == 1.0


@given(st.integers(4, 500), st.floats(0.001, 0.2))
def test_bounds_and_p_values_agree(n: int, level: float) -> None:
    factor = t_factor(n, level)
    assume(math.isfinite(factor))
    first = fewest_blocks(1, level)
    assert chance_of_reaching(log_e_value(factor, n) - log_rise(n), first) == pytest.approx(level)


def test_p_values_are_those_of_the_best_look() -> None:
    """Once a level is reached it stays reached, whatever comes after."""
    convincing = [1.10, 1.11, 1.09, 1.10, 1.12, 1.08]
    spoiled = [*convincing, 0.4, 2.9]
    early = anytime_difference(convincing, [1.0] * 6, margin=0.02)
    late = anytime_difference(spoiled, [1.0] * 8, margin=0.02)
    assert late.p_difference == early.p_difference < 0.05
    assert late.standard_error > early.standard_error


def test_looks_at_too_few_blocks_do_not_count() -> None:
    values = [1.5, 1.5001, 1.4999, 0.7, 1.5, 0.7]
    hasty = anytime_difference(values, [1.0] * 6, margin=0.02, fewest=3)
    patient = anytime_difference(values, [1.0] * 6, margin=0.02, fewest=4)
    assert hasty.p_difference < 0.05 < patient.p_difference


def test_constant_ratios_and_identical_series() -> None:
    constant = anytime_difference([1.1, 2.2, 3.3, 4.4], [1.0, 2.0, 3.0, 4.0], margin=0.02)
    assert constant.p_difference < 0.05
    assert constant.p_equivalence == 1.0
    identical = anytime_difference([5.0, 7.0, 9.0, 4.0], [5.0, 7.0, 9.0, 4.0], margin=0.02)
    assert identical.p_difference == 1.0
    assert identical.p_equivalence < 0.05
    assert identical.ratio_interval(0.95) == (1.0, 1.0)


def test_turned_round_it_says_the_same() -> None:
    first, second = [3.0, 4.1, 2.9, 3.6, 3.2], [2.8, 3.9, 3.0, 3.1, 3.0]
    forward = anytime_difference(first, second, margin=0.02)
    backward = anytime_difference(second, first, margin=0.02)
    assert forward.log_ratio == pytest.approx(-backward.log_ratio)
    assert forward.p_difference == pytest.approx(backward.p_difference)
    assert forward.p_equivalence == pytest.approx(backward.p_equivalence)


def test_the_chance_of_ever_being_wrong_stays_below_the_level() -> None:
    """With a mean of zero and a look after each of 40 blocks, t tests at 5 % would be wrong in a third."""
    generator = np.random.default_rng(3)
    series = 0.05 * generator.standard_normal((2000, 40))
    never_better = [
        anytime_difference(np.exp(s).tolist(), [1.0] * 40, margin=0.02).p_difference for s in series
    ]
    wrong = sum(p < 0.05 for p in never_better)
    naive = sum(any(stats.ttest_1samp(s[:n], 0).pvalue < 0.05 for n in range(3, 41, 3)) for s in series[:200])
    # Binomial about 100 at most; with only 40 blocks, part of the level stays unspent.
    assert wrong <= 100 + 3 * math.sqrt(2000 * 0.05 * 0.95)
    assert wrong >= 60, "the bound is not that loose: something is broken"
    assert naive > 30


def test_intervals_hold_at_the_worst_moment() -> None:
    """The interval misses the truth at any block in fewer than one series of twenty."""
    generator = np.random.default_rng(4)
    truth, missed = math.log(1.1), 0
    for series in truth + 0.03 * generator.standard_normal((1000, 25)):
        figures = np.exp(series).tolist()
        intervals = [
            anytime_difference(figures[:n], [1.0] * n, margin=0.02).ratio_interval(0.95)
            for n in range(3, 26, 2)
        ]
        missed += any(not low <= 1.1 <= high for low, high in filter(None, intervals))
    assert missed <= 50


def test_safeguard_against_caches_grows_with_the_questions() -> None:
    assert [fewest_blocks(m, 0.05) for m in (1, 6, 12, 36)] == [4, 5, 5, 6]
    for questions in (1, 5, 40):
        n = fewest_blocks(questions, 0.05)
        assert questions * 2 / 4**n <= 0.025 < questions * 2 / 4 ** (n - 1)
