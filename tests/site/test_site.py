"""The documentation site: built without a network, complete, and read without one."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from blklab.errors import MissingToolError
from blklab.labs.playground.lessons import load_lessons
from blklab.labs.playground.page import render_playground
from blklab.shipped import require_playground_program
from chromium import Page
from waiting import wait_until

pytest.importorskip("mkdocs", reason="needs mkdocs-material and mkdocstrings-python")
pytest.importorskip("material", reason="needs mkdocs-material")
pytest.importorskip("mkdocstrings_handlers.python", reason="needs mkdocstrings-python")

ROOT = Path(__file__).resolve().parents[2]
_RESOURCE = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?(https?:)?//[^>]*>")
_IN_STYLE = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly in a network namespace of its own where that is allowed."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    alone = ["unshare", "--net", "--map-root-user", "--"]
    may = subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    done = subprocess.run(
        [*(alone if may else []), *build], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_it_has_every_page_and_table(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name.replace("README.html", "index.html")).is_file(), name
    for table in (ROOT / "docs").rglob("*.csv"):
        name = table.relative_to(ROOT / "docs").as_posix()
        assert (site / name).read_bytes() == table.read_bytes(), name
    menu = (site / "index.html").read_text("utf-8")
    for part in ("Tutorial", "How-to", "Reference", "Explanation", "Appendix"):
        assert part in menu


def test_the_python_reference_is_made_of_docstrings(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (site / "reference" / "python.html").read_text("utf-8"))
    for name in (
        "compare",
        "load",
        "simulate",
        "simulate_many",
        "Comparison",
        "SimulationResult",
        "Timeline",
        "unregister",
    ):
        assert name in page
    assert "The same samples under another confidence, margin or goal" in page


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert _RESOURCE.search(page.read_text("utf-8")) is None, page.name
    for style in site.rglob("*.css"):
        assert _IN_STYLE.search(style.read_text("utf-8")) is None, style.name


def test_every_link_of_the_site_leads_to_one_of_its_files(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in re.findall(r"<a\b[^>]*?href=\"([^\"#?]+)", page.read_text("utf-8")):
            if not re.match(r"[a-z]+:", link) and page.name != "404.html":
                assert (page.parent / link).exists(), f"{page.relative_to(site)}: {link}"


@pytest.fixture
def built_program() -> None:
    """Skips where the playground's program is not built; then the site does without."""
    try:
        require_playground_program()
    except MissingToolError as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.mark.usefixtures("built_program")
def test_pages_show_scenes_of_the_playground(site: Path) -> None:
    links = {lesson.link for lesson in load_lessons()}
    text = (site / "playground.html").read_text("utf-8")
    assert text == render_playground()
    for name, scenes in (("schedulers", 4), ("processor-time", 2)):
        page = (site / "explanation" / f"{name}.html").read_text("utf-8")
        frames = [unescape(one) for one in re.findall(r'<iframe class="playground" src="([^"]+)"', page)]
        assert len(frames) == scenes
        for frame in frames:
            file, mark, link = frame.partition("#")
            assert (site / "explanation" / file).resolve() == (site / "playground.html").resolve()
            assert mark + link in links


@pytest.mark.browser
@pytest.mark.usefixtures("built_program")
def test_a_scene_runs_inside_its_page(site: Path, page: Page) -> None:
    page.requests.clear()
    page.load(site / "explanation" / "processor-time.html")
    page.evaluate("document.querySelector('iframe.playground').scrollIntoView()")
    # Its page is a file, of which another file may not look inside; a frame of its own tells of itself.
    wait_until(
        lambda: any("playground.html" in url for url in (page.evaluate("1"), *page.requests)[1:]),
        "the frame loads its scene",
    )
    frame = page.evaluate("document.querySelector('iframe.playground').src")
    page.navigate(frame)
    wait_until(
        lambda: page.evaluate("document.documentElement?.dataset.ready") is not None, "the scene is ready"
    )
    assert page.evaluate("playground.setup.device") == "samsung-980-pro"
    # Alone it has its lessons; in a frame, of which this file's tag is the sign, only the scene.
    shown = "document.querySelector('nav').getClientRects().length > 0"
    assert page.evaluate(shown)
    page.evaluate("document.documentElement.dataset.embedded = ''")
    assert not page.evaluate(shown)
    assert page.evaluate("document.querySelectorAll('.lane canvas.stage').length") == 2
    assert page.errors == []


@pytest.mark.browser
def test_the_search_works_from_a_folder(site: Path, page: Page) -> None:
    page.load(site / "how-to" / "use-in-ci.html")
    # The search starts its worker when its field gets the focus, which a page in the background never has.
    page.command("Emulation.setFocusEmulationEnabled", enabled=True)
    page.evaluate(
        "const query = document.querySelector('[data-md-component=search-query]');"
        "query.focus(); query.value = 'switchback'; query.dispatchEvent(new Event('input', {bubbles: true}));"
        "query.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))"
    )
    hits = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    wait_until(lambda: bool(page.evaluate(hits)), "the search has found something")
    assert any("explanation/switchback.html" in link for link in page.evaluate(hits))
    asked = [url for url in page.requests if not url.startswith(("file:", "data:", "about:", "blob:"))]
    assert asked == []
    assert page.errors == []
