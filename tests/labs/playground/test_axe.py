"""axe-core finds no violation."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from chromium import Page
from playground_page import open_playground

pytestmark = pytest.mark.browser

_VIOLATIONS = """
axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`))
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    pytest.importorskip("axe_core_python", reason="axe-core is not installed (pip install axe-core-python)")
    return files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("lesson", ["order", "weights", "nvme"])
def test_there_is_no_violation(page: Page, file: Path, axe: str, width: int, dark: bool, lesson: str) -> None:
    page.emulate(width=width, dark=dark)
    playground = open_playground(page, file)
    playground.click(f"lesson-{lesson}")
    playground.play_until(1e6)
    playground.click("lesson-check")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.command("Runtime.evaluate", expression=axe)
    assert page.evaluate(_VIOLATIONS) == []
