"""Why the best schedulers of an experiment are ahead of others: the pairs to explain, and their causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.causes import Cause, cause_of
from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.two_runs import OF_SLOWEST, focus_of
from blklab.analysis.verdict import Analysis
from blklab.records.behaviour import Behaviour
from blklab.records.experiment import ExperimentRecord
from blklab.spec.workloads import Workload

MOST_BEATEN = 3
"""Schedulers that the best one is compared with."""


@dataclass(frozen=True)
class Explained:
    """A difference that is shown, and so has a cause."""

    workload: str
    better: str
    worse: list[str]
    """The one in use first, then by the size of the difference."""
    of_slowest: bool
    """Whether it is in the slowest I/Os."""


def differences_to_explain(record: ExperimentRecord, analysis: Analysis) -> list[Explained]:
    """The leader of each workload and those that it is shown to beat; none where nothing differs."""
    in_force = record.target.default_scheduler
    found = []
    for workload in record.spec.workloads:
        if workload.control or workload.command is not None:
            continue
        asked = _pairs_of(workload, analysis)
        if asked is None:
            continue
        leaders, pairs, metric = asked
        beaten_by = {leader: _beaten(leader, pairs) for leader in leaders}
        leader = next((one for one in leaders if beaten_by[one]), None)
        if leader is None:
            continue
        beaten = sorted(
            beaten_by[leader],
            key=lambda pair: (_other(pair, leader) != in_force, -abs(math.log(pair.ratio))),
        )
        worse = [_other(pair, leader) for pair in beaten]
        found.append(Explained(workload.name, leader, worse[:MOST_BEATEN], metric in OF_SLOWEST))
    return found


def causes_of(record: ExperimentRecord, analysis: Analysis) -> list[Cause]:
    """The causes of an experiment's differences, as far as runs were observed and counters tell."""
    observed = {(one.workload, one.scheduler): one for one in record.behaviours}
    focus = {workload.name: focus_of(workload) for workload in record.spec.workloads}
    causes = []
    for one in differences_to_explain(record, analysis) if observed else []:
        better = observed.get((one.workload, one.better))
        for label in one.worse:
            cause = _cause(better, observed.get((one.workload, label)), focus[one.workload], one)
            if cause is not None:
                causes.append(cause)
    return causes


def _cause(
    better: Behaviour | None, worse: Behaviour | None, focus: Sequence[str], asked: Explained
) -> Cause | None:
    if better is None or worse is None:
        return None
    return cause_of(better, worse, focus, of_slowest=asked.of_slowest)


def _pairs_of(
    workload: Workload, analysis: Analysis
) -> tuple[list[str], list[PairwiseComparison], str] | None:
    """Schedulers that may be first, the pairs that the answer rests on, and their metric."""
    if analysis.goal is not None:
        verdict = analysis.goal.verdict
        if verdict is None:
            return None
        return [*verdict.best, *verdict.candidates], analysis.goal.comparisons, "goal"
    verdict = analysis.deciding(workload.name)
    if verdict is None:
        return None
    pairs = [
        pair
        for pair in analysis.comparisons
        if (pair.workload, pair.metric) == (workload.name, verdict.metric)
    ]
    return [*verdict.best, *verdict.candidates], pairs, verdict.metric


def _beaten(leader: str, pairs: Sequence[PairwiseComparison]) -> list[PairwiseComparison]:
    return [
        pair
        for pair in pairs
        if leader in (pair.first, pair.second) and pair.seen_from(leader).outcome == "better"
    ]


def _other(pair: PairwiseComparison, label: str) -> str:
    return pair.second if pair.first == label else pair.first
