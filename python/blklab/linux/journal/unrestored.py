"""Errors of restoring beside results: a setting that came back late must not cost a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from blklab.errors import RestoreError

_collectors: list[list[RestoreError]] = []


@contextmanager
def errors_beside_results() -> Iterator[list[RestoreError]]:
    """Collects the errors of journals that end meanwhile; without it each raises its own.

    The caller must report them: settings of this machine are not as before.
    """
    found: list[RestoreError] = []
    _collectors.append(found)
    try:
        yield found
    finally:
        _collectors.pop()


def report_unrestored(error: RestoreError) -> None:
    """Hands an error to the innermost collector.

    Raises:
        RestoreError: this one, if nobody collects.
    """
    if not _collectors:
        raise error
    _collectors[-1].append(error)
