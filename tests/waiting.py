"""Waiting until something has happened, instead of guessing how long this machine takes for it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 900.0
"""The time after which a test counts as hung.

It is no claim about speed: every awaited event takes seconds at most on an idle machine, so that even a
machine a hundred times slower stays below it.
"""
_PAUSE_SECONDS = 0.005


def wait_until(
    condition: Callable[[], object], awaited: str, *, process: subprocess.Popen[Any] | None = None
) -> None:
    """Waits until a condition holds.

    Args:
        condition: Called again and again until it returns a true value.
        awaited: Names the condition in the failure message.
        process: A process that the condition depends on: if it ends, the test fails at once.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        ended = process is not None and process.poll() is not None
        # Once more: the process may have met the condition as its last act.
        assert not ended or condition(), f"the process ended before {awaited}"
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:.0f} s: {awaited}"
        time.sleep(_PAUSE_SECONDS)
