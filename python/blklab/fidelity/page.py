"""Fills the tables of docs/fidelity.md from a result: ``blklab fidelity --page docs/fidelity.md``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; the text around it is written by hand,
the causes of the cells beyond the limits too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from blklab.fidelity.report import FidelityDocument, outside_rows, spread_rows

_PLACE = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled_page(page: str, document: FidelityDocument) -> str:
    """The page with its tables as the result has them.

    Raises:
        KeyError: for a table that does not exist.
    """
    return _PLACE.sub(lambda place: f"{place[1]}{_TABLES[place['name']](document)}\n{place[3]}", page)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _spreads(document: FidelityDocument) -> str:
    headings = ("Error of", "Observations", "Median", "95th percentile", "Worst", "In cell", "Limits")
    return f"{len(document.results)} cells, {document.kernel}.\n\n" + _table(headings, spread_rows(document))


def _outside(document: FidelityDocument) -> str:
    rows = [(f"`{cell}`", text) for cell, text in outside_rows(document.results)]
    return _table(("Cell", "Errors beyond"), rows) if rows else "None."


_TABLES: dict[str, Callable[[FidelityDocument], str]] = {"spreads": _spreads, "outside": _outside}
