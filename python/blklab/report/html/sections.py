"""One workload's part of the HTML report: its charts and tables."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from blklab.analysis.metrics import METRICS, Metric, metric_named
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues
from blklab.quantities.formatting import margin_text, metric_title, scale_for
from blklab.quantities.sample_units import SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import LatencyHistogram
from blklab.report.charts.changes import changes_chart
from blklab.report.charts.distribution import LatencySeries, density_chart, exceedance_chart
from blklab.report.charts.forest import ForestRow, Margin, forest_chart
from blklab.report.charts.relative import RelativeRow, relative_chart
from blklab.report.charts.sequence import SequenceRun, sequence_chart
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.documents.designs import DesignPart
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import element, mark
from blklab.report.html.switchback import STANDING_OF, SwitchbackSection, switchback_section
from blklab.report.html.tables import FigureTable, MatrixRow, figure_table, pair_matrix
from blklab.report.sentences.commands import command_sentence
from blklab.report.summary.conduct import noise_sentences
from blklab.report.summary.designs import design_of_workload, unit_of
from blklab.report.summary.job_shares import JobTable, job_tables
from blklab.report.summary.phases import PhaseTable, phase_table
from blklab.report.summary.standing import (
    ShownStatus,
    Standing,
    deciding_verdict,
    metrics_of,
    pairs_against,
    ranked,
    results_of,
    shown_status,
)
from blklab.report.text.wording import finding
from blklab.spec.workloads import Workload

Looks = dict[str, Appearance]

MOST_TICKS = 150
"""Runs or slots of a scheduler that the chart of means shows."""


@dataclass(frozen=True)
class RunRow:
    """A run in the table of all runs."""

    sequence: int
    block: int
    scheduler: str
    started_at: str
    figure: str
    failure: str | None


@dataclass(frozen=True)
class WorkloadSection:
    """A workload's part of the report."""

    anchor: str
    workload: Workload
    verdict: MetricVerdictPart | None
    decides: str
    """Title of the metric that decides."""
    decides_meaning: str
    finding: str
    status: ShownStatus | None
    """None without a verdict."""
    forest: Markup | None
    relative: Markup | None
    panels: list[Markup]
    distributions: list[Markup]
    sequence: Markup | None
    noise: list[str]
    """A sentence for each notable effect in the noise."""
    order: list[str]
    """Schedulers, best first."""
    matrix: list[MatrixRow]
    figures: FigureTable
    runs: list[RunRow]
    """Empty for a switchback, which has a table of its stretches."""
    unit: str
    samples: SampleUnit
    design: DesignPart | None
    """None if the experiment knows runs only."""
    command: str | None
    """Sentence on how a command was run; None for a job file."""
    changes: Markup | None
    """The load over time; None if nothing changed while it ran."""
    phases: PhaseTable | None
    switchback: SwitchbackSection | None
    """None if the workload has runs."""
    jobs: JobTable | None
    """None for a workload with one job."""


def workload_section(
    record: ExperimentRecord,
    document: CompareDocument,
    values: ExperimentValues,
    workload: Workload,
    looks: Looks,
    anchor: str,
) -> WorkloadSection:
    """Charts and tables of a workload, as far as its runs gave figures.

    Args:
        record: The experiment.
        document: Its analysis.
        values: Its values.
        workload: The workload.
        looks: Appearances of the schedulers.
        anchor: The section's name in the page.
    """
    series = values.series[workload.name, metric_named(workload.decide_by).name]
    metric = metric_named(workload.decide_by)
    order = [row.scheduler for row in ranked(document, workload.name, metric.name)]
    design, samples = design_of_workload(document, workload.name), unit_of(document, workload.name)
    switched = design is not None and design.slot_ns is not None
    runs, unit = ([], "") if switched else _runs(record, workload, metric)
    title = metric_title(metric.name)
    verdict = deciding_verdict(document, workload.name)
    others = metrics_of(document, workload.name, metric.name)
    return WorkloadSection(
        anchor=anchor,
        workload=workload,
        verdict=verdict,
        decides=title,
        decides_meaning=metric.description,
        finding="" if verdict is None else finding(document, verdict),
        status=None if verdict is None else shown_status(document, verdict),
        forest=_forest(series, document, workload, metric, looks),
        relative=_relative(document, workload, metric, looks, order),
        panels=[
            _panel(document, workload, METRICS[name], looks, order) for name in others if name != metric.name
        ],
        distributions=_distributions(record, workload, looks),
        sequence=None if switched else _sequence(record, workload, metric, looks),
        noise=noise_sentences(document.noise, workload.name),
        order=order,
        matrix=pair_matrix(document, workload.name, metric.name, order) if verdict else [],
        figures=figure_table(document, workload.name, metric.name),
        runs=runs,
        unit=unit,
        samples=samples,
        design=design,
        command=command_sentence(workload),
        changes=_changes(record, workload, looks),
        phases=phase_table(document.changes, workload.name),
        switchback=switchback_section(record, document, design, series, looks, order)
        if design is not None and switched and design.samples
        else None,
        jobs=next((one for one in job_tables(document) if one.workload == workload.name), None),
    )


def _changes(record: ExperimentRecord, workload: Workload, looks: Looks) -> Markup | None:
    samples = [sample for sample in record.samples if sample.cell.workload == workload.name]
    note = "I/Os per second of the measured jobs, the mean of a scheduler's runs; a line at each change."
    return changes_chart("The load while settings change", samples, record.spec.changes, looks, note)


def legend(looks: Looks) -> list[tuple[str, Markup]]:
    """Each scheduler's label with its mark."""
    return [
        (
            name,
            element(
                "svg",
                {"viewBox": "0 0 16 16", "width": 16, "height": 16, "aria-hidden": "true"},
                mark(8, 8, 5, look),
            ),
        )
        for name, look in looks.items()
    ]


def _values(record: ExperimentRecord, workload: Workload, metric: Metric) -> dict[int, float]:
    """Figures of the workload's successful runs by sequence number."""
    figures: dict[int, float] = {}
    for sample in record.samples:
        if sample.status == "ok" and sample.cell.workload == workload.name:
            value = metric.compute([job for job in sample.jobs if job.name in workload.focus])
            if value is not None:
                figures[sample.cell.sequence] = value
    return figures


def _forest(
    series: Series, document: CompareDocument, workload: Workload, metric: Metric, looks: Looks
) -> Markup | None:
    """Means with intervals; None if no run gave the figure."""
    if not results_of(document, workload.name, metric.name):
        return None
    runs = {label: [value for value in values.values() if value > 0] for label, values in series.items()}
    rows = [
        ForestRow(
            name=row.scheduler,
            appearance=looks[row.scheduler],
            mean=None if row.result is None else row.result.mean,
            low=None if row.result is None else row.result.ci_low,
            high=None if row.result is None else row.result.ci_high,
            standing="" if row.standing is Standing.NO_FIGURE else row.standing.value,
            runs=_thinned(runs.get(row.scheduler, [])),
        )
        for row in ranked(document, workload.name, metric.name)
    ]
    margin = None
    if rows[0].mean is not None:
        factor = 1 + document.margin
        text = f"within {margin_text(document.margin)} of {rows[0].name}"
        margin = Margin(rows[0].mean / factor, rows[0].mean * factor, text)
    scale = scale_for(metric.unit, [row.mean for row in rows if row.mean is not None])
    part = unit_of(document, workload.name).part
    return forest_chart(
        "forest",
        f"{_capital(metric_title(metric.name))}, which decides",
        rows,
        scale,
        better=metric.better,
        margin=margin,
        note=f"Mean over the {part}s with its interval; each small tick is a {part}.",
    )


def _relative(
    document: CompareDocument, workload: Workload, metric: Metric, looks: Looks, order: list[str]
) -> Markup | None:
    """All schedulers against the first; None if no block has figures for two."""
    leader, unit = order[0], unit_of(document, workload.name)
    pairs = pairs_against(document, workload.name, metric.name, leader)
    rows = [
        RelativeRow(
            name=name,
            appearance=looks[name],
            ratio=pairs[name].ratio,
            low=pairs[name].ci_low,
            high=pairs[name].ci_high,
            outcome=STANDING_OF[pairs[name].outcome],
        )
        for name in order
        if name in pairs
    ]
    if not rows:
        return None
    title = f"Against {leader}, {unit.name} by {unit.name}"
    note = "Drift cancels out here, so this is sharper than the chart of means. The verdict rests on it."
    return relative_chart(title, rows, leader, document.margin, note)


def _thinned(values: list[float]) -> list[float]:
    """At most `MOST_TICKS` of the values, evenly spread over their ranks."""
    every = -(-len(values) // MOST_TICKS)
    return values if every <= 1 else sorted(values)[every // 2 :: every]


def _panel(
    document: CompareDocument, workload: Workload, metric: Metric, looks: Looks, order: list[str]
) -> Markup:
    results = results_of(document, workload.name, metric.name)
    rows = [
        ForestRow(name, looks[name], results[name].mean, results[name].ci_low, results[name].ci_high)
        if name in results
        else ForestRow(name, looks[name], None, None, None)
        for name in order
    ]
    scale = scale_for(metric.unit, [part.mean for part in results.values()])
    title = _capital(metric_title(metric.name))
    return forest_chart(f"panel-{metric.name}", title, rows, scale, better=metric.better, compact=True)


def _distributions(record: ExperimentRecord, workload: Workload, looks: Looks) -> list[Markup]:
    charts: list[Markup] = []
    for sync, what in ((False, "Latency"), (True, "Latency of fsync and fdatasync")):
        series = [
            LatencySeries(label, look, latencies)
            for label, look in looks.items()
            if (latencies := _merged(record, workload, label, sync=sync)).bins
        ]
        if series:
            charts += [
                exceedance_chart(
                    f"{what}: how many were slower",
                    series,
                    "Further left and lower is better; the right end is the slowest I/O of all.",
                ),
                density_chart(
                    f"{what}: where most lie",
                    series,
                    "Height: share of I/Os. The mark on the line is the median, the stroke p99.",
                ),
            ]
    return charts


def _merged(record: ExperimentRecord, workload: Workload, label: str, *, sync: bool) -> LatencyHistogram:
    """Latencies of a scheduler's successful runs, measured sections only, bin by bin."""
    return LatencyHistogram.merged(
        entry.latency
        for sample in record.samples
        if sample.status == "ok" and sample.cell.workload == workload.name and sample.cell.scheduler == label
        for job in sample.jobs
        if job.name in workload.focus
        for entry in job.directions
        if (entry.direction == "sync") == sync
    )


def _sequence(record: ExperimentRecord, workload: Workload, metric: Metric, looks: Looks) -> Markup | None:
    values = _values(record, workload, metric)
    runs = [
        SequenceRun(
            sequence=sample.cell.sequence,
            block=sample.cell.block,
            name=sample.cell.scheduler,
            value=values.get(sample.cell.sequence),
            failure=(sample.error or "failed") if sample.status == "failed" else None,
            started_at=sample.started_at,
        )
        for sample in sorted(record.samples, key=lambda sample: sample.cell.sequence)
        if sample.cell.workload == workload.name
    ]
    if not runs:
        return None
    note = "Each block runs all schedulers one after another. A slope means that disk or machine drifted."
    title = f"Every run: {metric_title(metric.name)}"
    return sequence_chart(title, runs, looks, scale_for(metric.unit, values.values()), note)


def _runs(record: ExperimentRecord, workload: Workload, metric: Metric) -> tuple[list[RunRow], str]:
    values = _values(record, workload, metric)
    scale = scale_for(metric.unit, values.values())
    rows = [
        RunRow(
            sequence=sample.cell.sequence + 1,
            block=sample.cell.block + 1,
            scheduler=sample.cell.scheduler,
            started_at=sample.started_at,
            figure=scale.figure(values[sample.cell.sequence]) if sample.cell.sequence in values else "-",
            failure=(sample.error or "failed") if sample.status == "failed" else None,
        )
        for sample in sorted(record.samples, key=lambda sample: sample.cell.sequence)
        if sample.cell.workload == workload.name
    ]
    return rows, scale.unit


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
