"""The terminal report."""

from __future__ import annotations

import io
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from report_cases import CASES, analysed

from blklab.report.documents.comparison import CompareDocument, compare_document, run_document
from blklab.report.terminal import Terminal
from blklab.report.text.answer import answer_of
from blklab.report.text.comparison import render, render_run
from blklab.report.text.short import MOST_ROWS

GOLDEN = Path(__file__).parent / "golden"
REFRESH = os.environ.get("BLKLAB_REFRESH_GOLDEN") == "1"


def _document(case: str) -> CompareDocument:
    return compare_document(*analysed(case))


def _printed(
    document: CompareDocument, width: int = 80, encoding: str = "utf-8", *, verbose: bool = True
) -> str:
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding=encoding)
    render(document, Terminal(file=file, width=width), verbose=verbose)
    file.flush()
    return buffer.getvalue().decode(encoding)


def _hold_to_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if REFRESH:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "refresh with BLKLAB_REFRESH_GOLDEN=1 if it is meant"


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    _hold_to_golden(f"{case}.txt", _printed(_document(case)))


@pytest.mark.parametrize("case", CASES)
def test_short_golden(case: str) -> None:
    _hold_to_golden(f"short-{case}.txt", _printed(_document(case), verbose=False))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [80, 120])
def test_the_answer_fits_into_24_rows_and_is_the_last_line(case: str, width: int) -> None:
    document = _document(case)
    lines = _printed(document, width, verbose=False).splitlines()
    assert len(lines) <= MOST_ROWS == 24
    answer = answer_of(document)
    assert lines[-1] in (answer.sentence, f"{answer.headline}.")
    assert lines[1].startswith(answer.headline[:60])


@pytest.mark.parametrize("case", ["decided", "undecided", "twelve", "purpose"])
def test_one_bar_is_marked_as_in_use(case: str) -> None:
    document = _document(case)
    printed = _printed(document, verbose=False)
    marked = [line for line in printed.splitlines() if line.endswith("  in use now")]
    assert marked
    assert all(line.split()[1] == "mq-deadline" for line in marked)


def test_bars_are_as_long_as_the_figures() -> None:
    bars = [line for line in _printed(_document("depends"), verbose=False).splitlines() if "█" in line]
    lengths = {line.split()[1]: line.count("█") for line in bars[:2]}
    assert lengths["bfq"] / lengths["none"] == pytest.approx(9.62 / 12.05, abs=0.05)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [80, 120])
def test_fits_the_width(case: str, width: int, *, verbose: bool) -> None:
    for line in _printed(_document(case), width, verbose=verbose).splitlines():
        # Commands are never broken, so that they can be copied.
        assert len(line) <= width or line.startswith(("    blklab ", "All figures and charts: ")), line


@pytest.mark.parametrize("case", CASES)
def test_headings_stay_whole_at_every_width(case: str) -> None:
    document = _document(case)
    # Nothing is broken where there is room for everything.
    wide = _headings(document, 250)
    assert wide or case == "empty"
    for width in range(72, 120, 3):
        narrow = _headings(document, width)
        assert len(narrow) == len(wide), width
        assert sum("(decides)" in line for line in narrow) == sum("(decides)" in line for line in wide), width
        assert all(len(line) <= width for line in narrow)


def _headings(document: CompareDocument, width: int) -> list[str]:
    """The lines above the rules of the schedulers' tables."""
    lines = _printed(document, width).splitlines()
    above_rules = [above for above, line in pairwise(lines) if line.startswith("────")]
    return [line for line in above_rules if line.startswith("scheduler")]


def test_a_wider_terminal_shows_more() -> None:
    document = _document("decided")
    assert "no room for" in _printed(document, 80)
    assert "no room for" not in _printed(document, 140)
    assert "CPU per I/O" in _printed(document, 140)


@pytest.mark.parametrize("case", CASES)
def test_ascii_only_terminal(case: str) -> None:
    _printed(_document(case), encoding="ascii").encode("ascii")


def test_no_colours_in_a_log_and_under_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    document = _document("decided")
    assert "\x1b" not in _printed(document)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def on_terminal() -> str:
        file = io.StringIO()
        render(document, Terminal(file=file, width=80, force_terminal=True), verbose=True)
        return file.getvalue()

    assert "\x1b[1;32m" in on_terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", on_terminal())


def test_every_standing_is_said_in_words() -> None:
    printed = {case: _printed(_document(case)) for case in CASES}
    assert re.search(r"none +★ best", printed["decided"])
    assert re.search(r"bfq +· beaten", printed["decided"])
    assert re.search(r"second +\S? ?= equal best", printed["equal"])
    assert re.search(r"kyber +\? open", printed["undecided"])
    assert re.search(r"n3 +✗ no figure", printed["damaged"])


def test_a_control_that_differs_stands_out_before_the_figures() -> None:
    printed = _printed(_document("suspicious"))
    assert printed.index("⚠ WARNING: the control cached-read differs") < printed.index("(decides)")


def test_control_characters_cannot_reach_the_terminal() -> None:
    document = _document("equal").model_copy(
        update={"warnings": ["\x1b]0;title\x07 bell \x9b31m \u202e reversed [red]markup[/red]"]}
    )
    printed = _printed(document)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed)
    assert "[red]markup[/red]" in printed


def test_a_single_run() -> None:
    record = analysed("decided")[0]
    sample = next(one for one in record.samples if one.cell.workload == "reader-beside-writers")
    log = next(one for one in analysed("undecided")[0].samples if one.cell.workload == "write-ahead-log")
    file = io.StringIO()
    console = Terminal(file=file, width=80)
    tunables = {"slice_idle": "0"}
    render_run(run_document("/srv", sample, scheduler="bfq", tunables=tunables, queue={}), console)
    render_run(run_document("/srv", log, scheduler="none", tunables={}, queue={}), console)
    text = file.getvalue()
    assert "bfq:slice_idle=0" in text
    assert "background" in text
    assert re.search(r"^ +sync ", text, re.MULTILINE)
    _hold_to_golden("run.txt", text)
