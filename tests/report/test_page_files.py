"""Long tables of a page go into CSV files, and files that a page no longer has are removed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from blklab.report.pages.markdown import markdown_table
from blklab.report.pages.page_files import (
    LARGEST,
    LONGEST,
    csv_text,
    fill_tables,
    long_tables_apart,
    write_csv_files,
    write_pictures,
)


def test_a_long_table_becomes_a_link_to_a_file_with_the_same_cells() -> None:
    short = markdown_table(("Kind", "n"), [("a", "1"), ("b", "2")])
    long = markdown_table(
        ("Name", "", "Rate, kB/s"), [("`a`|x", "**yes**", "[2](y.md) → 3\\*")] * (LONGEST + 1)
    )
    text, files = long_tables_apart(f"before:\n\n{short}\n\n{long}\n\nafter\n", "page")
    link = f"[Table of {LONGEST + 1} rows](tables/page.csv): Name; Rate, kB/s."
    assert text == f"before:\n\n{short}\n\n{link}\n\nafter\n"
    rows = list(csv.reader(files["page.csv"].splitlines()))
    assert rows == [["Name", "", "Rate, kB/s"], *[["a|x", "yes", "2 → 3*"]] * (LONGEST + 1)]


def test_several_tables_are_numbered_and_a_wide_one_counts_as_long() -> None:
    long = markdown_table(("n",), [("1",)] * (LONGEST + 1))
    wide = markdown_table(("n",) * (LARGEST + 1), [("1",) * (LARGEST + 1)])
    text, files = long_tables_apart(f"{long}\n\n{wide}", "page")
    assert list(files) == ["page-1.csv", "page-2.csv"]
    assert text.count("](tables/page-") == 2
    assert "|" not in text


def test_only_named_tables_are_filled(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- table: one -->\nold\n<!-- end -->\n<!-- table: two -->\nkept\n<!-- end -->\n")
    long = markdown_table(("n",), [("1",)] * (LONGEST + 1))
    fill_tables(page, {"one": long})
    link = f"[Table of {LONGEST + 1} rows](tables/page-one.csv): n."
    assert page.read_text() == (
        f"a\n<!-- table: one -->\n\n{link}\n\n<!-- end -->\n<!-- table: two -->\nkept\n<!-- end -->\n"
    )
    assert (tmp_path / "tables" / "page-one.csv").is_file()
    fill_tables(page, {"one": "short"})
    assert not (tmp_path / "tables" / "page-one.csv").exists()
    with pytest.raises(KeyError, match="no table named three"):
        fill_tables(page, {"three": ""})


def test_cells_keep_asterisks_that_are_no_emphasis() -> None:
    assert csv_text(("a",), [("2*3*4",), ("*why* not",), ("one<br>two",)]) == "a\n2*3*4\nwhy not\none; two\n"


def test_old_files_of_a_page_are_removed_and_those_of_others_kept(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in ("page-2.csv", "page-other.csv"):
        (folder / name).touch()
    write_csv_files(tmp_path / "page.md", "page", {"page-1.csv": "n\n"})
    assert {one.name for one in folder.iterdir()} == {"page-1.csv", "page-other.csv"}
    (folder / "old.svg").touch()
    write_pictures(folder, {"new.svg": "<svg/>"})
    assert {one.name for one in folder.glob("*.svg")} == {"new.svg"}
