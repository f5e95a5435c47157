"""The filter before the terminal: text from elsewhere is shown, and steers nothing."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from rich.table import Table
from rich.text import Text

from blklab.quantities.visible import visible, visible_document, visible_lines, writable
from blklab.report.terminal import Terminal, styled

HOSTILE = "a\x1b]0;own\x07b\nc\rd\x9b31m\u202ee\x7f[red]f[/red]:warning:\udcff"
SHOWN = r"a\x1b]0;own\x07b\nc\rd\x9b31m\u202ee\x7f[red]f[/red]:warning:\xff"
STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _printed(*objects: object, **arguments: object) -> str:
    file = io.StringIO()
    Terminal(file=file, width=200, **arguments).print(*objects, soft_wrap=True)
    return file.getvalue()


def _table(*cells: object) -> Table:
    table = Table(HOSTILE, box=None, pad_edge=False)
    for cell in cells:
        table.add_row(cell)  # type: ignore[arg-type]  # what a careless caller would give
    return table


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_name_is_one_visible_line(on_terminal: bool) -> None:
    arguments = {"force_terminal": on_terminal, "color_system": None}
    assert _printed(HOSTILE, **arguments) == f"{SHOWN}\n"
    assert _printed(styled("note: ", HOSTILE), **arguments) == f"note: {SHOWN}\n"
    assert [line.strip() for line in _printed(_table(HOSTILE), **arguments).splitlines()] == [SHOWN, SHOWN]
    assert _printed(Group(HOSTILE, "b"), **arguments) == f"{SHOWN}\nb\n"


def test_own_colours_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = _printed(styled(("error: ", "bold red"), HOSTILE), force_terminal=True)
    assert shown == f"\x1b[1;31merror: \x1b[0m{SHOWN}\n"


def test_even_text_that_was_made_elsewhere_steers_nothing() -> None:
    shown = _printed(Text(HOSTILE))
    assert STEERING.search(shown.replace("\n", "")) is None
    assert r"\x1b]0;own" in shown


def test_several_lines_keep_their_breaks_and_tabs() -> None:
    file = io.StringIO()
    Terminal(file=file, width=80).lines("a\n\tb\x1b[2J\n[red]")
    assert file.getvalue() == "a\n        b\\x1b[2J\n[red]\n"


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    assert STEERING.search(visible(text)) is None
    assert "\n" not in visible(text)
    assert visible(visible(text)) == visible(text)
    assert STEERING.search(visible_lines(text).replace("\t", "")) is None


@given(st.text())
def test_a_document_means_the_same_afterwards(text: str) -> None:
    for document in (json.dumps({"name": text}, ensure_ascii=False), json.dumps(text)):
        assert json.loads(visible_document(document)) == json.loads(document)
        assert json.loads(writable(document)) == json.loads(document)
        visible_document(document).encode()


def test_ordinary_text_is_left_alone() -> None:
    ordinary = "Überschrift 5 µs → ★ “x” C:\\n 日本語"
    assert visible(ordinary) == visible_lines(ordinary) == visible_document(ordinary) == ordinary


def _told(*parts: str, on_terminal: bool, width: int = 40) -> list[str]:
    file = io.StringIO()
    Terminal(file=file, width=width, force_terminal=on_terminal, color_system=None).prose(*parts)
    return file.getvalue().splitlines()


def test_a_sentence_is_wrapped_at_words_and_no_command_is_torn() -> None:
    parts = ("note: ", "an answer of these four needs 5: --budget 4m, or `blklab compare --resume`")
    assert _told(*parts, on_terminal=True) == [
        "note: an answer of these four needs 5:",
        "--budget 4m, or",
        "`blklab compare --resume`",
    ]
    # A program that reads it looks for the whole sentence.
    assert _told(*parts, on_terminal=False) == ["".join(parts)]


def test_a_path_stays_whole() -> None:
    path = "/a" * 30
    assert _told(f"written to {path}", on_terminal=True) == ["written to", path]
