"""Words for the end of a process that failed."""

from __future__ import annotations


def ending(returncode: int, program: str | None = None) -> str:
    """Its exit code or the signal that killed it.

    Args:
        returncode: Its exit code; negative for a signal.
        program: A name, of which the words say that it failed; None for "it", of which the reader knows.
    """
    if returncode < 0:
        return f"{program or 'it'} was killed by signal {-returncode}"
    return (
        f"its exit code is {returncode}" if program is None else f"{program} failed (exit code {returncode})"
    )
