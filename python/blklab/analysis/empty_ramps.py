"""Workloads of which runs measured nothing, because jobs ended within their ramp time."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.records.experiment import ExperimentRecord
from blklab.records.ramps import EmptyJob, empty_jobs


@dataclass(frozen=True)
class EmptyRamp:
    """A job of a workload that ended within its ramp time in some run."""

    workload: str
    job: EmptyJob


def empty_ramps(record: ExperimentRecord) -> list[EmptyRamp]:
    """Each such job, once for all runs that are alike."""
    workloads = {workload.name: workload for workload in record.spec.workloads}
    return list(
        dict.fromkeys(
            EmptyRamp(sample.cell.workload, job)
            for sample in record.samples
            if sample.status == "ok" and sample.cell.workload in workloads
            for job in empty_jobs(workloads[sample.cell.workload], sample.jobs)
        )
    )
