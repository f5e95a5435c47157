"""From samples to a verdict: best, equal, undecided or withheld, for each workload and metric and over all.

How pairs are compared stands in `blklab.comparison`. A scheduler that any other is better than is out of the
race for a workload's first place. Of the rest, one is the best if no other is left; those that are equal to
the leader share its place; as long as one is left that is not equal to the leader, the workload is undecided
and no winner is named.

With a goal the overall verdict rests on the goal's figure over all workloads alone (`blklab.goal_figures`),
and the workloads' own verdicts are description. A control that differs withholds every recommendation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
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
from blklab.figures import count_of, metric_title, within_reach
from blklab.goal_figures import GOAL_METRIC, goal_figures, question_over_all
from blklab.goals import Goal
from blklab.metrics import METRICS, Metric, metric_named
from blklab.pareto import FrontPoint, conflicting, pareto_front
from blklab.sensitivity import Sensitivity
from blklab.spec import ExperimentSpec
from blklab.spoiled import MachineFindings, machine_findings, without_marked
from blklab.steadiness import Steadiness, steadiness
from blklab.sweep_effects import SweepFindings, sweep_findings
from blklab.ties import break_tie

__all__ = [
    "Analysis",
    "Comparison",
    "GoalFindings",
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
OverallStatus = Literal["best", "equal", "undecided", "withheld"]
"""``withheld``: a control differs, so whatever the figures say is not recommended."""


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

    status: OverallStatus
    best: list[str]
    candidates: list[str]
    """Those not ruled out; while withheld, those that would be best or candidates but for the control."""
    text: str
    more_blocks: int | None
    warnings: list[str] = field(default_factory=list)
    choice: str | None = None
    """The one to take: the best, or of equals the one that `blklab.ties` names; nothing otherwise."""
    choice_reason: str = ""
    """Why this one of several equals."""


@dataclass(frozen=True)
class GoalFindings:
    """What the goal's figure says over all workloads, and where schedulers stand in its parts."""

    goal: Goal
    reference: str
    """The scheduler whose score is 1."""
    results: list[Result]
    comparisons: list[Comparison]
    verdict: MetricVerdict | None
    """Nothing if no block has a figure."""
    dimensions: list[str]
    """Metrics, each of them relative to the reference over all workloads that have it."""
    dimension_results: list[Result]
    dimension_comparisons: list[Comparison]
    front: list[FrontPoint]
    conflict: bool
    """Whether two schedulers beat each other, each in another dimension: the weights decide between them."""
    absent: list[str]


@dataclass(frozen=True)
class Analysis:
    """Everything that follows from an experiment's samples."""

    results: list[Result]
    comparisons: list[Comparison]
    metric_verdicts: list[MetricVerdict]
    verdict: Verdict
    goal: GoalFindings | None = None
    sweeps: list[SweepFindings] = field(default_factory=list)
    machine: MachineFindings | None = None
    """Nothing if no run has events."""
    sensitivity: Sensitivity | None = None
    """Nothing if no block is marked."""
    steadiness: list[Steadiness] = field(default_factory=list)

    def deciding(self, workload: str) -> MetricVerdict | None:
        """The verdict that a workload rests on."""
        return next((v for v in self.metric_verdicts if v.workload == workload and v.decides), None)


def analyse(record: ExperimentRecord) -> Analysis:
    """Analyses an experiment, finished or not.

    Raises:
        UnknownNameError: if a workload or the goal wants to be decided by a metric that does not exist.
    """
    analysis = _analyse_samples(record)
    machine = machine_findings(record)
    return replace(
        analysis,
        sweeps=sweep_findings(record),
        steadiness=steadiness(record),
        machine=machine if machine.watched else None,
        sensitivity=_sensitivity(record, analysis.verdict, machine),
    )


def _analyse_samples(record: ExperimentRecord) -> Analysis:
    """The figures and the verdict, whatever the machine did meanwhile."""
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
            results += summarise(values, workload, metric, spec, labels)
            family = deciding_family if metric.name == decide_by and not workload.control else 1
            open_questions.append(Question(workload, metric, metric.name == decide_by, values, family))
    judged = compare_all(open_questions, spec, labels)
    for question, pairs in judged:
        comparisons += pairs
        verdicts.append(metric_verdict(question, pairs, spec, labels))
    failed = sum(1 for sample in record.samples if sample.status == "failed")
    warnings = _control_warnings(verdicts, comparisons)
    if failed:
        warnings.append(
            f"{failed} of {len(record.samples)} runs failed; their blocks count only for the others"
        )
    goal = None if spec.goal is None else _goal_findings(record, spec.goal, labels)
    if goal is None:
        verdict = _overall(verdicts, spec, labels, warnings)
    else:
        verdict = _goal_overall(goal, labels, warnings)
    verdict = _veto(_with_choice(verdict, record), verdicts, comparisons)
    return Analysis(results, comparisons, verdicts, verdict, goal)


def _sensitivity(record: ExperimentRecord, verdict: Verdict, machine: MachineFindings) -> Sensitivity | None:
    """The answer without the marked blocks, against the one with them."""
    if not machine.disturbances:
        return None
    other = _analyse_samples(without_marked(record, machine)).verdict
    same = (other.status, other.best) == (verdict.status, verdict.best)
    marked = count_of(len(machine.blocks), "marked block")
    answer = f"{other.status}{f' ({join_names(other.best)})' if other.best else ''}"
    text = f"without the {marked} the answer is {'the same' if same else 'another'}: {answer}"
    return Sensitivity(len(machine.disturbances), machine.blocks, other.status, other.best, same, text)


def _goal_findings(record: ExperimentRecord, goal: Goal, labels: Sequence[str]) -> GoalFindings:
    """Compares the goal's figures, and its parts for the Pareto front; each is a family of its own."""
    spec = record.spec
    figures = goal_figures(record, goal)
    results: list[Result] = []
    comparisons: list[Comparison] = []
    verdict = None
    if figures.series:
        question = question_over_all(record, GOAL_METRIC, figures.series)
        results = summarise(figures.series, question.workload, GOAL_METRIC, spec, labels)
        ((_, comparisons),) = compare_all([question], spec, labels)
        verdict = metric_verdict(question, comparisons, spec, labels)
    parts = [
        question_over_all(record, metric_named(name), series, family=len(figures.dimensions))
        for name, series in figures.dimensions.items()
    ]
    pairs = [pair for _, found in compare_all(parts, spec, labels) for pair in found]
    part_results = [
        replace(result, unit="score")
        for part in parts
        for result in summarise(part.values, part.workload, part.metric, spec, labels)
    ]
    several = len(figures.dimensions) > 1
    return GoalFindings(
        goal=goal,
        reference=figures.reference,
        results=results,
        comparisons=comparisons,
        verdict=verdict,
        dimensions=list(figures.dimensions),
        dimension_results=part_results,
        dimension_comparisons=pairs,
        front=pareto_front(labels, pairs) if several else [],
        conflict=several and conflicting(pairs),
        absent=figures.absent,
    )


def _goal_overall(goal: GoalFindings, labels: Sequence[str], warnings: list[str]) -> Verdict:
    """The goal's verdict as that of the whole experiment."""
    name = goal.goal.canonical
    if goal.verdict is None:
        text = f"undecided: no block has figures for the goal {name}"
        return Verdict("undecided", [], list(labels), text, None, warnings)
    found = goal.verdict
    text = f"for the goal {name}: {found.text}"
    return Verdict(found.status, found.best, found.candidates, text, found.more_blocks, warnings)


def _with_choice(verdict: Verdict, record: ExperimentRecord) -> Verdict:
    """Names the one to take, also among equals where a rule tells them apart."""
    if verdict.status == "best":
        return replace(verdict, choice=verdict.best[0])
    tie = break_tie(record, verdict.best) if verdict.status == "equal" else None
    if tie is None:
        return verdict
    text = f"{verdict.text}; of these take {tie.label} ({tie.reason})"
    return replace(verdict, text=text, choice=tie.label, choice_reason=tie.reason)


def _veto(verdict: Verdict, verdicts: Sequence[MetricVerdict], comparisons: Sequence[Comparison]) -> Verdict:
    """Withholds a recommendation when a control differs: something else was at work."""
    differing = list(dict.fromkeys(pair.workload for pair in _differing_controls(verdicts, comparisons)))
    if not differing or verdict.status not in ("best", "equal"):
        return verdict
    verb = "differs" if len(differing) == 1 else "differ"
    text = f"withheld, since the control {join_names(differing)} {verb}; but for that: {verdict.text}"
    return Verdict("withheld", [], verdict.best, text, None, verdict.warnings)


def metric_verdict(
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
        label: math.fsum(logs) / len(logs)
        for label in labels
        if (logs := [math.log(value) for value in question.values[label].values() if value > 0])
    }
    sign = 1 if metric.better == "higher" else -1
    contenders = in_the_race(pairs, labels)
    leader = max(contenders, key=lambda label: sign * means[label])
    rivals = [pair.seen_from(leader) for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return verdict("undecided", [], list(labels), "undecided: no block has figures for all")
    among = [pair for pair in rivals if pair.second in contenders]
    unsettled = [pair for pair in among if pair.outcome in ("undecided", "worse")]
    sharing = [pair.second for pair in among if pair.outcome == "equal"]
    # A rival may have been beaten by another than the leader: those that the leader beat itself come first.
    beaten = sorted(
        (pair for pair in rivals if pair.second not in contenders),
        key=lambda pair: (pair.outcome != "better", -sign * means[pair.second]),
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


def in_the_race(pairs: Sequence[Comparison], labels: Sequence[str]) -> list[str]:
    """Those that no other is better than; all, should claims contradict each other in a circle."""
    out = {pair.second for pair in pairs if pair.outcome == "better"}
    out |= {pair.first for pair in pairs if pair.outcome == "worse"}
    return [label for label in labels if label not in out] or list(labels)


def _open_question(
    candidates: Sequence[str], unsettled: Sequence[Comparison], metric: Metric, more: int | None
) -> str:
    """What is open between whom, and what it would take."""
    if unsettled[0].n < FEWEST_BLOCKS:
        outlook = f"at least {FEWEST_BLOCKS} blocks are needed"
    elif within_reach(more):
        outlook = f"about {count_of(more, 'more block')} would probably decide"
    else:
        outlook = "more blocks are unlikely to tell them apart"
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
    for pair in _differing_controls(verdicts, comparisons):
        effect = describe_effect(pair, METRICS[pair.metric])
        warnings.append(
            f"the control {pair.workload} differs although no scheduler can influence it "
            f"({pair.first}: {effect}): something else differs between the runs, so nothing is recommended"
        )
    return warnings


def _differing_controls(
    verdicts: Sequence[MetricVerdict], comparisons: Sequence[Comparison]
) -> list[Comparison]:
    """Pairs that differ in a control by the metric that decides."""
    deciding = {(v.workload, v.metric) for v in verdicts if v.control and v.decides}
    return [
        pair
        for pair in comparisons
        if (pair.workload, pair.metric) in deciding and pair.outcome in ("better", "worse")
    ]


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
