"""The numbers behind a described study: published runs, our runs, and their means and ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.two_samples import independent_difference
from blklab.errors import DataError
from blklab.labs.studies.described.parts import (
    HIGHEST,
    HIGHEST_OTHER,
    HIGHEST_PUBLISHED,
    LOWEST,
    LOWEST_PUBLISHED,
    MeasuredSeries,
    PublishedRuns,
)
from blklab.labs.studies.replication.result import IntervalEstimate
from blklab.labs.studies.replication.samples import moved_bytes
from blklab.labs.studies.replication.statements import CONFIDENCE, mean_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Plan
from blklab.spec.workloads import Workload

COUNT = "ios"
"""In place of a metric: the I/Os that were completed."""
REQUESTS, REQUEST_SIZE = "requests per second", "bytes per request"
"""In place of a metric: of the requests that reached the disk, on backends that count them."""
COUNTS = (COUNT, REQUESTS, REQUEST_SIZE)

ByBlock = Mapping[str, Mapping[int, float]]
"""Values by scheduler label, then block."""
Published = Mapping[str, Sequence[float]]
"""Published values by our label of the scheduler, in their order."""


def published_runs(folder: StudyFolder, runs: PublishedRuns) -> dict[str, list[float]]:
    """Published values by label.

    Raises:
        DataError: if the table cannot be read, or a value is not a positive number.
    """
    rows = runs.rows or {label: {runs.by: label} for label in folder.cells(runs.file, runs.by, **runs.where)}
    found = {
        label: folder.values(runs.file, runs.column, **{**runs.where, **columns})
        for label, columns in rows.items()
    }
    for label, values in found.items():
        for value in values:
            if not (math.isfinite(value) and value > 0):
                raise DataError(
                    f"{folder.place}/published/{runs.file}, column {runs.column}: {value:g} of {label} is "
                    "not a positive number",
                    hint="published values are compared by their ratios",
                )
    return found


def series_workload(series: MeasuredSeries, spec: ExperimentSpec) -> Workload:
    """The workload of a series."""
    return spec.workloads[0] if series.workload is None else spec.workload(series.workload)


def measured_runs(record: ExperimentRecord, series: MeasuredSeries) -> dict[str, dict[int, float]]:
    """The series' value in every successful run, by label and block; without runs that have none."""
    workload = series_workload(series, record.spec)
    compute = _computation(series, workload)
    found: dict[str, dict[int, float]] = {}
    for sample in record.successes(workload=workload.name):
        if series.tool is not None and sample.engine.get("name") != series.tool:
            continue
        value = compute(sample)
        if value is not None and math.isfinite(value):
            found.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value / series.divide_by
    return found


def loads_of(record: ExperimentRecord, series: MeasuredSeries) -> str:
    """The programs that the load of the series' runs came from."""
    workload = series_workload(series, record.spec)
    names = {str(sample.engine.get("name")) for sample in record.successes(workload=workload.name)}
    return ", ".join(sorted(names)) or "no tool"


def _computation(series: MeasuredSeries, workload: Workload) -> Callable[[RunSample], float | None]:
    counted = [series.job] if series.job is not None else workload.focus

    def measured(sample: RunSample) -> list[JobSample]:
        return [job for job in sample.jobs if job.name in counted]

    if series.metric == COUNT:
        return lambda sample: float(sum(one.ios for job in measured(sample) for one in job.data_directions()))
    if series.metric in (REQUESTS, REQUEST_SIZE):
        return _requests_per_second if series.metric == REQUESTS else _bytes_per_request
    metric = metric_named(series.metric or workload.decide_by)
    return lambda sample: metric.compute(measured(sample))


def _requests_per_second(sample: RunSample) -> float | None:
    requests = sample.engine.get("requests")
    longest_ns = max((job.runtime_ns for job in sample.jobs), default=0)
    return requests / longest_ns * NS_PER_SECOND if isinstance(requests, int) and longest_ns else None


def _bytes_per_request(sample: RunSample) -> float | None:
    requests = sample.engine.get("requests")
    moved = sum(moved_bytes(job) for job in sample.jobs)
    return moved / requests if isinstance(requests, int) and requests else None


def paired_ratios(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    """First over second in each block where both values exist and are not 0."""
    return [
        first[block] / second[block]
        for block in sorted(first.keys() & second.keys())
        if second[block] and first[block]
    ]


def mean_ratio(ratios: Sequence[float]) -> IntervalEstimate | None:
    """Mean of ratios within blocks; None without any."""
    return mean_of(ratios) if ratios else None


def unpaired_ratio(first: Sequence[float], second: Sequence[float]) -> IntervalEstimate:
    """Ratio of geometric means of independent runs, with Welch's interval of the logarithms."""
    logs = [Sample([math.log(value) for value in values]) for values in (first, second)]
    difference = independent_difference(*logs)
    interval = difference.interval(CONFIDENCE)
    low, high = (None, None) if interval is None else (math.exp(bound) for bound in interval)
    return IntervalEstimate(math.exp(difference.estimate), low, high)


def arithmetic_mean(values: Sequence[float]) -> float:
    """Arithmetic mean, as in documents' tables."""
    return sum(values) / len(values)


def deviation_percent(runs: Sequence[float]) -> float | None:
    """Deviation in percent of the mean, rounded to 0.01 % so that rounding errors of equal values vanish."""
    if len(runs) < 2:
        return None
    return round(100 * statistics.stdev(runs) / statistics.fmean(runs), 2)


def picked(
    word: str, values: ByBlock, published: Published | None = None, *, beside: str | None = None
) -> str | None:
    """The scheduler that a name or a word such as `the highest` stands for; None if there is none.

    Args:
        word: A label, or one of `PICKED`.
        values: Our runs.
        published: The published runs.
        beside: The scheduler that it is compared with: it is another one.
    """
    if word in (HIGHEST_PUBLISHED, LOWEST_PUBLISHED):
        means = {label: arithmetic_mean(runs) for label, runs in (published or {}).items()}
    elif word in (HIGHEST, LOWEST, HIGHEST_OTHER):
        means = {
            label: mean_of(list(found.values())).value
            for label, found in values.items()
            if all(value > 0 for value in found.values())
        }
    else:
        return word
    if word == HIGHEST_OTHER:
        means.pop(beside or "", None)
    if not means:
        return None
    best = (min if word in (LOWEST, LOWEST_PUBLISHED) else max)(means, key=means.__getitem__)
    if best == beside:
        return next((label for label in means if label != beside), best)
    return best


def session_values(runs: Published) -> list[float]:
    """Values of all schedulers in the order of measurement, the first scheduler first."""
    return [value for values in runs.values() for value in values]


def replay_in_blocks(
    values: Sequence[float], spec: ExperimentSpec, workload: str
) -> dict[str, dict[int, float]]:
    """Deals a published session out to randomised blocks, as if no scheduler mattered.

    A document that measures all runs of a scheduler in one stretch cannot tell a change of the machine during
    that stretch from an effect of the scheduler. Here the printed values, in the order of measurement, serve
    as the drift of a machine on which no scheduler matters. A randomised run gets the value that the document
    measured at the same position of its session.

    Args:
        values: One value for each run of the workload, in order.
        spec: The experiment in randomised blocks; its number of blocks follows from `values`.
        workload: Only runs of this workload get a value.

    Raises:
        DataError: if the values do not make whole blocks.
    """
    blocks, rest = divmod(len(values), len(spec.schedulers) or 1)
    if rest or not spec.schedulers:
        raise DataError(f"{len(values)} published values are not a whole number of blocks")
    plan = Plan(spec.model_copy(update={"blocks": blocks}))
    cells = [cell.key for block in plan.blocks() for cell in block if cell.key.workload == workload]
    found: dict[str, dict[int, float]] = {choice.label: {} for choice in spec.schedulers}
    for key, value in zip(cells, values, strict=True):
        found[key.scheduler][key.block] = value
    return found
