"""Planned changes in documents for machines: when they came, and what the jobs did between them."""

from __future__ import annotations

from pydantic import Field

from blklab.analysis.phases import moments_of, phase_means
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import ChangeSample
from blklab.report.documents.parts import MeanPart, Part
from blklab.spec.changes import Change


class PhasePart(Part):
    """A part of a workload's runs between planned changes."""

    workload: str
    number: int
    """From 0, the part before the first change."""
    from_seconds: float
    """From the start of the load, as planned."""
    to_seconds: float | None
    """None for the end of the load."""
    changes: list[str]
    """The changes at its beginning."""
    results: list[MeanPart]
    """Of the metric that decides; on disks of this machine latencies are those of completion."""


class ChangePart(Part):
    """A planned change as it came about in one run; seconds from the start of the load."""

    change: str
    planned_seconds: float
    begun_seconds: float
    made_seconds: float
    """When it was in force."""


class ChangesPart(Part):
    """The planned changes of an experiment."""

    planned: list[str] = Field(default_factory=list)
    largest_delay_seconds: float | None = None
    """From a change's moment until it was in force, at most; None without runs."""
    phases: list[PhasePart] = Field(default_factory=list)


def changes_part(record: ExperimentRecord) -> ChangesPart | None:
    """The changes of an experiment and its phases; None if nothing was planned to change."""
    changes = record.spec.changes
    if not changes:
        return None
    delays_ns = [made.made_ns - made.planned_ns for sample in record.successes() for made in sample.changes]
    moments_ns = [0, *moments_of(changes)]
    phases = [
        PhasePart(
            workload=workload.name,
            number=number,
            from_seconds=moments_ns[number] / NS_PER_SECOND,
            to_seconds=moments_ns[number + 1] / NS_PER_SECOND if number + 1 < len(moments_ns) else None,
            changes=_made_at(changes, moments_ns[number]),
            results=[MeanPart.of(mean) for mean in means],
        )
        for workload in record.spec.workloads
        for number, means in phase_means(record, workload).items()
    ]
    return ChangesPart(
        planned=[change.canonical for change in changes],
        largest_delay_seconds=max(delays_ns) / NS_PER_SECOND if delays_ns else None,
        phases=phases,
    )


def change_part(change: ChangeSample) -> ChangePart:
    """A change of one run in the documented form."""
    return ChangePart(
        change=change.change,
        planned_seconds=change.planned_ns / NS_PER_SECOND,
        begun_seconds=change.begun_ns / NS_PER_SECOND,
        made_seconds=change.made_ns / NS_PER_SECOND,
    )


def _made_at(changes: list[Change], moment_ns: int) -> list[str]:
    return [change.what for change in changes if change.at_ns == moment_ns]
