"""Scenes of the playground inside pages of the site.

A page names a lesson in a comment, ``<!-- playground: anticipation -->``, which Markdown readers don't see.
The site shows the lesson's scene in a frame there, from one file ``playground.html``.
"""

from __future__ import annotations

import re
from html import escape

from blklab.errors import MissingToolError
from blklab.labs.playground.lessons import load_lessons
from blklab.labs.playground.page import render_playground

PAGE = "playground.html"

_MARK = re.compile(r"^<!-- playground: ([a-z-]+) -->$", re.MULTILINE)


def playground_page() -> str | None:
    """The playground; None where its program is not built, and the site does without."""
    try:
        return render_playground()
    except MissingToolError:
        return None


def with_playgrounds(markdown: str, up: str) -> str:
    """Puts frames where a page names lessons.

    Args:
        markdown: The page.
        up: The way from the page's folder to the site's top, such as ``../``.

    Raises:
        ValueError: if there is no such lesson.
    """
    lessons = {lesson.id: lesson for lesson in load_lessons()}

    def frame(match: re.Match[str]) -> str:
        name = match[1]
        if name not in lessons:
            raise ValueError(f"there is no lesson {name!r}; there are {', '.join(lessons)}")
        lesson = lessons[name]
        address = escape(f"{up}{PAGE}{lesson.link}")
        title = escape(lesson.title)
        style = (
            "width:100%;height:46rem;border:1px solid var(--md-default-fg-color--lightest);border-radius:8px"
        )
        return (
            f'<iframe class="playground" src="{address}" title="Playground: {title}" loading="lazy" '
            f'style="{style}"></iframe>\n\n'
            f'{lesson.text.strip()} {lesson.watch.strip()} <a href="{address}">In a window of its own</a>.'
        )

    return _MARK.sub(frame, markdown)
