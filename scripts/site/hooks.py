"""Hooks of the documentation site: menu, Python reference, playground, and links to files beside docs/."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs runs this file, but does not find its neighbours
from playgrounds import PAGE, playground_page, with_playgrounds

ROOT = Path(__file__).resolve().parents[2]
PYTHON_REFERENCE = "reference/python.md"
BESIDE = ("CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the repository's top folder that the site shows too."""

_PART = re.compile(r"^## (.+?)(?::.*)?$", re.MULTILINE)
_PAGE = re.compile(r"\[([^]]+)\]\(([\w./-]+\.md)\)")
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(((?!https?:|#|mailto:)[^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Takes the menu from the index, so that a page is listed in one place only."""
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    parts = _PART.split(index)[1:]
    menu: list[object] = [{"Documentation": "README.md"}]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        pages: list[object] = [{title[:1].upper() + title[1:]: path} for title, path in _PAGE.findall(text)]
        if heading == "Reference":
            pages.append({"Python": PYTHON_REFERENCE})
        menu.append({heading: pages})
    menu.append({"The project": [{Path(name).stem.capitalize(): f"project/{name}"} for name in BESIDE]})
    config.nav = menu
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the Python reference, made of docstrings, and the pages of the top folder."""
    package = runpy.run_path(str(ROOT / "python" / "blklab" / "__init__.py"))
    names = [f"{module}.{name}" for name, module in package["_PUBLIC"].items() if not name.startswith("__")]
    blocks = [f"::: {name}\n" for name in [*names, *package["_PUBLIC_MODULES"].values()]]
    head = "# Python\n\nThe names of the module `blklab`, for programs and notebooks.\n"
    files.append(File.generated(config, PYTHON_REFERENCE, content="\n".join([head, *blocks])))
    for name in BESIDE:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text("utf-8")))
    if text := playground_page():
        files.append(File.generated(config, PAGE, content=text))
    worker = (ROOT / "scripts" / "site" / "iframe-worker.js").read_text("utf-8")
    files.append(File.generated(config, "assets/iframe-worker.js", content=worker))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to where the site has their targets; those that it does not have become plain text."""
    del config
    here = page.file.src_uri
    source = ROOT / Path(here).name if here.startswith("project/") else ROOT / "docs" / here
    if here == PYTHON_REFERENCE:
        return markdown

    def settled(match: re.Match[str]) -> str:
        image, text, link = match.groups()
        path, mark, anchor = link.partition("#")
        target = (source.parent / path).resolve()
        if image or not target.is_relative_to(ROOT):
            return match[0]
        uri = _uri_of(target)
        if uri is None or files.get_file_from_path(uri) is None:
            return text
        up = "../" * here.count("/")
        return f"[{text}]({up}{uri}{mark}{anchor})"

    markdown = _LINK.sub(settled, markdown)
    if files.get_file_from_path(PAGE) is None:
        return markdown
    return with_playgrounds(markdown, "../" * here.count("/"))


def _uri_of(target: Path) -> str | None:
    """The site's path of a file; None if the site does not have it."""
    if target.is_relative_to(ROOT / "docs"):
        return target.relative_to(ROOT / "docs").as_posix()
    return f"project/{target.name}" if target.parent == ROOT and target.name in BESIDE else None
