"""The processors of this machine that we may use."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not every system has it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
