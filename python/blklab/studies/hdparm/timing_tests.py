"""What runs of hdparm's two tests and of the busy disk say, in hdparm's unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.two_samples import independent_difference
from blklab.analysis.values import metric_values
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import NS_PER_SECOND, RunSample
from blklab.studies.hdparm.jobs import BUFFERED, BUSY, CACHED
from blklab.studies.replication.result import Quantity
from blklab.studies.replication.statements import CONFIDENCE, mean_of

MIB = 2**20
"""hdparm's MB (hdparm.c, ``TIMING_BUF_MB``, 9.65)."""
UNIT = "MiB/s"

WHY_EQUAL = {
    CACHED: "the page cache answers: no scheduler is asked",
    BUFFERED: "one reader has few requests under way, all in order: there is nothing to reorder",
}

ByBlock = Mapping[str, Mapping[int, float]]
"""Figures by scheduler's label, then block."""


def mebibyte_rates(record: ExperimentRecord, workload: str) -> dict[str, dict[int, float]]:
    """MiB/s of every successful run of a workload."""
    found = metric_values(record.samples, record.spec.workload(workload), metric_named("throughput"))
    return {
        label: {block: rate / MIB for block, rate in by_block.items()} for label, by_block in found.items()
    }


def rates_of(record: ExperimentRecord, workload: str, label: str) -> list[float]:
    """MiB/s of the runs under one scheduler, in their order."""
    return list(mebibyte_rates(record, workload).get(label, {}).values())


def party_ios(record: ExperimentRecord, party: str) -> dict[str, dict[int, float]]:
    """I/Os that a party of the busy disk had done in each successful run."""
    found: dict[str, dict[int, float]] = {}
    for sample in record.successes(workload=BUSY):
        done = sum(entry.ios for job in sample.jobs if job.name == party for entry in job.data_directions())
        found.setdefault(sample.cell.scheduler, {})[sample.cell.block] = float(done)
    return found


def paired_ratios(values: ByBlock, first: str, second: str) -> list[float]:
    """First over second, block by block, where both have a figure that is not 0."""
    one, other = values.get(first, {}), values.get(second, {})
    return [
        one[block] / other[block]
        for block in sorted(one.keys() & other.keys())
        if other[block] and one[block]
    ]


def unpaired_ratio(first: Sequence[float], second: Sequence[float]) -> Quantity:
    """Ratio of geometric means of independent runs, by Welch's interval of the logarithms."""
    logs = [Sample([math.log(value) for value in values]) for values in (first, second)]
    difference = independent_difference(*logs)
    interval = difference.interval(CONFIDENCE)
    low, high = (None, None) if interval is None else (math.exp(bound) for bound in interval)
    return Quantity(math.exp(difference.estimate), low, high)


def inverse(ratio: Quantity) -> Quantity:
    """One over it."""
    if ratio.low is None or ratio.high is None:
        return Quantity(1 / ratio.value)
    return Quantity(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def extreme_ratio(values: ByBlock) -> tuple[str, Quantity]:
    """The two schedulers that are furthest apart, as ``bfq over none``, and their ratio within blocks."""
    means = {label: mean_of(list(found.values())).value for label, found in values.items()}
    fastest, slowest = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    if fastest == slowest:
        others = [label for label in means if label != fastest]
        slowest = others[0] if others else fastest
    return f"{fastest} over {slowest}", mean_of(paired_ratios(values, fastest, slowest))


def best_other(values: ByBlock, label: str) -> str:
    """The fastest scheduler beside the given one."""
    means = {name: mean_of(list(found.values())).value for name, found in values.items() if name != label}
    return max(means, key=means.__getitem__)


def requests_of(sample: RunSample) -> int | None:
    """Requests that reached the disk in a run; nothing where the backend does not count them."""
    count = sample.engine.get("requests")
    return count if isinstance(count, int) else None


def read_bytes(sample: RunSample) -> int:
    """What the jobs of a run read."""
    return sum(entry.bytes for job in sample.jobs for entry in job.data_directions())


def runtime_s(sample: RunSample) -> float:
    """How long the longest job of a run was measured."""
    return max(job.runtime_ns for job in sample.jobs) / NS_PER_SECOND


def arithmetic_mean(values: Iterable[float]) -> float:
    """As the documents' tables have it."""
    found: Sequence[float] = list(values)
    return sum(found) / len(found)
