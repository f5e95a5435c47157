"""Fills the tables of the fidelity page from a result: ``blklab fidelity --page FILE``.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``. The text around it is written by hand,
including the causes of the cells beyond the limits.
"""

from __future__ import annotations

from collections.abc import Callable

from blklab.labs.fidelity.report import FidelityDocument, outside_rows, spread_rows
from blklab.quantities.formatting import count_of
from blklab.report.pages.markdown import filled_parts, markdown_table


def filled_page(page: str, document: FidelityDocument) -> str:
    """Returns the page with its tables filled from the result.

    Raises:
        KeyError: if the page names an unknown table.
    """
    return filled_parts(page, "table", lambda name: _TABLES[name](document))


def _spreads(document: FidelityDocument) -> str:
    headings = ("Error of", "Observations", "Median", "95th percentile", "Worst", "In cell", "Limits")
    return f"{count_of(len(document.results), 'cell')}, {document.kernel}.\n\n" + markdown_table(
        headings, spread_rows(document)
    )


def _outside(document: FidelityDocument) -> str:
    rows = [(f"`{cell}`", text) for cell, text in outside_rows(document.results)]
    return markdown_table(("Cell", "Errors beyond the limits"), rows) if rows else "None."


_TABLES: dict[str, Callable[[FidelityDocument], str]] = {"spreads": _spreads, "outside": _outside}
