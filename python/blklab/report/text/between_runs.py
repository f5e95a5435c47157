"""Changes between two stored runs for a terminal: answer, figures, differences in the set-up."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from blklab.analysis.between_runs import Change, ChangeStatus, RunsComparison
from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import (
    confidence_text,
    count_of,
    margin_text,
    metric_title,
    ratio_text,
)
from blklab.report.sentences.changes import change_remark_text
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer

_STYLES: dict[ChangeStatus, str] = {
    "slower": "bold red",
    "mixed": "bold red",
    "faster": "bold green",
    "same": "bold cyan",
    "undecided": "bold yellow",
}
_SPEED_UNITS = ("us", "B/s", "IO/s", "s")
MOST_FACTS_SHOWN = 20
_LONGEST_FACT = 40


def render_change(found: RunsComparison, console: Terminal) -> None:
    """Prints the report of two compared experiments."""
    printer = Printer(console)
    printer.blank()
    printer.line((_headline(found), _STYLES[found.status]))
    printer.line(_circumstances(found))
    for remark in found.remarks:
        printer.line(("⚠ ", "bold yellow"), f"{change_remark_text(remark)}.")
    for workload in dict.fromkeys(one.workload for one in found.changes):
        printer.blank()
        _print_workload(found, workload, printer)
    if found.shifts:
        printer.blank()
        printer.line(("Relative to another scheduler of the same experiment", "bold"))
        printer.line("A slowdown of the disk as a whole does not show here.")
        _print_table([("", one) for one in found.shifts], printer)
    printer.blank()
    _print_set_up(found, printer)


def outcome_words(change: Change) -> str:
    """The outcome with its sign: ``▼ slower``."""
    speed = METRICS[change.metric].unit in _SPEED_UNITS
    return {
        "better": "▲ faster" if speed else "▲ better",
        "worse": "▼ slower" if speed else "▼ worse",
        "equal": "= equal",
        "undecided": "? open",
    }[change.outcome]


def _headline(found: RunsComparison) -> str:
    judged = found.judged
    counts = {outcome: sum(one.outcome == outcome for one in judged) for outcome in ("worse", "better")}
    total = count_of(len(judged), "comparison")
    name = found.second.run_id
    if not judged:
        return "Nothing to compare: the two have no workload and scheduler in common"
    match found.status:
        case "slower":
            return f"{name} is slower in {counts['worse']} of {total}"
        case "faster":
            return f"{name} is faster in {counts['better']} of {total}"
        case "mixed":
            return f"{name} is slower in {counts['worse']} and faster in {counts['better']} of {total}"
        case "same":
            return f"{name} is equal within {margin_text(found.margin)} in all of {total}"
        case _:
            return f"Undecided: no difference is shown, nor equality within {margin_text(found.margin)}"


def _circumstances(found: RunsComparison) -> str:
    first, second = found.first, found.second
    words = f"{second.run_id} over {first.run_id}; {confidence_text(found.confidence)} intervals in brackets."
    if found.paired:
        return f"{words} Blocks correspond: both are models with the same seed."
    if "host" not in (first.target.backend, second.target.backend):
        return f"{words} Both are models, which have no good or bad days."
    days = _days_between(first.created_at, second.created_at)
    return (
        f"{words} They were made {days}, so a difference may be of the day: of a disk that filled up, "
        "warmed up or had other work."
    )


def _days_between(first: str, second: str) -> str:
    times = [datetime.datetime.fromisoformat(text) for text in (first, second)]
    hours = abs((times[1] - times[0]).total_seconds()) / 3600
    if hours < 1:
        return f"{count_of(round(60 * hours), 'minute')} apart"
    return f"{count_of(round(hours), 'hour')} apart" if hours < 48 else f"{round(hours / 24)} days apart"


def _print_workload(found: RunsComparison, workload: str, printer: Printer) -> None:
    own = [one for one in found.changes if one.workload == workload]
    control = " (control)" if any(one.control for one in own) else ""
    printer.line((workload, "bold"), control)
    # Every metric that decides, and of the others what has changed.
    shown = [one for one in own if one.decides or one.outcome in ("better", "worse")]
    _print_table([(metric_title(one.metric) + (" *" if one.decides else ""), one) for one in shown], printer)
    left = len({one.metric for one in own} - {one.metric for one in shown})
    if left:
        printer.line((f"* decides; no change is shown by {count_of(left, 'other metric')}", "dim"))


def _print_table(rows: Sequence[tuple[str, Change]], printer: Printer) -> None:
    table = printer.table()
    table.add_column("metric" if any(text for text, _ in rows) else "workload", overflow="fold")
    table.add_column("scheduler", min_width=9, overflow="fold")
    table.add_column("change", justify="right", overflow="fold")
    table.add_column("", overflow="fold")
    table.add_column("blocks", justify="right", overflow="fold")
    for text, one in rows:
        name = one.scheduler if one.against is None else f"{one.scheduler} over {one.against}"
        table.add_row(
            printer.text(text or one.workload),
            printer.text(name),
            printer.text(ratio_text(one.ratio, one.ci_low, one.ci_high)),
            printer.text(outcome_words(one), {"worse": "bold red", "better": "green"}.get(one.outcome, "")),
            str(one.n),
        )
    printer.console.print(table)


def _print_set_up(found: RunsComparison, printer: Printer) -> None:
    if not found.set_up:
        printer.line("The set-ups are the same, as far as they are recorded.")
        return
    printer.line(("Different in the set-up", "bold"))
    table = printer.table()
    for heading in ("", found.first.run_id, found.second.run_id):
        table.add_column(heading, overflow="fold")
    for one in found.set_up[:MOST_FACTS_SHOWN]:
        table.add_row(
            printer.text(one.name), printer.text(_short(one.first)), printer.text(_short(one.second))
        )
    printer.console.print(table)
    left = len(found.set_up) - MOST_FACTS_SHOWN
    if left > 0:
        printer.line((f"and {left} more, which --json lists", "dim"))


def _short(text: str) -> str:
    if not text:
        return "-"
    return text if len(text) <= _LONGEST_FACT else f"{text[: _LONGEST_FACT - 1]}…"
