"""The playground in a file, open in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playground_page import Playground, open_playground

from blklab.errors import MissingToolError
from blklab.playground.page import render_playground
from chromium import Page, page

__all__ = ["page"]


@pytest.fixture(scope="session")
def html() -> str:
    """The page; skips where the WebAssembly program is not built."""
    try:
        return render_playground()
    except MissingToolError as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.fixture(scope="module")
def file(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in a file."""
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture
def playground(page: Page, file: Path) -> Playground:
    """The playground, opened anew without a link."""
    page.emulate(width=1280)
    return open_playground(page, file)
