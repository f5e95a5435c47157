"""Reads rates and ratios from runs of hdparm's two tests and of the busy disk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.two_samples import independent_difference
from blklab.analysis.values import metric_values
from blklab.labs.studies.hdparm.jobs import BUFFERED, BUSY, CACHED
from blklab.labs.studies.replication.result import Estimate
from blklab.labs.studies.replication.statements import CONFIDENCE, mean_of
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import NS_PER_SECOND, RunSample

MIB = 2**20
"""hdparm's MB (hdparm.c, ``TIMING_BUF_MB``, 9.65)."""
UNIT = "MiB/s"

WHY_EQUAL = {
    CACHED: "the page cache answers, so no scheduler is involved",
    BUFFERED: "one reader has few requests in flight, all in order, so a scheduler has nothing to reorder",
}

ByBlock = Mapping[str, Mapping[int, float]]
"""Values by scheduler label, then block."""


def mebibyte_rates(record: ExperimentRecord, workload: str) -> dict[str, dict[int, float]]:
    """MiB/s of every successful run of a workload."""
    found = metric_values(record.samples, record.spec.workload(workload), metric_named("throughput"))
    return {
        label: {block: rate / MIB for block, rate in by_block.items()} for label, by_block in found.items()
    }


def rates_of(record: ExperimentRecord, workload: str, label: str) -> list[float]:
    """MiB/s of the runs under one scheduler, in their order."""
    return list(mebibyte_rates(record, workload).get(label, {}).values())


def job_ios(record: ExperimentRecord, job_name: str) -> dict[str, dict[int, float]]:
    """I/Os that a job of the busy disk completed in each successful run."""
    found: dict[str, dict[int, float]] = {}
    for sample in record.successes(workload=BUSY):
        done = sum(
            entry.ios for job in sample.jobs if job.name == job_name for entry in job.data_directions()
        )
        found.setdefault(sample.cell.scheduler, {})[sample.cell.block] = float(done)
    return found


def paired_ratios(values: ByBlock, first: str, second: str) -> list[float]:
    """First over second in each block where both values exist and are not 0."""
    one, other = values.get(first, {}), values.get(second, {})
    return [
        one[block] / other[block]
        for block in sorted(one.keys() & other.keys())
        if other[block] and one[block]
    ]


def unpaired_ratio(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Ratio of geometric means of independent runs, with Welch's interval of the logarithms."""
    logs = [Sample([math.log(value) for value in values]) for values in (first, second)]
    difference = independent_difference(*logs)
    interval = difference.interval(CONFIDENCE)
    low, high = (None, None) if interval is None else (math.exp(bound) for bound in interval)
    return Estimate(math.exp(difference.estimate), low, high)


def inverse(ratio: Estimate) -> Estimate:
    """The reciprocal of a ratio, with its interval."""
    if ratio.low is None or ratio.high is None:
        return Estimate(1 / ratio.value)
    return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def extreme_ratio(values: ByBlock) -> tuple[str, Estimate]:
    """The two schedulers furthest apart, such as ``bfq over none``, and their ratio within blocks."""
    means = {label: mean_of(list(found.values())).value for label, found in values.items()}
    fastest, slowest = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    if fastest == slowest:
        others = [label for label in means if label != fastest]
        slowest = others[0] if others else fastest
    return f"{fastest} over {slowest}", mean_of(paired_ratios(values, fastest, slowest))


def best_other(values: ByBlock, label: str) -> str:
    """The fastest scheduler other than the given one."""
    means = {name: mean_of(list(found.values())).value for name, found in values.items() if name != label}
    return max(means, key=means.__getitem__)


def requests_of(sample: RunSample) -> int | None:
    """Requests that reached the disk in a run; None if the backend does not count them."""
    count = sample.engine.get("requests")
    return count if isinstance(count, int) else None


def read_bytes(sample: RunSample) -> int:
    """Bytes that the jobs of a run read."""
    return sum(entry.bytes for job in sample.jobs for entry in job.data_directions())


def runtime_s(sample: RunSample) -> float:
    """Measured time of the longest job of a run, in seconds."""
    return max(job.runtime_ns for job in sample.jobs) / NS_PER_SECOND


def arithmetic_mean(values: Iterable[float]) -> float:
    """Arithmetic mean, as in the documents' tables."""
    found: Sequence[float] = list(values)
    return sum(found) / len(found)
