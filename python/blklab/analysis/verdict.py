"""From the samples of an experiment to its verdict: best, equal, undecided or withheld.

The steps, each in its own module and each with the results of those before it::

    record ─▶ values ─▶ questions ─▶ comparison ─▶ ranking ─▶ overall
              goal_scores ─▶ questions             goal_verdict

`Design` supplies the intervals and tests that are valid for the way in which the samples were taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import Design, design_of
from blklab.analysis.disturbance import MachineFindings, machine_findings, without_marked
from blklab.analysis.doubts import Doubt, differing_controls, differing_copies, doubts_of
from blklab.analysis.goal_scores import goal_scores
from blklab.analysis.goal_verdict import GoalFindings, goal_findings
from blklab.analysis.means import SchedulerMean, scheduler_means
from blklab.analysis.noise import WorkloadNoise, noise_of
from blklab.analysis.overall import (
    Verdict,
    overall_verdict,
    verdict_for_goal,
    with_choice,
    with_recommendation,
)
from blklab.analysis.questions import Question, deciding_questions, workload_questions
from blklab.analysis.ranking import MetricVerdict, metric_verdict
from blklab.analysis.recommendation import DEFAULT_GOOD_ENOUGH, Findings, Subject, recommend
from blklab.analysis.regret import regrets
from blklab.analysis.sensitivity import Sensitivity, compare_answers, doubt_about
from blklab.analysis.steady_state import Steadiness, steadiness
from blklab.analysis.sweep_effects import SweepFindings, sweep_findings
from blklab.analysis.tie_breaking import break_tie
from blklab.analysis.values import ExperimentValues, experiment_values
from blklab.records.experiment import ExperimentRecord
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import unchanged_copies
from blklab.spec.targets import ModelTarget


@dataclass(frozen=True)
class Analysis:
    """Everything that follows from an experiment's samples."""

    results: list[SchedulerMean]
    comparisons: list[PairwiseComparison]
    metric_verdicts: list[MetricVerdict]
    verdict: Verdict
    goal: GoalFindings | None = None
    sweeps: list[SweepFindings] = field(default_factory=list)
    machine: MachineFindings | None = None
    """None if no run has events."""
    sensitivity: Sensitivity | None = None
    """None if no block is marked."""
    steadiness: list[Steadiness] = field(default_factory=list)
    noise: list[WorkloadNoise] = field(default_factory=list)

    def deciding(self, workload: str) -> MetricVerdict | None:
        """The verdict that a workload rests on."""
        return next((v for v in self.metric_verdicts if v.workload == workload and v.decides), None)


def analyse(record: ExperimentRecord) -> Analysis:
    """Analyses an experiment, finished or not.

    Raises:
        UnknownNameError: if a workload or the goal is decided by a metric that does not exist.
    """
    whole, record = record, record.without_uncounted_slots()
    design = design_of(record.spec)
    values = experiment_values(record)
    doubts = doubts_of(whole, record, deciding_questions(values))
    answer = _answer(values, design, record.spec, doubts, _subject(record))
    machine = machine_findings(record)
    sensitivity = _sensitivity(record, design, answer.verdict, machine)
    disturbed = None if sensitivity is None else doubt_about(sensitivity)
    if disturbed is not None:
        answer = replace(answer, verdict=replace(answer.verdict, doubts=[*answer.verdict.doubts, disturbed]))
    return replace(
        answer,
        sweeps=[sweep_findings(sweep, values, design) for sweep in record.spec.sweeps],
        steadiness=steadiness(record),
        noise=noise_of(record, values),
        machine=machine if machine.watched else None,
        sensitivity=sensitivity,
    )


def _answer(
    values: ExperimentValues, design: Design, spec: ExperimentSpec, doubts: list[Doubt], subject: Subject
) -> Analysis:
    """The answer of the values alone, whatever the machine did meanwhile.

    Args:
        values: The experiment's.
        design: The experiment's.
        spec: The experiment's.
        doubts: Follow those about controls.
        subject: The kind of thing that was compared.
    """
    labels, goal = values.labels, spec.goal
    scores = None if goal is None else goal_scores(values, goal)
    asked = workload_questions(values)
    of_goal = [] if scores is None else [scores.question, *scores.dimension_questions]
    questions, nr_asked = [*asked, *of_goal], len(asked)
    means = [scheduler_means(question, design, labels) for question in questions]
    compared = compare_all(questions, design, labels)
    comparisons = [pair for pairs in compared[:nr_asked] for pair in pairs]
    # With a goal, blocks are added for the goal's question, so the others promise none.
    verdicts = [
        metric_verdict(question, pairs, design, labels, outlook=goal is None)
        for question, pairs in zip(asked, compared, strict=False)
    ]
    if goal is None or scores is None:
        found = None
        verdict = overall_verdict([workload.name for workload in values.judged], verdicts, labels)
    else:
        score_verdict = metric_verdict(scores.question, compared[nr_asked], design, labels)
        found = goal_findings(
            goal, scores, means[nr_asked:], compared[nr_asked:], comparisons, score_verdict, labels
        )
        verdict = verdict_for_goal(goal, found.verdict, labels)
    tie = break_tie(values, verdict.best, design) if verdict.status == "equal" else None
    controls = differing_controls(verdicts, comparisons)
    # On models `copy` is the name of a guest kernel.
    originals = {} if isinstance(spec.parsed_target, ModelTarget) else unchanged_copies(spec.schedulers)
    copies = differing_copies(originals, verdicts, comparisons)
    deciding = deciding_questions(values) if scores is None else [scores.question]
    if len(deciding) > 1:
        verdicts = [
            _with_own_regret(one, deciding, design, values) if one.decides else one for one in verdicts
        ]
    bounds = regrets(deciding, design, labels, values.in_force)
    advised = recommend(
        Findings(
            status=verdict.status,
            best=verdict.best,
            candidates=verdict.candidates,
            questions=deciding,
            pairs=[compared[nr_asked]] if scores is not None else _pairs_of(deciding, asked, compared),
            regrets=bounds,
            labels=labels,
            in_force=values.in_force,
            tie=tie,
            controls_differ=bool(controls or copies),
            margin=design.margin,
            fewest_samples=design.fewest_samples,
        ),
        subject,
        DEFAULT_GOOD_ENOUGH if spec.good_enough is None else spec.good_enough,
    )
    return Analysis(
        results=[mean for several in means[:nr_asked] for mean in several],
        comparisons=comparisons,
        metric_verdicts=verdicts,
        verdict=with_recommendation(with_choice(verdict, tie, controls, doubts, copies), bounds, advised),
        goal=found,
    )


def _pairs_of(
    deciding: Sequence[Question], asked: Sequence[Question], compared: Sequence[list[PairwiseComparison]]
) -> list[list[PairwiseComparison]]:
    """The comparisons of the questions that the answer rests on; none for one that has no values."""
    by_name = {(one.workload, one.metric.name): pairs for one, pairs in zip(asked, compared, strict=False)}
    return [by_name.get((one.workload, one.metric.name), []) for one in deciding]


def _subject(record: ExperimentRecord) -> Subject:
    kernels = {choice.kernel for choice in record.spec.schedulers}
    names = {choice.name for choice in record.spec.schedulers}
    on_host = record.target.backend == "host"
    # On a host the others are modules: the question is about a patch if nothing but variants is compared.
    if len(kernels) > 1 and (not on_host or len(names) == 1):
        return "kernels"
    return "disk" if on_host else "model"


def _with_own_regret(
    verdict: MetricVerdict, deciding: Sequence[Question], design: Design, values: ExperimentValues
) -> MetricVerdict:
    """An open verdict with the bounds under its workload alone; they hold together with the others'."""
    own = [question for question in deciding if question.workload == verdict.workload]
    if verdict.status != "undecided" or not own:
        return verdict
    found = regrets(own, design, values.labels, values.in_force, family_size=len(deciding))
    return replace(verdict, regret=found)


def _sensitivity(
    record: ExperimentRecord, design: Design, verdict: Verdict, machine: MachineFindings
) -> Sensitivity | None:
    """The answer without the marked blocks, against the one with them."""
    if not machine.disturbances:
        return None
    kept = experiment_values(without_marked(record, machine))
    other = _answer(kept, design, record.spec, [], _subject(record))
    return compare_answers(verdict, other.verdict, machine)
