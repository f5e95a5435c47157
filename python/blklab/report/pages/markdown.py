"""Markdown pages with generated parts: tables, and text between marks.

A part is between ``<!-- KIND: NAME -->`` and ``<!-- end -->``. The text around it is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars in cells are escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def parts(page: str, kind: str) -> list[str]:
    """Names of the parts of a kind, in the order of the page."""
    return [part["name"] for part in _pattern(kind).finditer(page)]


def filled_parts(page: str, kind: str, text_of: Callable[[str], str | None]) -> str:
    """Fills the parts of a kind with `text_of` of their names; None keeps a part, errors pass through."""

    def filled(part: re.Match[str]) -> str:
        text = text_of(part["name"])
        return part[0] if text is None else f"{part['begin']}{text}\n{part['end']}"

    return _pattern(kind).sub(filled, page)


def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<begin><!-- {re.escape(kind)}: (?P<name>\S+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
    )
