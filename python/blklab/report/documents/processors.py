"""Processors of models: how busy they were under each scheduler, and how much of that was its own work."""

from __future__ import annotations

import statistics

from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.report.documents.parts import Part


class ProcessorPart(Part):
    """The processors under a scheduler and a workload, as medians over runs."""

    workload: str
    scheduler: str
    busiest_share: float
    """Share of the time in which the busiest processor computed."""
    scheduler_share: float | None
    """Share of all computing that was the scheduler's; None where it is not known (guests)."""


def processor_parts(record: ExperimentRecord) -> list[ProcessorPart]:
    """A part for each workload and scheduler whose runs had a cost table, in the experiment's order."""
    found: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
    for sample in record.samples:
        loads = _loads(sample)
        if loads is not None:
            found.setdefault((sample.cell.workload, sample.cell.scheduler), []).append(loads)
    parts = []
    for (workload, scheduler), runs in found.items():
        own = [share for _, share in runs if share is not None]
        parts.append(
            ProcessorPart(
                workload=workload,
                scheduler=scheduler,
                busiest_share=statistics.median(share for share, _ in runs),
                scheduler_share=statistics.median(own) if own else None,
            )
        )
    return parts


def _loads(sample: RunSample) -> tuple[float, float | None] | None:
    """The busiest processor's share of the time, and the scheduler's share of the computing."""
    processors = sample.engine.get("processors")
    simulated_ns = sample.engine.get("simulated_ns")
    if sample.status != "ok" or sample.slot is not None or not processors or not simulated_ns:
        return None
    busy_ns = processors["busy_ns"]
    own_ns = processors.get("scheduler_ns")
    all_ns = sum(busy_ns)
    own = own_ns / all_ns if own_ns is not None and all_ns else None
    return max(busy_ns) / simulated_ns, own
