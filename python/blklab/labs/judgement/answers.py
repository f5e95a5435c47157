"""From runs to answers: for whom the other kernel is faster, slower or the same, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.statistics.multiplicity import holm
from blklab.analysis.statistics.paired import FixedDifference, paired_difference
from blklab.errors import RunFailedError
from blklab.labs.judgement.questions import METRICS, JudgementQuestion
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import JobSample, RunSample

Outcome = Literal["faster", "slower", "same", "undecided", "broken"]

MARGIN = 0.02
"""Differences below this count as none."""
LEVEL = 0.05
"""Chance of any false answer among all."""
RATE = "iops"
"""The metric that has a value for a job without any I/O."""

Pairs = Sequence[tuple[RunSample, RunSample]]
"""Runs of the base and of the other kernel, each pair in the same arrangement."""


@dataclass(frozen=True)
class JudgementAnswer:
    """The answer for one metric of one job."""

    question: JudgementQuestion
    job: str | None
    """None if the kernel failed."""
    metric: str | None
    outcome: Outcome
    speed: float | None
    """Speed on the other kernel as a multiple of the base's: of I/Os, or of the inverse of latencies."""
    interval: tuple[float, float] | None
    """Interval of `speed` at 95 %; None if there is none."""
    rounds: int
    error: str | None = None
    """The kernel's failure."""

    @property
    def is_open(self) -> bool:
        """Whether it is undecided although the speeds differ: more arrangements may decide it."""
        return self.outcome == "undecided" and self.speed is not None and abs(self.speed - 1) > MARGIN


@dataclass(frozen=True)
class _Compared:
    question: JudgementQuestion
    job: str
    metric: str
    difference: FixedDifference


def identical(pairs: Pairs) -> bool:
    """Whether both kernels gave the same bits in every arrangement."""
    return all(base.status == other.status and base.jobs == other.jobs for base, other in pairs)


def require_answer(question: JudgementQuestion, base: RunSample, other: RunSample, *, kernel: str) -> None:
    """Refuses a pair of runs that both failed: they are alike, but say nothing.

    Args:
        question: The question that was asked.
        base: The run of the base.
        other: That of the other kernel.
        kernel: Name of the base.

    Raises:
        RunFailedError: if both failed.
    """
    if base.status != "ok" and other.status != "ok":
        raise RunFailedError(
            f"neither kernel answers {question}: {base.error or 'the run failed'}",
            hint=f"see whether guests run here: "
            f"blklab run uml:{question.disk} random-read-4k-qd1 --kernel {kernel}",
        )


def settled(first: Sequence[JudgementAnswer], second: Sequence[JudgementAnswer]) -> list[JudgementAnswer]:
    """The answers of two looks: what the first decided stays, and the second decides the rest."""
    decided = {_about(answer): answer for answer in first if answer.outcome != "undecided"}
    return [decided.get(_about(answer), answer) for answer in second]


def _about(answer: JudgementAnswer) -> tuple[JudgementQuestion, str | None, str | None]:
    return answer.question, answer.job, answer.metric


def answers_to(runs: Mapping[JudgementQuestion, Pairs], level: float = LEVEL) -> list[JudgementAnswer]:
    """Answers all questions together, so that their number is corrected for.

    A question whose runs are identical is not a source of chance, and needs no correction.
    """
    answers: list[JudgementAnswer] = []
    compared: list[_Compared] = []
    differing = {question: pairs for question, pairs in runs.items() if not identical(pairs)}
    family = max(sum(_nr_metrics(pairs) for pairs in differing.values()), 1)
    for question, pairs in differing.items():
        if broken := [other.error for base, other in pairs if base.status == "ok" != other.status]:
            error = broken[0] or "the run failed"
            answers.append(JudgementAnswer(question, None, None, "broken", None, None, len(pairs), error))
            continue
        compared += _differences(question, pairs, smallest_level=level / family)
    adjusted = holm([item.difference.p_difference for item in compared])
    answers += [_answer(item, p_value, level) for item, p_value in zip(compared, adjusted, strict=True)]
    order = list(runs)
    return sorted(answers, key=lambda answer: (order.index(answer.question), answer.job or ""))


def _nr_metrics(pairs: Pairs) -> int:
    return len(METRICS) * max((len(base.jobs) for base, _ in pairs), default=0)


def _differences(question: JudgementQuestion, pairs: Pairs, *, smallest_level: float) -> list[_Compared]:
    found = []
    usable = [(base, other) for base, other in pairs if base.status == other.status == "ok"]
    for index, job in enumerate(usable[0][0].jobs if usable else []):
        for name in METRICS:
            metric = metric_named(name)
            jobs = [(base.jobs[index], other.jobs[index]) for base, other in usable]
            fewest = 0 if name == RATE else metric.fewest_ios
            if any(metric.counted_ios([each]) < fewest for pair in jobs for each in pair):
                continue
            values = [tuple(_value(metric, each) for each in pair) for pair in jobs]
            known = [(base, other) for base, other in values if base and other]
            if len(known) < 2 or all(base == other for base, other in known):
                continue
            series = [[pair[side] for pair in known] for side in (1, 0)]
            if metric.better == "lower":
                series.reverse()
            difference = paired_difference(*series, margin=MARGIN, smallest_level=smallest_level)
            found.append(_Compared(question, job.name, name, difference))
    return found


def _value(metric: Metric, job: JobSample) -> float | None:
    """The value of a metric; a job without any I/O counts as one that made half of one.

    Speeds are compared as ratios, and a job that starves on one kernel must not drop out of the comparison.
    """
    value = metric.compute([job])
    if value == 0 and metric.name == RATE and job.runtime_ns:
        return NS_PER_SECOND / 2 / job.runtime_ns
    return value


def _answer(item: _Compared, p_value: float, level: float) -> JudgementAnswer:
    difference = item.difference
    outcome: Outcome = "undecided"
    if p_value <= level and abs(difference.ratio - 1) > MARGIN:
        outcome = "faster" if difference.ratio > 1 else "slower"
    elif difference.p_equivalence <= level:
        outcome = "same"
    return JudgementAnswer(
        item.question,
        item.job,
        item.metric,
        outcome,
        difference.ratio,
        difference.ratio_interval(1 - LEVEL),
        difference.n,
    )
