"""The factor by which the worst share missed its promise."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._shares import competitors
from blklab.records.samples import JobSample

NAME = "share_deviation"
UNIT = "factor"
BETTER = "lower"
DESCRIPTION = (
    "largest factor by which a measured process got more or less of the bytes than it was promised by I/O "
    "priority or weight; 1 is exact"
)
FEWEST_IOS = 300


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Largest of share over target and target over share; None unless several compete."""
    present = competitors(jobs)
    if not present:
        return None
    moved = sum(competitor.bytes_per_second for competitor in present)
    promised = sum(competitor.weight for competitor in present)
    quotients = [
        (competitor.bytes_per_second / moved) / (competitor.weight / promised) for competitor in present
    ]
    return max(max(quotient, 1 / quotient) for quotient in quotients)
