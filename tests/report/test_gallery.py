"""The page that shows schedulers at work: its pictures and figures are those of today's simulator."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from blklab.report.gallery.page import filled, pictures
from blklab.report.gallery.scene import run_scene

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "schedulers.md"
REFRESH = "refresh with `python -m blklab.report.gallery docs/explanation/schedulers.md`"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text, REFRESH
    drawn = pictures(text)
    assert len(drawn) == 6
    for name, drawing in drawn.items():
        assert (PAGE.parent / name).read_text(encoding="utf-8") == drawing, f"{name}: {REFRESH}"


def test_pictures_are_well_formed() -> None:
    for drawing in pictures(PAGE.read_text(encoding="utf-8")).values():
        root = ET.fromstring(drawing)  # noqa: S314 - our own drawing
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root.findall(".//{*}circle")) > 20


def test_what_the_page_says_of_the_schedulers() -> None:
    """Each sentence about a picture, checked against the run."""
    shown = {
        name: run_scene(name) for name in ("noop", "deadline", "anticipatory", "cfq", "bfq:low_latency=0")
    }
    reading = {name: run.readers_megabytes_per_second for name, run in shown.items()}
    # Waiting for the same reader's next request is repaid many times over.
    assert min(reading[name] for name in ("anticipatory", "cfq", "bfq:low_latency=0")) > 10 * reading["noop"]
    # Sorting cannot bring together requests that are not in the queue.
    assert reading["deadline"] < 2 * reading["noop"]
    # Turns measured in time are long: few changes from one job to another.
    assert shown["cfq"].turns < shown["noop"].turns
    # bfq's low_latency makes the three alike at first.
    assert run_scene("bfq").readers_megabytes_per_second < reading["bfq:low_latency=0"] / 5


def test_the_module_writes_page_and_pictures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- picture: none -->\n<!-- end -->\nafter\n")
    subprocess.run([sys.executable, "-m", "blklab.report.gallery", str(page)], check=True)
    text = page.read_text()
    assert re.search(r"!\[.*\]\(images/schedulers/none.svg\)", text)
    assert (tmp_path / "images" / "schedulers" / "none.svg").exists()
    assert text.startswith("before\n") and text.endswith("after\n")
