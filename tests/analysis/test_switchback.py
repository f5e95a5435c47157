"""The test of sign symmetry: exact by enumeration, right at its level under hostile noise, at any look."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from blklab.analysis.statistics.switchback import (
    LIMIT,
    STRENGTHS,
    WARM_UP,
    WEIGHTS,
    _root,
    fewest_rounds,
    predictable_scales,
    switchback_difference,
)

Floats = NDArray[np.float64]


def _mean_evidence(x: Floats) -> float:
    """The definition: the weighted mean over the strengths of ∏ exp(c·x) / cosh(c·x)."""
    every = [np.prod(np.exp(c * x) / np.cosh(c * x)) for c in STRENGTHS]
    return float(np.average(every, weights=WEIGHTS))


def _swapped(first: Floats, second: Floats, ratio: float, swaps: Floats) -> tuple[Floats, Floats]:
    """The same slots with some rounds in the other order, if `first` is like `second` times `ratio`."""
    return np.where(swaps, second * ratio, first), np.where(swaps, first / ratio, second)


@pytest.mark.parametrize("ratio", [1.0, 1.3])
def test_over_all_orders_the_evidence_is_one_on_average(ratio: float) -> None:
    """All 2^8 orders of the rounds that count, whatever their values are."""
    generator = np.random.default_rng(1)
    rounds = WARM_UP + 8
    base = generator.lognormal(0, 0.8, rounds)
    first, second = base * ratio, np.roll(base, 1)
    total = largest = 0.0
    for signs in itertools.product([False, True], repeat=8):
        swaps = np.array([False] * WARM_UP + list(signs))
        one, other = _swapped(first, second, ratio, swaps)
        scales = predictable_scales(one, other)
        x = (one[WARM_UP:] / math.sqrt(ratio) - other[WARM_UP:] * math.sqrt(ratio)) / scales
        evidence = _mean_evidence(np.clip(x, -LIMIT, LIMIT))
        total += evidence
        largest = max(largest, evidence)
    assert total / 2**8 == pytest.approx(1.0, rel=1e-9)
    assert largest > 5, "some orders are convincing, or the test has no power"


def test_over_all_orders_a_level_is_reached_as_often_as_it_may() -> None:
    """In every order of ten rounds: of all orders at most a share of p has a p value of p at any look."""
    generator = np.random.default_rng(2)
    first, second = (100 * generator.lognormal(0, 0.3, WARM_UP + 6) for _ in range(2))
    found = []
    for signs in itertools.product([False, True], repeat=WARM_UP + 6):
        swaps = np.array(signs)
        one, other = _swapped(first, second, 1.0, swaps)
        difference = switchback_difference(one.tolist(), other.tolist(), margin=0.02)
        assert difference is not None
        found.append(difference.p_difference)
    for level in (0.05, 0.1, 0.2, 0.5):
        assert np.mean(np.array(found) <= level) <= level


def test_the_p_value_is_that_of_the_definition() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.lognormal(0.1, 0.1, 40), generator.lognormal(0, 0.1, 40)
    difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
    assert difference is not None
    x = np.concatenate(
        [
            np.sign(first - second)[:WARM_UP],
            np.clip((first - second)[WARM_UP:] / predictable_scales(first, second), -LIMIT, LIMIT),
        ]
    )
    best = max(_mean_evidence(x[:n]) for n in range(1, len(x) + 1))
    assert difference.p_difference == pytest.approx(2 / best)


def test_scales_do_not_know_the_round_that_they_are_for() -> None:
    generator = np.random.default_rng(4)
    first, second = generator.lognormal(0, 0.1, 60), generator.lognormal(0, 0.1, 60)
    scales = predictable_scales(first, second)
    assert len(scales) == 60 - WARM_UP
    for changed in (20, 45, 59):
        other = first.copy()
        other[changed:] *= 7
        np.testing.assert_array_equal(
            predictable_scales(other, second)[: changed - WARM_UP + 1], scales[: changed - WARM_UP + 1]
        )


def test_the_estimate_is_the_ratio_of_arithmetic_means() -> None:
    """Also if one of the two stalls: no logarithm of zero, and the stall counts."""
    steady = [100.0, 101.0, 99.0, 100.5] * 10
    stalling = [value if number % 10 else 0.0 for number, value in enumerate(steady)]
    difference = switchback_difference(stalling, steady, margin=0.02)
    assert difference is not None
    assert difference.ratio == pytest.approx(0.9, abs=0.03)
    interval = difference.ratio_interval(0.95)
    assert interval is not None
    assert interval[0] < 0.9 < interval[1]


def test_rounds_after_many_ties_do_not_outweigh_the_others(seed: int) -> None:
    """Slots of few I/Os are often exactly equal, so that the median difference of many rounds is 0."""
    generator = np.random.default_rng(seed)
    first, second = generator.choice([43.0, 44.0, 48.0], (2, 2000), p=[0.1, 0.7, 0.2])
    difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
    assert difference is not None
    assert difference.ratio == pytest.approx(first.sum() / second.sum(), rel=0.005)
    assert difference.standard_error < 0.005


@given(st.integers(0, 10_000), st.floats(0.5, 2.0), st.integers(8, 80))
def test_turned_round_or_in_other_units_it_says_the_same(seed: int, ratio: float, rounds: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = ratio * generator.lognormal(0, 0.2, rounds), generator.lognormal(0, 0.2, rounds)
    forward = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
    backward = switchback_difference((5 * second).tolist(), (5 * first).tolist(), margin=0.02)
    assert forward is not None and backward is not None
    assert forward.log_ratio == pytest.approx(-backward.log_ratio, abs=1e-9)
    assert forward.p_difference == pytest.approx(backward.p_difference, rel=1e-6)
    assert forward.p_equivalence == pytest.approx(backward.p_equivalence, rel=1e-6)
    one, other = forward.log_interval(0.9), backward.log_interval(0.9)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one == pytest.approx((-other[1], -other[0]), abs=1e-5)
        assert one[0] <= forward.log_ratio <= one[1]


def test_the_interval_holds_a_ratio_of_means_that_the_evidence_rejects() -> None:
    """Rare stalls: the means are equal, and one is faster in nearly all rounds."""
    rounds = 400
    stalling = np.where(np.arange(rounds) % 10, 100.0, 55.0)
    steady = np.full(rounds, stalling.mean()) + np.where(np.arange(rounds) % 2, 0.1, -0.1)
    difference = switchback_difference(stalling.tolist(), steady.tolist(), margin=0.02)
    assert difference is not None
    interval = difference.log_interval(0.95)
    assert interval is not None
    assert interval[0] <= difference.log_ratio <= interval[1]
    assert interval[0] < 0 < interval[1]


def test_an_end_of_the_interval_is_looked_for_on_its_side_only() -> None:
    def falling(log_ratio: float) -> float:
        return 0.5 - log_ratio

    assert _root(falling, 0.0, 1) == pytest.approx(0.5, abs=1e-6)
    assert _root(falling, 0.7, -1) == pytest.approx(0.5, abs=1e-6)
    assert _root(falling, 0.7, 1) == 0.7
    assert _root(falling, 0.0, -1) == 0.0
    assert _root(lambda log_ratio: 0.5 - math.tanh(log_ratio) / 4, 0.0, 1) is None


def test_too_few_rounds_prove_nothing() -> None:
    for rounds in range(1, WARM_UP + 2):
        difference = switchback_difference([2.0] * rounds, [1.0] * rounds, margin=0.02)
        assert difference is not None
        assert (difference.p_difference, difference.p_equivalence) == (1.0, 1.0)
        assert difference.log_interval(0.95) is None
        assert difference.ratio == pytest.approx(2)
    assert switchback_difference([0.0] * 9, [1.0] * 9, margin=0.02) is None
    assert fewest_rounds(1, 0.05) < fewest_rounds(6, 0.05) < fewest_rounds(36, 0.05)


@pytest.mark.parametrize(("questions", "rounds"), [(1, 7), (6, 9)])
def test_a_gross_difference_is_settled_as_soon_as_the_order_permits(questions: int, rounds: int) -> None:
    """4.5 against 0.71 kIO/s, with slots that scatter by two fifths, on a disk that wanders."""
    generator = np.random.default_rng(11)
    settled = 0
    for _ in range(50):
        speed = _wandering(generator, rounds)
        first, second = (rate * speed * generator.lognormal(0, 0.4, rounds) for rate in (4.5, 0.71))
        difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
        assert difference is not None
        settled += difference.p_difference <= 0.05 / questions
    assert settled >= 40


def test_what_repeats_itself_exactly_is_decided() -> None:
    rounds = fewest_rounds(1, 0.05) + 4
    ahead = switchback_difference([1.1] * rounds, [1.0] * rounds, margin=0.02)
    same = switchback_difference([1.0] * rounds, [1.0] * rounds, margin=0.02)
    assert ahead is not None and same is not None
    assert ahead.p_difference < 0.05 < ahead.p_equivalence
    assert same.p_equivalence < 0.05 < same.p_difference


def _wandering(generator: np.random.Generator, slots: int) -> Floats:
    return np.exp(np.cumsum(generator.normal(0, 0.1, slots)))


def _stalling(generator: np.random.Generator, slots: int) -> Floats:
    return np.where(generator.random(slots) < 0.1, 0.0, generator.lognormal(0, 0.05, slots))


def _heavy(generator: np.random.Generator, slots: int) -> Floats:
    return np.exp(0.1 * generator.standard_t(1.5, slots).clip(-50, 50))


def _alternating(generator: np.random.Generator, slots: int) -> Floats:
    return np.where(np.arange(slots) % 2, 3.0, 1.0) * generator.lognormal(0, 0.02, slots)


@pytest.mark.parametrize("noise", [_wandering, _stalling, _heavy, _alternating])
@pytest.mark.parametrize("ratio", [1.0, 1.02])
def test_the_chance_of_ever_being_wrong_stays_below_the_level(
    noise: Callable[[np.random.Generator, int], Floats], ratio: float
) -> None:
    """At all looks together: no true ratio rejected, and two at the margin not called equal."""
    generator = np.random.default_rng([5, round(100 * ratio)])
    series, rounds, wrong, equal = 400, 80, 0, 0
    for _ in range(series):
        values = noise(generator, 2 * rounds).reshape(rounds, 2)
        order = generator.random(rounds) < 0.5
        first = np.where(order, values[:, 0], values[:, 1]) * ratio
        second = np.where(order, values[:, 1], values[:, 0])
        against_truth = switchback_difference((first / ratio).tolist(), second.tolist(), margin=0.02)
        difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
        assert against_truth is not None and difference is not None
        wrong += against_truth.p_difference < 0.05
        equal += difference.p_equivalence < 0.05
    most = 0.05 * series + 3 * math.sqrt(series * 0.05 * 0.95)
    assert wrong <= most
    assert ratio == 1.0 or equal <= most


def test_a_scheduler_that_stalls_does_not_win_by_its_other_slots() -> None:
    """Equal means, one of them with rare deep stalls: the sign test alone would call that one faster."""
    generator = np.random.default_rng(6)
    wrong = 0
    for _ in range(200):
        stalled = np.where(generator.random(120) < 0.05, 0.2, 1.0) / (1 - 0.05 * 0.8)
        first, second = stalled * generator.lognormal(0, 0.05, 120), generator.lognormal(0, 0.05, 120)
        difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
        assert difference is not None
        wrong += difference.p_difference < 0.05 and abs(difference.log_ratio) > math.log(1.02)
    assert wrong <= 10 + 3 * 3


def test_differences_of_the_promised_size_are_found() -> None:
    """A minute of two schedulers in slots of 0.25 s that scatter by 6 %."""
    generator = np.random.default_rng(7)
    found = dict.fromkeys((1.03, 1.05, 1.10), 0)
    for ratio in found:
        for _ in range(100):
            first, second = ratio * generator.lognormal(0, 0.06, 120), generator.lognormal(0, 0.06, 120)
            difference = switchback_difference(first.tolist(), second.tolist(), margin=0.02)
            assert difference is not None
            found[ratio] += difference.p_difference < 0.05 and difference.log_ratio > math.log(1.02)
    assert found[1.03] >= 60
    assert found[1.05] >= 90
    assert found[1.10] == 100
