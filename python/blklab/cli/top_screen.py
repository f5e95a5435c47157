"""Samples of `blklab top` on a live screen, line by line, or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from blklab.cli.output import errors_of, print_document
from blklab.cli.top_keys import GROUPS, QUIT, Keys
from blklab.named_files import written_as_it_comes
from blklab.quantities.visible import writable
from blklab.report.terminal import Terminal, console_out, styled

_NAMES = 22
"""Cells for names on a narrow screen."""
_GAP = 2


@dataclass(frozen=True)
class ScreenColumn:
    """A column of the table."""

    title: str
    width: int | None = None
    """In batch mode, where columns stay in place for grep and awk; None for the last."""
    numeric: bool = False
    rank: int = 0
    """On a narrow screen columns of the highest rank are left out first; those of rank 0 stay."""
    sorted_by: str = ""
    """Keys that sort by it."""


class ScreenSample(Protocol):
    """A stretch of time."""

    @property
    def columns(self) -> Sequence[ScreenColumn]:
        """The table's columns."""

    def heading(self) -> list[Text]:
        """Lines above the table."""

    @property
    def orders(self) -> Mapping[str, str]:
        """Keys that sort the rows, with what they sort by; the first is the usual one."""

    def rows_of_cells(self, order: str | None = None) -> list[tuple[str, ...]]:
        """The table's rows, in one of `orders`."""

    def footing(self) -> list[str]:
        """Lines below the table."""

    def as_json(self) -> dict[str, Any]:
        """The sample as a document."""

    def by_group(self) -> ScreenSample:
        """The same, added up by control group."""


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
    with (
        Keys() as keys,
        Live(styled("sampling …"), console=console, screen=True, auto_refresh=False) as live,
    ):
        order: str | None = None
        for sample in stream:
            if keys.pressed in sample.orders:
                order = keys.pressed
            screen = screen_of(sample, console, order, by_group=keys.by_group)
            live.update(screen, refresh=True)


def screen_of(sample: ScreenSample, console: Terminal, order: str | None, *, by_group: bool = False) -> Group:
    """Lay out a sample for the screen: names first, and the keys in the last line."""
    if by_group:
        sample = sample.by_group()
    width = console.size.width
    heading = [line for text in sample.heading() for line in console.wrapped(text, width)]
    footing = [line for text in sample.footing() for line in console.wrapped(styled(text), width)]
    chosen = order if order in sample.orders else next(iter(sample.orders), None)
    footing.append(_keys_line(sample.orders, chosen, by_group=by_group))
    room = max(1, console.size.height - len(heading) - len(footing) - 2)
    table = _table(sample.columns, sample.rows_of_cells(chosen)[:room], width, chosen)
    return Group(*heading, table, *footing)


def _keys_line(orders: Mapping[str, str], chosen: str | None, *, by_group: bool) -> Text:
    sorting = [f"{key} {title}{' (now)' if key == chosen else ''}" for key, title in orders.items()]
    by = f"; sort by: {', '.join(sorting)}" if sorting else ""
    return styled((f"{QUIT} quits{by}; {GROUPS} {'tasks' if by_group else 'groups'}", "dim"))


def _line(columns: Sequence[ScreenColumn], cells: Sequence[str]) -> str:
    parts = []
    for column, cell in zip(columns, cells, strict=True):
        width = column.width or 0
        parts.append(cell.rjust(width) if column.numeric else cell.ljust(width))
    return " ".join(parts).rstrip()


def _kept(columns: Sequence[ScreenColumn], width: int) -> list[int]:
    """Places of the columns that a screen has room for beside names; the names come first.

    Widths of the batch mode are taken, so that columns do not come and go from sample to sample.
    """
    names = [place for place, column in enumerate(columns) if column.width is None]
    kept = [place for place, column in enumerate(columns) if column.width is not None]
    while _NAMES + sum(_GAP + (columns[place].width or 0) for place in kept) > width:
        least = max(kept, key=lambda place: columns[place].rank, default=None)
        if least is None or not columns[least].rank:
            break
        kept.remove(least)
    return [*names, *kept]


def _table(
    all_columns: Sequence[ScreenColumn], all_rows: Sequence[Sequence[str]], width: int, order: str | None
) -> Table:
    kept = _kept(all_columns, width)
    columns = [all_columns[place] for place in kept]
    rows = [[row[place] for place in kept] for row in all_rows]
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column in columns:
        if column.width is None:
            table.add_column(column.title, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            table.add_column(
                styled((column.title, "reverse" if order and order in column.sorted_by else "")),
                justify="right" if column.numeric else "left",
                no_wrap=True,
                min_width=len(column.title),
            )
    for row in rows:
        table.add_row(*row)
    return table
