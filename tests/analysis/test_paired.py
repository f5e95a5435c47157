from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.analysis.statistics.multiplicity import holm, numbers_of_equal_pairs
from blklab.analysis.statistics.paired import paired_difference
from blklab.analysis.statistics.randomisation import SubsetSums
from blklab.analysis.statistics.sample_size import samples_needed


def test_the_interval_is_student_s_on_logarithms() -> None:
    values = [float(value) for value in range(1, 11)]
    interval = geometric_mean_interval(values, 0.95)
    logs = np.log(values)
    low, high = stats.t.interval(0.95, 9, loc=logs.mean(), scale=stats.sem(logs))
    assert interval.low == pytest.approx(math.exp(low))
    assert interval.high == pytest.approx(math.exp(high))
    assert interval.mean == pytest.approx(stats.gmean(values))


def test_a_single_value_has_no_interval() -> None:
    interval = geometric_mean_interval([3.0], 0.95)
    assert interval.mean == pytest.approx(3.0)
    assert (interval.low, interval.high) == (None, None)


def test_equal_values_have_an_interval_of_no_width() -> None:
    interval = geometric_mean_interval([0.1 + 0.2] * 7, 0.95)
    assert interval.low == interval.high == pytest.approx(0.3)


def test_the_difference_is_free_of_what_the_whole_block_suffers() -> None:
    """Blocks differ a hundredfold; only the ratio within each counts."""
    blocks = [1.0, 100.0, 3.0, 40.0, 0.5, 7.0]
    first = [
        block * factor for block, factor in zip(blocks, [1.10, 1.11, 1.09, 1.10, 1.12, 1.08], strict=True)
    ]
    difference = paired_difference(first, blocks, margin=0.02, smallest_level=0.05)
    interval = difference.ratio_interval(0.95)
    assert interval is not None
    assert difference.ratio == pytest.approx(1.10, abs=0.001)
    assert interval[0] == pytest.approx(1.08)
    assert interval[1] == pytest.approx(1.12)


def test_the_random_order_decides_once_it_can_reach_the_level() -> None:
    ratios = [1.10, 1.11, 1.09, 1.10, 1.12, 1.08]
    difference = paired_difference(ratios, [1.0] * 6, margin=0.02, smallest_level=0.05)
    assert difference.p_difference == pytest.approx(2 / 2**6)
    alone = paired_difference(ratios, [1.0] * 6, margin=0.02, smallest_level=0.01)
    assert alone.p_difference == pytest.approx(stats.ttest_1samp(np.log(ratios), 0).pvalue)


def test_the_randomisation_test_counts_all_sign_patterns() -> None:
    values = np.array([0.3, -0.1, 0.2, 0.4, 0.05])
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    expected = sum(1 for total in sums if total >= abs(values.sum()) - 1e-12) / 32
    assert SubsetSums(values).p_difference() == pytest.approx(expected)


def test_the_sampled_randomisation_test_agrees_with_the_exact_one() -> None:
    values = np.random.default_rng(5).normal(0.25, 1.0, size=20)
    # The exact p value by convolution over a grid would be another method; t is close for normal noise.
    assert SubsetSums(values).p_difference() == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)


def _rejected(values: np.ndarray[tuple[int], np.dtype[np.float64]], mean: float, level: float) -> bool:
    """The definition: two one-sided tests by all patterns of signs of the deviations, one by one."""
    deviations = values - mean
    sums = [float(np.dot(signs, deviations)) for signs in itertools.product((1.0, -1.0), repeat=len(values))]
    above = sum(total >= sums[0] - 1e-12 for total in sums) / len(sums)
    below = sum(total <= sums[0] + 1e-12 for total in sums) / len(sums)
    return min(above, below) <= level / 2


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_holds_the_means_that_the_randomisation_test_does_not_reject(seed: int) -> None:
    values = np.random.default_rng(seed).standard_t(2, size=8)
    low, high = SubsetSums(values).interval(0.95)
    nudge = 1e-6 * (high - low)
    assert _rejected(values, low - nudge, 0.05)
    assert _rejected(values, high + nudge, 0.05)
    assert not _rejected(values, low + nudge, 0.05)
    assert not _rejected(values, high - nudge, 0.05)


@pytest.mark.parametrize("n", [6, 7, 10, 15, 18])
def test_intervals_hold_as_often_as_stated_whatever_the_tails(n: int) -> None:
    """Cauchy noise, for which t intervals hold too often; six values have 64 patterns, two are left out."""
    generator = np.random.default_rng(n)
    experiments = 600
    covered = sum(
        low <= 0 <= high
        for low, high in (
            SubsetSums(generator.standard_cauchy(size=n)).interval(0.95) for _ in range(experiments)
        )
    )
    patterns = 2**n
    stated = 1 - 2 * int(0.025 * patterns) / patterns
    assert covered / experiments == pytest.approx(stated, abs=3.5 * math.sqrt(0.05 * 0.95 / experiments))


def test_the_interval_and_the_p_value_agree() -> None:
    generator = np.random.default_rng(8)
    for _ in range(60):
        ratios = np.exp(generator.normal(0.03, 0.05, size=9)).tolist()
        difference = paired_difference(ratios, [1.0] * 9, margin=0.02, smallest_level=0.05)
        low, high = difference.log_interval(0.95) or (math.nan, math.nan)
        assert (difference.p_difference <= 0.05) == (not low <= 0 <= high)


def test_equality_is_claimed_wrongly_no_more_often_than_stated() -> None:
    """The truth lies on the margin itself, the noise has no variance."""
    generator = np.random.default_rng(12)
    wrong, experiments = 0, 800
    for _ in range(experiments):
        ratios = np.exp(math.log(1.02) + 0.002 * generator.standard_t(2, size=10)).tolist()
        wrong += paired_difference(ratios, [1.0] * 10, margin=0.02, smallest_level=0.05).p_equivalence < 0.05
    assert 0.02 < wrong / experiments <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / experiments)


def test_identical_series_are_equal_for_certain() -> None:
    difference = paired_difference([5.0, 7.0, 9.0], [5.0, 7.0, 9.0], margin=0.02, smallest_level=0.05)
    assert (difference.p_difference, difference.p_equivalence) == (1.0, 0.0)


def test_a_constant_difference_without_noise_is_certain() -> None:
    difference = paired_difference([1.1, 2.2, 3.3], [1.0, 2.0, 3.0], margin=0.02, smallest_level=0.05)
    assert (difference.p_difference, difference.p_equivalence) == (0.0, 1.0)


@given(
    st.lists(st.floats(0.5, 2.0), min_size=2, max_size=10),
    st.floats(0.01, 100),
)
def test_swapping_and_scaling_change_nothing_of_substance(ratios: list[float], scale: float) -> None:
    ones = [1.0] * len(ratios)
    forward = paired_difference(ratios, ones, margin=0.02, smallest_level=0.05)
    backward = paired_difference(ones, ratios, margin=0.02, smallest_level=0.05)
    scaled = paired_difference(
        [r * scale for r in ratios], [scale] * len(ratios), margin=0.02, smallest_level=0.05
    )
    assert forward.log_ratio == pytest.approx(-backward.log_ratio, abs=1e-9)
    assert forward.p_difference == pytest.approx(backward.p_difference, abs=1e-6)
    assert forward.log_ratio == pytest.approx(scaled.log_ratio, abs=1e-9)


def test_holm_against_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_numbers_of_equal_pairs() -> None:
    assert numbers_of_equal_pairs([2]) == [0, 1]
    assert numbers_of_equal_pairs([3]) == [0, 1, 3]
    assert numbers_of_equal_pairs([4]) == [0, 1, 2, 3, 6]
    assert numbers_of_equal_pairs([5]) == [0, 1, 2, 3, 4, 6, 10]
    assert numbers_of_equal_pairs([3, 2]) == [0, 1, 2, 3, 4]
    for size in (3, 4, 5):
        found = set()
        for levels in itertools.product(range(size), repeat=size):
            found.add(sum(one == other for one, other in itertools.combinations(levels, 2)))
        assert numbers_of_equal_pairs([size]) == sorted(found)


def test_shaffer_corrects_for_what_can_be_true() -> None:
    """Of the six pairs of four things, at most three are equal once one is known to differ."""
    p_values = [0.002, 0.01, 0.011, 0.012, 0.2, 0.5]
    adjusted = holm(p_values, numbers_of_equal_pairs([4]))
    assert adjusted == pytest.approx([0.012, 0.03, 0.033, 0.036, 0.4, 0.5])
    assert all(after <= plain for after, plain in zip(adjusted, holm(p_values), strict=True))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(after >= before for after, before in zip(adjusted, p_values, strict=True))
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert all(adjusted[a] <= adjusted[b] for a, b in itertools.pairwise(ranked))


def test_sample_size_is_the_smallest_that_is_enough() -> None:
    def factor(n: int) -> float:
        return float(stats.t.ppf(0.975, n - 1))

    def half_width(n: int) -> float:
        return factor(n) * 0.1 / math.sqrt(n)

    needed = samples_needed(0.05, 0.1, factor)
    assert needed is not None
    assert half_width(needed) < 0.05 <= half_width(needed - 1)
    assert samples_needed(1e-9, 0.1, factor) is None
    assert samples_needed(-0.03, 0.1, factor) is None
    assert samples_needed(0.02, 0.0, factor) == 2


def test_false_alarms_stay_at_their_level_under_drift() -> None:
    """A machine that slows down by half during the experiment does not change paired differences."""
    generator = np.random.default_rng(11)
    alarms = 0
    experiments = 600
    for _ in range(experiments):
        n = 8
        drift = np.linspace(0, -0.7, 2 * n)
        noise = generator.standard_t(3, size=2 * n) * 0.05
        runs = np.exp(drift + noise).reshape(n, 2)
        swapped = generator.integers(0, 2, size=n).astype(bool)
        first = np.where(swapped, runs[:, 1], runs[:, 0])
        second = np.where(swapped, runs[:, 0], runs[:, 1])
        difference = paired_difference(list(first), list(second), margin=0.02, smallest_level=0.05)
        alarms += difference.p_difference < 0.05
    # Binomial: 0.05 * 600 = 30, plus three standard deviations.
    assert alarms <= 30 + 3 * math.sqrt(600 * 0.05 * 0.95)
