"""The tables of docs/appendix/verdicts.md, which benchmarks write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blklab.report.pages.page_files import fill_tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "appendix" / "verdicts.md"


def write_table(name: str, lines: Sequence[str]) -> None:
    """Puts lines between ``<!-- table: NAME -->`` and ``<!-- end -->``; long tables become CSV files."""
    fill_tables(PAGE, {name: "\n".join(lines)})
