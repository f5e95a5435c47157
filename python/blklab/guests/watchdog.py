"""The watchdog: waits for a guest, and gives up if it shows no progress in real time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from blklab.guests.process import GuestProcess
from blklab.guests.scratch import GuestFolder
from blklab.quantities.units import NS_PER_SECOND, format_bytes, format_duration

PROGRESS = "progress"
"""The file that the guest program writes to while it works."""
ANSWER = "answer.json"
"""The file with the guest program's answer."""

SILENCE_LIMIT_S = 300.0
LOG_LIMIT_BYTES = 64 << 20
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class WatchdogLimits:
    """The limits beyond which a guest counts as hung."""

    silence_s: float = SILENCE_LIMIT_S
    """Longest real time without a sign of life: progress, a line in the log, an answer."""
    log_bytes: int = LOG_LIMIT_BYTES
    """Largest log, which is kept in memory."""


def wait_for_guest(
    process: GuestProcess, folder: GuestFolder, limits: WatchdogLimits
) -> tuple[int | None, str | None]:
    """Waits until a guest ends or exceeds a limit.

    Returns:
        The exit code of the guest's kernel and None, or None and the reason for giving up.
    """
    seen: object = None
    since_s = time.monotonic()
    while True:
        code = process.wait(min(_LOOK_EVERY_S, limits.silence_s))
        if code is not None:
            return code, None
        if process.log_bytes > limits.log_bytes:
            return None, f"the guest said more than {format_bytes(limits.log_bytes)}"
        signs = [_changed_ns(folder, name) for name in (PROGRESS, ANSWER)] + [process.log_bytes]
        if signs != seen:
            seen, since_s = signs, time.monotonic()
        elif time.monotonic() - since_s > limits.silence_s:
            limit = format_duration(limits.silence_s * NS_PER_SECOND)
            return None, f"the guest hangs: no sign of progress for {limit}"


def _changed_ns(folder: GuestFolder, name: str) -> int:
    try:
        return (folder.path / name).stat().st_mtime_ns
    except OSError:
        return 0
