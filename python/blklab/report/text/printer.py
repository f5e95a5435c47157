"""Printing for people: plain text from elsewhere, in the characters that the terminal can show."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from blklab.quantities.formatting import TIMES
from blklab.quantities.visible import visible
from blklab.report.summary.standing import Standing
from blklab.report.terminal import Terminal

SIGNS = {
    Standing.BEST: ("★", "bold green"),
    Standing.EQUAL: ("=", "bold cyan"),
    Standing.OPEN: ("?", "yellow"),
    Standing.BEATEN: ("·", "dim"),
    Standing.NO_FIGURE: ("✗", "bold red"),
}
STATUS_STYLES = {
    "best": "bold green",
    "equal": "bold cyan",
    "undecided": "bold yellow",
    "withheld": "bold red",
}
STATUS_SIGNS = {
    "best": SIGNS[Standing.BEST],
    "equal": SIGNS[Standing.EQUAL],
    "undecided": ("?", "bold yellow"),
    "withheld": ("?", "bold yellow"),
    "differs": ("⚠", "bold yellow"),
}
"""Of a workload."""
_ASCII = {
    "µ": "u",
    "★": "*",
    "·": "-",
    "✗": "x",
    "⚠": "!",
    "…": "~",
    TIMES: "x",
    "±": "+-",
    "→": "->",
    "▲": "^",
    "▼": "v",
}

_COLUMN_GAP = 2


class Printer:
    """Prints plain text to a console, in the characters that it can show."""

    def __init__(self, console: Terminal) -> None:
        self.console = console
        self.ascii_only = console.options.ascii_only

    def clean(self, text: str) -> str:
        """The text in one line, control characters as escapes, in ASCII if the console needs that."""
        text = visible(text)
        if not self.ascii_only:
            return text
        plain = "".join(_ASCII.get(character, character) for character in text)
        return plain.encode("ascii", "replace").decode("ascii")

    def text(self, content: str, style: str = "") -> Text:
        """A piece of text."""
        return Text(self.clean(content), style=style)

    def heading(self, content: str) -> Text:
        """The heading of a column, which may have several lines."""
        return Text("\n".join(map(self.clean, content.split("\n"))))

    def wrapped(self, *parts: str | tuple[str, str], indent: int = 0, most: int | None = None) -> list[Text]:
        """The lines of a paragraph, wrapped at words but not within an interval or a percentage.

        Args:
            parts: Each plain or with a style.
            indent: Spaces before each line.
            most: The rest is left out after so many lines.
        """
        text = Text()
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(self.clean(content), style=style or None)
        width = max(20, self.console.width - indent)
        lines = [Text(" " * indent).append_text(line) for line in self.console.wrapped(text, width)]
        if most is not None and len(lines) > most:
            lines = lines[:most]
            last = lines[-1]
            if len(last) > indent + width - 2:
                # At a word, not within one.
                last.right_crop(len(last) - last.plain.rindex(" ") if " " in last.plain[indent:] else 2)
            lines[-1].append(self.clean(" …"))
        return lines

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """A paragraph, wrapped likewise."""
        for wrapped in self.wrapped(*parts, indent=indent):
            self.console.print(wrapped, soft_wrap=True)

    def bar(self, cells: float) -> str:
        """A bar of so many cells, to an eighth of one where the terminal has such characters."""
        if self.ascii_only:
            return "#" * round(cells)
        whole, eighths = divmod(round(8 * cells), 8)
        return "█" * whole + ("▏▎▍▌▋▊▉"[eighths - 1] if eighths else "")

    def command(self, command: str) -> None:
        """A command, never wrapped, so that it can be copied."""
        self.console.print(Text("    ").append_text(self.text(command, "bold")), soft_wrap=True)

    def command_line(self, label: str, command: str) -> None:
        """A command or a path after its label, on one line that is never wrapped."""
        self.console.print(self.text(label).append_text(self.text(command, "bold")), soft_wrap=True)

    def blank(self) -> None:
        """An empty line."""
        self.console.print()

    def table(self) -> Table:
        """An empty table in the style of all reports."""
        return Table(
            box=box.ASCII if self.ascii_only else box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, _COLUMN_GAP, 0, 0),
            header_style="bold",
        )
