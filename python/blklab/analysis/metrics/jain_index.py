"""Jain's index of fairness, weighted by what each process was promised."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._shares import competitors
from blklab.records.samples import JobSample

NAME = "jain_index"
UNIT = "of 1"
BETTER = "higher"
DESCRIPTION = (
    "Jain's index of throughput over promised weight among the measured processes: 1 if all got what "
    "they were promised, 1/n if one of n got everything"
)
FEWEST_IOS = 300


def compute(jobs: Sequence[JobSample]) -> float | None:
    """(Σx)² / (n·Σx²) with x = throughput / weight; None unless several compete.

    Jain, Chiu, Hawe: *A Quantitative Measure of Fairness and Discrimination for Resource Allocation in
    Shared Computer Systems*, DEC-TR-301, 1984.
    """
    ratios = [competitor.bytes_per_second / competitor.weight for competitor in competitors(jobs)]
    if not ratios:
        return None
    return sum(ratios) ** 2 / (len(ratios) * sum(ratio * ratio for ratio in ratios))
