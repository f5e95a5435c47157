"""Means over drives and predictions for a new one, against closed forms and simulated fleets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blklab.analysis.designs import PopulationDesign
from blklab.analysis.statistics.intervals import t_quantile
from blklab.analysis.statistics.population import DriveEffect, PopulationDifference, population_difference


def _of(values: list[float], error: float = 0.0) -> PopulationDifference:
    return population_difference([DriveEffect(value, error) for value in values], margin=0.02)


@pytest.mark.parametrize("drives", [3, 5, 12, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_without_errors_the_prediction_is_the_classical_one(
    drives: int, confidence: float, seed: int
) -> None:
    values = np.random.default_rng(seed).normal(0.1, 0.03, drives)
    low, high = _of(values.tolist()).prediction(confidence) or (math.nan, math.nan)
    factor = t_quantile(1 - (1 - confidence) / 2, drives - 1)
    half = factor * values.std(ddof=1) * math.sqrt(1 + 1 / drives)
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert (high - low) / 2 == pytest.approx(half, rel=2e-3)


def test_the_mean_is_tested_by_students_t() -> None:
    found = _of([0.1, 0.14, 0.06, 0.1])
    low, high = found.log_interval(0.95) or (math.nan, math.nan)
    half = t_quantile(0.975, 3) * np.std([0.1, 0.14, 0.06, 0.1], ddof=1) / 2
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half))
    assert found.p_difference < 0.01
    assert found.p_equivalence > 0.99


def test_the_drives_own_errors_are_taken_out_of_the_spread() -> None:
    values = [0.10, 0.14, 0.06, 0.1]
    precise, coarse = _of(values, 0.001), _of(values, 0.03)
    assert precise.spread == pytest.approx(np.std(values, ddof=1), rel=0.01)
    assert coarse.spread is not None
    assert precise.spread is not None
    assert coarse.spread < precise.spread / 2
    assert _of(values, 0.2).spread == 0.0
    narrow, wide = coarse.prediction(0.95), precise.prediction(0.95)
    assert narrow is not None
    assert wide is not None
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    # The mean itself does not get more certain because its drives were measured badly.
    assert coarse.log_interval(0.95) == precise.log_interval(0.95)


def test_few_drives_predict_nothing() -> None:
    assert _of([0.1]).log_interval(0.95) is None
    assert _of([0.1]).spread is None
    assert _of([0.1, 0.2]).prediction(0.95) is None
    assert _of([0.1, 0.2]).chance_above(0) is None
    with pytest.raises(ValueError, match="no drive"):
        population_difference([], margin=0.02)


def test_drives_that_agree_exactly_predict_themselves() -> None:
    found = _of([0.05, 0.05, 0.05])
    assert found.prediction(0.95) == pytest.approx((0.05, 0.05), abs=1e-9)
    assert found.p_difference == 0.0
    assert found.chance_above(0.0) == pytest.approx(1.0)
    same = _of([0.0, 0.0, 0.0])
    assert (same.p_difference, same.p_equivalence) == (1.0, 0.0)


def test_the_chance_of_a_new_drive_fits_its_interval(seed: int) -> None:
    found = _of(np.random.default_rng(seed).normal(0.1, 0.05, 8).tolist(), 0.02)
    low, _ = found.prediction(0.95) or (math.nan, math.nan)
    assert found.chance_above(low) == pytest.approx(0.975, abs=1e-6)


@pytest.mark.parametrize("spread", [0.02, 0.06])
def test_predictions_hold_as_often_as_they_say(spread: float) -> None:
    """800 fleets of six drives, each measured with an error of 0.02 that it estimates from six blocks."""
    generator = np.random.default_rng(20261123)
    held = 0
    for _ in range(800):
        true = generator.normal(0.05, spread, 7)
        values = true[1:] + generator.normal(0, 0.02, 6)
        errors = 0.02 * np.sqrt(generator.chisquare(5, 6) / 5)
        effects = [DriveEffect(*pair) for pair in zip(values.tolist(), errors.tolist(), strict=True)]
        low, high = population_difference(effects, margin=0.02).prediction(0.95) or (0.0, 0.0)
        held += low <= true[0] <= high
    # Three standard errors of the simulation beyond 93 to 97 %.
    assert 0.93 - 0.027 <= held / 800 <= 0.97 + 0.018


def test_the_design_counts_drives() -> None:
    design = PopulationDesign(confidence=0.95, margin=0.02)
    first = {0: 1.10, 1: 1.20, 2: 1.15, 5: 1.3}
    found = design.difference(first, {0: 1.0, 1: 1.0, 2: 1.0})
    assert found is not None
    assert found.n == design.fewest_samples == 3
    assert found.ratio == pytest.approx((1.1 * 1.2 * 1.15) ** (1 / 3))
    assert design.means({"a": first})["a"].n == 4
    assert design.difference(first, {7: 1.0}) is None


@pytest.mark.parametrize("drives", [3, 8, 30])
def test_equality_is_claimed_as_rarely_as_stated_at_the_margin(drives: int) -> None:
    """2,000 fleets whose true mean is the margin itself, measured with errors from 0.001 to 0.03."""
    generator = np.random.default_rng(20261124)
    claims = 0
    for _ in range(2000):
        errors = np.exp(generator.uniform(math.log(0.001), math.log(0.03), drives))
        values = math.log1p(0.02) + generator.normal(0, 0.005, drives) + generator.normal(0, errors)
        claims += _of(values.tolist()).p_equivalence < 0.05
    assert claims / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
