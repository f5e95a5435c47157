"""Fills tables of options in pages: ``python -m blklab.cli.reference.experiments PAGE…``.

The table ``options`` has those that any target takes, ``guest-options`` those of the TOML table ``[guest]``,
``combinations`` says which loads, designs and backends go together. A CSV file beside the first says which
commands take each.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from blklab.cli.matrix import matrix_markdown
from blklab.report.pages.markdown import filled_parts, markdown_table
from blklab.report.pages.page_files import csv_text, write_csv_files
from blklab.spec.experiment import OPTIONS
from blklab.spec.forms import ASSIGNMENTS, GOAL, GROUP_ASSIGNMENTS
from blklab.spec.options import Option, Use

HEADINGS = ("Key", "Flag or argument", "Meaning", "Default")
COMMANDS_FILE = "experiment-options.csv"


def filled(page: Path) -> str:
    """The text of the page with its tables as they should be.

    Links lead to pages of the folder ``docs`` around the page, whichever part of it they lie in.

    Raises:
        KeyError: if the page asks for another table.
    """
    tables = {
        "options": [option for option in OPTIONS if option.table != "guest"],
        "guest-options": [option for option in OPTIONS if option.table == "guest"],
    }

    def table(name: str) -> str:
        if name == "combinations":
            return matrix_markdown()
        return markdown_table(HEADINGS, [_row(option, page) for option in tables[name]])

    return filled_parts(page.read_text(encoding="utf-8"), "table", table)


def commands_file() -> str:
    """All options with the commands that take them."""
    rows = [
        (_key(option), _flag(option), option.help, option.shown_default or "none", ", ".join(option.commands))
        for option in OPTIONS
    ]
    return csv_text(("key", "flag or argument", "meaning", "default", "commands"), rows)


def _row(option: Option, page: Path) -> tuple[str, ...]:
    told_here = option.table and option.see.startswith(page.name)
    more = f" ([more]({_link(option.see, page)}))" if option.see and not told_here else ""
    return _key(option), _flag(option), f"{option.help}{more}", option.shown_default or "none"


def _key(option: Option) -> str:
    """The key as a description has it."""
    if option.form is ASSIGNMENTS:
        return f"`[{option.key}]`"
    if option.form is GROUP_ASSIGNMENTS:
        return f"`[{option.key}.GROUP]`"
    if option.form is GOAL:
        return f"`{option.name}`, or `[{option.name}]` with weights"
    if option.singular:
        return f"`{option.singular}`, or `{option.name}` (a list)"
    if option.form.use is Use.REPEATED:
        return f"`{option.name}` (a list)"
    return f"`{option.name}` in `[{option.table}]`" if option.table else f"`{option.name}`"


def _flag(option: Option) -> str:
    if option.positional:
        return f"`{option.metavar}`"
    *short, flag = option.flags
    spelled = [*short, f"{flag} {option.shown_metavar}".strip()]
    repeated = " (repeatable)" if option.form.use is Use.REPEATED else ""
    return ", ".join(f"`{one}`" for one in spelled) + repeated


def _link(see: str, page: Path) -> str:
    """The way from the page to another one, which is named without its folder."""
    name, hash_sign, anchor = see.partition("#")
    if name == page.name:
        return f"#{anchor}"
    docs = next((folder for folder in page.resolve().parents if folder.name == "docs"), page.parent)
    found = next(docs.rglob(name), docs / name)
    return f"{os.path.relpath(found, page.resolve().parent)}{hash_sign}{anchor}"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m blklab.cli.reference.experiments FILE...")
    for file in map(Path, sys.argv[1:]):
        file.write_text(filled(file), encoding="utf-8")
        if file.name == "experiments.md":
            write_csv_files(file, Path(COMMANDS_FILE).stem, {COMMANDS_FILE: commands_file()})
