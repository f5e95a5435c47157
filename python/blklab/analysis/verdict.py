"""From samples to a verdict: best, equal, undecided or withheld, over all workloads.

How pairs are compared stands in `blklab.analysis.comparison`, who has the first place of a workload in
`blklab.analysis.ranking`. With a goal the overall verdict rests on the goal's figure over all workloads alone
(`blklab.analysis.goal_verdict`), and the workloads' own verdicts are description. A control that differs
withholds every recommendation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from blklab.analysis.comparison import (
    Comparison,
    Question,
    Result,
    compare_all,
    describe_effect,
    metric_values,
    summarise,
)
from blklab.analysis.disturbance import MachineFindings, machine_findings, without_marked
from blklab.analysis.goal_verdict import GoalFindings, goal_findings
from blklab.analysis.metrics import METRICS, metric_named
from blklab.analysis.ranking import MetricVerdict, Status, longest_need, metric_verdict
from blklab.analysis.sensitivity import Sensitivity
from blklab.analysis.steady_state import Steadiness, steadiness
from blklab.analysis.sweep_effects import SweepFindings, sweep_findings
from blklab.analysis.tie_breaking import break_tie
from blklab.quantities.formatting import count_of, join_names, metric_title
from blklab.records.experiment import ExperimentRecord
from blklab.spec.experiment import ExperimentSpec

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

OverallStatus = Literal["best", "equal", "undecided", "withheld"]
"""``withheld``: a control differs, so whatever the figures say is not recommended."""


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
    """The one to take: the best, or of equals the one that `blklab.analysis.tie_breaking` names; nothing
    otherwise."""
    choice_reason: str = ""
    """Why this one of several equals."""


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
        # With a goal it is the goal's question that blocks are added for.
        verdicts.append(metric_verdict(question, pairs, spec, labels, outlook=spec.goal is None))
    failed = sum(1 for sample in record.samples if sample.status == "failed")
    warnings = _control_warnings(verdicts, comparisons)
    if failed:
        warnings.append(
            f"{failed} of {len(record.samples)} runs failed; their blocks count only for the others"
        )
    goal = None if spec.goal is None else goal_findings(record, spec.goal, labels)
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
        more = longest_need(v.more_blocks for v in unsettled)
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
