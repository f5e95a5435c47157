"""Reports for a terminal: eighty columns are enough, and no meaning rests on colour alone.

Text from outside (labels, names of disks, messages) is printed plain: no markup, no control characters. On a
terminal or in a log that takes ASCII only, signs have plain substitutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from blklab.analysis.metrics import METRICS, metric_named
from blklab.quantities.formatting import TIMES, confidence_text, metric_title, scale_for
from blklab.quantities.sample_units import BLOCKS
from blklab.quantities.units import format_duration
from blklab.report.documents.comparison import (
    CommandPart,
    CompareDocument,
    JobPart,
    LatencyPart,
    RunDocument,
    RunPhasePart,
)
from blklab.report.summary.designs import (
    conduct_sentence,
    design_of_workload,
    design_sentence,
    extent,
    repetitions,
    units_in_use,
)
from blklab.report.summary.failures import failures_of, lost_slots_sentence
from blklab.report.summary.model_answer import ModelAnswer
from blklab.report.summary.phases import changes_sentences, phase_table
from blklab.report.summary.processors import processor_sentences
from blklab.report.summary.standing import (
    Standing,
    StandingRow,
    deciding_verdict,
    metrics_of,
    ranked,
    results_of,
    shown_status,
)
from blklab.report.terminal import Terminal
from blklab.report.text.advice import next_steps
from blklab.report.text.answer import answer_of
from blklab.report.text.conditions import conditions, quiet_sentence
from blklab.report.text.findings import print_findings
from blklab.report.text.known import anything_settled, known_so_far
from blklab.report.text.model import TITLE, model_sentence
from blklab.report.text.printer import SIGNS, STATUS_SIGNS, STATUS_STYLES, Printer
from blklab.report.text.short import render_short
from blklab.report.text.why import why_lines
from blklab.report.text.wording import finding

_OTHERS_BY_WORTH = (
    "io_wait",
    "processor_time",
    "latency_p99",
    "latency_p99_9",
    "latency_p50",
    "latency_max",
    "iops",
    "throughput",
    "sync_latency_p99",
    "latency_mean",
    "cpu_per_io",
    "bytes_read",
    "bytes_written",
)
"""Further columns, the first to keep where room is short; other metrics come last."""

_JOB_HEADINGS = ("IO/s", "B/s", "mean", "p50", "p99", "p99.9", "max")
_WIDEST_NAME = 24
_COLUMN_GAP = 2
MOST_FAILED_RUNS_SHOWN = 5
MOST_CLAUSES_SHOWN = 6


def render(
    document: CompareDocument,
    console: Terminal,
    *,
    model: ModelAnswer | None = None,
    report_file: str | None = None,
    verbose: bool = False,
) -> None:
    """Prints the report of a comparison, in 24 rows unless all of it is asked for.

    All of it is: the answer, the settled part of an open one, the next steps, all figures, the conditions,
    and the answer again.

    Args:
        document: The comparison.
        console: The console to print to.
        model: The nearest modelled disk's answer, printed apart from the verdict and labelled as the model's.
        report_file: Shell-quoted path of the HTML report, if one was written.
        verbose: Whether to print all of it.
    """
    printer = Printer(console)
    if not verbose:
        render_short(document, printer, model, report_file)
        return
    style = STATUS_STYLES[document.verdict.status]
    printer.blank()
    printer.line((answer_of(document).sentence, style))
    for label, sentence in why_lines(document):
        printer.line((f"{label}: ", "bold"), sentence)
    for warning in document.warnings:
        printer.line(("⚠ WARNING: ", "bold yellow"), warning)
    _print_failed_runs(document, printer)
    if document.verdict.status == "undecided":
        _print_known(document, printer)
    _print_steps(document, printer)
    if model is not None:
        printer.blank()
        _print_model(model, printer)
    printer.blank()
    printer.line(_circumstances(document))
    for sentence in changes_sentences(document.changes):
        printer.line(sentence)
    for workload in document.workloads:
        printer.blank()
        _print_workload(document, str(workload["name"]), printer)
    print_findings(document, printer)
    for note in document.notes:
        printer.line(("Note: ", "bold"), note)
    _print_conditions(document, printer)
    printer.blank()
    has_runs = BLOCKS in units_in_use(document)
    shown = "All figures, charts and runs: " if has_runs else "All figures and charts: "
    printer.command_line(shown, report_file or f"blklab report {document.run} --html FILE")
    printer.blank()
    printer.line((answer_of(document).sentence, style))


def _print_known(document: CompareDocument, printer: Printer) -> None:
    """The settled pairs of every open question, then its open ones."""
    entries = known_so_far(document)
    if not entries:
        return
    printer.blank()
    printer.line(("Known so far", "bold"))
    if not anything_settled(entries):
        printer.line(f"No pair is settled after {repetitions(document)}.", indent=2)
    for entry in entries:
        printer.line(entry.subject, indent=2)
        for clause in entry.settled[:MOST_CLAUSES_SHOWN]:
            printer.line(f"{clause}.", indent=4)
        left = len(entry.settled) - MOST_CLAUSES_SHOWN
        if left > 0:
            printer.line(f"and {left} more, which the HTML report lists", indent=4)
        if entry.still_open is not None:
            printer.line((f"{entry.still_open[:1].upper()}{entry.still_open[1:]}.", "yellow"), indent=4)


def _print_steps(document: CompareDocument, printer: Printer) -> None:
    steps = next_steps(document)
    if not steps:
        return
    printer.blank()
    for step in steps:
        printer.line(step.text)
        if step.command is not None:
            printer.command(step.command)


def _print_model(model: ModelAnswer, printer: Printer) -> None:
    """The model's answer, under a title that no reader takes for the disk's."""
    printer.line((TITLE, "bold magenta"))
    printer.line(model_sentence(model), indent=2)
    printer.line("To ask the model again:", indent=2)
    printer.command(model.command)


def _print_conditions(document: CompareDocument, printer: Printer) -> None:
    lines = conditions(document)
    quiet = quiet_sentence(document)
    if not lines and quiet is None:
        return
    printer.blank()
    for line in lines:
        printer.line(("⚠ ", "bold yellow"), line)
    if quiet is not None:
        printer.line((quiet, "dim"))


def _circumstances(document: CompareDocument) -> str:
    target = document.target_description.summary or document.target
    unfinished = "" if document.state == "complete" else f" ({document.state})"
    conduct = conduct_sentence(document)
    return (
        f"Measured on {target}: {extent(document)}{unfinished}, "
        f"{confidence_text(document.confidence)} intervals in brackets, run {document.run}."
        f"{'' if conduct is None else f' {conduct}'}"
        + "".join(f" {sentence}" for sentence in processor_sentences(document.processors))
    )


def _print_failed_runs(document: CompareDocument, printer: Printer) -> None:
    failures = failures_of(document)
    for one in failures[:MOST_FAILED_RUNS_SHOWN]:
        reason = one.error or "no reason given"
        printer.line(("✗ failed: ", "bold red"), f"{one.where}: {reason}", indent=2)
    left = len(failures) - MOST_FAILED_RUNS_SHOWN
    if left > 0:
        printer.line(f"and {left} more", indent=2)
    lost = lost_slots_sentence(document)
    if lost is not None:
        printer.line(lost)


def _print_workload(document: CompareDocument, workload: str, printer: Printer) -> None:
    facts = next(one for one in document.workloads if one["name"] == workload)
    metric = metric_named(str(facts["decide_by"]))
    verdict = deciding_verdict(document, workload)
    control = " (control: no scheduler can influence it)" if facts["control"] else ""
    printer.line((workload, "bold"), control)
    design = design_of_workload(document, workload)
    if design is not None:
        printer.line((f"{_capitalised(design_sentence(design))}.", "dim"))
    if facts.get("command") is not None:
        printer.line((f"{_capitalised(str(facts['command']))}.", "dim"))
    if verdict is None:
        printer.line(("no figures", "bold red"), f": no run gave a figure for {metric_title(metric.name)}")
        return
    if len(document.workloads) > 1 and document.goal is None:
        status = shown_status(document, verdict)
        sign, sign_style = STATUS_SIGNS[status]
        otherwise = "withheld, otherwise: " if status == "withheld" else ""
        printer.line((f"{sign} ", sign_style), f"{otherwise}{finding(document, verdict)}")
    rows = ranked(document, workload, metric.name)
    table, left_out = _results_table(document, workload, metric.name, rows, printer)
    printer.console.print(table)
    if left_out:
        printer.line((f"no room for: {', '.join(map(metric_title, left_out))}", "dim"))
    _print_phases(document, workload, printer)


def _print_phases(document: CompareDocument, workload: str, printer: Printer) -> None:
    """The metric that decides before and after each change."""
    found = phase_table(document.changes, workload)
    if found is None:
        return
    printer.line(f"{metric_title(found.metric)}, {found.unit}, between the changes:")
    table = printer.table()
    table.add_column("scheduler", overflow="fold", min_width=9, max_width=_WIDEST_NAME)
    for heading in found.headings:
        table.add_column(printer.clean(heading), justify="right")
    for name, figures in found.rows:
        table.add_row(printer.text(name), *(printer.text(figure) for figure in figures))
    printer.console.print(table)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _results_table(
    document: CompareDocument, workload: str, deciding: str, rows: Sequence[StandingRow], printer: Printer
) -> tuple[Table, list[str]]:
    """The table, and the metrics for which there was no room."""
    decides = _DecidingColumn(document, workload, deciding)
    names = [printer.clean(row.scheduler) for row in rows]
    room = printer.console.width
    name_width = min(_WIDEST_NAME, max(*map(len, names), len("scheduler")))
    # With a goal its score decides, and no scheduler wins or loses a workload.
    signs = {row.scheduler: SIGNS[row.standing] for row in rows} if document.goal is None else {}
    standing_width = 2 + max(len(row.standing.value) for row in rows) if signs else 0
    cells = {row.scheduler: decides.cell(row) for row in rows}
    room -= (
        name_width + standing_width + max(*map(len, decides.heading.splitlines()), *map(len, cells.values()))
    )
    # Three columns in any case; the box separates columns by a space of its own.
    room -= 3 * _COLUMN_GAP + 2
    columns: list[_OtherColumn] = []
    left_out: list[str] = []
    asked = () if document.goal is None else tuple(document.goal.weights)
    others = sorted(metrics_of(document, workload, deciding)[1:], key=_worth)
    for name in sorted(others, key=lambda name: name not in asked):
        column = _OtherColumn(document, workload, name, rows)
        if room >= column.width + _COLUMN_GAP + 1:
            room -= column.width + _COLUMN_GAP + 1
            columns.append(column)
        else:
            left_out.append(name)
    order = {name: number for number, name in enumerate(METRICS)}
    columns.sort(key=lambda column: order.get(column.metric, -1))
    table = printer.table()
    table.add_column("scheduler", min_width=name_width, max_width=name_width, overflow="fold")
    table.add_column("", no_wrap=True)
    table.add_column(printer.heading(decides.heading), justify="right", no_wrap=True)
    for column in columns:
        table.add_column(printer.heading(column.heading), justify="right", no_wrap=True)
    for row in rows:
        sign, style = signs.get(row.scheduler, ("", ""))
        standing = f"{sign} {row.standing.value}" if signs else ""
        table.add_row(
            printer.text(row.scheduler, "bold" if row.standing in (Standing.BEST, Standing.EQUAL) else ""),
            printer.text(standing, style),
            printer.text(cells[row.scheduler], "bold"),
            *(printer.text(column.cells[row.scheduler]) for column in columns),
        )
    return table, left_out


def _worth(metric: str) -> int:
    return _OTHERS_BY_WORTH.index(metric) if metric in _OTHERS_BY_WORTH else len(_OTHERS_BY_WORTH)


class _DecidingColumn:
    """The metric that decides, with intervals and its unit in the heading."""

    def __init__(self, document: CompareDocument, workload: str, metric: str) -> None:
        results = results_of(document, workload, metric)
        self.scale = scale_for(METRICS[metric].unit, [part.mean for part in results.values()])
        self.heading = f"{metric_title(metric)}, {self.scale.unit}\n(decides)"

    def cell(self, row: StandingRow) -> str:
        """The mean with its interval."""
        if row.result is None:
            return "-"
        return self.scale.interval(row.result.mean, row.result.ci_low, row.result.ci_high)


class _OtherColumn:
    """Another metric, without intervals."""

    def __init__(
        self, document: CompareDocument, workload: str, metric: str, rows: Sequence[StandingRow]
    ) -> None:
        results = results_of(document, workload, metric)
        scale = scale_for(METRICS[metric].unit, [part.mean for part in results.values()])
        self.metric = metric
        self.heading = f"{_short_title(metric)}\n{scale.unit}"
        self.cells = {
            row.scheduler: scale.figure(part.mean, part.ci_low, part.ci_high)
            if (part := results.get(row.scheduler))
            else "-"
            for row in rows
        }
        self.width = max(map(len, [*self.heading.splitlines(), *self.cells.values()]))


def _short_title(metric: str) -> str:
    """``latency p99.9`` is ``p99.9`` where columns are narrow; ``sync latency p99`` is ``sync p99``."""
    return metric_title(metric).replace("latency ", "").replace("throughput", "data")


def render_run(document: RunDocument, console: Terminal) -> None:
    """Prints the result of a single run."""
    printer = Printer(console)
    printer.blank()
    tunables = "".join(f":{key}={value}" for key, value in document.tunables.items())
    printer.line(
        (document.workload, "bold"),
        " under ",
        (f"{document.scheduler}{tunables}", "bold"),
        f" on {document.target}",
    )
    for warning in document.warnings:
        printer.line(("⚠ WARNING: ", "bold yellow"), warning)
    table = printer.table()
    table.add_column("job", overflow="fold", max_width=_WIDEST_NAME)
    for heading in _JOB_HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    sections = [job for job in document.jobs if job.command is None]
    for job in sections:
        _add_job(table, job, printer)
    commands = [job.command for job in document.jobs if job.command is not None]
    if commands:
        console.print(_commands_table(commands, printer))
    if sections:
        console.print(table)
    for phase in document.phases:
        _print_run_phase(document, phase, printer)
    engine = " ".join(str(document.engine[key]) for key in ("name", "version") if key in document.engine)
    printer.line((f"seed {document.seed}{f'; load by {engine}' if engine else ''}", "dim"))


def _print_run_phase(document: RunDocument, phase: RunPhasePart, printer: Printer) -> None:
    """The jobs of a phase, under its times and the changes that it begins with."""
    printer.blank()
    times = [format_duration(1e9 * seconds) for seconds in (phase.from_seconds, phase.to_seconds)]
    first = not any(change.planned_seconds <= phase.from_seconds for change in document.changes)
    printer.line((f"{'0' if first else times[0]} to {times[1]}", "bold"))
    latest = max(
        (one.planned_seconds for one in document.changes if one.planned_seconds <= phase.from_seconds),
        default=None,
    )
    for change in document.changes:
        if change.planned_seconds == latest:
            delay = format_duration(1e9 * (change.made_seconds - change.planned_seconds))
            late = "" if change.made_seconds == change.planned_seconds else f" (in force {delay} later)"
            printer.line(f"{change.change}{late}", indent=2)
    table = printer.table()
    table.add_column("job", overflow="fold", max_width=_WIDEST_NAME)
    for heading in _JOB_HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for job in phase.jobs:
        _add_job(table, job, printer)
    printer.console.print(table)


def _commands_table(commands: Sequence[CommandPart], printer: Printer) -> Table:
    table = printer.table()
    for heading in ("wall time", "user", "system", "I/O wait", "read", "written", "major faults"):
        table.add_column(heading, justify="right", no_wrap=True)
    for command in commands:
        times = (command.wall_seconds, command.cpu_user_seconds, command.cpu_system_seconds)
        waits = [None if value is None else 1e6 * value for value in (*times, command.io_wait_seconds)]
        moved = (command.bytes_read, command.bytes_written)
        cells = [_compact("us", value) for value in waits]
        cells += ["-" if value is None else scale_for("B", [value]).quantity(value) for value in moved]
        table.add_row(*(printer.text(cell) for cell in (*cells, str(command.major_faults))))
    return table


def _add_job(table: Table, job: JobPart, printer: Printer) -> None:
    """A row for the job, and one for each direction where there are several."""
    clones = f" {TIMES}{job.clones}" if job.clones > 1 else ""
    cells = (job.name + clones, job.iops, job.bytes_per_second, job.latency_us)
    _add_row(table, *cells, printer=printer)
    parts = {"read": job.read, "write": job.write, "trim": job.trim, "sync": job.sync}
    present = {name: part for name, part in parts.items() if part is not None}
    if len(present) > 1:
        for name, part in present.items():
            moved = None if name == "sync" else part.bytes_per_second
            _add_row(table, f"  {name}", part.iops, moved, part.latency_us, printer=printer)


def _add_row(
    table: Table,
    name: str,
    ios_per_second: float,
    bytes_per_second: float | None,
    latency: LatencyPart,
    *,
    printer: Printer,
) -> None:
    figures = [
        _compact("IO/s", ios_per_second),
        _compact("B/s", bytes_per_second),
        *(_compact("us", v) for v in (latency.mean, latency.p50, latency.p99, latency.p99_9, latency.max)),
    ]
    table.add_row(printer.text(name), *(printer.text(figure) for figure in figures))


def _compact(unit: str, value: float | None) -> str:
    """``12.3k`` under a heading that names the unit, ``1.23 ms`` for times."""
    if value is None:
        return "-"
    scale = scale_for(unit, [value])
    if unit == "us":
        return scale.quantity(value)
    return scale.figure(value) + scale.unit.removesuffix(unit)
