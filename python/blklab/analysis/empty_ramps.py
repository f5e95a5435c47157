"""Workloads of which runs measured nothing, because jobs ended within their ramp time."""

from __future__ import annotations

from blklab.records.experiment import ExperimentRecord
from blklab.records.ramps import ended_in_ramp


def empty_ramp_warnings(record: ExperimentRecord) -> list[str]:
    """A warning for each such job, once for all runs."""
    workloads = {workload.name: workload for workload in record.spec.workloads}
    return list(
        dict.fromkeys(
            f"{sample.cell.workload}: {text}"
            for sample in record.samples
            if sample.status == "ok" and sample.cell.workload in workloads
            for text in ended_in_ramp(workloads[sample.cell.workload], sample.jobs)
        )
    )
