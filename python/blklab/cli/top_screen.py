"""Samples of `blklab top` on a live screen, line by line, or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from blklab.cli.output import errors_of, print_document
from blklab.named_files import written_as_it_comes
from blklab.quantities.visible import writable
from blklab.report.terminal import console_out, styled


@dataclass(frozen=True)
class ScreenColumn:
    """A column of the table."""

    title: str
    width: int | None = None
    """In batch mode, where columns stay in place for grep and awk; None for the last."""
    numeric: bool = False


class ScreenSample(Protocol):
    """A stretch of time."""

    @property
    def columns(self) -> Sequence[ScreenColumn]:
        """The table's columns."""

    def heading(self) -> list[Text]:
        """Lines above the table."""

    def rows_of_cells(self) -> list[tuple[str, ...]]:
        """The table's rows."""

    def footing(self) -> list[str]:
        """Lines below the table."""

    def as_json(self) -> dict[str, Any]:
        """The sample as a document."""


def write_lines(stream: Iterator[ScreenSample], destination: str) -> None:
    """Writes a line of JSON for each sample, to a file or, for ``-``, to standard output.

    Raises:
        SpaceError: if the file cannot be written.
    """
    if destination == "-":
        for sample in stream:
            print_document(json.dumps(sample.as_json(), ensure_ascii=False))
            sys.stdout.flush()
        return
    with errors_of(destination), written_as_it_comes(Path(destination)) as file:
        for sample in stream:
            line = json.dumps(sample.as_json(), ensure_ascii=False)
            file.write(f"{writable(line)}\n".encode())
            file.flush()


def print_each(stream: Iterator[ScreenSample]) -> None:
    """Prints one sample after another."""
    console = console_out()
    for sample in stream:
        for heading in sample.heading():
            console.print(heading, soft_wrap=True)
        titles = tuple(column.title for column in sample.columns)
        for cells in (titles, *sample.rows_of_cells()):
            console.print(_line(sample.columns, cells), soft_wrap=True)
        for line in sample.footing():
            console.print(line, soft_wrap=True)
        console.print()


def show_live(stream: Iterator[ScreenSample]) -> None:
    """Shows the latest sample on the whole screen."""
    console = console_out()
    with Live(styled("sampling …"), console=console, screen=True, auto_refresh=False) as live:
        for sample in stream:
            heading, footing = sample.heading(), list(map(styled, sample.footing()))
            room = max(1, console.size.height - len(heading) - len(footing) - 2)
            table = _table(sample.columns, sample.rows_of_cells()[:room])
            live.update(Group(*heading, table, *footing), refresh=True)


def _line(columns: Sequence[ScreenColumn], cells: Sequence[str]) -> str:
    parts = []
    for column, cell in zip(columns, cells, strict=True):
        width = column.width or 0
        parts.append(cell.rjust(width) if column.numeric else cell.ljust(width))
    return " ".join(parts).rstrip()


def _table(columns: Sequence[ScreenColumn], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column in columns:
        if column.width is None:
            table.add_column(column.title, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            table.add_column(
                column.title,
                justify="right" if column.numeric else "left",
                no_wrap=True,
                min_width=len(column.title),
            )
    for row in rows:
        table.add_row(*row)
    return table
