"""Files beside a Markdown page: pictures, and CSV for tables that are too long to read in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.report.pages.markdown import filled_parts, parts

FOLDER = "tables"
"""Folder of the CSV files, beside the page."""
LONGEST = 12
"""Most rows of a table that stays in its page."""
LARGEST = 40
"""Most cells of a table that stays in its page."""

_TABLE = re.compile(r"(?m)^\|.*\|\n\|(?: ?-+ ?\|)+\n(?:\|.*\|(?:\n|\Z))+")
_CELL = re.compile(r"(?<!\\)\|")
_LINKED = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class PageWithFiles:
    """A page, and the files that it shows and links to, by name."""

    text: str
    pictures: dict[str, str]
    tables: dict[str, str]


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A CSV file of cells without their Markdown."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(
        [_plain(cell) for cell in row] for row in (headings, *rows)
    )
    return file.getvalue()


def long_tables_apart(text: str, stem: str) -> tuple[str, dict[str, str]]:
    """Replaces tables beyond `LONGEST` or `LARGEST` by links to ``STEM.csv``; returns the files by name.

    If there are several they are ``STEM-1.csv`` and so on.
    """
    tables = [[_CELL.split(line.strip()[1:-1]) for line in one.splitlines()] for one in _TABLE.findall(text)]
    several = sum(map(_is_long, tables)) > 1
    files: dict[str, str] = {}

    def linked(found: re.Match[str]) -> str:
        table = tables.pop(0)
        if not _is_long(table):
            return found[0]
        headings, _, *rows = table
        name = f"{stem}-{len(files) + 1}.csv" if several else f"{stem}.csv"
        files[name] = csv_text(headings, rows)
        columns = "; ".join(heading.strip() for heading in headings if heading.strip())
        return f"[Table of {len(rows)} rows]({FOLDER}/{name}): {columns}.\n"

    return _TABLE.sub(linked, text), files


def _is_long(table: Sequence[Sequence[str]]) -> bool:
    rows = len(table) - 2
    return rows > LONGEST or rows * len(table[0]) > LARGEST


def fill_tables(page: Path, texts: Mapping[str, str]) -> None:
    """Fills the named tables of a page; long ones go into files beside it, and other tables stay as they are.

    Raises:
        KeyError: if the page has no table of a name.
    """
    text = page.read_text(encoding="utf-8")
    if missing := texts.keys() - set(parts(text, "table")):
        raise KeyError(f"{page} has no table named {', '.join(sorted(missing))}")
    apart = {name: long_tables_apart(one, f"{page.stem}-{name}") for name, one in texts.items()}
    for name, (_, files) in apart.items():
        write_csv_files(page, f"{page.stem}-{name}", files)
    filled = filled_parts(
        text, "table", lambda name: f"\n{apart[name][0].strip()}\n" if name in apart else None
    )
    page.write_text(filled, encoding="utf-8")


def write_csv_files(page: Path, stem: str, files: Mapping[str, str]) -> None:
    """Writes CSV files for a page, and removes those named STEM or STEM-NUMBER that it no longer links to."""
    folder = page.parent / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    named = re.compile(rf"{re.escape(stem)}(-\d+)?\.csv")
    for old in folder.glob("*.csv"):
        if named.fullmatch(old.name) and old.name not in files:
            old.unlink()


def write_pictures(folder: Path, pictures: Mapping[str, str]) -> None:
    """Writes pictures, and removes those that the page no longer shows."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures.items():
        (folder / name).write_text(text, encoding="utf-8")
    for old in folder.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()


def _plain(cell: str) -> str:
    """Text of a cell without links, code marks and emphasis."""
    text = _LINKED.sub(r"\1", cell.strip().replace("\\|", "|"))
    return (
        re.sub(r"(?<![\w\\])\*{1,2}(\S(?:.*?\S)?)\*{1,2}(?!\w)", r"\1", text)
        .replace("`", "")
        .replace("<br>", "; ")
        .replace("\\*", "*")
    )
