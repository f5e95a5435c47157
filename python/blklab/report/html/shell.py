"""Parts that every page with several charts has: a table of contents, and each chart to save and to cite."""

from __future__ import annotations

import re

from markupsafe import Markup

from blklab.report.drawing.svg import element
from blklab.report.html.page import contents_of
from blklab.report.html.pictures import with_link

_FIGURE = re.compile(r"<figure\b.*?</figure>", re.DOTALL)
_MAIN = re.compile(r"(<main\b[^>]*>)(.*?)(?=</main>)", re.DOTALL)


def with_shell(page: str, subject: str, source: str) -> str:
    """The page with a table of contents, if it has enough sections, and a link and a line at each chart.

    Args:
        page: A finished page, whose texts are escaped.
        subject: The thing that the charts show, for their titles as files.
        source: Where they come from, for the line to cite.
    """
    found = _MAIN.search(page)
    if found is None:
        return page
    content = _FIGURE.sub(lambda figure: _cited(figure[0], subject, source), found[2])
    return f"{page[: found.start()]}{found[1]}\n{_contents(content)}{content}{page[found.end() :]}"


def _cited(figure: str, subject: str, source: str) -> str:
    if "<svg" not in figure:
        return figure
    return str(with_link(Markup(figure), subject, source, {}))  # noqa: S704 - of a finished page


def _contents(content: str) -> str:
    entries = contents_of(Markup(content))  # noqa: S704 - of a finished page
    if not entries:
        return ""
    items = [element("li", {}, element("a", {"href": f"#{anchor}"}, title)) for anchor, title in entries]
    nav = element("nav", {"class": "contents", "aria-label": "Contents"}, element("ul", {}, *items))
    return f"{nav}\n"
