"""Doubts about an answer: all that can make it wrong, each with its figures.

A control or an unchanged copy that differs withholds the answer; the others go with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.carry_over import CarryOverFindings, large_carry_over
from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.empty_ramps import EmptyRamp, empty_ramps
from blklab.analysis.long_slots import LongSlots, contradicting_long_slots
from blklab.analysis.questions import Question
from blklab.analysis.ranking import MetricVerdict
from blklab.analysis.rare_arrangements import RareArrangements, unsettled_arrangements
from blklab.analysis.starvation import StarvedJob, starved_jobs
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import SLOW_SWITCH


@dataclass(frozen=True)
class DifferingControl:
    """A control that differs points at the set-up, not at the schedulers."""

    pair: PairwiseComparison


@dataclass(frozen=True)
class DifferingCopy:
    """A copy without a change that differs points at the set-up or the build, not at a patch."""

    pair: PairwiseComparison
    """The copy against its original."""


@dataclass(frozen=True)
class FailedSamples:
    """Runs or slots that failed; those of a slow switch apart."""

    failed: int
    of: int
    in_slots: bool


@dataclass(frozen=True)
class DisturbedAnswer:
    """Without the blocks that something else on the machine disturbed the answer is another."""

    marked: int
    """Disturbed blocks, or rounds of slots."""
    in_slots: bool
    status: str
    """Of the answer without them."""
    best: list[str]


Doubt = (
    DifferingControl
    | DifferingCopy
    | DisturbedAnswer
    | FailedSamples
    | CarryOverFindings
    | EmptyRamp
    | StarvedJob
    | LongSlots
    | RareArrangements
)


def doubts_of(
    whole: ExperimentRecord, record: ExperimentRecord, questions: Sequence[Question]
) -> list[Doubt]:
    """The doubts that the samples raise.

    Args:
        whole: The experiment with its uncounted slots.
        record: The same without them.
        questions: Those that the answer rests on.
    """
    return [
        *_failed_samples(record),
        *large_carry_over(record),
        *empty_ramps(record),
        *starved_jobs(record),
        *contradicting_long_slots(whole),
        *unsettled_arrangements(record, questions),
    ]


def differing_controls(
    verdicts: Sequence[MetricVerdict], comparisons: Sequence[PairwiseComparison]
) -> list[DifferingControl]:
    """Pairs that differ in a control by the metric that decides."""
    deciding = {(v.workload, v.metric) for v in verdicts if v.control and v.decides}
    return [
        DifferingControl(pair)
        for pair in comparisons
        if (pair.workload, pair.metric) in deciding and pair.outcome in ("better", "worse")
    ]


def differing_copies(
    copies: Mapping[str, str], verdicts: Sequence[MetricVerdict], comparisons: Sequence[PairwiseComparison]
) -> list[DifferingCopy]:
    """Unchanged copies that differ from their originals by a metric that decides.

    Args:
        copies: The label of each copy, with that of its original.
        verdicts: Of all workloads and metrics.
        comparisons: Of all pairs.
    """
    deciding = {(v.workload, v.metric) for v in verdicts if v.decides}
    return [
        DifferingCopy(pair.seen_from(copy))
        for copy, original in copies.items()
        for pair in comparisons
        if {pair.first, pair.second} == {copy, original}
        and (pair.workload, pair.metric) in deciding
        and pair.outcome in ("better", "worse")
    ]


def _failed_samples(record: ExperimentRecord) -> list[FailedSamples]:
    found = []
    switched = record.spec.switched
    for in_slots in (False, True):
        samples = [one for one in record.samples if (one.cell.workload in switched) == in_slots]
        failed = sum(1 for sample in samples if sample.status == "failed" and sample.error != SLOW_SWITCH)
        if failed:
            found.append(FailedSamples(failed, len(samples), in_slots))
    return found
