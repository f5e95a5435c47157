"""The tables of docs/appendix/verdicts.md, which benchmarks write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blklab.report.pages.markdown import filled_parts, parts

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "appendix" / "verdicts.md"


def write_table(name: str, lines: Sequence[str]) -> None:
    """Puts lines between ``<!-- table: NAME -->`` and ``<!-- end -->``; other tables stay as they are."""
    text = PAGE.read_text(encoding="utf-8")
    if name not in parts(text, "table"):
        raise SystemExit(f"{PAGE} has no table named {name}")
    new = "\n".join(["", *lines, ""])
    PAGE.write_text(filled_parts(text, "table", lambda part: new if part == name else _now(text, part)))


def _now(text: str, name: str) -> str:
    return text.partition(f"<!-- table: {name} -->\n")[2].partition("\n<!-- end -->")[0]
