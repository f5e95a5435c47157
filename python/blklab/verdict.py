"""From samples to a verdict: best, equal or undecided, for each workload and metric and over all.

For each pair of schedulers under a workload and metric:

* **equal** if two one-sided tests place their ratio within the margin of practical equality;
* **better** (or worse) if the ratio differs from 1 and its estimate lies beyond the margin;
* **undecided** otherwise.

The p values are corrected by Holm's method: over the pairs of the workload, and for the metrics that the
workloads decide by also over the workloads, since those together make the overall verdict. Metrics that do
not decide are for the reader's insight. Fewer than `FEWEST_BLOCKS` blocks decide nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.experiment import ExperimentRecord
from blklab.metrics import METRICS, Metric, metric_named
from blklab.samples import RunSample
from blklab.spec import ExperimentSpec
from blklab.statistics.intervals import geometric_mean_interval
from blklab.statistics.multiplicity import holm
from blklab.statistics.paired import PairedDifference, paired_difference
from blklab.statistics.sample_size import blocks_for_difference, blocks_for_equality
from blklab.workloads import Workload

Status = Literal["best", "equal", "undecided"]
Outcome = Literal["better", "worse", "equal", "undecided"]

FEWEST_BLOCKS = 3

_OPPOSITE: dict[Outcome, Outcome] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class Result:
    """One scheduler under one workload: geometric mean of a metric over the runs, with its interval."""

    scheduler: str
    workload: str
    metric: str
    unit: str
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class Comparison:
    """Two schedulers under one workload and metric, as seen from the first."""

    workload: str
    metric: str
    first: str
    second: str
    n: int
    """Blocks that have both."""
    ratio: float
    """First over second."""
    ci_low: float | None
    ci_high: float | None
    """Interval of this one ratio at the experiment's confidence."""
    p_adjusted: float
    """Of the difference, after Holm's correction."""
    outcome: Outcome
    more_blocks: int | None
    """Blocks that an undecided pair would probably take in addition; nothing if decided or hopeless."""

    def seen_from(self, label: str) -> Comparison:
        """The same comparison with `label` first."""
        if label == self.first:
            return self
        return Comparison(
            workload=self.workload,
            metric=self.metric,
            first=self.second,
            second=self.first,
            n=self.n,
            ratio=1 / self.ratio,
            ci_low=None if self.ci_high is None else 1 / self.ci_high,
            ci_high=None if self.ci_low is None else 1 / self.ci_low,
            p_adjusted=self.p_adjusted,
            outcome=_OPPOSITE[self.outcome],
            more_blocks=self.more_blocks,
        )


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


Series = Mapping[str, Mapping[int, float]]
"""Scheduler's label → block → figure."""


def metric_values(
    samples: Sequence[RunSample], workload: Workload, metric: Metric
) -> dict[str, dict[int, float]]:
    """A metric's figure of every successful run of a workload, by scheduler and block."""
    values: dict[str, dict[int, float]] = {}
    for sample in samples:
        if sample.status != "ok" or sample.cell.workload != workload.name:
            continue
        value = metric.compute([job for job in sample.jobs if job.name in workload.focus])
        if value is not None:
            values.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value
    return values


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
    open_questions: list[_Question] = []
    for workload in spec.workloads:
        decide_by = metric_named(workload.decide_by).name
        for metric in METRICS.values():
            values = metric_values(record.samples, workload, metric)
            if not values:
                continue
            results += _results(values, workload, metric, spec.confidence, labels)
            family = deciding_family if metric.name == decide_by and not workload.control else 1
            open_questions.append(_Question(workload, metric, metric.name == decide_by, values, family))
    judged = _judge(open_questions, spec, labels)
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


@dataclass(frozen=True)
class _Question:
    """One workload and metric, before multiplicity is settled."""

    workload: Workload
    metric: Metric
    decides: bool
    values: Series
    family: int
    """Number of workloads whose questions are corrected together with this one's."""

    @property
    def joint(self) -> bool:
        return self.decides and not self.workload.control


def _results(
    values: Series, workload: Workload, metric: Metric, confidence: float, labels: Sequence[str]
) -> list[Result]:
    results = []
    for label in labels:
        figures = [value for value in values.get(label, {}).values() if value > 0]
        if figures:
            interval = geometric_mean_interval(figures, confidence)
            results.append(
                Result(
                    scheduler=label,
                    workload=workload.name,
                    metric=metric.name,
                    unit=metric.unit,
                    n=interval.n,
                    mean=interval.mean,
                    ci_low=interval.low,
                    ci_high=interval.high,
                )
            )
    return results


@dataclass(frozen=True)
class _Pair:
    first: str
    second: str
    difference: PairedDifference


def _judge(
    questions: Sequence[_Question], spec: ExperimentSpec, labels: Sequence[str]
) -> list[tuple[_Question, list[Comparison]]]:
    """Compares all pairs; the deciding questions share one family, every other question is its own."""
    level = 1 - spec.confidence
    pairs_each = len(labels) * (len(labels) - 1) // 2
    pairs_of = {
        id(question): _pairs(question, spec, labels, level / max(1, pairs_each * question.family))
        for question in questions
    }
    families = [[question for question in questions if question.joint]]
    families += [[question] for question in questions if not question.joint]
    comparisons: dict[int, list[Comparison]] = {}
    for family in families:
        members = [(question, pair) for question in family for pair in pairs_of[id(question)]]
        different = holm([pair.difference.p_difference for _, pair in members])
        equivalent = holm([pair.difference.p_equivalence for _, pair in members])
        for (question, pair), p_different, p_equivalent in zip(members, different, equivalent, strict=True):
            comparisons.setdefault(id(question), []).append(
                _comparison(question, pair, p_different, p_equivalent, spec, level / max(1, len(members)))
            )
    return [(question, comparisons.get(id(question), [])) for question in questions]


def _pairs(
    question: _Question, spec: ExperimentSpec, labels: Sequence[str], smallest_level: float
) -> list[_Pair]:
    """Differences of all pairs over the blocks in which both have a positive figure."""
    pairs = []
    for first, second in itertools.combinations(labels, 2):
        one, other = question.values.get(first, {}), question.values.get(second, {})
        blocks = sorted(block for block in one.keys() & other.keys() if one[block] > 0 and other[block] > 0)
        if blocks:
            difference = paired_difference(
                [one[block] for block in blocks],
                [other[block] for block in blocks],
                margin=spec.margin,
                smallest_level=smallest_level,
            )
            pairs.append(_Pair(first, second, difference))
    return pairs


def _comparison(
    question: _Question,
    pair: _Pair,
    p_different: float,
    p_equivalent: float,
    spec: ExperimentSpec,
    strictest_level: float,
) -> Comparison:
    difference = pair.difference
    level = 1 - spec.confidence
    bound = math.log1p(spec.margin)
    outcome: Outcome = "undecided"
    if difference.n >= FEWEST_BLOCKS:
        if p_equivalent < level:
            outcome = "equal"
        elif p_different < level and abs(difference.log_ratio) > bound:
            higher = difference.log_ratio > 0
            outcome = "better" if higher == (question.metric.better == "higher") else "worse"
    interval = difference.ratio_interval(spec.confidence)
    return Comparison(
        workload=question.workload.name,
        metric=question.metric.name,
        first=pair.first,
        second=pair.second,
        n=difference.n,
        ratio=difference.ratio,
        ci_low=interval[0] if interval else None,
        ci_high=interval[1] if interval else None,
        p_adjusted=p_different,
        outcome=outcome,
        more_blocks=_more_blocks(difference, spec, strictest_level) if outcome == "undecided" else None,
    )


def _more_blocks(difference: PairedDifference, spec: ExperimentSpec, level: float) -> int | None:
    if difference.n < 2:
        return FEWEST_BLOCKS - difference.n
    deviation = difference.standard_error * math.sqrt(difference.n)
    if abs(difference.log_ratio) > math.log1p(spec.margin):
        needed = blocks_for_difference(difference.log_ratio, deviation, level)
    else:
        needed = blocks_for_equality(difference.log_ratio, deviation, level, spec.margin)
    return None if needed is None else max(1, FEWEST_BLOCKS - difference.n, needed - difference.n)


def _metric_verdict(
    question: _Question, pairs: Sequence[Comparison], spec: ExperimentSpec, labels: Sequence[str]
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
        return _undecided(verdict, leader, unsettled, sharing, metric)
    first_place = [label for label in labels if label == leader or label in sharing]
    margin = f"{100 * spec.margin:g} %"
    if not beaten:
        return verdict(
            "equal", first_place, first_place, f"{join_names(first_place)} are equal within {margin}"
        )
    if sharing:
        text = f"{join_names(first_place)} are equal within {margin} and ahead of {join_names([p.second for p in beaten])}"
        return verdict("equal", first_place, first_place, text)
    return verdict("best", [leader], [leader], f"{leader} is best: {describe_effect(beaten[0], metric)}")


def _undecided(
    verdict: object, leader: str, unsettled: Sequence[Comparison], sharing: Sequence[str], metric: Metric
) -> MetricVerdict:
    if not callable(verdict):
        raise TypeError("needs the constructor of verdicts")
    candidates = [leader, *sharing, *(pair.second for pair in unsettled)]
    needs = [pair.more_blocks for pair in unsettled]
    more = None if any(need is None for need in needs) else max(need for need in needs if need is not None)
    if unsettled[0].n < FEWEST_BLOCKS:
        outlook = f"at least {FEWEST_BLOCKS} blocks are needed"
    elif more is None:
        outlook = "more blocks are unlikely to tell them apart"
    else:
        outlook = f"about {more} more block{'s' if more > 1 else ''} would probably decide"
    nearest = min(unsettled, key=lambda pair: abs(math.log(pair.ratio)))
    text = f"undecided between {join_names(candidates)} ({describe_effect(nearest, metric)}); {outlook}"
    result: MetricVerdict = verdict("undecided", [], candidates, text, more)
    return result


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
            effect = describe_effect(pair.seen_from(pair.first), METRICS[pair.metric])
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
        text = f"{only.workload}, by {only.metric}: {only.text}"
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


def describe_effect(pair: Comparison, metric: Metric) -> str:
    """The first scheduler against the second in words, with the interval: ``iops 12 % [8, 17] above kyber``."""
    interval = ""
    if abs(math.log(pair.ratio)) > math.log(2):
        ratio, low, high = pair.ratio, pair.ci_low, pair.ci_high
        word = "as high as"
        if ratio < 1:
            ratio, low, high = 1 / ratio, None if high is None else 1 / high, None if low is None else 1 / low
            return f"{metric.name} {ratio:.3g} times{_interval(low, high, '.3g')} lower than {pair.second}"
        return f"{metric.name} {ratio:.3g} times{_interval(low, high, '.3g')} {word} {pair.second}"
    change, low, high = (
        None if value is None else 100 * (value - 1) for value in (pair.ratio, pair.ci_low, pair.ci_high)
    )
    interval = _interval(low, high, "+.1f")
    return f"{metric.name} {change:+.1f} %{interval} against {pair.second}"


def _interval(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
