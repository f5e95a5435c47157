"""The docs stay short, and long tables are CSV files that a page links to."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_links import ROOT

DOCS = ROOT / "docs"
MOST_WORDS = 70_000
"""As ``find docs -name '*.md' | xargs cat | wc -w`` counts them. Cut something before you raise it."""
TABLES = sorted(DOCS.rglob("*.csv"))


def test_the_docs_do_not_grow_back() -> None:
    words = {path.relative_to(DOCS): len(path.read_text("utf-8").split()) for path in DOCS.rglob("*.md")}
    longest = sorted(words.items(), key=lambda item: -item[1])[:5]
    assert sum(words.values()) <= MOST_WORDS, f"the longest pages: {longest}"


def test_every_table_has_a_page_that_links_to_it() -> None:
    linked = {
        (page.parent / link.partition(")")[0]).resolve()
        for page in DOCS.rglob("*.md")
        for link in page.read_text("utf-8").split("](")[1:]
        if link.partition(")")[0].endswith(".csv")
    }
    assert not [str(table.relative_to(DOCS)) for table in TABLES if table not in linked]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: str(path.relative_to(DOCS)))
def test_every_table_has_headings_and_whole_rows(table: Path) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        headings, *rows = csv.reader(file)
    assert rows, "no row"
    assert all(headings), f"a column without a heading: {headings}"
    assert len(set(headings)) == len(headings), f"two columns of one heading: {headings}"
    assert not [row for row in rows if len(row) != len(headings)], "a row of another length"
    assert not [cell for cell in _cells(rows) if "](" in cell or "**" in cell or "`" in cell], "Markdown"


def _cells(rows: Sequence[Sequence[str]]) -> list[str]:
    return [cell for row in rows for cell in row]
