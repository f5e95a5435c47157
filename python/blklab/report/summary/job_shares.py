"""A table of jobs and schedulers: each job's rate and share, and the ratio of each two jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blklab.quantities.formatting import percent_text
from blklab.quantities.ratios import reciprocal_interval
from blklab.quantities.units import format_si
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.job_shares import JobRatioPart, JobSharesPart

_HARDLY_ANYTHING = 0.01
_MOST_PLACES = 3


@dataclass(frozen=True)
class JobTable:
    """The jobs of one workload."""

    workload: str
    headings: list[str]
    """Schedulers."""
    rows: list[tuple[str, list[str]]]
    """A job, or two jobs, with a cell for each scheduler."""
    ratios: list[str]
    """Names of the rows of two jobs."""


def job_tables(document: CompareDocument) -> list[JobTable]:
    """A table for each workload with two jobs or more."""
    workloads = dict.fromkeys(part.workload for part in document.jobs)
    return [_table(name, [part for part in document.jobs if part.workload == name]) for name in workloads]


def _table(workload: str, parts: list[JobSharesPart]) -> JobTable:
    jobs = list(dict.fromkeys(rate.job for part in parts for rate in part.rates))
    pairs = list(dict.fromkeys((ratio.first, ratio.second) for part in parts for ratio in part.ratios))
    rows = [(job, [_rate(part, job) for part in parts]) for job in jobs]
    ratios = [
        (f"{first} : {second}", [_ratio(part, first, second) for part in parts]) for first, second in pairs
    ]
    headings = [part.scheduler for part in parts]
    return JobTable(workload, headings, [*rows, *ratios], [name for name, _ in ratios])


def _rate(part: JobSharesPart, job: str) -> str:
    found = next((rate for rate in part.rates if rate.job == job), None)
    if found is None:
        return ""
    return f"{format_si(found.bytes_per_second, 'B/s')} ({_share(found.share)})"


def _share(share: float) -> str:
    """A percentage; where hardly anything is left for a job, with the places that show it: ``99.7 %``."""
    edge = min(share, 1 - share)
    if not 0 < edge < _HARDLY_ANYTHING:
        return percent_text(share)
    return f"{100 * share:.{min(_MOST_PLACES, -math.floor(math.log10(100 * edge)))}f} %"


def _ratio(part: JobSharesPart, first: str, second: str) -> str:
    found = next((one for one in part.ratios if (one.first, one.second) == (first, second)), None)
    return "" if found is None else ratio_text(found)


def ratio_text(found: JobRatioPart) -> str:
    """``7.9 : 1 [7.7, 8.1]``, and where the second job has more ``1 : 7.9 [7.7, 8.1]``."""
    if 0 < found.ratio < 1:
        mean = f"1 : {_number(1 / found.ratio)}"
        bounds = reciprocal_interval(found.low, found.high)
    else:
        mean, bounds = f"{_number(found.ratio)} : 1", (found.low, found.high)
    if bounds[0] is None or bounds[1] is None:
        return mean
    low, high = map(_number, (bounds[0], bounds[1]))
    # In virtual time repetitions may agree to the last digit.
    return mean if low == high else f"{mean} [{low}, {high}]"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
