"""Waiting for a guest, but not for ever: it must show progress in real time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from blklab.guests.process import GuestProcess
from blklab.guests.scratch import GuestFolder
from blklab.quantities.units import format_bytes, format_duration

PROGRESS = "progress"
"""File that the guest program writes to while it works."""
ANSWER = "answer.json"

SILENCE_LIMIT_S = 300.0
LOG_LIMIT_BYTES = 64 << 20
_LOOK_EVERY_S = 2.0
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class WatchdogLimits:
    """When a guest counts as lost."""

    silence_s: float = SILENCE_LIMIT_S
    """Longest real time without a sign of life: progress, a line in the log, an answer."""
    log_bytes: int = LOG_LIMIT_BYTES
    """Most that it may say: it is kept in memory."""


def watch(
    process: GuestProcess, folder: GuestFolder, patience: WatchdogLimits
) -> tuple[int | None, str | None]:
    """Waits until a guest ends or is lost.

    Returns:
        The exit code of the guest's kernel, or nothing and why the guest counts as lost.
    """
    seen: object = None
    since_s = time.monotonic()
    while True:
        code = process.wait(min(_LOOK_EVERY_S, patience.silence_s))
        if code is not None:
            return code, None
        if process.log_bytes > patience.log_bytes:
            return None, f"the guest said more than {format_bytes(patience.log_bytes)}"
        signs = [_changed_ns(folder, name) for name in (PROGRESS, ANSWER)] + [process.log_bytes]
        if signs != seen:
            seen, since_s = signs, time.monotonic()
        elif time.monotonic() - since_s > patience.silence_s:
            limit = format_duration(patience.silence_s * _NS_PER_S)
            return None, f"the guest hangs: no sign of progress for {limit}"


def _changed_ns(folder: GuestFolder, name: str) -> int:
    try:
        return (folder.path / name).stat().st_mtime_ns
    except OSError:
        return 0
