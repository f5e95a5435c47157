"""Subset sums of long experiments: the same to the bit as by one matrix of all subsets, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from blklab.analysis.statistics.randomisation import SAMPLED_SUBSETS, SubsetSums


@pytest.mark.parametrize("nr_blocks", [16, 31, 129, 300])
def test_they_are_those_of_one_matrix(nr_blocks: int) -> None:
    ratios = np.random.default_rng(nr_blocks).normal(0.01, 0.1, nr_blocks)
    drawn = np.random.default_rng(20_210_927).integers(0, 2, size=(SAMPLED_SUBSETS, nr_blocks), dtype=np.int8)
    subsets = drawn[drawn.any(axis=1)].astype(float)
    means = (subsets @ ratios) / subsets.sum(axis=1)
    outside = int(0.025 * (len(means) + 1) + 1e-9)
    places = [outside - 1, len(means) - outside]
    low, high = np.partition(means, places)[places]
    assert SubsetSums(ratios).interval(0.95) == (low, high)


def test_a_thousand_blocks_take_little_memory() -> None:
    ratios = np.random.default_rng(1).normal(0.01, 0.1, 1_000)
    tracemalloc.start()
    try:
        SubsetSums(ratios).p_difference()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # As one matrix of numbers they took 400 MB.
    assert peak < 20_000_000
