"""Planned changes for people: sentences, and a table of the metric that decides, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.metrics import metric_named
from blklab.quantities.formatting import scale_for
from blklab.quantities.units import NS_PER_SECOND, format_duration
from blklab.report.documents.phases import ChangesPart, PhasePart


@dataclass(frozen=True)
class PhaseTable:
    """A workload's metric by scheduler and phase."""

    metric: str
    unit: str
    headings: list[str]
    """Of the phases: ``0 to 10 s``."""
    rows: list[tuple[str, list[str]]]
    """By scheduler: a figure for each phase."""


def phase_table(part: ChangesPart | None, workload: str) -> PhaseTable | None:
    """The table of a workload; None if nothing changed, or no phase has a figure."""
    phases = [] if part is None else [one for one in part.phases if one.workload == workload]
    found = [result for phase in phases for result in phase.results]
    if not found:
        return None
    metric = metric_named(found[0].metric)
    scale = scale_for(metric.unit, [result.mean for result in found])
    by_phase = [{result.scheduler: result for result in phase.results} for phase in phases]
    labels = dict.fromkeys(result.scheduler for result in found)
    return PhaseTable(
        metric=metric.name,
        unit=scale.unit,
        headings=[phase_title(phase) for phase in phases],
        rows=[
            (
                label,
                [
                    scale.interval(own.mean, own.ci_low, own.ci_high)
                    if (own := results.get(label)) is not None
                    else "-"
                    for results in by_phase
                ],
            )
            for label in labels
        ],
    )


def phase_title(phase: PhasePart) -> str:
    """``0 to 10 s``, ``from 10 s``."""
    from_text = _time(phase.from_seconds)
    return f"from {from_text}" if phase.to_seconds is None else f"{from_text} to {_time(phase.to_seconds)}"


def changes_sentences(part: ChangesPart | None) -> list[str]:
    """The changes of a comparison, and how late they were."""
    if part is None:
        return []
    lines = [f"While the load runs: {'; '.join(part.planned)}. The verdict is about whole runs."]
    if part.largest_delay_seconds:
        delay = format_duration(part.largest_delay_seconds * NS_PER_SECOND)
        lines.append(f"Each change was in force at most {delay} after its moment.")
    return lines


def _time(seconds: float) -> str:
    return "0" if not seconds else format_duration(seconds * NS_PER_SECOND)
