"""The range of what is still needed: from the interval of the variance, and with an end."""

from __future__ import annotations

import numpy as np
import pytest

from blklab.analysis.statistics.sample_size import MOST_TIMES_AS_MANY, range_of_more
from blklab.quantities.sample_units import BLOCKS, SampleUnit


def test_the_range_holds_the_estimate_and_narrows_with_samples() -> None:
    few, many = range_of_more(30, 12), range_of_more(300, 120)
    assert few.most is not None
    assert many.most is not None
    assert few.least < 30 < few.most
    assert many.least < 300 < many.most
    assert few.most / few.least > 1.5 * many.most / many.least


def test_the_range_covers_what_the_true_scatter_would_take() -> None:
    # The need grows with the variance, so the true need follows from the true variance.
    generator = np.random.default_rng(7)
    covered = 0
    for _ in range(1000):
        variance = float(generator.normal(size=8).var(ddof=1))
        found = range_of_more(max(1, round(40 * variance) - 8), 8)
        most = np.inf if found.most is None else found.most
        covered += found.least - 1 <= 32 <= most
    assert 760 <= covered <= 860


def test_more_than_ten_times_has_no_upper_end_and_is_not_worth_it() -> None:
    assert range_of_more(4824, 28).most is None
    assert not range_of_more(4824, 28).is_worth_it
    assert range_of_more(200, 28).is_worth_it
    assert range_of_more(5, 2).least >= 1
    assert MOST_TIMES_AS_MANY == 10


def test_no_fewer_than_a_claim_takes_are_promised() -> None:
    assert range_of_more(8, 1).least < 8
    found = range_of_more(8, 1, missing=8)
    assert found.least == 8
    assert found.is_worth_it


@pytest.mark.parametrize(
    ("unit", "least", "most", "text"),
    [
        (BLOCKS, 12, 90, "12 to 90 more repetitions"),
        (BLOCKS, 12, None, "at least 12 more repetitions"),
        (BLOCKS, 1, 1, "about 1 more repetition"),
        (SampleUnit(250_000_000), 300, 900, "300 to 900 more repetitions (5 to 15 min of load)"),
        (SampleUnit(250_000_000), 30, 900, "30 to 900 more repetitions (30 s to 15 min of load)"),
    ],
)
def test_a_range_in_words(unit: SampleUnit, least: int, most: int | None, text: str) -> None:
    assert unit.more_between(least, most, 4) == text
