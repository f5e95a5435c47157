"""From samples to a verdict: best, equal or undecided, for each workload and metric and over all.

How pairs are compared stands in `blklab.comparison`. A scheduler is the best of a workload if it is better
than every other one by the metric that the workload decides by; those that are equal to it share its place;
as long as any rival is neither beaten nor equal, the workload is undecided and no winner is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.comparison import (
    FEWEST_BLOCKS,
    Comparison,
    Question,
    Result,
    compare_all,
    describe_effect,
    metric_values,
    summarise,
)
from blklab.experiment import ExperimentRecord
from blklab.figures import metric_title
from blklab.metrics import METRICS, Metric, metric_named
from blklab.spec import ExperimentSpec
from blklab.statistics.intervals import geometric_mean_interval

__all__ = [
    "Analysis",
    "Comparison",
    "MetricVerdict",
    "Result",
    "Status",
    "Verdict",
    "analyse",
    "describe_effect",
    "join_names",
    "metric_values",
]

Status = Literal["best", "equal", "undecided"]


@dataclass(frozen=True)
class MetricVerdict:
    """What one metric says of one workload."""

    workload: str
    metric: str
    decides: bool
    """Whether the workload's verdict rests on this metric."""
    control: bool
    status: Status
    best: list[str]
    """The winner, or those that share the first place; empty while undecided."""
    candidates: list[str]
    """Those that nothing has ruled out yet."""
    text: str
    more_blocks: int | None


@dataclass(frozen=True)
class Verdict:
    """The answer to the whole experiment."""

    status: Status
    best: list[str]
    candidates: list[str]
    text: str
    more_blocks: int | None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Analysis:
    """Everything that follows from an experiment's samples."""

    results: list[Result]
    comparisons: list[Comparison]
    metric_verdicts: list[MetricVerdict]
    verdict: Verdict

    def deciding(self, workload: str) -> MetricVerdict | None:
        """The verdict that a workload rests on."""
        return next((v for v in self.metric_verdicts if v.workload == workload and v.decides), None)


def analyse(record: ExperimentRecord) -> Analysis:
    """Analyses an experiment, finished or not.

    Raises:
        UnknownNameError: if a workload wants to be decided by a metric that does not exist.
    """
    spec = record.spec
    labels = [choice.label for choice in spec.schedulers]
    deciding_family = sum(1 for workload in spec.workloads if not workload.control) or 1
    results: list[Result] = []
    comparisons: list[Comparison] = []
    verdicts: list[MetricVerdict] = []
    open_questions: list[Question] = []
    for workload in spec.workloads:
        decide_by = metric_named(workload.decide_by).name
        for metric in METRICS.values():
            values = metric_values(record.samples, workload, metric)
            if not values:
                continue
            results += summarise(values, workload, metric, spec.confidence, labels)
            family = deciding_family if metric.name == decide_by and not workload.control else 1
            open_questions.append(Question(workload, metric, metric.name == decide_by, values, family))
    judged = compare_all(open_questions, spec, labels)
    for question, pairs in judged:
        comparisons += pairs
        verdicts.append(_metric_verdict(question, pairs, spec, labels))
    failed = sum(1 for sample in record.samples if sample.status == "failed")
    warnings = _control_warnings(verdicts, comparisons)
    if failed:
        warnings.append(
            f"{failed} of {len(record.samples)} runs failed; their blocks count only for the others"
        )
    return Analysis(results, comparisons, verdicts, _overall(verdicts, spec, labels, warnings))


def _metric_verdict(
    question: Question, pairs: Sequence[Comparison], spec: ExperimentSpec, labels: Sequence[str]
) -> MetricVerdict:
    """The first place and who shares it."""
    metric, name = question.metric, question.workload.name

    def verdict(
        status: Status, best: list[str], candidates: list[str], text: str, more: int | None = None
    ) -> MetricVerdict:
        return MetricVerdict(
            name,
            metric.name,
            question.decides,
            question.workload.control,
            status,
            best,
            candidates,
            text,
            more,
        )

    missing = [
        label for label in labels if not any(value > 0 for value in question.values.get(label, {}).values())
    ]
    if missing:
        return verdict("undecided", [], list(labels), f"undecided: no figure for {join_names(missing)}")
    means = {
        label: geometric_mean_interval(
            [v for v in question.values[label].values() if v > 0], spec.confidence
        ).mean
        for label in labels
    }
    sign = 1 if metric.better == "higher" else -1
    leader = max(labels, key=lambda label: sign * means[label])
    rivals = [pair.seen_from(leader) for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return verdict("undecided", [], list(labels), "undecided: no block has figures for all")
    unsettled = [pair for pair in rivals if pair.outcome in ("undecided", "worse")]
    sharing = [pair.second for pair in rivals if pair.outcome == "equal"]
    beaten = sorted(
        (pair for pair in rivals if pair.outcome == "better"), key=lambda pair: -sign * means[pair.second]
    )
    if unsettled:
        candidates = [leader, *sharing, *(pair.second for pair in unsettled)]
        more = _longest_need(pair.more_blocks for pair in unsettled)
        return verdict("undecided", [], candidates, _open_question(candidates, unsettled, metric, more), more)
    first_place = [label for label in labels if label == leader or label in sharing]
    margin = f"{100 * spec.margin:g} %"
    if not beaten:
        return verdict(
            "equal", first_place, first_place, f"{join_names(first_place)} are equal within {margin}"
        )
    if sharing:
        behind = join_names([pair.second for pair in beaten])
        text = f"{join_names(first_place)} are equal within {margin} and ahead of {behind}"
        return verdict("equal", first_place, first_place, text)
    return verdict("best", [leader], [leader], f"{leader} is best: {describe_effect(beaten[0], metric)}")


def _open_question(
    candidates: Sequence[str], unsettled: Sequence[Comparison], metric: Metric, more: int | None
) -> str:
    """What is open between whom, and what it would take."""
    if unsettled[0].n < FEWEST_BLOCKS:
        outlook = f"at least {FEWEST_BLOCKS} blocks are needed"
    elif more is None:
        outlook = "more blocks are unlikely to tell them apart"
    else:
        outlook = f"about {more} more block{'s' if more > 1 else ''} would probably decide"
    nearest = min(unsettled, key=lambda pair: abs(math.log(pair.ratio)))
    effect = f"{nearest.first}: {describe_effect(nearest, metric)}"
    return f"undecided between {join_names(candidates)} ({effect}); {outlook}"


def _longest_need(needs: Iterable[int | None]) -> int | None:
    """Blocks until the slowest question is settled; nothing if one of them is hopeless."""
    longest = 0
    for need in needs:
        if need is None:
            return None
        longest = max(longest, need)
    return longest


def _control_warnings(verdicts: Sequence[MetricVerdict], comparisons: Sequence[Comparison]) -> list[str]:
    """A control that differs speaks of the set-up, not of the schedulers."""
    warnings = []
    for verdict in verdicts:
        if not (verdict.control and verdict.decides):
            continue
        differing = [
            pair
            for pair in comparisons
            if pair.workload == verdict.workload
            and pair.metric == verdict.metric
            and pair.outcome in ("better", "worse")
        ]
        for pair in differing:
            effect = describe_effect(pair, METRICS[pair.metric])
            warnings.append(
                f"the control {verdict.workload} differs although no scheduler can influence it "
                f"({pair.first}: {effect}): something else differs between the runs, so distrust the rest"
            )
    return warnings


def _overall(
    verdicts: Sequence[MetricVerdict], spec: ExperimentSpec, labels: Sequence[str], warnings: list[str]
) -> Verdict:
    """One answer for all workloads: who is best, or shares the first place, in each of them."""
    judged = [workload for workload in spec.workloads if not workload.control] or list(spec.workloads)
    deciding = {v.workload: v for v in verdicts if v.decides}
    present = [deciding[workload.name] for workload in judged if workload.name in deciding]
    if len(present) < len(judged):
        lacking = [workload.name for workload in judged if workload.name not in deciding]
        text = f"undecided: no figures for {join_names(lacking)}"
        return Verdict("undecided", [], list(labels), text, None, warnings)
    if len(present) == 1:
        only = present[0]
        text = f"{only.workload}, by {metric_title(only.metric)}: {only.text}"
        return Verdict(only.status, only.best, only.candidates, text, only.more_blocks, warnings)
    candidates = [label for label in labels if all(label in v.candidates for v in present)]
    unsettled = [v for v in present if v.status == "undecided"]
    if unsettled:
        needs = [v.more_blocks for v in unsettled]
        more = (
            None if any(need is None for need in needs) else max(need for need in needs if need is not None)
        )
        text = f"undecided for {join_names([v.workload for v in unsettled])}"
        settled = [v for v in present if v.status != "undecided"]
        if settled:
            text += "; settled: " + "; ".join(f"{v.workload}: {join_names(v.best)}" for v in settled)
        return Verdict("undecided", [], candidates, text, more, warnings)
    if not candidates:
        text = "it depends on the work: " + "; ".join(f"{v.workload}: {join_names(v.best)}" for v in present)
        return Verdict("undecided", [], [], text, None, warnings)
    if len(candidates) == 1:
        text = f"{candidates[0]} is best or shares the first place in every workload"
        return Verdict("best", candidates, candidates, text, None, warnings)
    text = f"{join_names(candidates)} share the first place in every workload"
    return Verdict("equal", candidates, candidates, text, None, warnings)


def join_names(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
