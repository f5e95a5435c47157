"""Fills the tables of the fidelity page: ``blklab fidelity --page docs/appendix/fidelity.md``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; the text around it is written by hand,
the causes of the cells beyond the limits too.
"""

from __future__ import annotations

from collections.abc import Callable

from blklab.execution.fidelity.report import FidelityDocument, outside_rows, spread_rows
from blklab.report.pages.markdown import filled_places, markdown_table


def filled_page(page: str, document: FidelityDocument) -> str:
    """The page with its tables as the result has them.

    Raises:
        KeyError: for a table that does not exist.
    """
    return filled_places(page, "table", lambda name: _TABLES[name](document))


def _spreads(document: FidelityDocument) -> str:
    headings = ("Error of", "Observations", "Median", "95th percentile", "Worst", "In cell", "Limits")
    return f"{len(document.results)} cells, {document.kernel}.\n\n" + markdown_table(
        headings, spread_rows(document)
    )


def _outside(document: FidelityDocument) -> str:
    rows = [(f"`{cell}`", text) for cell, text in outside_rows(document.results)]
    return markdown_table(("Cell", "Errors beyond"), rows) if rows else "None."


_TABLES: dict[str, Callable[[FidelityDocument], str]] = {"spreads": _spreads, "outside": _outside}
