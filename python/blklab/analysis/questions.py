"""The questions that are asked of an experiment's values: which scheduler is best, by one metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.spec.workloads import Workload

JUDGED_WORKLOADS = "judged workloads"
"""The family of the questions that the verdict over all workloads rests on."""


@dataclass(frozen=True)
class Question:
    """The question of the best scheduler under one workload, by one metric, and the values to answer it."""

    workload: str
    """The workload's name, or what takes its place if the question is about several."""
    metric: Metric
    values: Series
    decides: bool = True
    """Whether the workload's verdict rests on this metric."""
    control: bool = False
    family: str | None = None
    """Questions of one family are corrected together. None: its pairs are corrected among themselves."""
    family_size: int = 1
    """Questions that the family was planned to have, answered or not."""
    unit: SampleUnit = BLOCKS
    """In which its samples are counted."""
    samples_per_value: int = 1
    """Blocks or rounds that one value covers; a percentile of short slots needs several."""


def workload_questions(values: ExperimentValues) -> list[Question]:
    """Every metric of every workload that has values.

    Those that decide a workload make up one family, because the overall verdict rests on them together. All
    others inform the reader, and each is a family of its own.

    Raises:
        UnknownNameError: if a workload is decided by a metric that does not exist.
    """
    deciding = _deciding_metrics(values)
    return [
        _question(values, workload, metric, series, decides=metric == deciding[workload.name])
        for workload in values.workloads
        for metric in values.metrics(workload)
        if (series := values.series[workload.name, metric.name])
    ]


def deciding_questions(values: ExperimentValues) -> list[Question]:
    """The questions that the verdict rests on, also those that have no values yet.

    Raises:
        UnknownNameError: as for `workload_questions`.
    """
    return [
        _question(values, workload, metric, values.series[workload.name, metric.name], decides=True)
        for workload in values.judged
        for metric in (metric_named(workload.decide_by),)
    ]


def _deciding_metrics(values: ExperimentValues) -> Mapping[str, Metric]:
    return {workload.name: metric_named(workload.decide_by) for workload in values.workloads}


def _question(
    values: ExperimentValues, workload: Workload, metric: Metric, series: Series, *, decides: bool
) -> Question:
    joint = decides and not workload.control
    return Question(
        workload=workload.name,
        metric=metric,
        values=series,
        decides=decides,
        control=workload.control,
        family=JUDGED_WORKLOADS if joint else None,
        family_size=len(values.judged) if joint else 1,
        unit=values.unit(workload.name),
        samples_per_value=values.samples_per_value(workload.name, metric.name),
    )
