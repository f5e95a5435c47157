"""Renders a replicated study in at most `MOST_ROWS` lines of a terminal.

Published conclusions come first, then our statements that do not hold, then the figures that are farthest
from the published ones. Our statements that hold get the lines that are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from blklab.labs.studies.replication.report.finding import STATEMENT_SIGNS, StudyFinding
from blklab.labs.studies.replication.report.text import STATEMENT_STYLES
from blklab.labs.studies.replication.result import ComparedValue, Statement
from blklab.labs.studies.replication.statements import estimate_text
from blklab.quantities.formatting import rounded
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer

MOST_ROWS = 40
NEAR = 0.1
"""Figures of ours within this fraction of the published ones are near them."""
_MOST_FIGURES = 5
_MOST_LINES_OF_A_STATEMENT = 2
_MOST_LINES_OF_A_TITLE = 2


def render_short_study(finding: StudyFinding, console: Terminal, page: str | None) -> None:
    """Prints conclusions, the statements and figures that differ, and how many statements hold.

    Args:
        finding: The study's.
        console: The terminal.
        page: Shell-quoted path of the page with everything, if one was written.
    """
    printer = Printer(console)
    head = [
        printer.text(""),
        *printer.wrapped(
            (finding.title, "bold"), f" ({finding.name}), on {finding.place}", most=_MOST_LINES_OF_A_TITLE
        ),
        *printer.wrapped(f"{finding.counts()}."),
    ]
    figures = _figure_lines(finding, printer)
    everything = page or f"blklab study run {finding.name} -v"
    tail = [
        printer.text("All statements, figures and pictures: ").append_text(printer.text(everything, "bold")),
        *printer.wrapped((f"{finding.name}: {finding.tally()}.", "bold")),
    ]
    room = MOST_ROWS - len(head) - len(figures) - len(tail)
    for line in [*head, *_statement_lines(finding, printer, room), *figures, *tail]:
        printer.console.print(line, soft_wrap=True)


def _statement_lines(finding: StudyFinding, printer: Printer, room: int) -> list[Text]:
    statements = finding.result.statements
    published = [one for one in statements if one.origin == "published"]
    ours = [one for one in statements if one.origin == "ours"]
    lines: list[Text] = []
    if published:
        lines.append(printer.text(f"{finding.tally_of('published')}:", "bold"))
        lines += _listed(published, printer, room - len(lines) - (1 if ours else 0))
    if ours:
        lines += printer.wrapped((f"{finding.tally_of('ours')}:", "bold"), most=1)
        lines += _listed([one for one in ours if one.outcome != "holds"], printer, room - len(lines))
        holding = [one for one in ours if one.outcome == "holds"]
        lines += _listed(holding, printer, room - len(lines), most=1)
    return lines


def _listed(
    statements: Sequence[Statement], printer: Printer, room: int, most: int = _MOST_LINES_OF_A_STATEMENT
) -> list[Text]:
    """Statements with what was found, as many as there is room for."""
    kept: list[Text] = []
    for number, one in enumerate(statements):
        lines = printer.wrapped(
            (f"{STATEMENT_SIGNS[one.outcome]} ", STATEMENT_STYLES[one.outcome]),
            f"{one.says.removesuffix('.')}: {one.found}",
            indent=1,
            most=most,
        )
        is_last = number == len(statements) - 1
        if len(kept) + len(lines) > room - (0 if is_last else 1):
            more = "and " if kept else ""
            return [*kept, printer.text(f" … {more}{len(statements) - number} more (-v)", "dim")][
                : max(0, room)
            ]
        kept += lines
    return kept


def _figure_lines(finding: StudyFinding, printer: Printer) -> list[Text]:
    """How many published figures ours are near, and those that are farthest from them."""
    compared = [one for one in finding.result.values if one.beside == "published" and one.ratio is not None]
    if not compared:
        return []
    far = [one for one in compared if _distance(one) > math.log1p(NEAR)]
    near = f"{len(compared) - len(far)} of {len(compared)} are within {100 * NEAR:g} % of the published ones"
    lines = printer.wrapped((f"Figures: {near}{'; farthest:' if far else ''}", "bold"), most=1)
    for one in sorted(far, key=_distance, reverse=True)[:_MOST_FIGURES]:
        unit = f" {one.unit}" if one.unit else ""
        published, ours = (
            "-" if estimate is None else f"{estimate_text(estimate)}{unit}"
            for estimate in (one.published, one.ours)
        )
        figures = f"published {published}, ours {ours}, ratio {rounded(one.ratio or 0.0)}"
        lines += printer.wrapped(f"{figures}  ({one.name}; {one.table})", indent=3, most=1)
    return lines


def _distance(value: ComparedValue) -> float:
    """Between ours and the published figure, as the logarithm of their ratio."""
    return abs(math.log(value.ratio)) if value.ratio is not None and value.ratio > 0 else math.inf
