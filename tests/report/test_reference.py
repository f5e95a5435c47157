"""The simulator's page agrees with the simulator's own description."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from blklab.report.pages.reference import TABLES, filled

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "simulator.md"


def test_the_tables_are_those_of_the_simulator() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, (
        "refresh: `python -m blklab.report.pages.reference docs/reference/simulator.md`"
    )
    for name in TABLES:
        assert page.count(f"<!-- table: {name} -->") == 1


def test_the_command_refreshes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: profiles -->\nold\n<!-- end -->\nafter\n")
    subprocess.run([sys.executable, "-m", "blklab.report.pages.reference", str(page)], check=True)
    text = page.read_text()
    assert "old" not in text
    assert "sim:optane" in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
