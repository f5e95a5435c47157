"""Every relative link, every anchor and every path under docs/ that the sources name exists."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("tutorial", "how-to", "reference", "explanation", "appendix")
_LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_PAGE_PATH = re.compile(r"(?<![\w./-])docs/[\w./-]*[\w/]")
_BINARY = {".png", ".xls", ".so", ".csv", ".svg", ".html", ".gz"}


@cache
def tracked_files() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def markdown_pages() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".md"]


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    anchors = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", _CODE_BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        anchors.add(anchor if count == 0 else f"{anchor}-{count}")
    return anchors


@pytest.mark.parametrize("page", markdown_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_exist(page: Path) -> None:
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors_of(target), (
                f"{link}: no such heading; there are {sorted(anchors_of(target))}"
            )


def test_every_docs_path_in_the_sources_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {named}"
        for path in tracked_files()
        if path.suffix not in _BINARY and path != Path(__file__)
        for named in _PAGE_PATH.findall(path.read_text("utf-8", errors="ignore"))
        if "NAME" not in named and not (ROOT / named).exists()
    ]
    assert not missing


def test_the_index_lists_every_page_once() -> None:
    # The part above the first heading sends readers to pages that the parts below list.
    index = (ROOT / "docs" / "README.md").read_text("utf-8").partition("\n## ")[2]
    pages = sorted(
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if path != ROOT / "docs" / "README.md"
    )
    listed = sorted(link.partition("#")[0] for link in _LINK.findall(index) if link.endswith(".md"))
    assert listed == pages
    assert {page.split("/")[0] for page in pages} == set(PARTS)
