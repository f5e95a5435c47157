"""The pages of the simulator and of job files agree with the simulator's own description."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from blklab.report.pages.reference import FILES, TABLES, filled

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = [FOLDER / "simulator.md", FOLDER / "job-options.md"]


def test_the_tables_are_those_of_the_simulator() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    for path, page in pages.items():
        assert filled(page) == page, f"refresh: `python -m blklab.report.pages.reference {path}`"
    for name in TABLES:
        assert sum(page.count(f"<!-- table: {name} -->") for page in pages.values()) == 1


def test_the_files_beside_the_pages_are_those_of_the_simulator() -> None:
    assert set(FILES) == {path.stem for path in PAGES}
    for page, files in FILES.items():
        for name, text_of in files.items():
            file = FOLDER / "tables" / name
            refresh = f"refresh: `python -m blklab.report.pages.reference {FOLDER / page}.md`"
            assert file.read_text(encoding="utf-8") == text_of(), refresh


def test_the_command_refreshes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: profiles -->\nold\n<!-- end -->\nafter\n")
    subprocess.run([sys.executable, "-m", "blklab.report.pages.reference", str(page)], check=True)
    text = page.read_text()
    assert "old" not in text
    assert "sim:optane" in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert not (tmp_path / "tables").exists()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "blklab.report.pages.reference",
            str(page.rename(tmp_path / "job-options.md")),
        ],
        check=True,
    )
    options = (tmp_path / "tables" / "job-options.csv").read_text(encoding="utf-8")
    assert options == FILES["job-options"]["job-options.csv"]()
