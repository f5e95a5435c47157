"""The report that a terminal of 24 rows has room for: the answer, bars, and the next step.

Beneath them stand the part of a goal that decided, and the shares of jobs, as far as there is room.
The answer comes first and again as the last line, which is what remains in sight.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import (
    confidence_text,
    count_of,
    metric_title,
    rounded,
    scale_for,
    scheduler_text,
)
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.documents.findings import GoalPart
from blklab.report.sentences.losses import bound_text
from blklab.report.summary.designs import repetitions
from blklab.report.summary.failures import failures_of, lost_slots_sentence
from blklab.report.summary.goal_view import ratios_to_reference
from blklab.report.summary.model_answer import ModelAnswer
from blklab.report.summary.standing import (
    Standing,
    deciding_verdict,
    is_in_use,
    is_withheld,
    judged_workloads,
    labels_of,
    ranked,
)
from blklab.report.text.advice import next_steps
from blklab.report.text.answer import answer_of
from blklab.report.text.job_shares import short_job_lines
from blklab.report.text.model import model_sentence
from blklab.report.text.printer import SIGNS, STATUS_STYLES, Printer
from blklab.report.text.why import why_lines
from blklab.report.text.wording import finding

MOST_ROWS = 24
MOST_WARNINGS = 2
MOST_CAUSES = 2
MOST_LINES_OF_A_CAUSE = 4
MOST_LINES_OF_A_LEAD = 3
_WIDEST_NAME = 24
_FEWEST_CELLS = 8
_FEWEST_BARS = 4
_MARK = "in use now"
_MOST_ALIKE = 1000
"""From this ratio of the largest to the smallest figure on, each has a unit of its own."""


@dataclass(frozen=True)
class _Bar:
    label: str
    standing: Standing
    value: float | None
    figure: str
    interval: str


@dataclass(frozen=True)
class _Chart:
    title: str
    bars: list[_Bar]


def render_short(
    document: CompareDocument, printer: Printer, model: ModelAnswer | None, report_file: str | None
) -> None:
    """Prints the answer, a bar for each scheduler, the conditions and the next step, in `MOST_ROWS` rows.

    Args:
        document: The comparison.
        printer: Prints it.
        model: The nearest modelled disk's answer, in a sentence of its own.
        report_file: Shell-quoted path of the HTML report, if one was written.
    """
    head, tail = _head(document, printer), _tail(document, printer, model, report_file)
    room = MOST_ROWS - len(head) - len(tail)
    for line in [*head, *_middle(document, printer, room), *tail]:
        printer.console.print(line, soft_wrap=True)


def _head(document: CompareDocument, printer: Printer) -> list[Text]:
    style = STATUS_STYLES[document.verdict.status]
    lines = [printer.text(""), *printer.wrapped((answer_of(document).sentence, style))]
    if document.goal is not None and document.goal.lead is not None and document.goal.lead.text:
        lines += printer.wrapped(f"{document.goal.lead.text}.", most=MOST_LINES_OF_A_LEAD)
    for label, sentence in why_lines(document)[:MOST_CAUSES]:
        lines += printer.wrapped((f"{label}: ", "bold"), sentence, most=MOST_LINES_OF_A_CAUSE)
    warnings = document.warnings
    for warning in warnings[:MOST_WARNINGS]:
        lines += printer.wrapped(("⚠ WARNING: ", "bold yellow"), warning, most=3)
    if len(warnings) > MOST_WARNINGS:
        lines += printer.wrapped(
            f"and {count_of(len(warnings) - MOST_WARNINGS, 'more warning')} (-v)", indent=2
        )
    return lines


def _tail(
    document: CompareDocument, printer: Printer, model: ModelAnswer | None, report_file: str | None
) -> list[Text]:
    target = document.target_description.summary or document.target
    unfinished = "" if document.state == "complete" else f" ({document.state})"
    lines = printer.wrapped(
        (f"Measured on {target}: {repetitions(document)}{unfinished}, run {document.run}.", "dim"), most=3
    )
    failures = failures_of(document)
    if failures:
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        text = f"{failures[0].where}: {failures[0].error or 'no reason given'}{more}"
        lines += printer.wrapped(("✗ failed: ", "bold red"), text, most=2)
    lost = lost_slots_sentence(document)
    if lost is not None:
        lines += printer.wrapped(lost)
    if model is not None:
        lines += printer.wrapped((model_sentence(model), "magenta"), most=2)
    steps = next_steps(document)
    if steps:
        lines += printer.wrapped(steps[0].text)
        if steps[0].command is not None:
            lines.append(printer.text("    ").append_text(printer.text(steps[0].command, "bold")))
    more_of_it = report_file or f"blklab report {document.run} -v"
    lines += printer.wrapped("All figures and charts: ", (more_of_it, "bold"))
    answer = answer_of(document)
    last = answer.sentence if len(answer.sentence) <= printer.console.width else f"{answer.headline}."
    return [*lines, *printer.wrapped((last, STATUS_STYLES[document.verdict.status]), most=1)]


def _middle(document: CompareDocument, printer: Printer, room: int) -> list[Text]:
    """Charts as far as there is room; of more workloads a line each."""
    charts = _charts(document)
    needed = sum(len(chart.bars) + 1 for chart in charts)
    if charts and needed <= room:
        lines = [line for chart in charts for line in _drawn(document, chart, printer)]
        return lines + short_job_lines(document, printer, room - len(lines))
    if len(charts) == 1:
        return _drawn(document, _shortened(document, charts[0], room - 2), printer)
    found = [
        printer.wrapped(
            (f"{name}: ", "bold"), finding(document, verdict) + _at_stake(document, verdict), most=2
        )
        for name in judged_workloads(document)
        if (verdict := deciding_verdict(document, name)) is not None
    ]
    if sum(map(len, found)) <= room:
        return [line for lines in found for line in lines]
    kept: list[Text] = []
    for number, lines in enumerate(found):
        if len(kept) + len(lines) > room - 1:
            left = count_of(len(found) - number, "more workload" if kept else "workload")
            return [*kept, printer.text(f"… {'and ' if kept else ''}{left} (-v)", "dim")]
        kept += lines
    return kept


def _at_stake(document: CompareDocument, verdict: MetricVerdictPart) -> str:
    """The most that the recommended scheduler loses where the first place is open."""
    chosen = document.verdict.recommendation.scheduler
    bound = next((one.bound for one in verdict.regret if one.label == chosen), None)
    if chosen is None or bound is None or verdict.status != "undecided":
        return ""
    return f"; at most {bound_text(bound)} is lost with {scheduler_text(chosen)}"


def _shortened(document: CompareDocument, chart: _Chart, room: int) -> _Chart:
    """The first bars, and the one of the scheduler in use."""
    kept = chart.bars[: max(_FEWEST_BARS, room)]
    kept += [bar for bar in chart.bars if bar not in kept and is_in_use(document, bar.label)]
    left = len(chart.bars) - len(kept)
    return _Chart(f"{chart.title}; {left} more with -v" if left else chart.title, kept)


def _charts(document: CompareDocument) -> list[_Chart]:
    if document.goal is not None:
        return [_goal_chart(document, document.goal)] if document.goal.comparisons else []
    return [
        chart for name in judged_workloads(document) if (chart := _workload_chart(document, name)) is not None
    ]


def _workload_chart(document: CompareDocument, workload: str) -> _Chart | None:
    verdict = deciding_verdict(document, workload)
    if verdict is None:
        return None
    metric = METRICS[verdict.metric]
    rows = ranked(document, workload, metric.name)
    means = [row.result.mean for row in rows if row.result is not None]
    alike = not means or max(means) < _MOST_ALIKE * min(means)
    shared = scale_for(metric.unit, means)
    bars = []
    for row in rows:
        if row.result is None:
            bars.append(_Bar(row.scheduler, row.standing, None, "-", ""))
            continue
        low, high = row.result.ci_low, row.result.ci_high
        scale = shared if alike else scale_for(metric.unit, [row.result.mean])
        figure, _, interval = scale.interval(row.result.mean, low, high).partition(" ")
        if not alike:
            figure = f"{figure} {scale.unit}"
        bars.append(_Bar(row.scheduler, row.standing, row.result.mean, figure, interval))
    unit = f"{shared.unit}, " if shared.unit and alike else ""
    better = "more" if metric.better == "higher" else "less"
    title = f"{workload}: {metric_title(metric.name)} ({unit}{better} is better"
    return _Chart(title, bars)


def _goal_chart(document: CompareDocument, goal: GoalPart) -> _Chart:
    scores = ratios_to_reference(goal, goal.comparisons, "goal")
    verdict = document.verdict
    bars = []
    for label in sorted(labels_of(document), key=lambda name: -scores[name].value if name in scores else 0):
        score = scores.get(label)
        beaten = label not in verdict.candidates and not is_withheld(document)
        standing = Standing.BEATEN if beaten else Standing.OPEN
        if label in verdict.best:
            standing = Standing.BEST if verdict.status == "best" else Standing.EQUAL
        if score is None:
            bars.append(_Bar(label, Standing.NO_FIGURE, None, "-", ""))
            continue
        interval = ""
        if score.low is not None and score.high is not None:
            half = (score.high - score.low) / 2
            low, high = (rounded(one, half, digits_of=score.value) for one in (score.low, score.high))
            # In virtual time repetitions may agree to the last digit.
            interval = f"[{low}, {high}]" if rounded(score.low) != rounded(score.high) else ""
        bars.append(_Bar(label, standing, score.value, rounded(score.value), interval))
    return _Chart(f"goal {goal.goal}: score against {goal.reference} (more is better", bars)


def _drawn(document: CompareDocument, chart: _Chart, printer: Printer) -> list[Text]:
    """A title, and a row for each scheduler: sign, name, figure, bar, interval, and whether it is in use."""
    sure = confidence_text(document.confidence)
    title = f"{chart.title}; {sure} intervals)"
    if len(title) > printer.console.width:
        title = f"{chart.title}; {sure})"
    lines = printer.wrapped((title, "bold"), most=1)
    names = [printer.clean(bar.label) for bar in chart.bars]
    name_width = min(_WIDEST_NAME, max(map(len, names), default=0))
    figure_width = max((len(bar.figure) for bar in chart.bars), default=0)
    interval_width = max((len(bar.interval) for bar in chart.bars), default=0)
    cells = printer.console.width - name_width - figure_width - interval_width - len(_MARK) - 10
    cells = max(_FEWEST_CELLS, cells)
    largest = max((bar.value for bar in chart.bars if bar.value is not None), default=0.0) or 1.0
    for bar, name in zip(chart.bars, names, strict=True):
        sign, style = SIGNS[bar.standing]
        shown = name if len(name) <= name_width else f"{name[: name_width - 1]}…"
        text = printer.text(" ").append_text(printer.text(f"{sign} ", style))
        text.append(printer.clean(f"{shown:<{name_width}}  {bar.figure:>{figure_width}} "))
        length = 0.0 if bar.value is None else bar.value / largest * cells
        text.append(f"{printer.bar(length):<{cells}} ", style)
        text.append(printer.clean(f"{bar.interval:<{interval_width}}  "))
        text.append(_MARK if is_in_use(document, bar.label) else "", "bold")
        text.rstrip()
        lines.append(text)
    return lines
