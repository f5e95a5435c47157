"""Renders the analysis of other tools' results for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.labs.reanalysis.analysis import DesignSection, FileAnalysis, FileSummary
from blklab.labs.reanalysis.findings import POWER, StratumFindings
from blklab.labs.reanalysis.report.wording import level_cells, not_supported_sentences, supported_sentences
from blklab.labs.reanalysis.strata import ALL_VALUES
from blklab.quantities.formatting import confidence_text, count_of, margin_text
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer

MOST_SHOWN = 8
"""Further problems, lines and notes are counted, not listed; --json has them all."""
MOST_FILES_SHOWN = 12
"""More files are counted by their readers."""


def render_analysis(analysis: FileAnalysis, console: Terminal) -> None:
    """Prints the files read, the design, and the findings of every stratum."""
    printer = Printer(console)
    printer.blank()
    for text in _file_texts(analysis.files):
        printer.line(text)
    for problem in analysis.problems[:MOST_SHOWN]:
        printer.line(("✗ not usable: ", "bold red"), f"{problem.location}: {problem.message}")
    _print_more(printer, len(analysis.problems))
    if not analysis.complete:
        printer.line(
            ("⚠ INCOMPLETE: ", "bold yellow"),
            f"{count_of(len(analysis.problems), 'place')} could not be used; the analysis is based on the "
            "rest",
        )
    for note in analysis.notes[:MOST_SHOWN]:
        printer.line(("note: ", "bold"), note)
    _print_more(printer, len(analysis.notes))
    for section in analysis.sections:
        printer.blank()
        _print_section(section, analysis, printer)


def _file_texts(files: Sequence[FileSummary]) -> list[str]:
    """A line for each file; many files without lines in another format are one line for each reader."""
    if len(files) <= MOST_FILES_SHOWN:
        return [_file_text(file) for file in files]
    texts = []
    for reader in dict.fromkeys(file.reader for file in files):
        of_reader = [file for file in files if file.reader == reader]
        values = count_of(sum(file.nr_values for file in of_reader), "value")
        if len(of_reader) == 1:
            texts.append(_file_text(of_reader[0]))
            continue
        texts.append(
            f"{of_reader[0].name} to {of_reader[-1].name}: {len(of_reader)} files, {reader}, {values}"
        )
        texts += [_file_text(file) for file in of_reader if file.skipped_lines][:MOST_SHOWN]
    return texts


def _file_text(file: FileSummary) -> str:
    text = (
        f"{file.name}: {file.reader}, {count_of(file.nr_values, 'value')} in {count_of(file.lines, 'line')}"
    )
    if not file.skipped_lines:
        return text
    return f"{text}; {_lines_text(file.skipped_lines)} not in this format"


def _lines_text(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:MOST_SHOWN]))
    more = len(lines) - MOST_SHOWN
    word = "line" if len(lines) == 1 else "lines"
    return f"{word} {shown}{f' and {more} more' if more > 0 else ''}"


def _print_more(printer: Printer, count: int) -> None:
    if count > MOST_SHOWN:
        printer.line((f"… and {count - MOST_SHOWN} more (all are in --json)", "dim"))


def _print_section(section: DesignSection, analysis: FileAnalysis, printer: Printer) -> None:
    metrics = list(dict.fromkeys(found.stratum.metric for found in section.findings))
    printer.line((f"Design of {section.reader}: {', '.join(metrics)}", "bold"))
    for reason in section.design.reasons:
        printer.line(f"- {reason}", indent=2)
    scale = "ratios of geometric means" if section.design.scale == "ratio" else "differences of means"
    tables = sum(bool(found.pairs) for found in section.findings)
    several = f", each of the {tables} tables separately" if tables > 1 else ""
    printer.line(
        f"- {scale}; intervals of {confidence_text(analysis.confidence)}; equal within "
        f"{margin_text(analysis.margin)}; all pairs of a table corrected together (Holm){several}",
        indent=2,
    )
    if any(pair.detectable is not None for found in section.findings for pair in found.pairs):
        printer.line(
            f"- 'detectable from': the test has a power of {100 * POWER:.0f} % at a true difference of this "
            "size",
            indent=2,
        )
    if section.design.factor is None:
        printer.blank()
        _print_levels(section.findings, printer)
        return
    for found in section.findings:
        printer.blank()
        printer.line((f"{found.stratum.title}, {found.stratum.unit or 'no unit'}", "bold"))
        _print_levels([found], printer)
        for sentence in supported_sentences(found):
            printer.line(("supported: ", "bold green"), sentence)
        for sentence in not_supported_sentences(found):
            printer.line(("not supported: ", "yellow"), sentence)
        for warning in found.warnings:
            printer.line(("⚠ ", "bold yellow"), warning)


def _print_levels(strata: Sequence[StratumFindings], printer: Printer) -> None:
    """Prints one table: the levels of a stratum, or all strata without a comparison."""
    compared = len(strata) == 1 and strata[0].levels[0].level != ALL_VALUES
    table = printer.table()
    table.add_column("level" if compared else "value", overflow="fold", max_width=36)
    for heading in ("n", "mean", "sd", "lowest", "highest", "trend (p)"):
        table.add_column(heading, justify="right", no_wrap=True)
    for found in strata:
        for one in found.levels:
            name = one.level or "(none)"
            if not compared:
                name = f"{found.stratum.title}, {found.stratum.unit or 'no unit'}"
            table.add_row(*map(printer.text, [name, *level_cells(one)]))
    printer.console.print(table)
    if not compared:
        warnings = _warnings(strata)
        for warning in warnings[:MOST_SHOWN]:
            printer.line(("⚠ ", "bold yellow"), warning)
        _print_more(printer, len(warnings))


def _warnings(strata: Sequence[StratumFindings]) -> list[str]:
    """The warnings of all strata; a warning that several share appears once."""
    titles: dict[str, list[str]] = {}
    for found in strata:
        for warning in found.warnings:
            titles.setdefault(warning, []).append(found.stratum.title)
    texts = []
    for warning, of in titles.items():
        whose = of[0] if len(of) == 1 else count_of(len(of), "metric")
        if len(of) == len(strata) > 1:
            whose = f"each of the {len(of)} metrics"
        texts.append(f"{whose}: {warning}")
    return texts
