"""Output: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blklab.errors import RefusedError, SpaceError, UsageError
from blklab.named_files import check_writable, written_whole
from blklab.quantities.visible import visible_document, writable
from blklab.report.terminal import console_err, print_note

_HEAD_BYTES = 16 << 10
"""A page of blklab's names blklab in so many."""


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
    console.prose(("error: ", "bold red"), message)
    if hint:
        console.prose(("hint: ", "bold"), hint)


@contextlib.contextmanager
def warnings_as_notes(kind: type[Warning]) -> Iterator[None]:
    """Prints warnings of a kind as notes, and all others as Python does."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", kind)
        show = warnings.showwarning

        def show_or_print(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, kind):
                print_note(str(message))
            else:
                show(message, category, *place)

        warnings.showwarning = show_or_print  # type: ignore[assignment]
        yield


def print_document(text: str) -> None:
    r"""Writes a document, a script or a list to standard output, whole; control characters as ``\u001b``."""
    shown = visible_document(text)
    sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")


def write_text(destination: str, text: str) -> None:
    """Writes text to a file, whole or not at all, or to standard output for ``-``.

    Raises:
        SpaceError: if the file cannot be written.
    """
    if destination == "-":
        print_document(text)
        return
    with errors_of(destination), written_whole(Path(destination)) as file:
        file.write(writable(text).encode("utf-8"))


def write_own_text(path: Path, text: str) -> None:
    """Writes text to a file in one of blklab's own folders, which is made if it is missing.

    Raises:
        SpaceError: if the file cannot be written.
    """
    with errors_of(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(str(path), text)


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
        if destination is not None and destination != "-":
            with errors_of(destination):
                check_writable(Path(destination))


def require_own_page(page: str, option: str) -> None:
    """Says that a page which nobody named replaces an older one.

    Args:
        page: The default name.
        option: The option that names another one.

    Raises:
        RefusedError: if the file there is no page of blklab's.
    """
    path = Path(page)
    if path.is_symlink() or not path.is_file():
        return  # a link is refused when it is to be written
    with errors_of(page), path.open("rb") as file:
        own = b"blklab" in file.read(_HEAD_BYTES)
    if not own:
        raise RefusedError(
            f"{page}: there is a file of this name already, and blklab did not write it",
            hint=f"name another one: {option} FILE",
        )
    print_note(f"{page} of before is replaced; `{option} FILE` names another page")


@contextlib.contextmanager
def errors_of(destination: str) -> Iterator[None]:
    """Says of which file that a person named an error of the system is."""
    if not destination:
        raise UsageError("a file for the result has no name", hint="name a file, or - for the terminal")
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file's name"
        raise SpaceError(f"{destination}: cannot be written: {reason}") from error
