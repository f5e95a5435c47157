"""Each scheduler's standing under a workload in one word, and the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeVar

from blklab.analysis.metrics import METRICS
from blklab.analysis.ratios import OPPOSITE
from blklab.quantities.ratios import reciprocal_interval
from blklab.report.documents.comparison import CompareDocument, ComparisonPart, MetricVerdictPart, ResultPart
from blklab.report.documents.parts import PairPart
from blklab.spec.schedulers import SchedulerChoice, unchanged_copies

AnyPair = TypeVar("AnyPair", bound=PairPart)

ShownStatus = Literal["best", "equal", "undecided", "withheld", "differs"]
"""Of a workload; ``differs`` is a control in which schedulers differ."""


class Standing(Enum):
    """A scheduler's standing; reports print its value beside a sign, where possible in colour."""

    BEST = "best"
    EQUAL = "equal best"
    OPEN = "open"
    BEATEN = "beaten"
    NO_FIGURE = "no figure"


@dataclass(frozen=True)
class StandingRow:
    """A scheduler under a workload, by the metric that decides."""

    scheduler: str
    standing: Standing
    result: ResultPart | None


def deciding_verdict(document: CompareDocument, workload: str) -> MetricVerdictPart | None:
    """A workload's verdict by the metric that decides; None if no run gave that figure."""
    return next((v for v in document.verdicts if v.workload == workload and v.decides), None)


def has_open_question(document: CompareDocument) -> bool:
    """Whether a question that the verdict rests on is undecided."""
    if document.goal is not None:
        return document.verdict.status == "undecided"
    controls = {str(workload["name"]) for workload in document.workloads if workload["control"]}
    deciding = [verdict for verdict in document.verdicts if verdict.decides]
    judged = [verdict for verdict in deciding if verdict.workload not in controls] or deciding
    return not judged or any(verdict.status == "undecided" for verdict in judged)


def judged_workloads(document: CompareDocument) -> list[str]:
    """Names of the workloads that the verdict rests on: all but the controls, if there are others."""
    names = [str(workload["name"]) for workload in document.workloads if not workload["control"]]
    return names or [str(workload["name"]) for workload in document.workloads]


def results_of(document: CompareDocument, workload: str, metric: str) -> dict[str, ResultPart]:
    """Results of a workload and metric by scheduler's label."""
    return {
        part.scheduler: part
        for part in document.results
        if part.workload == workload and part.metric == metric
    }


def pairs_against(
    document: CompareDocument, workload: str, metric: str, reference: str
) -> dict[str, ComparisonPart]:
    """Every other scheduler over the reference, by label."""
    pairs = {}
    for part in document.comparisons:
        if (part.workload, part.metric) == (workload, metric):
            if part.second == reference:
                pairs[part.first] = part
            elif part.first == reference:
                pairs[part.second] = reversed_pair(part)
    return pairs


def deciding_pairs(document: CompareDocument) -> list[PairPart]:
    """All pairs of the questions that the verdict rests on."""
    if document.goal is not None:
        return list(document.goal.comparisons)
    judged = set(judged_workloads(document))
    decides = {(one.workload, one.metric) for one in document.verdicts if one.decides}
    return [
        pair
        for pair in document.comparisons
        if pair.workload in judged and (pair.workload, pair.metric) in decides
    ]


def differing_controls(document: CompareDocument) -> list[str]:
    """Controls in which schedulers differ by the metric that decides; the set-up is at fault then."""
    differing = {part.workload for part in _differing_pairs(document)}
    names = [str(workload["name"]) for workload in document.workloads if workload["control"]]
    return [name for name in names if name in differing]


def is_withheld(document: CompareDocument) -> bool:
    """Whether something other than the scheduler was at work, so that nothing is recommended."""
    return document.verdict.recommendation.action == "withheld"


def differing_copies(document: CompareDocument) -> list[str]:
    """Unchanged copies in a module that differ from their originals by the metric that decides."""
    if document.target_description.backend != "host":
        return []
    differing = [{part.first, part.second} for part in _differing_pairs(document)]
    originals = unchanged_copies(SchedulerChoice(**choice) for choice in document.schedulers)
    return [copy for copy, original in originals.items() if {copy, original} in differing]


def _differing_pairs(document: CompareDocument) -> list[ComparisonPart]:
    """Pairs that differ by the metric that decides their workload."""
    decides = {(verdict.workload, verdict.metric) for verdict in document.verdicts if verdict.decides}
    return [
        part
        for part in document.comparisons
        if (part.workload, part.metric) in decides and part.outcome in ("better", "worse")
    ]


def shown_status(document: CompareDocument, verdict: MetricVerdictPart) -> ShownStatus:
    """The verdict of a workload as reports show it: what makes it no answer comes first."""
    if verdict.workload in differing_controls(document):
        return "differs"
    return "withheld" if is_withheld(document) else verdict.status


def reversed_pair(part: AnyPair) -> AnyPair:
    """The same comparison as seen from the other scheduler."""
    low, high = reciprocal_interval(part.ci_low, part.ci_high)
    return part.model_copy(
        update={
            "first": part.second,
            "second": part.first,
            "ratio": 1 / part.ratio,
            "ci_low": low,
            "ci_high": high,
            "outcome": OPPOSITE[part.outcome],
        }
    )


def ranked(document: CompareDocument, workload: str, metric: str) -> list[StandingRow]:
    """Schedulers of a workload, best first by the metric; those without a figure last.

    If the answer is withheld, none of them is called best or beaten.
    """
    verdict = None if is_withheld(document) else deciding_verdict(document, workload)
    results = results_of(document, workload, metric)
    labels = labels_of(document)
    sign = -1 if METRICS[metric].better == "higher" else 1
    order = sorted(
        labels,
        key=lambda label: (label not in results, sign * results[label].mean if label in results else 0),
    )
    return [StandingRow(label, _standing(label, verdict, results), results.get(label)) for label in order]


def labels_of(document: CompareDocument) -> list[str]:
    """Labels of the schedulers in the order in which they were asked for."""
    return [str(choice["label"]) for choice in document.schedulers]


def is_in_force(document: CompareDocument, label: str) -> bool:
    """Whether the disk used this choice before: its own scheduler, with no tunable changed."""
    choice = next(choice for choice in document.schedulers if choice["label"] == label)
    return not choice["tunables"] and choice["name"] == document.target_description.default_scheduler


def is_in_use(document: CompareDocument, label: str) -> bool:
    """Whether a disk of this machine uses this choice; a model uses none."""
    return document.verdict.recommendation.subject == "disk" and is_in_force(document, label)


def metrics_of(document: CompareDocument, workload: str, first: str) -> list[str]:
    """Metrics that have figures under a workload: the one that decides, then as they are registered."""
    present = {part.metric for part in document.results if part.workload == workload}
    # Those that name jobs are not listed among the metrics and come before them.
    order = {name: number for number, name in enumerate(METRICS)}
    return sorted(present, key=lambda name: (name != first, order.get(name, -1), name))


def _standing(label: str, verdict: MetricVerdictPart | None, results: dict[str, ResultPart]) -> Standing:
    if label not in results:
        return Standing.NO_FIGURE
    if verdict is None:
        return Standing.OPEN
    if label in verdict.best:
        return Standing.BEST if verdict.status == "best" else Standing.EQUAL
    return Standing.OPEN if label in verdict.candidates else Standing.BEATEN
