"""Building blocks of man pages, in the man(7) macros."""

from __future__ import annotations

_SPECIAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def escaped(text: str) -> str:
    """Text as it shall be read: nothing in it is taken for a request or another character."""
    body = "".join(_SPECIAL.get(character, character) for character in text)
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in body.split("\n"))


def bold(text: str) -> str:
    """Text to be typed as it is."""
    return f"\\fB{escaped(text)}\\fR"


def italic(text: str) -> str:
    """Text that stands for something else."""
    return f"\\fI{escaped(text)}\\fR"


def heading(text: str, *, level: int = 1) -> str:
    """A heading of a section (level 1) or a part of one (level 2)."""
    return f".{'SH' if level == 1 else 'SS'} {escaped(text)}\n"


def paragraph(body: str, *, first: bool = False) -> str:
    """A paragraph of text that is escaped already; after a backspace, as click has it, lines stay lines.

    Args:
        body: The text.
        first: Whether it follows a heading, which begins a paragraph by itself.
    """
    if body.startswith("\b"):
        lines = body.strip("\b\n")
        body = f".nf\n{lines}\n.fi"
    return f"{body}\n" if first else f".PP\n{body}\n"


def definition(term: str, body: str) -> str:
    """A term with its meaning, both escaped already."""
    return f".TP\n{term}\n{body}\n"
