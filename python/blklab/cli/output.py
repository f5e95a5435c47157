"""Output: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from blklab.errors import SpaceError, UsageError


class _Console(Console):
    """rich's console, but `blklab.cli.run` handles a pipe without a reader; rich would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console_out() -> Console:
    """Standard output; colours on a terminal only, and not under NO_COLOR."""
    return _Console(highlight=False, soft_wrap=False)


def console_err() -> Console:
    """Standard error, likewise."""
    return _Console(stderr=True, highlight=False)


def open_closed_streams() -> None:
    """Opens ``/dev/null`` for closed standard output or error (``>&-``), lest a file take their place."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            _lead_nowhere(number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))


def drop_output() -> None:
    """Drops output that standard output could not take, so that Python does not complain at exit."""
    _lead_nowhere(sys.stdout.fileno())


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def print_error(message: str, hint: str | None) -> None:
    """Prints an error in the form that the whole command line uses."""
    console = console_err()
    console.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("hint: ", "bold"), hint), soft_wrap=True)


def print_note(message: str) -> None:
    """Prints a note on standard error."""
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
    with _errors_of(destination):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def require_writable(*destinations: str | None) -> None:
    """Checks before long work that its result can be written.

    Raises:
        SpaceError: if one of the files cannot be written.
        UsageError: if several results are to be written to standard output.
    """
    if destinations.count("-") > 1:
        raise UsageError(
            "standard output can take only one of the results", hint="name a file for the others"
        )
    for destination in destinations:
        if destination is None or destination == "-":
            continue
        path = Path(destination)
        with _errors_of(destination):
            is_new = not path.exists()
            # The reader of a pipe would take this trial for the end.
            if path.is_fifo() or path.is_char_device():
                continue
            # Missing folders are created with the file; the nearest existing one must allow that.
            place = next(place for place in (path.parent, *path.parent.parents) if place.exists())
            if place != path.parent:
                path = place / f".blklab-{os.getpid()}"
            with path.open("a", encoding="utf-8"):
                pass
            if is_new:
                path.unlink()


@contextlib.contextmanager
def _errors_of(destination: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file's name"
        raise SpaceError(f"{destination}: cannot be written: {reason}") from error
