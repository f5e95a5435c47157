"""`blklab where` in 24 rows: the answer, the tasks that waited most, and findings on priorities."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from rich.text import Text

from blklab.quantities.formatting import count_of, percent_text
from blklab.quantities.units import format_bytes, format_duration
from blklab.recordings.waits import TaskWaits, Waits
from blklab.report.text.printer import Printer
from blklab.report.waits.answer import answer_of, main_holder, process_name
from blklab.report.waits.document import WhereDocument
from blklab.report.waits.text import finding_lines, table_lines, wait_cells, warning_lines, without_unknown

MOST_ROWS = 23
"""Of 24 one is the shell's."""
FEW_TASKS = 5
_MOST_DEVICES = 2
_MOST_REMARKS = 2
_TITLES = ("TASK", "HELD BY", "I/OS", "IN QUEUE", "IN DEVICE", "P99", "PRIORITY")
_LONGEST_NAME = 16


def render_short_where(
    document: WhereDocument, printer: Printer, *, most_tasks: int = FEW_TASKS, page: str | None = None
) -> None:
    """Prints the answer first, and after it as much of the rest as `MOST_ROWS` rows hold.

    Args:
        document: The recording's analysis.
        printer: Prints it.
        most_tasks: More of them take more rows.
        page: A path of the page, if one was written.
    """
    waits = document.waits
    head = [*printer.wrapped((answer_of(waits), "bold"), most=3), printer.text("")]
    head += _facts(document, printer)
    table = _table(waits, printer, most_tasks)
    extra = 1 if page is None else 2
    room = MOST_ROWS - len(head) - FEW_TASKS - 3 - extra
    reasons, left = _reasons(document, printer, room)
    others = f"findings ({left} more)" if left else "findings"
    more = printer.wrapped(f"All tasks, times and {others}: ")[0]
    more.append(" ").append_text(printer.text(f"blklab where {shlex.quote(document.file)} -v", "bold"))
    foot = [more]
    if page is not None:
        foot.append(printer.text(f"page: {page}"))
    for line in [*head, *table, *reasons, *foot]:
        printer.console.print(line, soft_wrap=True)


def _facts(document: WhereDocument, printer: Printer) -> list[Text]:
    """The recording's extent, its devices, and what it lacks."""
    waits = document.waits
    tally = waits.tally
    extent = (
        f"{count_of(tally.ios, 'I/O')}, {format_bytes(waits.all.bytes)} in {format_duration(tally.span_ns)}"
    )
    lines = printer.wrapped(f"{PurePath(document.file).name}: {extent}", most=2)
    names = {device.number: device for device in waits.facts.devices}
    for device in waits.devices[:_MOST_DEVICES]:
        known = names.get(device.number)
        text = known.name if known and known.name else "device"
        text += f" under {known.scheduler}" if known and known.scheduler else ""
        parts = []
        if device.busy_ns is not None and waits.issues_known and tally.span_ns:
            parts.append(f"busy {percent_text(device.busy_ns / tally.span_ns)} of the time")
        depths = [(device.in_device, "I/Os in the device"), (device.in_queue, "in the queue")]
        parts += [f"{depth.mean:.1f} {where}" for depth, where in depths if depth is not None]
        lines += printer.wrapped(f"{text}: {', '.join(parts) or count_of(device.ios, 'I/O')}", most=2)
    left = len(waits.devices) - _MOST_DEVICES
    if left > 0:
        lines += printer.wrapped(f"and {count_of(left, 'more device')} (-v)")
    # Gaps of the trace are the answer, if they matter.
    remarks = [*warning_lines(waits), *(f"not recorded: {text}" for text in waits.facts.missing)]
    for remark in remarks[:_MOST_REMARKS]:
        lines += printer.wrapped(remark, most=3)
    if len(remarks) > _MOST_REMARKS:
        lines += printer.wrapped(f"and {count_of(len(remarks) - _MOST_REMARKS, 'more remark')} (-v)")
    return lines


def _table(waits: Waits, printer: Printer, most_tasks: int) -> list[Text]:
    shown = [*waits.tasks[:most_tasks], waits.all]
    titles, rows = without_unknown(_TITLES, [_cells(task, waits) for task in shown])
    lines, _ = table_lines(titles, rows, 2 if "HELD BY" in titles else 1, printer.console.width)
    hidden = len(waits.tasks) - most_tasks
    after = (
        printer.wrapped(f"{count_of(hidden, 'more task')}: --tasks {len(waits.tasks)}") if hidden > 0 else []
    )
    return [printer.text(""), *map(printer.text, lines), *after]


def _cells(task: TaskWaits, waits: Waits) -> list[str]:
    row = wait_cells(task, waits)
    name = "all" if task is waits.all else process_name(task)
    return [name, _holder(task, waits), row[1], row[3], row[5], row[8], row[2]]


def _holder(task: TaskWaits, waits: Waits) -> str:
    """``itself 86 %``: the main holder of the device while a task's I/Os waited."""
    found = main_holder(waits.tasks if task is waits.all else [task])
    if found is None or not waits.issues_known:
        return ""
    place, share = found
    if place is None:
        name = "idle"
    elif waits.tasks[place] is task:
        name = "itself"
    else:
        name = process_name(waits.tasks[place])
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"{short} {percent_text(share)}"


def _reasons(document: WhereDocument, printer: Printer, room: int) -> tuple[list[Text], int]:
    """Findings on priorities and weights, as far as there is room, and the number of the others."""
    shown: list[Text] = []
    left = 0
    for line in finding_lines(document):
        wrapped = printer.wrapped(line, indent=2)
        wrapped[0] = printer.text(f"* {wrapped[0].plain.strip()}")
        if len(shown) + len(wrapped) + 1 <= room:
            shown += wrapped
        else:
            left += 1
    return ([printer.text(""), *shown] if shown else []), left
