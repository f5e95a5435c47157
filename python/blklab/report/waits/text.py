"""The text of `blklab where`."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.quantities.formatting import count_of, percent_text
from blklab.quantities.units import format_bytes, format_duration
from blklab.recordings.waits import Distribution, Holders, TaskWaits, Waits
from blklab.report.terminal import Terminal, styled
from blklab.report.waits.answer import answer_of, process_name
from blklab.report.waits.document import WhereDocument
from blklab.report.waits.priorities import priority_text

MOST_TASKS = 12
WAIT_TITLES = (
    "TASK",
    "I/OS",
    "PRIORITY",
    "QUEUE MEAN",
    "P99",
    "DEVICE MEAN",
    "P99",
    "TOTAL P50",
    "P99",
    "MAX",
)
PATTERN_TITLES = ("TASK", "OPERATIONS", "BYTES", "SIZE P50", "MAX", "SEQUENTIAL", "MERGED", "GAP P50")
_MOST_HOLDERS = 3
_LEAST_SHARE = 0.01
_UNKNOWN = "unknown"
_LEAST_NAME = 16
"""Letters of a task's name that are shown in any case."""


def render_where(document: WhereDocument, console: Terminal, *, most_tasks: int = MOST_TASKS) -> None:
    """Prints a recording's analysis."""
    waits = document.waits
    shown = [*waits.tasks[:most_tasks], waits.all]
    console.print(styled((answer_of(waits), "bold")))
    console.print()
    for line in summary_lines(document):
        # A path stays in one piece.
        console.print(line, soft_wrap=line.startswith(("warning: ", document.file)))
    if waits.completions_known:
        rows = [wait_cells(task, waits) for task in shown]
        _print_table(console, *without_unknown(WAIT_TITLES, rows), 1)
        for line in holder_lines(waits, most_tasks):
            console.print(line)
    _print_table(console, PATTERN_TITLES, [pattern_cells(task, waits) for task in shown], 2)
    hidden = len(waits.tasks) - most_tasks
    if hidden > 0:
        console.print(f"{hidden} more tasks: --tasks shows more, --json all")
    if document.priorities:
        console.print()
        console.print(styled(("Priorities and weights", "bold")))
        for line in finding_lines(document):
            console.print(f"* {line}")


def finding_lines(document: WhereDocument) -> list[str]:
    """Every finding on priorities and weights, for each form of the answer; those with a remedy first."""
    with_remedy = [f"{one.text} ({one.remedy})" for one in document.priorities if one.remedy is not None]
    return with_remedy + [one.text for one in document.priorities if one.remedy is None]


def summary_lines(document: WhereDocument) -> list[str]:
    """The extent of the recording, how it was made, and what is missing."""
    waits = document.waits
    facts, tally, everything = waits.facts, waits.tally, waits.all
    how = f"recorded through {facts.capture}" if facts.capture else f"format {facts.format}"
    extent = f"{count_of(tally.ios, 'I/O')}, {format_bytes(everything.bytes)} in {_time(tally.span_ns)}"
    return [f"{document.file}: {extent} ({how})", *device_lines(waits), *remark_lines(waits)]


def remark_lines(waits: Waits) -> list[str]:
    """Lines on the gaps of a recording, beside those of which the answer speaks."""
    lines = []
    if waits.tally.ios and waits.tally.unmatched:
        completions = count_of(waits.tally.unmatched, "completion")
        lines.append(f"{completions} without an I/O: under way when the trace began, or lost")
    lines += [f"not recorded: {text}" for text in waits.facts.missing]
    return [*lines, *warning_lines(waits)]


def warning_lines(waits: Waits) -> list[str]:
    """Lines on doubts about a recording."""
    tally = waits.tally
    lines = []
    if tally.lost:
        lines.append(f"warning: the kernel dropped {tally.lost} events, so some I/Os are missing")
    if not tally.whole:
        lines.append("warning: the recording was not closed; it is shown up to its last whole block")
    if tally.unmatched and not tally.ios:
        lines.append(
            f"warning: none of its {tally.unmatched} completions has an I/O: the trace has neither queueing"
            " nor issues"
        )
    return [*lines, *(f"warning: {text}" for text in waits.warnings)]


def device_lines(waits: Waits) -> list[str]:
    """How busy each device was, and how many I/Os it had."""
    lines = []
    span_ns = waits.tally.span_ns
    names = {device.number: device for device in waits.facts.devices}
    for device in waits.devices:
        known = names.get(device.number)
        name = known.name if known and known.name else "device"
        under = f" under {known.scheduler}" if known and known.scheduler else ""
        text = f"{name}{under}: {count_of(device.ios, 'I/O')}"
        if device.busy_ns is not None:
            share = device.busy_ns / span_ns if span_ns else 0.0
            text += (
                f", {'busy' if waits.issues_known else 'some under way'} {percent_text(share)} of the time"
            )
        depths = [
            f"{depth.mean:.1f} in the {where} (99 %: {depth.p99})"
            for depth, where in ((device.in_device, "device"), (device.in_queue, "queue"))
            if depth is not None
        ]
        lines.append(f"{text}; at a time {', '.join(depths)}" if depths else text)
    return lines


def task_name(task: TaskWaits) -> str:
    """``postgres[4711] /system.slice/postgresql.service``; of the root group the process alone."""
    return f"{process_name(task)} {'' if task.cgroup == '/' else task.cgroup}".rstrip()


def wait_cells(task: TaskWaits, waits: Waits) -> list[str]:
    """A task's row under `WAIT_TITLES`."""
    main = max(task.ioprio, key=lambda entry: entry[1])[0] if task.ioprio else None
    return [
        _row_name(task, waits),
        str(task.ios),
        "" if main is None else priority_text(main) + ("…" if len(task.ioprio) > 1 else ""),
        *(_known_time(task.queue_ns, value, known=waits.queues_known) for value in ("mean", "p99")),
        *(_known_time(task.device_ns, value) for value in ("mean", "p99")),
        *(_known_time(task.latency_ns, value) for value in ("p50", "p99", "max")),
    ]


def _known_time(times: Distribution, value: str, *, known: bool = True) -> str:
    """One of the figures of some times; ``unknown`` if there are none."""
    return _time(getattr(times, value)) if known and times.count else _UNKNOWN


def pattern_cells(task: TaskWaits, waits: Waits) -> list[str]:
    """A task's row under `PATTERN_TITLES`."""
    return [
        _row_name(task, waits),
        ", ".join(f"{count.ios} {count.operation}" for count in task.operations),
        format_bytes(task.bytes),
        _size(task.bytes_per_io, task.bytes_per_io.p50),
        _size(task.bytes_per_io, task.bytes_per_io.max),
        _share(task.sequential, task.ios),
        _share(task.merged, task.ios),
        _time(task.inter_arrival_ns.p50) if task.inter_arrival_ns.count else "",
    ]


def _row_name(task: TaskWaits, waits: Waits) -> str:
    return "all" if task is waits.all else task_name(task)


def _print_table(console: Terminal, titles: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    """Prints a table that fits the terminal: names are cut first, then columns are left out on the right."""
    lines, left_out = table_lines(titles, rows, left, console.width)
    console.print()
    for line in lines:
        console.print(line, soft_wrap=True)
    if left_out:
        console.print(f"no room for: {', '.join(left_out)}")


def without_unknown(
    titles: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without the columns of which the trace knows nothing; they would push out those it knows."""
    kept = [
        column
        for column in range(len(titles))
        if column == 0 or any(row[column] not in ("", _UNKNOWN) for row in rows)
    ]
    return [titles[column] for column in kept], [[row[column] for column in kept] for row in rows]


def table_lines(
    titles: Sequence[str], rows: Sequence[Sequence[str]], left: int, width: int
) -> tuple[list[str], list[str]]:
    """Lines of a table, and the titles of the columns that have no room.

    Args:
        titles: Of the columns.
        rows: Their cells.
        left: Number of columns that are flush left.
        width: Of the terminal.
    """
    table = [list(titles), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
    shown = len(titles)
    while shown > left + 1 and _LEAST_NAME + sum(widths[1:shown]) + 2 * (shown - 1) > width:
        shown -= 1
    room = max(_LEAST_NAME, width - sum(widths[1:shown]) - 2 * (shown - 1))
    widths[0] = min(widths[0], room)
    lines = []
    for row in table:
        name = row[0] if len(row[0]) <= room else row[0][: room - 1] + "…"
        cells = [name, *row[1:shown]]
        placed = [
            cell.ljust(widths[column]) if column < left else cell.rjust(widths[column])
            for column, cell in enumerate(cells)
        ]
        lines.append("  ".join(placed).rstrip())
    return lines, list(titles[shown:])


def holder_lines(waits: Waits, most_tasks: int) -> list[str]:
    """The holders of the device while each task waited."""
    lines: list[str] = []
    if not waits.issues_known:
        return lines
    for task in waits.tasks[:most_tasks]:
        parts = [
            (f"waiting in the queue {_time(task.queue_ns.sum)}", held_text(task.held_in_queue, waits)),
            (f"in the device {_time(task.device_ns.sum)}", held_text(task.held_in_device, waits)),
        ]
        told = [f"{what}, held by {held}" for what, held in parts if held]
        if told:
            lines.append(f"{task_name(task)}: {'; '.join(told)}")
    return ["", *lines] if lines else []


def held_text(holders: Holders, waits: Waits) -> str:
    """``fio[12] 80 %, dd[7] 15 %, idle 5 %``; empty if there was no waiting."""
    total = sum(held for _, held in holders.tasks) + holders.others_ns + holders.idle_ns
    if total <= 0:
        return ""
    held = [(task_name(waits.tasks[place]), ns) for place, ns in holders.tasks[:_MOST_HOLDERS]]
    rest = sum(ns for _, ns in holders.tasks[_MOST_HOLDERS:]) + holders.others_ns
    held += [("others", rest), ("nobody (the device was idle)", holders.idle_ns)]
    return ", ".join(f"{name} {percent_text(ns / total)}" for name, ns in held if ns / total >= _LEAST_SHARE)


def _size(sizes: Distribution, value: int) -> str:
    return format_bytes(value) if sizes.count else ""


def _share(part: int, whole: int) -> str:
    return percent_text(part / whole) if whole else ""


def _time(ns: float) -> str:
    return format_duration(round(ns))
