"""Parts of every page: the template's environment, style, script, and data that cannot run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel

from blklab.report.drawing.palette import colour_rules


def page_environment() -> Environment:
    """Templates of this package; they escape everything they print."""
    return Environment(
        loader=PackageLoader("blklab.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_style() -> Markup:
    """The style sheet: this package's own file."""
    return Markup(colour_rules() + style_sheet())  # noqa: S704


def style_sheet() -> str:
    """The style sheet of all pages, without the schedulers' colours."""
    return _asset("report.css")


def page_script() -> tuple[Markup, str]:
    """The script, this package's own file, and its hash for the page's policy."""
    script = _asset("report.js")
    return Markup(script), base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()  # noqa: S704


_HEADING = re.compile(
    r'<h2 id="([^"]+)">(.*?)</h2>|<details class="workload" id="([^"]+)".*?<h2>(.*?)</h2>', re.S
)

FEWEST_CONTENTS = 3
"""Sections from which a page has a table of contents."""


def contents_of(main: Markup) -> list[tuple[str, Markup]]:
    """Anchor and title of each section, for a table of contents; empty if there are too few."""
    # Titles were escaped when the sections were made.
    found = [(one[1] or one[3], Markup(one[2] or one[4])) for one in _HEADING.finditer(main)]  # noqa: S704
    return found if len(found) >= FEWEST_CONTENTS else []


def inert_json(document: BaseModel) -> Markup:
    """The document as JSON that cannot end the script element that holds it, nor begin a comment in it."""
    text = json.dumps(
        document.model_dump(mode="json", by_alias=True), ensure_ascii=True, separators=(",", ":")
    )
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - see above


def _asset(name: str) -> str:
    return files("blklab.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")
