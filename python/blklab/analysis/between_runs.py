"""Changes from one stored experiment to another: ratios by workload, scheduler and metric.

The experiments ran at different times, so their blocks have nothing in common: each experiment gives a mean
of logarithms with a standard error of its own (widened for serial correlation), and Welch's test compares
the two. Such a ratio has everything in it that differed between the two times, a disk that fills up or
warms up included. The *shift* of a scheduler relative to another one does not: each experiment's ratio of
two schedulers comes from within its blocks, and the two ratios are compared.

Models repeat their random choices from the seed. Two experiments on models with the same seed are compared
block by block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.designs import FixedDesign
from blklab.analysis.metrics import METRICS, Metric, metric_named
from blklab.analysis.ratios import Contrast, RatioEstimate, estimate_family
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.independent import independent_difference_of_logs, shift_of
from blklab.analysis.statistics.series import Series, Values
from blklab.analysis.stored_series import StoredSeries, same_work
from blklab.records.experiment import ExperimentRecord
from blklab.records.set_up import SetUpDifference, set_up_differences

ChangeStatus = Literal["slower", "faster", "mixed", "same", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Change(RatioEstimate):
    """The second experiment over the first; `n` is the smaller number of blocks or rounds."""

    scheduler: str
    """In its own grammar."""
    against: str | None
    """The scheduler that it is measured relative to; None for its plain values."""
    decides: bool
    """Whether the metric decides the workload."""
    control: bool
    """Whether no scheduler can influence the workload."""


@dataclass(frozen=True)
class OnlyInOne:
    """Workloads or schedulers that only one of the two experiments has."""

    which: Literal["first", "second"]
    kind: Literal["workload", "scheduler"]
    names: Sequence[str]


@dataclass(frozen=True)
class ChangedWorkloads:
    """Workloads of the same name whose texts differ; they are not compared."""

    names: Sequence[str]


@dataclass(frozen=True)
class ChangedControl:
    """A control that changed points at the machine, not at disk or scheduler."""

    workload: str


ChangeRemark = OnlyInOne | ChangedWorkloads | ChangedControl


@dataclass(frozen=True)
class RunsComparison:
    """Two experiments compared."""

    first: ExperimentRecord
    second: ExperimentRecord
    changes: Sequence[Change]
    shifts: Sequence[Change]
    """Changes of a scheduler relative to another one, by the metrics that decide."""
    set_up: Sequence[SetUpDifference]
    status: ChangeStatus
    """Of the changes by the metrics that decide, controls apart."""
    remarks: Sequence[ChangeRemark]
    paired: bool
    """Whether blocks correspond: models with the same seed."""
    confidence: float
    margin: float

    @property
    def judged(self) -> list[Change]:
        """The changes that the status rests on."""
        return _judged(self.changes)


def compare_runs(
    first: ExperimentRecord, second: ExperimentRecord, *, confidence: float, margin: float
) -> RunsComparison:
    """Compares two experiments by what they have in common.

    Args:
        first: The baseline.
        second: The experiment to judge.
        confidence: Of intervals and of all claims of a family together.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.

    Raises:
        UnknownNameError: if a workload is decided by a metric that does not exist.
    """
    # Of guests that ran one kernel each, the kernels are what is compared.
    one_kernel = all(len({one.kernel for one in record.spec.schedulers}) == 1 for record in (first, second))
    ours, theirs = (StoredSeries(record, name_kernels=not one_kernel) for record in (first, second))
    design = FixedDesign(confidence=confidence, margin=margin)
    paired = _repeats(first, second)
    pair = _Pair(ours, theirs, design, paired=paired)
    remarks = list(pair.remarks())
    changes = pair.changes()
    return RunsComparison(
        first=first,
        second=second,
        changes=changes,
        shifts=pair.shifts(),
        set_up=set_up_differences(first, second),
        status=_status(_judged(changes)),
        remarks=[*remarks, *_changed_controls(changes)],
        paired=paired,
        confidence=confidence,
        margin=margin,
    )


@dataclass(frozen=True)
class _Key:
    workload: str
    metric: Metric
    scheduler: str
    against: str | None


class _Pair:
    """Two experiments and what they have in common."""

    def __init__(
        self, first: StoredSeries, second: StoredSeries, design: FixedDesign, *, paired: bool
    ) -> None:
        self._first, self._second = first, second
        self._design = design
        self._paired = paired
        self._common = [name for name in first.workloads if name in second.workloads]
        self._workloads = [
            name for name in self._common if same_work(first.workloads[name], second.workloads[name])
        ]
        self._schedulers = [name for name in first.labels if name in second.labels]

    def remarks(self) -> Iterator[ChangeRemark]:
        """All that is not compared."""
        kinds: tuple[tuple[Literal["workload", "scheduler"], Collection[str], Collection[str]], ...] = (
            ("workload", self._first.workloads, self._second.workloads),
            ("scheduler", self._first.labels, self._second.labels),
        )
        for kind, ours, theirs in kinds:
            only_first = [name for name in ours if name not in theirs]
            only_second = [name for name in theirs if name not in ours]
            if only_first:
                yield OnlyInOne("first", kind, only_first)
            if only_second:
                yield OnlyInOne("second", kind, only_second)
        changed = [name for name in self._common if name not in self._workloads]
        if changed:
            yield ChangedWorkloads(changed)

    def changes(self) -> list[Change]:
        """Every scheduler by every metric; those that decide are one family, each other one is its own."""
        families: dict[tuple[str, ...], list[tuple[_Key, Difference]]] = {}
        for workload in self._workloads:
            decides, control = self._facts(workload)
            for metric in METRICS.values():
                series = [one.series(workload, metric) for one in (self._second, self._first)]
                joint = metric.name == decides and not control
                family = () if joint else (workload, metric.name)
                for name in self._schedulers:
                    difference = self._difference(workload, series, name)
                    if difference is not None:
                        families.setdefault(family, []).append(
                            (_Key(workload, metric, name, None), difference)
                        )
        return [change for family in families.values() for change in self._estimated(family)]

    def shifts(self) -> list[Change]:
        """Every scheduler relative to the usual one, by the metric that decides; one family."""
        found: list[tuple[_Key, Difference]] = []
        if self._paired or not self._schedulers:
            return []  # what is the same for all schedulers is no drift then
        default = self._first.record.target.default_scheduler
        against = default if default in self._schedulers else self._schedulers[0]
        for workload in self._workloads:
            metric = metric_named(self._facts(workload)[0])
            for name in self._schedulers:
                if name == against:
                    continue
                ours = self._first.difference(workload, metric, name, against)
                theirs = self._second.difference(workload, metric, name, against)
                if ours is None or theirs is None or min(ours.n, theirs.n) < 2:
                    continue
                difference = shift_of(theirs, ours, margin=self._design.margin)
                found.append((_Key(workload, metric, name, against), difference))
        return self._estimated(found)

    def _facts(self, workload: str) -> tuple[str, bool]:
        of_first = self._first.workloads[workload]
        return metric_named(of_first.decide_by).name, of_first.control

    def _difference(self, workload: str, series: Sequence[Series], name: str) -> Difference | None:
        values: list[Values] = [one.get(name, {}) for one in series]
        if self._paired:
            return self._design.difference(*values)
        by_rounds = [workload in one.record.spec.switched for one in (self._second, self._first)]
        return independent_difference_of_logs(series, name, by_rounds, margin=self._design.margin)

    def _estimated(self, family: Sequence[tuple[_Key, Difference]]) -> list[Change]:
        contrasts = [Contrast(key.workload, key.metric, difference) for key, difference in family]
        estimates = estimate_family(contrasts, self._design.asking(max(1, len(family))))
        found = []
        for (key, _), estimate in zip(family, estimates, strict=True):
            decides, control = self._facts(key.workload)
            found.append(
                Change(
                    **vars(estimate),
                    scheduler=key.scheduler,
                    against=key.against,
                    decides=key.metric.name == decides,
                    control=control,
                )
            )
        return found


def _repeats(first: ExperimentRecord, second: ExperimentRecord) -> bool:
    """Whether the blocks of two experiments on models made the same random choices."""
    return (
        first.target.backend == second.target.backend != "host"
        and first.spec.seed == second.spec.seed
        and first.spec.arrangement == second.spec.arrangement
        and not first.spec.switched
        and not second.spec.switched
    )


def _judged(changes: Sequence[Change]) -> list[Change]:
    deciding = [change for change in changes if change.decides]
    return [change for change in deciding if not change.control] or deciding


def _status(judged: Sequence[Change]) -> ChangeStatus:
    outcomes = {change.outcome for change in judged}
    if {"better", "worse"} <= outcomes:
        return "mixed"
    if "worse" in outcomes:
        return "slower"
    if "better" in outcomes:
        return "faster"
    return "same" if outcomes == {"equal"} else "undecided"


def _changed_controls(changes: Sequence[Change]) -> list[ChangedControl]:
    counts: Mapping[str, None] = dict.fromkeys(
        one.workload for one in changes if one.control and one.decides and one.outcome in ("better", "worse")
    )
    return [ChangedControl(name) for name in counts]
