"""What a guest that failed said last, in a few lines."""

from __future__ import annotations

import re

_STAMP = re.compile(r"^\[\s*\d+\.\d+\] ?")
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_TRACE = re.compile(
    r"(CPU: \d+ PID:|Stack:|Call Trace:|[0-9a-f]{8} [0-9a-f]{8}|\[<[0-9a-f]+>\]|---\[ end Kernel)"
)
_OUT_OF_MEMORY = re.compile(
    r"Out of memory: Killed process|System is deadlocked on memory|invoked oom-killer"
)
_LINES = 8


def failure_reason(log: str) -> str | None:
    """Why the guest's kernel stopped, if it says so."""
    if _OUT_OF_MEMORY.search(log):
        return "the guest ran out of memory (--memory gives it more)"
    panics = _PANIC.findall(log)
    if panics:
        return f"the guest's kernel panicked: {panics[0].strip()}"
    return None


def log_tail(log: str) -> str:
    """The last lines that say something, joined by ``|``: no time stamps, stacks or repeated lines."""
    lines = [_STAMP.sub("", line).strip() for line in log.splitlines()]
    telling: list[str] = []
    for line in lines:
        if line and not _TRACE.match(line) and telling[-1:] != [line]:
            telling.append(line)
    return " | ".join(telling[-_LINES:])


def with_log_tail(message: str, log: str) -> str:
    """A message with the end of the log behind it."""
    end = log_tail(log)
    return f"{message}; its log ends with: {end}" if end else f"{message}; its log is empty"
