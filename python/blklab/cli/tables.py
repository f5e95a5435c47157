"""Tables of the command line's lists."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table


def plain_table(texts: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """An empty table: columns of text, which fold where there is no room, then columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
