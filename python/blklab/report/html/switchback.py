"""A switched workload's part of the HTML report: its load, its slots at their switch, its differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.analysis.designs import design_of
from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.slot_values import merged_jobs
from blklab.analysis.statistics.series import Series
from blklab.quantities.formatting import metric_title, scale_for
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample
from blklab.report.charts.load import load_chart
from blklab.report.charts.narrowing import NarrowingPair, narrowing_chart
from blklab.report.charts.settling import settling_chart
from blklab.report.documents.comparison import CompareDocument, ComparisonPart
from blklab.report.documents.designs import DesignPart
from blklab.report.drawing.palette import Appearance
from blklab.report.summary.narrowing import looks
from blklab.report.summary.slot_rates import SlotRates, aligned_slots, slot_rates
from blklab.report.summary.standing import pairs_against
from blklab.spec.workloads import Workload

Looks = dict[str, Appearance]

MOST_PAIRS = 4
STANDING_OF = {"worse": "beaten", "equal": "equal", "undecided": "open", "better": "ahead"}
"""The outcome of a scheduler against the leader, in one word."""


@dataclass(frozen=True)
class StretchRow:
    """A stretch in the table of all stretches."""

    number: int
    rounds: str
    slots: int
    started_at: str
    figures: list[str]
    """The mean of each scheduler, in the order of their labels."""
    failure: str | None


@dataclass(frozen=True)
class SwitchbackSection:
    """The part of a workload's section that only a switchback has."""

    part: DesignPart
    switches: str
    """How long a switch took."""
    narrowing: Markup | None
    load: Markup | None
    settling: Markup | None
    stretches: list[StretchRow]
    unit: str
    """Of the figures of the stretches."""


def switchback_section(
    record: ExperimentRecord,
    document: CompareDocument,
    part: DesignPart,
    series: Series,
    appearances: Looks,
    order: Sequence[str],
) -> SwitchbackSection:
    """The charts and the table of a switched workload.

    Args:
        record: The experiment.
        document: Its analysis.
        part: The workload's design.
        series: Values of the metric that decides.
        appearances: Of the schedulers, by label.
        order: Their labels, best first.
    """
    workload = record.spec.workload(part.workload)
    metric = metric_named(workload.decide_by)
    slots = slot_rates(record, workload.name)
    note = (
        "Above, each mark is a slot; grey strips are the pauses between stretches. Below, the middle stretch "
        "begins, with the parts that are cut off lighter."
    )
    rows, unit = _stretch_rows(record, workload, metric, list(appearances))
    return SwitchbackSection(
        part=part,
        switches=_switches(part),
        narrowing=_narrowing(record, document, workload, series, appearances, order),
        load=load_chart("The load over time", slots, appearances, note) if slots else None,
        settling=_settling(part, slots, appearances),
        stretches=rows,
        unit=unit,
    )


def _switches(part: DesignPart) -> str:
    if part.switch_median_ns is None or part.switch_longest_ns is None:
        return "none was made"
    median, longest = (format_duration(value) for value in (part.switch_median_ns, part.switch_longest_ns))
    return f"{median} in the median, {longest} at most"


def _narrowing(
    record: ExperimentRecord,
    document: CompareDocument,
    workload: Workload,
    series: Series,
    appearances: Looks,
    order: Sequence[str],
) -> Markup | None:
    """The leader against the open schedulers, then against the others, best first."""
    leader, metric = order[0], metric_named(workload.decide_by)
    found = pairs_against(document, workload.name, metric.name, leader)
    rivals = sorted((name for name in order if name in found), key=lambda name: _is_settled(found[name]))
    design = design_of(record.spec).of(workload.name)
    drawn = [
        NarrowingPair(name, appearances[name], course, STANDING_OF[found[name].outcome])
        for name in rivals[:MOST_PAIRS]
        if (course := looks(series.get(name, {}), series.get(leader, {}), design))
    ]
    if not drawn:
        return None
    title = f"Against {leader}, as the rounds came: {metric_title(metric.name)}"
    left_out = len(rivals) - MOST_PAIRS
    note = "The ratio with its interval after each round; the band around 0 counts as equal."
    if left_out > 0:
        note += f" {left_out} more are in the table of pairs."
    return narrowing_chart(title, drawn, leader, document.margin, note)


def _is_settled(pair: ComparisonPart) -> bool:
    return pair.outcome != "undecided"


def _settling(part: DesignPart, slots: Sequence[SlotRates], appearances: Looks) -> Markup | None:
    found = [one for name in appearances if (one := aligned_slots(slots, name)) is not None]
    if not found:
        return None
    note = (
        "I/Os per second as a share of the slot's mean after the cut-off: the median over all slots of a "
        "scheduler, and the band that holds half of them. The grey part is cut off."
    )
    return settling_chart("Slots aligned at their switch", found, appearances, part.settling_ns, note)


def _stretch_rows(
    record: ExperimentRecord, workload: Workload, metric: Metric, labels: Sequence[str]
) -> tuple[list[StretchRow], str]:
    stretches: dict[int, list[RunSample]] = {}
    for sample in record.samples:
        if sample.cell.workload == workload.name and sample.slot is not None:
            stretches.setdefault(sample.slot.stretch, []).append(sample)
    means = {number: _means(samples, workload, metric) for number, samples in stretches.items()}
    scale = scale_for(metric.unit, [mean for found in means.values() for mean in found.values()])
    rows = []
    for number, samples in stretches.items():
        rounds = [sample.cell.block + 1 for sample in samples]
        first, last = min(rounds), max(rounds)
        failure = next(((one.error or "failed") for one in samples if one.status == "failed"), None)
        found = means[number]
        rows.append(
            StretchRow(
                number=number + 1,
                rounds=str(first) if first == last else f"{first} to {last}",
                slots=len(samples),
                started_at=min(sample.started_at for sample in samples),
                figures=[scale.figure(found[label]) if label in found else "-" for label in labels],
                failure=failure,
            )
        )
    return rows, scale.unit


def _means(samples: Sequence[RunSample], workload: Workload, metric: Metric) -> dict[str, float]:
    """The metric over all slots of each scheduler as if they were one."""
    slots: dict[str, list[list[JobSample]]] = {}
    for sample in samples:
        if sample.status == "ok":
            focused = [job for job in sample.jobs if job.name in workload.focus]
            slots.setdefault(sample.cell.scheduler, []).append(focused)
    found = {label: metric.compute(merged_jobs(own)) for label, own in slots.items()}
    return {label: value for label, value in found.items() if value is not None}
