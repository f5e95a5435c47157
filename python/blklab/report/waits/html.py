"""The page of `blklab where --html`: one file that needs no network."""

from __future__ import annotations

from markupsafe import Markup

from blklab.quantities.formatting import percent_text
from blklab.quantities.units import format_bytes, format_duration
from blklab.recordings.waits import TaskWaits, Waits
from blklab.report.charts.heat_map import heat_map
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell
from blklab.report.waits.answer import answer_sentences
from blklab.report.waits.document import WhereDocument
from blklab.report.waits.text import (
    PATTERN_TITLES,
    WAIT_TITLES,
    finding_lines,
    held_text,
    pattern_cells,
    summary_lines,
    wait_cells,
)

MOST_TASKS = 40


def where_html(document: WhereDocument) -> str:
    """The page as the text of one HTML file (UTF-8)."""
    waits = document.waits
    script, digest = page_script()
    headline, *details = answer_sentences(waits)
    shown = [*waits.tasks[:MOST_TASKS], waits.all]
    page = (
        page_environment()
        .get_template("where.html.j2")
        .render(
            file=document.file,
            headline=headline,
            details=" ".join(details),
            summary=summary_lines(document),
            facts=_facts(waits),
            wait_titles=WAIT_TITLES[1:],
            waits=[wait_cells(task, waits) for task in shown] if waits.completions_known else [],
            pattern_titles=PATTERN_TITLES[1:],
            patterns=[pattern_cells(task, waits) for task in shown],
            holders=_holders(waits),
            sizes=[(f"{format_bytes(bound)}", count) for bound, count in waits.all.bytes_per_io.classes],
            charts=_charts(waits),
            findings=finding_lines(document),
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(document),
        )
    )
    return with_shell(page, document.file, "blklab where")


def _facts(waits: Waits) -> list[tuple[str, str, str]]:
    everything = waits.all
    facts = [
        ("I/Os", str(everything.ios), format_bytes(everything.bytes)),
        ("length", format_duration(waits.tally.span_ns), ""),
    ]
    if waits.completions_known:
        latency = everything.latency_ns
        facts.append(("median", format_duration(latency.p50), f"99 %: {format_duration(latency.p99)}"))
    if waits.issues_known and waits.queues_known and everything.latency_ns.sum:
        share = everything.queue_ns.sum / everything.latency_ns.sum
        facts.append(("in the queue", percent_text(share), "of all waiting; the rest in the device"))
    return facts


def _holders(waits: Waits) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    if not waits.issues_known:
        return rows
    for task in waits.tasks[:MOST_TASKS]:
        queue, device = held_text(task.held_in_queue, waits), held_text(task.held_in_device, waits)
        if queue or device:
            rows.append((_name(task, waits), queue, device))
    return rows


def _name(task: TaskWaits, waits: Waits) -> str:
    return wait_cells(task, waits)[0]


def _charts(waits: Waits) -> list[Markup]:
    over_time = waits.over_time
    if not over_time.counts:
        return []
    note = "a darker cell has more I/Os, by their number's logarithm; time is that of the completion"
    title = "Latencies over time"
    return [heat_map(title, over_time.column_ns, over_time.bounds_ns, over_time.counts, note)]
