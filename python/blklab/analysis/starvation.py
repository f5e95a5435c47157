"""Jobs that starved in whole runs of an experiment, which its latencies do not show."""

from __future__ import annotations

from collections import defaultdict

from blklab.records.experiment import ExperimentRecord
from blklab.records.starvation import Starved, starvation_text, starved


def starvation_warnings(record: ExperimentRecord) -> list[str]:
    """A warning for each workload, scheduler and job. Slots of a switchback are no whole runs."""
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
    virtual_time = record.target.backend != "host"
    return [
        f"{workload}: under {scheduler} "
        + starvation_text(
            max(found, key=lambda one: one.processes),
            len(found),
            runs[workload, scheduler],
            virtual_time=virtual_time,
        )
        for (workload, scheduler, _), found in worst.items()
    ]
