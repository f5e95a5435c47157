"""The verdict for a class of drives for a terminal, and its evidence as lines of comments."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.class_comparison import ClassComparison, NewDrive
from blklab.analysis.fleet import FleetAnalysis
from blklab.analysis.fleet_goal import FleetGoal
from blklab.analysis.pareto import FrontStanding
from blklab.analysis.ranking import MetricVerdict
from blklab.analysis.statistics.population import FEWEST_DRIVES
from blklab.quantities.formatting import (
    TIMES,
    confidence_text,
    count_of,
    join_names,
    join_schedulers,
    margin_text,
    metric_title,
    ratio_text,
    scheduler_text,
)
from blklab.report.sentences.answer import basis_text
from blklab.report.sentences.doubts import doubt_text
from blklab.report.sentences.fleet import fleet_remark_text
from blklab.report.sentences.goals import absent_text
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer
from blklab.spec.drive_classes import DriveClass

_STYLES = {"best": "bold green", "equal": "bold cyan", "undecided": "bold yellow", "withheld": "bold red"}
_SIGNS: dict[NewDrive, str] = {
    "better": "▲ better",
    "no worse": "· no worse",
    "worse": "▼ worse",
    "equal": "= equal",
    "open": "? open",
}
_STANDINGS: dict[FrontStanding, str] = {"front": "is on it", "dominated": "is dominated", "open": "is open"}


def render_fleet(found: FleetAnalysis, drive_class: DriveClass, console: Terminal) -> None:
    """Prints the report: the verdict, what it means for a new drive, then the evidence drive by drive."""
    printer = Printer(console)
    printer.blank()
    printer.line((_headline(found, drive_class), _STYLES[found.verdict.status]))
    printer.line(f"{basis_text(found.verdict.basis)}.")
    for sentence in new_drive_sentences(found):
        printer.line(sentence)
    if 0 < len(found.drives) < FEWEST_DRIVES:
        printer.line(
            f"{count_of(len(found.drives), 'drive')} cannot speak for a class: compare on {FEWEST_DRIVES} or "
            "more, each with a run of its own in this store."
        )
    for doubt in found.verdict.doubts:
        printer.line(("⚠ WARNING: ", "bold yellow"), doubt_text(doubt))
    printer.blank()
    printer.line(f"Measured on {_extent(found)}; {confidence_text(found.confidence)} intervals in brackets.")
    if found.goal is not None:
        printer.blank()
        _print_goal(found.goal, found.labels, printer)
    for verdict in found.metric_verdicts:
        printer.blank()
        _print_workload(found, verdict, printer)
    if found.remarks:
        printer.blank()
    for remark in found.remarks:
        printer.line(("note: ", "bold"), f"{fleet_remark_text(remark)}.")


def new_drive_sentences(found: FleetAnalysis) -> list[str]:
    """Expectations for a new drive of the class under the recommended scheduler, by workload."""
    choice = found.verdict.choice
    if choice is None:
        return []
    sentences = []
    drive = "modelled disk" if found.modelled else "drive"
    for named, against in _decisive(found, choice):
        rivals = [one for one in against if one.new_low is not None]
        if not rivals:
            continue
        open_ones = [one for one in rivals if one.new_drive in ("open", "worse")]
        if not open_ones:
            sentences.append(
                f"On a new {drive}{named}, {choice} is not worse than any other by more than "
                f"{margin_text(found.margin)} ({confidence_text(found.confidence)})."
            )
            continue
        worst = min(open_ones, key=lambda one: one.chance_better or 0.0)
        sentences.append(
            f"On a new {drive}{named}, {choice} may still lose against {worst.mean.second}: "
            f"{ratio_text(worst.mean.ratio, worst.new_low, worst.new_high)}, "
            f"better on about {_per_hundred(worst)} of 100 drives."
        )
    return sentences


def _decisive(found: FleetAnalysis, choice: str) -> list[tuple[str, list[ClassComparison]]]:
    """The comparisons that the verdict rests on, by workload or for the goal, with words for a sentence."""
    if found.goal is not None:
        return [(" by the goal's score", found.goal.against(choice))]
    several = len(found.workloads) > 1
    return [(f" under {name}" if several else "", found.against(choice, name)) for name in found.workloads]


def evidence_lines(found: FleetAnalysis) -> list[str]:
    """The evidence for the recommended scheduler, for the comments of a rule or profile."""
    choice = found.verdict.choice or (found.verdict.candidates or [""])[0]
    lines = [f"Verdict: {basis_text(found.verdict.basis)}.", *new_drive_sentences(found)]
    lines.append(f"Measured on {_extent(found)}; {confidence_text(found.confidence)} intervals in brackets.")
    compared = [one for workload in found.workloads for one in found.against(choice, workload)]
    if found.goal is not None:
        compared = [*found.goal.against(choice), *compared]
    lines += [
        f"{one.mean.workload}, {metric_title(one.mean.metric)}, {choice} against {one.mean.second}: mean of "
        f"{count_of(one.mean.n, 'drive')} {ratio_text(one.mean.ratio, one.mean.ci_low, one.mean.ci_high)}, "
        f"a new drive {ratio_text(one.mean.ratio, one.new_low, one.new_high)}"
        for one in compared
    ]
    lines.append(f"Models: {join_names(sorted({drive.model or 'unknown' for drive in found.drives}))}.")
    lines.append(f"Runs: {', '.join(found.runs)}.")
    return lines


def _headline(found: FleetAnalysis, drive_class: DriveClass) -> str:
    verdict = found.verdict
    if verdict.status == "best":
        said = f"{scheduler_text(verdict.best[0])} is best"
    elif verdict.status == "equal":
        said = f"{join_schedulers(verdict.best)} are equal"
    elif verdict.status == "withheld":
        said = "Withheld: a control differs"
    else:
        said = "Undecided" if verdict.candidates else "It depends on the work"
    words = drive_class.words
    return f"{said} for {words.replace('drives', 'modelled disks', 1) if found.modelled else words}"


def _extent(found: FleetAnalysis) -> str:
    hosts = len({drive.host for drive in found.drives if drive.host})
    where = f" of {count_of(hosts, 'host')}" if hosts else ""
    drives = count_of(len(found.drives), "modelled disk" if found.modelled else "drive")
    return f"{drives}{where}, {count_of(len(found.runs), 'experiment')}"


def _print_workload(found: FleetAnalysis, verdict: MetricVerdict, printer: Printer) -> None:
    control = " (control: no scheduler can influence it)" if verdict.control else ""
    printer.line((verdict.workload, "bold"), f", by {metric_title(verdict.metric)}{control}")
    pairs = [one for one in found.comparisons if one.mean.workload == verdict.workload]
    if not pairs:
        printer.line("no drive has figures for two schedulers")
        return
    lead = _lead(verdict, found.labels)
    against = found.against(lead, verdict.workload) or pairs
    _print_pairs(against, printer)
    closest = min(against, key=lambda one: abs(one.mean.ratio - 1))
    printer.line((f"{closest.mean.first} against {closest.mean.second}, drive by drive:", "dim"))
    _print_drives(closest, printer)


def _print_goal(goal: FleetGoal, labels: Sequence[str], printer: Printer) -> None:
    """The score, then each of its metrics, both over all workloads of the goal."""
    printer.line(("goal ", "bold"), (goal.goal.canonical, "bold"), f" over {join_names(goal.workloads)}")
    if not goal.comparisons:
        printer.line("no drive has scores of two schedulers")
        return
    lead = _lead(goal.verdict, labels)
    against = goal.against(lead) or list(goal.comparisons)
    _print_pairs(against, printer)
    closest = min(against, key=lambda one: abs(one.mean.ratio - 1))
    printer.line((f"{closest.mean.first} against {closest.mean.second}, drive by drive:", "dim"))
    _print_drives(closest, printer)
    for metric in goal.dimensions:
        printer.line((f"{metric_title(metric)} alone:", "dim"))
        _print_pairs(goal.against(lead, metric), printer)
    for point in goal.front:
        by = f" by {join_names(point.dominated_by)}" if point.dominated_by else ""
        printer.line(f"Pareto front: {point.scheduler} {_STANDINGS[point.standing]}{by}")
    if goal.conflict:
        printer.line("The metrics conflict: other weights may make another choice.")
    for absent in goal.absent:
        printer.line(("note: ", "bold"), f"{absent_text(absent)}.")


def _lead(verdict: MetricVerdict, labels: Sequence[str]) -> str:
    """The scheduler that the others are compared with."""
    return (verdict.best or verdict.candidates or labels)[0]


def _print_pairs(against: Sequence[ClassComparison], printer: Printer) -> None:
    table = printer.table()
    for heading, justify in (
        ("", "left"),
        ("mean of the class", "right"),
        ("a new drive", "right"),
        ("", "left"),
        ("spread", "right"),
        ("drives", "right"),
    ):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]  # a literal of rich's
    for one in against:
        table.add_row(
            printer.text(f"{one.mean.first} against {one.mean.second}", "bold"),
            printer.text(ratio_text(one.mean.ratio, one.mean.ci_low, one.mean.ci_high)),
            printer.text(_bounds(one)),
            printer.text(_SIGNS[one.new_drive] if one.new_low is not None else ""),
            printer.text("-" if one.spread is None else f"{100 * one.spread:.2g} %"),
            str(one.mean.n),
        )
    printer.console.print(table)


def _print_drives(one: ClassComparison, printer: Printer) -> None:
    table = printer.table()
    several = len({each.drive.model for each in one.drives}) > 1
    for heading in ("drive", *(["model"] if several else []), "run"):
        table.add_column(heading, overflow="fold")
    table.add_column(metric_title(one.mean.metric), justify="right", overflow="fold")
    table.add_column("blocks", justify="right", overflow="fold")
    for each in one.drives:
        table.add_row(
            printer.text(each.drive.name),
            *([printer.text(each.drive.model)] if several else []),
            printer.text(each.run_id),
            printer.text(ratio_text(each.ratio, each.ci_low, each.ci_high)),
            str(each.n),
        )
    printer.console.print(table)


def _bounds(one: ClassComparison) -> str:
    """The interval for a new drive, in the words of a ratio."""
    if one.new_low is None or one.new_high is None:
        return "-"
    text = ratio_text(one.mean.ratio, one.new_low, one.new_high)
    return text if TIMES in text or "[" not in text else text[text.index("[") :]


def _per_hundred(one: ClassComparison) -> str:
    return f"{100 * (one.chance_better or 0.0):.0f}"
