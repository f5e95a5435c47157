r"""The terminal that all output for people goes to; text from elsewhere cannot steer it.

A string is one line, shown as it is: rich's markup and emoji codes mean nothing, and line breaks and control
characters become visible escapes (``\x1b``). Whatever else reaches the terminal loses its control characters
too. `styled` adds colours, and a text of several lines goes through `Terminal.lines`. So code that prints a
name needs no care; tests/architecture/test_output.py makes sure that nothing prints around this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from blklab.quantities.visible import visible, visible_lines

_UNBROKEN = re.compile(
    r"(?:\[[^\[\]]{1,40}\]|\d %|`[^`]{1,60}`|--[a-z][a-z-]* (?=\d)|\S)+(?:\s+|$)|\s+",
)
"""A word and the space behind it; an interval, a percentage, a command, an option and its number are one."""


def styled(*parts: str | tuple[str, str]) -> Text:
    """One line of parts, each plain or with a style: ``styled(("error: ", "bold red"), message)``."""
    text = Text()
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        text.append(visible(content), style=style or None)
    return text


class Terminal(Console):
    """rich's console for text from elsewhere. Arguments are rich's."""

    def on_broken_pipe(self) -> NoReturn:
        """Leaves a pipe without a reader to `blklab.cli.run`; rich would exit with 1."""
        raise BrokenPipeError

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{"highlight": False} | arguments | {"markup": False, "emoji": False})

    def render_str(self, text: str, **arguments: Any) -> Text:
        """A string as one line, in tables as well."""
        return super().render_str(visible(text), **arguments | {"markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The last filter, for `Text` that was made elsewhere; rich's own controls pass, line feeds too."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible_lines(segment.text), segment.style)

    @staticmethod
    def wrapped(text: Text, width: int) -> list[Text]:
        """The lines of a paragraph, wrapped at words, but not within an interval, a percentage or a command.

        A word that is longer than a line, such as a path, is not broken, so that it can be copied.
        """
        breaks, room = [], width
        for word in _UNBROKEN.finditer(text.plain):
            length = cell_len(word[0].rstrip())
            if length > room and word.start():
                breaks.append(word.start())
                room = width
            room -= cell_len(word[0])
        lines = list(text.divide(breaks))
        for line in lines:
            line.rstrip()
        return lines

    def prose(self, *parts: str | tuple[str, str]) -> None:
        """Prints a sentence: wrapped at words on a terminal, one line in a file or a pipe."""
        text = styled(*parts)
        for line in self.wrapped(text, max(20, self.width)) if self.is_terminal else [text]:
            self.print(line, soft_wrap=True)

    def lines(self, text: str) -> None:
        """Prints a text of several lines, which are not wrapped."""
        for line in text.split("\n"):
            self.print(Text(visible_lines(line)), soft_wrap=True)


def console_out() -> Terminal:
    """Standard output; colours on a terminal only, and not under NO_COLOR."""
    return Terminal(soft_wrap=False)


def console_err() -> Terminal:
    """Standard error, likewise."""
    return Terminal(stderr=True)


def print_note(message: str, console: Terminal | None = None) -> None:
    """Prints a note on standard error, or above the progress that a console shows."""
    (console or console_err()).prose(("note: ", "bold"), message)
