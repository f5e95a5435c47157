"""hdparm's two tests as jobs, and what runs of them say, in hdparm's unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from blklab.comparison import metric_values
from blklab.experiment import ExperimentRecord
from blklab.metrics import metric_named
from blklab.samples import NS_PER_SECOND, RunSample
from blklab.studies.protocol import Asked
from blklab.studies.published import Published
from blklab.studies.result import Quantity
from blklab.studies.statements import mean_of
from blklab.workloads import Workload

CACHED = "cached-reads"
BUFFERED = "buffered-reads"
TESTS = {CACHED: "cached reads", BUFFERED: "buffered disk reads"}
"""As the tables of published figures call them."""

MIB = 2**20
"""hdparm's MB (hdparm.c, ``TIMING_BUF_MB``, 9.65)."""
UNIT = "MiB/s"

MARGIN = 0.02
"""Differences that do not matter, as everywhere in blklab."""


class Tests(BaseModel):
    """Sizes and times of the two tests, by place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    area: str
    buffered_runtime: str
    cached_runtime: str
    uml_area: str
    uml_cached_runtime: str
    host_area: str
    host_scratch: str

    def workloads(self, asked: Asked, published: Published) -> list[Workload]:
        """Both tests, in hdparm's order of ``-tT``: the cached reads come first."""
        runtime = self.uml_cached_runtime if asked.place == "uml" else self.cached_runtime
        return [
            published.workload("cached-reads.fio", name=CACHED, runtime=runtime),
            self.buffered(asked, published),
        ]

    def buffered(self, asked: Asked, published: Published, area: str | None = None) -> Workload:
        """``-t`` alone; over another area if one is given."""
        usual = {"sim": self.area, "uml": self.uml_area, "host": self.host_area}[asked.place]
        return published.workload(
            "buffered-reads.fio", name=BUFFERED, area=area or usual, runtime=self.buffered_runtime
        )


def mebibyte_rates(record: ExperimentRecord, workload: str) -> dict[str, dict[int, float]]:
    """MiB/s of every successful run of a workload: by scheduler's label, then block."""
    found = metric_values(record.samples, record.spec.workload(workload), metric_named("throughput"))
    return {
        label: {block: rate / MIB for block, rate in by_block.items()} for label, by_block in found.items()
    }


def rates_of(record: ExperimentRecord, workload: str, label: str) -> list[float]:
    """MiB/s of the runs under one scheduler, in their order."""
    return list(mebibyte_rates(record, workload).get(label, {}).values())


def paired_ratios(values: Mapping[str, Mapping[int, float]], first: str, second: str) -> list[float]:
    """First over second, block by block, where both have a figure that is not 0."""
    one, other = values.get(first, {}), values.get(second, {})
    return [
        one[block] / other[block]
        for block in sorted(one.keys() & other.keys())
        if other[block] and one[block]
    ]


def extreme_ratio(values: Mapping[str, Mapping[int, float]]) -> tuple[str, Quantity]:
    """The two schedulers that are furthest apart, as ``bfq over none``, and their ratio within blocks."""
    means = {label: mean_of(list(found.values())).value for label, found in values.items()}
    fastest, slowest = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    if fastest == slowest:
        others = [label for label in means if label != fastest]
        slowest = others[0] if others else fastest
    return f"{fastest} over {slowest}", mean_of(paired_ratios(values, fastest, slowest))


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


def relative_to_mean(means: Mapping[str, float]) -> dict[str, float]:
    """Each figure over the mean of all: orderings and ratios, without the speed of the hardware."""
    middle = sum(means.values()) / len(means)
    return {label: value / middle for label, value in means.items()}


def arithmetic_mean(values: Iterable[float]) -> float:
    """As the documents' tables have it."""
    found: Sequence[float] = list(values)
    return sum(found) / len(found)
