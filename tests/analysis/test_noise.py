"""Serial correlation, drift, order effects and outliers in made-up series."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from blklab.analysis.statistics.linear_trend import linear_trend
from blklab.analysis.statistics.noise import describe_noise
from blklab.analysis.statistics.paired import paired_difference
from blklab.analysis.statistics.serial import neighbour_correlation, widening


def _autoregressive(correlation: float, n: int, seed: int) -> list[float]:
    generator = np.random.default_rng(seed)
    values = [float(generator.normal())]
    for _ in range(n - 1):
        shock = math.sqrt(1 - correlation**2) * generator.normal()
        values.append(correlation * values[-1] + float(shock))
    return values


def test_correlation_is_that_of_the_textbook() -> None:
    values = [2.0, 5.0, 3.0, 1.0, 4.0, 6.0, 9.0, 7.0, 3.0, 2.0]
    deviations = np.array(values) - np.mean(values)
    raw = float((deviations[:-1] * deviations[1:]).sum() / (deviations**2).sum())
    assert neighbour_correlation(values) == pytest.approx(raw + (1 + 4 * raw) / 10)


def test_correlation_is_unbiased_where_the_raw_estimate_is_low() -> None:
    found = [neighbour_correlation(_autoregressive(0.5, 20, seed)) or 0.0 for seed in range(400)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_few_or_constant_values_have_no_correlation() -> None:
    assert neighbour_correlation([1.0, 2.0, 3.0]) is None
    assert neighbour_correlation([0.1 + 0.2] * 12) is None
    assert widening([1.0, 2.0, 3.0]) == 1.0


def test_independent_values_are_left_alone_mostly() -> None:
    widened = sum(widening(np.random.default_rng(seed).normal(size=15).tolist()) > 1 for seed in range(1000))
    assert 20 <= widened <= 80


def test_intervals_of_correlated_ratios_hold_better_for_the_widening() -> None:
    covered = plain = 0
    for seed in range(150):
        logs = 0.05 * np.array(_autoregressive(0.6, 30, seed))
        difference = paired_difference(np.exp(logs).tolist(), [1.0] * 30, margin=0.02, smallest_level=0.05)
        low, high = difference.log_interval(0.95) or (math.nan, math.nan)
        covered += low <= 0 <= high
        stretched = (0 - difference.log_ratio) * widening(logs.tolist()) + difference.log_ratio
        plain += low <= stretched <= high
    assert plain < 0.80 * 150
    assert covered > 0.86 * 150


def test_trend_is_least_squares() -> None:
    times = np.arange(8.0)
    values = np.array([0.0, 0.2, 0.1, 0.4, 0.5, 0.4, 0.8, 0.7])
    reference = stats.linregress(times, values)
    trend = linear_trend(times, values)
    assert trend is not None
    assert trend.size == pytest.approx(7 * reference.slope)
    assert trend.p == pytest.approx(reference.pvalue)
    assert linear_trend(times[:3], values[:3]) is None


def _figures(
    blocks: int, *, drift: float = 0.0, first: float = 0.0
) -> tuple[dict[str, dict[int, float]], dict[int, list[str]]]:
    generator = np.random.default_rng(9)
    values: dict[str, dict[int, float]] = {"a": {}, "b": {}}
    order = {}
    for block in range(blocks):
        order[block] = ["a", "b"] if generator.random() < 0.5 else ["b", "a"]
        for position, name in enumerate(order[block]):
            log = drift * block / (blocks - 1) + (first if position == 0 else 0.0)
            values[name][block] = 100 * math.exp(log + 0.01 * float(generator.normal()))
    return values, order


def test_quiet_noise_has_nothing_to_say() -> None:
    noise = describe_noise(*_figures(20))
    assert noise.blocks == 20
    assert noise.drift is not None
    assert noise.first_run is not None
    assert noise.drift.p > 0.01
    assert noise.first_run.p > 0.01
    assert noise.outliers == []


def test_drift_is_measured() -> None:
    noise = describe_noise(*_figures(12, drift=-0.3))
    assert noise.drift is not None
    assert noise.drift.size == pytest.approx(-0.3, abs=0.03)
    assert noise.drift.p < 0.001


def test_a_cold_first_run_is_noticed() -> None:
    noise = describe_noise(*_figures(12, first=-1.0))
    assert noise.first_run is not None
    assert noise.first_run.size == pytest.approx(-1.0, abs=0.15)
    assert noise.first_run.p < 0.001


def test_outliers_are_named() -> None:
    values, order = _figures(10)
    values["b"][4] /= 3
    noise = describe_noise(values, order)
    assert [(outlier.scheduler, outlier.block) for outlier in noise.outliers] == [("b", 4)]
    assert noise.outliers[0].ratio == pytest.approx(1 / 3, rel=0.05)


def test_a_scheduler_that_left_early_makes_no_drift() -> None:
    values, order = _figures(12)
    values["b"] = {block: 3 * value for block, value in values["b"].items() if block < 4}
    noise = describe_noise(values, order)
    assert noise.drift is not None
    assert abs(noise.drift.size) < 0.03
