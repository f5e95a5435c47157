"""Pages in Markdown, of which a part is generated: tables, and the places that generated text fills.

A place stands between ``<!-- KIND: NAME -->`` and ``<!-- end -->``; the text around it is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars within cells are escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def places(page: str, kind: str) -> list[str]:
    """Names of the places of a kind, as they stand in the page."""
    return [place["name"] for place in _pattern(kind).finditer(page)]


def filled_places(page: str, kind: str, text_of: Callable[[str], str]) -> str:
    """The page with its places of a kind filled; errors of `text_of`, which gets the names, pass through."""
    return _pattern(kind).sub(lambda place: f"{place['begin']}{text_of(place['name'])}\n{place['end']}", page)


def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<begin><!-- {re.escape(kind)}: (?P<name>\S+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
    )
