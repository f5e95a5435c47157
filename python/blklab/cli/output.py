"""What goes where: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from blklab.errors import SpaceError


def console_out() -> Console:
    """Standard output; colours on a terminal only, and not under NO_COLOR."""
    return Console(highlight=False, soft_wrap=False)


def console_err() -> Console:
    """Standard error, likewise."""
    return Console(stderr=True, highlight=False)


def print_error(message: str, hint: str | None) -> None:
    """Prints an error in the form that the whole command line uses."""
    console = console_err()
    console.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("hint: ", "bold"), hint), soft_wrap=True)


def print_note(message: str) -> None:
    """Prints a remark on standard error."""
    console_err().print(Text.assemble(("note: ", "bold"), message), soft_wrap=True)


def write_text(destination: str, text: str) -> None:
    """Writes text to a file, or to standard output for ``-``.

    Raises:
        SpaceError: if the file cannot be written.
    """
    if destination == "-":
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    path = Path(destination)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpaceError(f"{destination}: cannot be written: {error.strerror}") from error
