"""Jobs that starved in whole runs of an experiment, which its latencies do not show."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from blklab.records.experiment import ExperimentRecord
from blklab.records.starvation import Starved, starved


@dataclass(frozen=True)
class StarvedJob:
    """A job with processes that were not served, under one scheduler."""

    workload: str
    scheduler: str
    worst: Starved
    """The run in which most of its processes starved."""
    runs: int
    """Runs in which some did."""
    of_runs: int
    virtual_time: bool
    """Whether nothing disturbs the turns that leave them out."""


def starved_jobs(record: ExperimentRecord) -> list[StarvedJob]:
    """One for each workload, scheduler and job. Slots of a switchback are no whole runs."""
    workloads = {workload.name: workload for workload in record.spec.workloads}
    worst: dict[tuple[str, str, str], list[Starved]] = defaultdict(list)
    runs: dict[tuple[str, str], int] = defaultdict(int)
    for sample in record.samples:
        workload = workloads.get(sample.cell.workload)
        if sample.status != "ok" or sample.slot is not None or workload is None:
            continue
        runs[sample.cell.workload, sample.cell.scheduler] += 1
        for found in starved(workload, sample.jobs):
            worst[sample.cell.workload, sample.cell.scheduler, found.job].append(found)
    return [
        StarvedJob(
            workload=workload,
            scheduler=scheduler,
            worst=max(found, key=lambda one: one.processes),
            runs=len(found),
            of_runs=runs[workload, scheduler],
            virtual_time=record.target.backend != "host",
        )
        for (workload, scheduler, _), found in worst.items()
    ]
