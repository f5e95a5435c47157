"""Reads rates and ratios from runs of hdparm's two tests and of the busy disk."""

from __future__ import annotations

from blklab.labs.studies.described.description import RunFigure
from blklab.labs.studies.described.runs import COUNT, measured_runs
from blklab.labs.studies.hdparm.jobs import BUFFERED, BUSY, CACHED
from blklab.labs.studies.replication.result import IntervalEstimate
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample

MIB = 2**20
"""hdparm's MB (hdparm.c, ``TIMING_BUF_MB``, 9.65)."""
UNIT = "MiB/s"

WHY_EQUAL = {
    CACHED: "the page cache answers, so no scheduler is involved",
    BUFFERED: "one reader has few requests in flight, all in order, so a scheduler has nothing to reorder",
}


def mebibyte_rates(record: ExperimentRecord, workload: str) -> dict[str, dict[int, float]]:
    """MiB/s of every successful run of a workload."""
    series = RunFigure(workload=workload, metric="throughput", divide_by=MIB)
    return measured_runs(record, series)


def rates_of(record: ExperimentRecord, workload: str, label: str) -> list[float]:
    """MiB/s of the runs under one scheduler, in their order."""
    return list(mebibyte_rates(record, workload).get(label, {}).values())


def job_ios(record: ExperimentRecord, job_name: str) -> dict[str, dict[int, float]]:
    """I/Os that a job of the busy disk completed in each successful run."""
    return measured_runs(record, RunFigure(workload=BUSY, job=job_name, metric=COUNT))


def inverse(ratio: IntervalEstimate) -> IntervalEstimate:
    """The reciprocal of a ratio, with its interval."""
    if ratio.low is None or ratio.high is None:
        return IntervalEstimate(1 / ratio.value)
    return IntervalEstimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


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
